"""Scheduling classes of LLVM, and what a form of one costs.

A class has a write per result and reads that may come late; a write keeps resources busy for so many cycles.
Results beyond the last write take as long as the slowest, as llvm-mca has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from cyclescope.formats.exchange import Draft
from cyclescope.formats.llvm.operands import (
    LlvmOperand,
    implicit_results,
    implicit_sources,
    is_llvms,
    only,
    operands,
    results,
    untied_name,
)
from cyclescope.formats.llvm.resources import ProcessorResource, Resources
from cyclescope.isa.dataflow import Node, is_old, pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.model.machine import Operation

_PARTS = {"address": 0, "index": 2}  # of LLVM's five operands of memory on x86-64
_ENDS = frozenset(("register", "flag"))
_STARTS = _ENDS | _PARTS.keys()


class Write(msgspec.Struct, frozen=True):
    """What a result takes: cycles, micro-operations, and cycles by resource (a place in a model's list)."""

    name: str
    latency: int
    slots: int
    uses: Mapping[int, int] = {}


class Advance(msgspec.Struct, frozen=True):
    """By how many cycles an operand that is read may come later than others; `of` some writes, or of all."""

    use: int
    cycles: int
    of: frozenset[str] = frozenset()


class SchedulingClass(msgspec.Struct, frozen=True):
    """What forms of a class cost; `written` are LLVM's names of the registers that are no operands of it."""

    writes: tuple[Write, ...]
    advances: tuple[Advance, ...] = ()
    written: tuple[str, ...] = ()


class Processor:
    """The resources of a model, and what classes cost on them."""

    def __init__(self, raw: Sequence[ProcessorResource]) -> None:
        self._raw = raw
        self.resources = Resources(raw)
        self._groups = [(k, frozenset(r.members)) for k, r in enumerate(raw) if r.members]

    def add(self, draft: Draft, form: InstructionForm, found: SchedulingClass) -> None:
        """What a form of a class costs, to a model in the making."""
        slots = sum(write.slots for write in found.writes)
        operations = self._operations(found.writes, slots)
        draft.add(form, slots=float(slots), operations=operations, latencies=latencies(form, found))

    def _operations(self, writes: Iterable[Write], slots: int) -> tuple[Operation, ...]:
        counted: dict[int, int] = {}
        for write in writes:
            for resource, cycles in write.uses.items():
                for one in self._containing(resource):
                    counted[one] = counted.get(one, 0) + cycles
        uses = ((resource, cycles, 0) for resource, cycles in counted.items())
        found = self.resources.operations(uses, slots)
        return tuple(Operation(tuple(ports), count, cycles) for ports, count, cycles in found)

    def _containing(self, resource: int) -> list[int]:
        """A resource, those that it is part of, and all groups with its units: llvm-tblgen counts in each."""
        every, parent = [resource], self._raw[resource].parent
        while parent:
            every.append(parent)
            parent = self._raw[parent].parent
        units = frozenset(self._raw[resource].members or (resource,))
        return every + [k for k, members in self._groups if k != resource and units <= members]


def latencies(form: InstructionForm, found: SchedulingClass) -> dict[str, float]:
    """Cycles of a form's pairs in a chain of the form with itself; LLVM has none through memory."""
    if any(one.cycles for one in found.advances) and not _has_places(form):
        return {}
    slowest = max((write.latency for write in found.writes), default=0)
    result = {}
    for pair in pairs(form):
        if pair.excluded or pair.target.part not in _ENDS or pair.source.part not in _STARTS:
            continue
        if is_old(pair.source.name):
            continue
        place = _place(form, pair.target, found.written)
        write = found.writes[place] if place is not None and place < len(found.writes) else None
        cycles = slowest if write is None else write.latency
        late = _late(form, pair.source, found.advances, write)
        result[f"{pair.source.name}->{pair.target.name}"] = float(max(0, cycles - late))
    return result


def _place(form: InstructionForm, target: Node, written: Sequence[str]) -> int | None:
    """The place of a target among what is written; None where nobody knows it."""
    if is_llvms(form):
        explicit = [
            i for i, op in enumerate(form.operands) if op.is_register and op.write and not op.implicit
        ]
        name: str | None = target.name
    else:
        explicit = [one.position for one in results(form)]
        name = untied_name(form, target) if target.operand not in explicit else None
        written = written or only(implicit_results(form))
    if target.operand in explicit:
        return explicit.index(target.operand)
    return len(explicit) + written.index(name) if name in written else None


def _late(
    form: InstructionForm, source: Node, advances: Sequence[Advance], write: Write | None
) -> int:  # fmt: skip
    """How much later than the others a source may come: the least of all places where it is read."""
    fitting = [one for one in advances if not one.of or (write is not None and write.name in one.of)]
    uses = _uses(form, source)
    by_use = {one.use: one.cycles for one in reversed(fitting)}
    return min((by_use.get(use, 0) for use in uses), default=0)


def _uses(form: InstructionForm, source: Node) -> list[int]:
    """Places of a source among LLVM's operands that are read; none for what is no operand of its own."""
    if is_llvms(form):
        return _plain_uses(form, source)
    read = operands(form)[len(results(form)) :]
    part = _PARTS.get(source.part, -1)
    found = [n for n, one in enumerate(read) if one == LlvmOperand(source.operand, part)]
    return found or [len(read) for name in only(implicit_sources(form)) if untied_name(form, source) == name]


def _plain_uses(form: InstructionForm, source: Node) -> list[int]:
    """Of AArch64 and RISC-V, whose operands are called by LLVM's numbers, from 1."""
    results_ = sum(op.is_register and op.write and not op.implicit for op in form.operands)
    op = form.operands[source.operand] if source.operand >= 0 else None
    if op is None or op.implicit or not op.name.startswith("op") or op.write:
        return []
    return [int(op.name.removeprefix("op")) - 1 - results_]


def _has_places(form: InstructionForm) -> bool:
    """Whether the places of all sources are known: of AArch64 and RISC-V not where one is written, too."""
    return not is_llvms(form) or not any(op.read and op.write and not op.implicit for op in form.operands)
