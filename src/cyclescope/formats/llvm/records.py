"""LLVM's records as `llvm-tblgen -dump-json` prints them: those that scheduling models are made of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from cyclescope.formats.exchange import FormatError, shortened

MOST_BYTES = 1 << 30  # LLVM 14 prints 140 MB of x86
_INSTANCES = "!instanceof"
_LONGEST = 200  # characters of a reason
T = TypeVar("T")


class RecordName(msgspec.Struct, frozen=True):
    """Another record."""

    name: str = msgspec.field(name="def")


class Dag(msgspec.Struct, frozen=True):
    """What an operator is applied to: values and their names."""

    args: list[tuple[object, str | None]]


class ModelRecord(msgspec.Struct, frozen=True):
    """A `SchedMachineModel`."""

    width: int = msgspec.field(name="IssueWidth")
    buffer: int = msgspec.field(name="MicroOpBufferSize")
    load_latency: int = msgspec.field(name="LoadLatency")
    mispredict: int = msgspec.field(name="MispredictPenalty")


class CpuRecord(msgspec.Struct, frozen=True):
    """A `ProcessorModel`: a CPU's name, and its model."""

    name: str = msgspec.field(name="Name")
    model: RecordName | None = msgspec.field(name="SchedModel", default=None)


class UnitRecord(msgspec.Struct, frozen=True):
    """A `ProcResource` of equal units, or a `ProcResGroup` of others."""

    model: RecordName | None = msgspec.field(name="SchedModel", default=None)
    units: int = msgspec.field(name="NumUnits", default=1)
    parent: RecordName | None = msgspec.field(name="Super", default=None)
    buffer: int = msgspec.field(name="BufferSize", default=-1)
    members: list[RecordName] = msgspec.field(name="Resources", default_factory=list)


class WriteRecord(msgspec.Struct, frozen=True):
    """A `WriteRes` of a type, or a `SchedWriteRes` of its own; the cycles had another name before LLVM 18."""

    latency: int = msgspec.field(name="Latency")
    slots: int = msgspec.field(name="NumMicroOps")
    resources: list[RecordName] = msgspec.field(name="ProcResources", default_factory=list)
    model: RecordName | None = msgspec.field(name="SchedModel", default=None)
    type: RecordName | None = msgspec.field(name="WriteType", default=None)
    unsupported: int = msgspec.field(name="Unsupported", default=0)
    released: list[int] = msgspec.field(name="ReleaseAtCycles", default_factory=list)
    acquired: list[int] = msgspec.field(name="AcquireAtCycles", default_factory=list)
    busy: list[int] = msgspec.field(name="ResourceCycles", default_factory=list)


class AdvanceRecord(msgspec.Struct, frozen=True):
    """A `ReadAdvance` of a type, or a `SchedReadAdvance` of its own."""

    cycles: int = msgspec.field(name="Cycles")
    model: RecordName | None = msgspec.field(name="SchedModel", default=None)
    type: RecordName | None = msgspec.field(name="ReadType", default=None)
    of: list[RecordName] = msgspec.field(name="ValidWrites", default_factory=list)


class SequenceRecord(msgspec.Struct, frozen=True):
    """A `WriteSequence`: writes behind each other, all of them so many times."""

    writes: list[RecordName] = msgspec.field(name="Writes")
    repeat: int = msgspec.field(name="Repeat", default=1)


class AliasRecord(msgspec.Struct, frozen=True):
    """A `SchedAlias`: what stands for another in a model."""

    matched: RecordName = msgspec.field(name="MatchRW")
    meant: RecordName = msgspec.field(name="AliasRW")
    model: RecordName | None = msgspec.field(name="SchedModel", default=None)


class VariantsRecord(msgspec.Struct, frozen=True):
    """A `SchedVariant`: what is taken depends on operands; the last one is for all others."""

    variants: list[RecordName] = msgspec.field(name="Variants")
    model: RecordName | None = msgspec.field(name="SchedModel", default=None)


class SelectionRecord(msgspec.Struct, frozen=True):
    """A `SchedVar`."""

    selected: list[RecordName] = msgspec.field(name="Selected")


class ChoiceRecord(msgspec.Struct, frozen=True):
    """An `InstRW`: what instructions cost in a model."""

    instructions: Dag = msgspec.field(name="Instrs")
    costs: list[RecordName] = msgspec.field(name="OperandReadWrites")
    model: RecordName | None = msgspec.field(name="SchedModel", default=None)


class OpcodeRecord(msgspec.Struct, frozen=True):
    """An `Instruction`."""

    costs: list[RecordName] | None = msgspec.field(name="SchedRW", default=None)
    written: list[RecordName] = msgspec.field(name="Defs", default_factory=list)


M = TypeVar("M", AliasRecord, ChoiceRecord, AdvanceRecord, WriteRecord)


class TargetRecords:
    """All records of a file, each read when it is asked for. Raises FormatError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise FormatError(f"{path} is larger than {MOST_BYTES >> 20} MiB", "no target of LLVM is")
        try:
            self._raw = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
            every = msgspec.json.decode(self._raw.get(_INSTANCES, b"{}"), type=dict[str, list[str]])
        except (msgspec.MsgspecError, RecursionError) as error:
            raise FormatError(f"{path} is no output of llvm-tblgen -dump-json: {_told(error)}") from None
        self._instances = {name: frozenset(some) for name, some in every.items()}

    def own(self, kind: str, type_: type[M], model: str) -> Iterator[M]:
        """The records of a class that are of a model. Raises FormatError."""
        for name in self.of(kind):
            one = self.read(name, type_)
            if one.model is not None and one.model.name == model:
                yield one

    def of(self, kind: str) -> list[str]:
        """Names of all records of a class, in an order that is always the same."""
        return sorted(self._instances.get(kind, ()))

    def is_a(self, name: str, kind: str) -> bool:
        """Whether a record is of a class."""
        return name in self._instances.get(kind, ())

    def read(self, name: str, kind: type[T]) -> T:
        """A record. Raises FormatError."""
        try:
            return msgspec.json.decode(self._raw[name], type=kind)
        except KeyError:
            raise FormatError(f"{self._path} has no record {shortened(name)!r}") from None
        except (msgspec.MsgspecError, RecursionError) as error:
            raise FormatError(f"{self._path}: record {shortened(name)!r}: {_told(error)}") from None


def _told(error: Exception) -> str:
    """A reason in one line."""
    return re.sub(r"\s+", " ", str(error))[:_LONGEST]
