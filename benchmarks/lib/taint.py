"""Whether the kernels of AArch64 and RISC-V carry the dependency that they are to measure.

A mark is put on a pair's source, and follows what the table says that instructions read and write once
around the body. It has to come back to the source through the pair of every instance, and through no other
pair of the form: that would be another chain. A register that is XORed onto keeps its mark past the form,
which is no chain of the form.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from cyclescope.isa.dataflow import Node, Pair, is_old, pairs, targets
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.kernel.block import Register
from cyclescope.kernel.chain import Chain, Use
from cyclescope.kernel.fixed_width.registers import Pools, choices, fixed_registers
from cyclescope.kernel.instruction import Instruction
from cyclescope.measure.plan import Planner

Items = list[tuple[Instruction, bool]]  # whether it is the form under test
PAST, THROUGH, ASTRAY = 1, 2, 4  # a mark's way: past the form, through the pair, through another of its pairs
KEEPING = 2  # instructions that XOR onto an address, which keeps its own value
Marked = dict[Register, int]  # with the ways that marks came


class Verdict(msgspec.Struct, frozen=True):
    """Of one chain: whether the mark came back, and whether it did so by another way."""

    form: str
    source: str
    target: str
    variant: str
    returns: bool
    other_way: bool
    text: str

    @property
    def good(self) -> bool:
        """Whether the pair's dependency alone closes the chain."""
        return self.returns and not self.other_way


class Marks:
    """Follows marks through the instructions of a kernel, which starts with `general` registers."""

    def __init__(self, pools: Pools, general: tuple[int, ...]) -> None:
        self.isa = pools.isa
        self._general = {("r", n): value for n, value in enumerate(general)}
        self._general["SP", 0] = general[pools.stack]
        self._base = general[pools.base]

    def places(self, instruction: Instruction, node: Node) -> set[Register]:
        """Registers, or memory, that a node of an instruction is."""
        op = instruction.form.operands[node.operand]
        if node.part != "data":
            return set(self._registers(instruction, node.operand, op))
        return {("memory", self._memory(instruction, op.name.strip("[]")))}

    def _registers(self, instruction: Instruction, operand: int, op: Operand) -> tuple[Register, ...]:
        form = instruction.form
        fields = [field for field in form.bits.fields if field.is_register] if form.bits else []
        for field, value in zip(fields, instruction.registers, strict=True):
            if field.operand == operand:
                return choices(field, self.isa).get(value) or fixed_registers(op, self.isa)
        return fixed_registers(op, self.isa)

    def _memory(self, instruction: Instruction, base: str) -> int:
        """The address that a base starts with: what the elements of vectors have, and what has no base."""
        for position, op in enumerate(instruction.form.operands):
            if base in (op.name, op.fixed):
                register = next(iter(self._registers(instruction, position, op)), ("", 0))
                return self._general.get(register, self._base)
        return self._base

    def after(self, instruction: Instruction, marked: Marked, tested: Pair | None) -> Marked:
        """What is marked after an instruction; `tested` is the pair of one that is the form under test."""
        result = dict(marked)
        known = pairs(instruction.form)
        for target in targets(instruction.form):
            ways = 0
            for pair in known:
                if pair.target == target:
                    same = tested is not None and self._are_one(instruction, pair, tested)
                    ways |= _through(self._ways(instruction, pair.source, marked), pair, tested, same)
            for place in self.places(instruction, target):
                result[place] = ways
        return result

    def _are_one(self, instruction: Instruction, pair: Pair, tested: Pair) -> bool:
        """Whether a pair is the tested one, perhaps by another name of one register."""
        places = (self.places(instruction, each.source) for each in (pair, tested))
        return pair.target.name == tested.target.name and next(places) == next(places)

    def _ways(self, instruction: Instruction, source: Node, marked: Marked) -> int:
        ways = 0
        for place in self.places(instruction, source):
            ways |= marked.get(place, 0)
        return ways


def _through(ways: int, pair: Pair, tested: Pair | None, same: bool) -> int:
    """The ways of a mark that has passed through a pair; a base that moves on is sooner there than data."""
    moves_on = pair.source.part == "address" and pair.source.operand == pair.target.operand
    if tested is None or not ways or (moves_on and not same):
        return ways
    if same:
        return ways & ~PAST | (THROUGH if ways & PAST else 0)
    return ASTRAY


def around(marks: Marks, items: Items, pair: Pair) -> int:
    """The ways by which a mark on the source of the first instance is there again one period later."""
    first = next(n for n, (_, tested) in enumerate(items) if tested)
    start = marks.places(items[first][0], pair.source)
    marked: Marked = dict.fromkeys(start, PAST)
    for instruction, tested in [*items[first:], *items[:first]]:
        marked = marks.after(instruction, marked, pair if tested else None)
    ways = 0
    for place in start:
        ways |= marked.get(place, 0)
    return ways


def verdicts(planner: Planner, form: InstructionForm) -> Iterator[Verdict]:
    """One verdict per latency chain of a form."""
    pools = planner.dialect.helpers.pools  # type: ignore[attr-defined]
    by_name = {(pair.source.name, pair.target.name): pair for pair in pairs(form)}
    for chain, experiment in zip(planner.plan(form).chains, planner.latency(form), strict=True):
        if is_old(chain.source):  # nothing goes from what is overwritten to what overwrites it
            continue
        pair = by_name[chain.source, chain.target]
        marks = Marks(pools, experiment.kernel.state.general)
        items = _items(chain, experiment.kernel.body)
        ways = around(marks, items, pair)
        yield Verdict(
            form.id, chain.source, chain.target, chain.variant, bool(ways & THROUGH), bool(ways & ASTRAY),
            experiment.kernel.text(),
        )  # fmt: skip


def _items(chain: Chain, body: tuple[Instruction, ...]) -> Items:
    return [(made, isinstance(item, Use)) for item, made in zip(chain.items, body, strict=True)]


# --- closed chains of links ------------------------------------------------------------------------


def longest(marks: Marks, body: tuple[Instruction, ...]) -> int:
    """The most instructions that a mark passes from a place around a kernel's body and back to the place."""
    written = {
        place for made in body for target in targets(made.form) for place in marks.places(made, target)
    }
    return max((_passed(marks, body, place) for place in written), default=0)


def _passed(marks: Marks, body: tuple[Instruction, ...], start: Register) -> int:
    """Instructions that a mark has passed when it is back at its start, 0 where it is not."""
    counts = {start: 0}
    for made in body:
        after = dict(counts)
        for target in targets(made.form):
            found = [
                counts[place]
                for pair in pairs(made.form)
                if pair.target == target
                for place in marks.places(made, pair.source)
                if place in counts
            ]
            for place in marks.places(made, target):
                after.pop(place, None)
                if found:
                    after[place] = max(found) + 1
        counts = after
    return counts.get(start, 0)


def cycles(planner: Planner) -> Iterator[tuple[str, str, int, int]]:
    """Of every closed chain of links: name, variant, instructions that a mark passes, and instructions."""
    pools = planner.dialect.helpers.pools  # type: ignore[attr-defined]
    for made in planner.link_experiments():
        marks = Marks(pools, (*made.kernel.state.general, *[0] * 32)[:32])
        yield made.form, made.variant, longest(marks, made.kernel.body), len(made.kernel.body)
