"""LLVM's scheduling models, as `llvm-tblgen -dump-json` prints them with a target's instructions.

    llvm-tblgen -dump-json -I llvm/include -I llvm/lib/Target/X86 llvm/lib/Target/X86/X86.td -o x86.json

A cost that depends on what operands are (a zero idiom, an amount of a shift) is that of all other operands.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from cyclescope.formats.exchange import MOST_CYCLES, Draft, FormatError, Imported, ImportRequest, shortened
from cyclescope.formats.llvm.classes import Advance, Processor, SchedulingClass, Write
from cyclescope.formats.llvm.operands import opcode_forms
from cyclescope.formats.llvm.patterns import opcode_pattern
from cyclescope.formats.llvm.records import (
    AdvanceRecord,
    AliasRecord,
    ChoiceRecord,
    CpuRecord,
    ModelRecord,
    OpcodeRecord,
    RecordName,
    SelectionRecord,
    SequenceRecord,
    TargetRecords,
    UnitRecord,
    VariantsRecord,
    WriteRecord,
)
from cyclescope.formats.llvm.resources import ProcessorResource
from cyclescope.isa.table import load_table
from cyclescope.model.machine import ASSUMED, EXTRACTED, Core, Provenance

LICENCE = "Apache-2.0 WITH LLVM-exception"  # of LLVM, whose files these are made of
_NONE = "NoSchedModel"
_DEEPEST = 20  # names that stand for names: LLVM's are four
_MOST_UNITS = 64  # of a resource
_MOST_RESOURCES = 1000
_NO_CLASS = "its instruction has no scheduling class in the model"


def read(path: Path, request: ImportRequest) -> Imported:
    """A model of a file: that of the column, of a CPU with this name, or the only one. Raises FormatError."""
    records = TargetRecords(path)
    name = _model(path, records, request.column)
    model = records.read(name, ModelRecord)
    draft = Draft(load_table(request.isa), request)
    _fill(draft, _Costs(records, name), _chosen(draft, records, name, list(opcode_forms(draft.table))))
    found = draft.imported(_core(model))
    origin = Provenance(EXTRACTED, f"LLVM's {name} ({request.source})", "unknown", LICENCE)
    return msgspec.structs.replace(found, model=msgspec.structs.replace(found.model, provenance=origin))


def _fill(draft: Draft, costs: _Costs, chosen: dict[str, list[RecordName]]) -> None:
    """What all opcodes of the file cost that are forms here."""
    draft.ports = costs.processor.resources.ports
    for opcode, forms in opcode_forms(draft.table).items():
        if not costs.knows(opcode):
            continue
        try:
            found = costs.of(opcode, chosen.get(opcode))
        except _UnknownCostError as error:
            draft.refuse(opcode, str(error), error.detail)
            continue
        for form in forms:
            costs.processor.add(draft, form, found)


def _core(model: ModelRecord) -> Core:
    return Core(
        float(model.width), reorder_buffer=max(0, model.buffer) if model.buffer > 1 else 0,
        load_latency=float(max(0, model.load_latency)), mispredict_penalty=float(max(0, model.mispredict)),
        in_order=0 <= model.buffer <= 1, width_kind=ASSUMED,
    )  # fmt: skip


def _model(path: Path, records: TargetRecords, column: str) -> str:
    """The name of a model. Raises FormatError where none or several are meant."""
    names = [name for name in records.of("SchedMachineModel") if name != _NONE]
    if not names:
        raise FormatError(f"{path} has no scheduling model", "is it of the whole target?")
    if not column:
        if len(names) > 1:
            raise FormatError(
                f"{path} has several machines", f"say {{column}} with one of {', '.join(names)}"
            )
        return names[0]
    if column in names:
        return column
    for name in records.of("Processor"):
        cpu = records.read(name, CpuRecord)
        if cpu.name == column and cpu.model is not None and cpu.model.name in names:
            return cpu.model.name
    raise FormatError(f"{path} has no machine {shortened(column)!r}", f"it has {', '.join(names)}")


# --- what is chosen for instructions ------------------------------------------------------------------


def _chosen(
    draft: Draft, records: TargetRecords, model: str, names: list[str]
) -> dict[str, list[RecordName]]:
    """What a model's `InstRW` say of opcodes."""
    found: dict[str, list[RecordName]] = {}
    for one in records.own("InstRW", ChoiceRecord, model):
        try:
            found |= dict.fromkeys(_meant(one, names), one.costs)
        except ValueError as error:
            draft.refuse("InstRW", "a choice of opcodes that is not understood", shortened(str(error)))
    return found


def _meant(one: ChoiceRecord, names: list[str]) -> Iterator[str]:
    """The opcodes of an `InstRW`: named, or by the beginning of their names. Raises ValueError."""
    for value, _ in one.instructions.args:
        if isinstance(value, str):
            yield from filter(opcode_pattern(value), names)
        elif isinstance(value, dict) and value.get("kind") == "def":
            yield str(value.get("def"))
        else:
            raise ValueError("an instruction that is neither named nor a pattern")


# --- costs --------------------------------------------------------------------------------------------


class _UnknownCostError(Exception):
    """A cost that a model does not have, or that is not understood; `detail` is of one instruction alone."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.detail = shortened(detail)


class _Costs:
    """What a model says of reads and writes."""

    def __init__(self, records: TargetRecords, model: str) -> None:
        self._records, self._model = records, model
        self._numbers, raw = _resources(records, model)
        self.processor = Processor(raw)
        aliases = records.own("SchedAlias", AliasRecord, model)
        self._aliases = {one.matched.name: one.meant.name for one in aliases}
        self._writes = {one.type.name: one for one in records.own("WriteRes", WriteRecord, model) if one.type}
        self._reads: dict[str, list[AdvanceRecord]] = {}
        for read_ in records.own("ReadAdvance", AdvanceRecord, model):
            if read_.type is not None:
                self._reads.setdefault(read_.type.name, []).append(read_)
        self._known: dict[str, tuple[Write, ...]] = {}

    def knows(self, opcode: str) -> bool:
        """Whether the target has an instruction of this name."""
        return self._records.is_a(opcode, "Instruction")

    def of(self, opcode: str, chosen: list[RecordName] | None) -> SchedulingClass:
        """The class of an opcode: of what the model chooses for it, else of all. Raises _UnknownCostError."""
        record = self._records.read(opcode, OpcodeRecord)
        costs = chosen if chosen is not None else record.costs
        if not costs:
            raise _UnknownCostError(_NO_CLASS)
        writes: list[Write] = []
        advances: list[Advance] = []
        place = 0
        for one in costs:
            if self._records.is_a(one.name, "SchedRead"):
                advances += self._advances(one.name, place)
                place += 1
            else:
                writes += self._written(one.name)
        return SchedulingClass(tuple(writes), tuple(advances), tuple(r.name for r in record.written))

    def _written(self, name: str, depth: int = 0) -> tuple[Write, ...]:
        """What a kind of write is in the model: several where a variant has several results."""
        if name not in self._known:
            if depth > _DEEPEST:
                raise _UnknownCostError("names that stand for each other", name)
            self._known[name] = self._new_writes(name, depth + 1)
        return self._known[name]

    def _new_writes(self, name: str, depth: int) -> tuple[Write, ...]:
        records = self._records
        if name in self._aliases:
            return self._written(self._aliases[name], depth)
        if records.is_a(name, "WriteSequence"):
            return (self._sequence(name, depth),)
        if records.is_a(name, "SchedVariant"):
            last = records.read(name, VariantsRecord).variants[-1:]
            selected = [one for v in last for one in records.read(v.name, SelectionRecord).selected]
            return tuple(write for one in selected for write in self._written(one.name, depth))
        if records.is_a(name, "SchedWriteRes"):
            return (self._write(name, records.read(name, WriteRecord)),)
        if name not in self._writes:
            raise _UnknownCostError("the model does not say what a kind of result takes", name)
        return (self._write(name, self._writes[name]),)

    def _sequence(self, name: str, depth: int) -> Write:
        """Writes behind each other, as one."""
        found = self._records.read(name, SequenceRecord)
        parts = [part for one in found.writes for part in self._written(one.name, depth)]
        uses: dict[int, int] = {}
        for part in parts:
            for resource, cycles in part.uses.items():
                uses[resource] = uses.get(resource, 0) + cycles * found.repeat
        latency = sum(part.latency for part in parts) * found.repeat
        return _bounded(Write(name, latency, sum(part.slots for part in parts) * found.repeat, uses))

    def _write(self, name: str, found: WriteRecord) -> Write:
        if found.unsupported:
            raise _UnknownCostError("the model says that it has no such instruction", name)
        ends = found.released or found.busy or [1] * len(found.resources)
        starts = found.acquired or [0] * len(ends)
        if not len(ends) == len(starts) == len(found.resources):
            raise _UnknownCostError("as many cycles as resources are expected", name)
        uses: dict[int, int] = {}
        for resource, start, end in zip(found.resources, starts, ends, strict=True):
            number = self._numbers.get(resource.name)
            if number is None:
                raise _UnknownCostError("a resource that is none of the model", resource.name)
            uses[number] = uses.get(number, 0) + end - start
        return _bounded(Write(name, found.latency, found.slots, uses))

    def _advances(self, name: str, use: int, depth: int = 0) -> list[Advance]:
        """By how much an operand may be late, in the place where it is read."""
        records = self._records
        if depth > _DEEPEST:
            raise _UnknownCostError("names that stand for each other", name)
        if name in self._aliases:
            return self._advances(self._aliases[name], use, depth + 1)
        if records.is_a(name, "SchedVariant"):
            last = records.read(name, VariantsRecord).variants[-1:]
            selected = [one for v in last for one in records.read(v.name, SelectionRecord).selected]
            return [found for one in selected for found in self._advances(one.name, use, depth + 1)]
        own = (
            [records.read(name, AdvanceRecord)]
            if records.is_a(name, "SchedReadAdvance")
            else self._reads.get(name, ())
        )
        return [Advance(use, one.cycles, frozenset(write.name for write in one.of)) for one in own]


def _bounded(write: Write) -> Write:
    """A write that can be. Raises _UnknownCostError."""
    numbers = (write.latency, write.slots, *write.uses.values())
    if not all(0 <= number <= MOST_CYCLES for number in numbers):
        raise _UnknownCostError("negative cycles, or more than any instruction takes", write.name)
    return write


def _resources(records: TargetRecords, model: str) -> tuple[dict[str, int], list[ProcessorResource]]:
    """Numbers of a model's resources by name, and what they are. Raises FormatError."""
    found = {}
    for name in (*records.of("ProcResourceUnits"), *records.of("ProcResGroup")):
        unit = records.read(name, UnitRecord)
        if unit.model is not None and unit.model.name == model:
            found[name] = unit
    if len(found) > _MOST_RESOURCES or any(not 1 <= unit.units <= _MOST_UNITS for unit in found.values()):
        raise FormatError(f"{model} has {len(found)} resources", "or one of more units than a core has")
    numbers = {name: number for number, name in enumerate(found, 1)}
    return numbers, [
        ProcessorResource(""),
        *(_resource(n, unit, numbers, found) for n, unit in found.items()),
    ]


def _resource(
    name: str, unit: UnitRecord, numbers: dict[str, int], every: dict[str, UnitRecord]
) -> ProcessorResource:  # fmt: skip
    members = [one.name for one in unit.members]
    parent = unit.parent.name if unit.parent is not None else ""
    if any(one not in numbers or every[one].members for one in members):
        raise FormatError(f"the group {shortened(name)} has a member that is no resource of the model")
    if parent and (parent not in numbers or every[parent].members or every[parent].parent is not None):
        raise FormatError(f"the resource {shortened(name)} is a part of one that cannot have parts")
    return ProcessorResource(
        shortened(name), 1 if members else unit.units, numbers.get(parent, 0), unit.buffer,
        tuple(numbers[one] for one in members),
    )  # fmt: skip
