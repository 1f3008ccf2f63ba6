"""Latencies from every source to every target of a form, and how its place in a block changes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from cyclescope.isa.dataflow import OLD, Node, sources
from cyclescope.isa.registry import mnemonics
from cyclescope.model.behaviour.published import MoreWork
from cyclescope.model.machine import Core, FormCost
from cyclescope.once import once
from cyclescope.simulate.cost import USUAL_LATENCY, ZERO, Ends, Latencies

FIRST, SECOND = "first", "second"  # of a fused pair
EXECUTED = "first, executed"  # the same where nobody knows the ports of what executes both
FIRSTS = (FIRST, EXECUTED)
_ADDRESS = ("address", "index")
Column = tuple[tuple[int, float], ...]  # (source, cycles)


class CostVariant(msgspec.Struct, frozen=True):
    """What the surroundings make of an instruction: idiom, part of a fused pair, renamed memory.

    `passing` are the cycles in which what it loads comes from a store, where that was found out, `passes`
    tells of a store to such a load: its latencies are those of computing alone. `indexed` tells of a
    store to an address with an index, where that makes a difference. `latency` are the cycles of every
    result that a comment in the source asks for, `later` by how many cycles what it loads comes later
    than usually. `executed` tells of a move that the renamer would eliminate, but for the register that
    it copies. `more` is what it needs by what its address is made of, `slower` tells of an address with an
    index that makes it slower. `pointed` tells of an operation on the stack pointer, where these wait for
    each other. `addressed` are the cycles by which results come later from the base, and from the index, of
    its address than the form's own. `again` are the pairs from a source to a target that it updates, where
    both are one register.
    """

    idiom: str = ""
    fused: str = ""
    renamed: bool = False
    indexed: bool = False
    latency: float | None = None
    passing: float | None = None
    passes: bool = False
    later: float = 0.0
    executed: bool = False
    more: MoreWork = MoreWork()
    slower: bool = False
    pointed: bool = False
    addressed: tuple[int, int] = (0, 0)
    again: tuple[str, ...] = ()

    @property
    def is_second(self) -> bool:
        """Whether it is the second of a fused pair: what both need is told of the first."""
        return self.fused == SECOND

    @property
    def changes_latencies(self) -> bool:
        """Whether latencies are others than those of the form's cost."""
        return bool(
            self.idiom or self.fused or self.renamed or self.passes or self.later or any(self.addressed)
            or self.latency is not None or self.passing is not None
        )  # fmt: skip


class AllEnds(Ends, frozen=True):
    """Sources and targets of a form, with the registers of every address, encodable or not."""

    @once
    def sources(self) -> list[Node]:
        """Everything that the form reads, and old values of destinations that it waits for."""
        found = sources(self.form)
        known = {node.name for node in found}
        for position, op in enumerate(self.form.operands):
            if op.kind in ("memory", "address") and not op.implicit:
                parts = (("address", "r"), ("index", "v" if op.cls.startswith("VSIB_") else "r"))
                nodes = (Node(f"{op.name}.{part}", part, file, position) for part, file in parts)
                found += [node for node in nodes if node.name not in known]
        return [*found, *self.old]

    @once
    def is_usual(self) -> bool:
        """Whether no two of its ends are apart, and no base of an address is moved on."""
        name, moved = self.form.mnemonic, any([op.role == "base" for op in self.form.operands])  # noqa: C419 - quicker
        return not (moved or self.is_for_each or name in mnemonics("exchanges") or name in mnemonics("sums"))


class PlacedLatencies:
    """Latencies from every source to every target in a variant.

    `proved` counts those alone that the model has: of others nobody knows whether there is a dependency.
    `load` are the cycles of a plain load into registers of the form's kind.
    """

    def __init__(
        self, ends: AllEnds, cost: FormCost, core: Core, variant: CostVariant, extracted: bool, moves: bool,
        proved: bool = False, load: float = 0.0,
    ) -> None:  # fmt: skip
        self.ends, self.cost, self.variant, self._is_move = ends, cost, variant, moves
        self._proved = proved
        self._core, self._extracted = core, extracted
        self._load, self._plain_load = core.load_latency, load
        self._is_usual = ends.is_usual and not cost.eliminated and not variant.changes_latencies

    @once
    def _latencies(self) -> Latencies:
        """Those of the cost with its gaps filled: most costs have none."""
        return Latencies(self.ends, self.cost, self._core, self._extracted)

    def columns(self) -> tuple[tuple[int, ...], tuple[Column, ...]]:
        """Per target the number of its column, and the columns. Memory has columns of its own."""
        numbers: dict[tuple[str, Column], int] = {}
        found = []
        for target in self.ends.targets:
            key = target.name if target.part == "data" else "", self._column(target)
            found.append(numbers.setdefault(key, len(numbers)))
        return tuple(found), tuple(column for _, column in numbers)

    def _column(self, target: Node) -> Column:
        rows = [(k, self.between(source, target)) for k, source in enumerate(self.ends.sources)]
        return tuple([(k, cycles) for k, cycles in rows if cycles is not None])

    def between(self, source: Node, target: Node) -> float | None:
        """Cycles from a source to a target, None where it does not depend on it."""
        if self._is_usual:
            given = self.cost.latencies.get(f"{source.name}->{target.name}", 0.0)
            if given > 0:
                return given + 0.0  # some are whole numbers
        idiom = self.variant.idiom
        if self.ends.is_apart(source, target):
            return None
        if idiom and (idiom == ZERO or source.part in ("register", OLD)):
            return None
        if self.cost.eliminated:
            return None if source.part == OLD else 0.0
        cycles = self._latencies.between(source, target)
        if cycles is None:
            return None
        if self.variant.latency is not None and target.part != "data":
            return self.variant.latency
        if self._proved and self._is_guessed(source, target):
            return 0.0
        late = self.variant.later if self.ends.is_loaded(source) else 0.0
        if source.part in _ADDRESS and not self.ends.form.operands[source.operand].implicit:
            late += self.variant.addressed[_ADDRESS.index(source.part)]
        return self._in_place(cycles, source, target) + late

    def _in_place(self, cycles: float, source: Node, target: Node) -> float:
        """Cycles of a pair in its surroundings."""
        variant = self.variant
        if variant.fused in FIRSTS and source.part == target.part == "register":
            return max(cycles, USUAL_LATENCY)  # what is fused with a branch is executed with it
        if source.part == "data" and variant.passing is not None:
            return variant.passing + self.computing
        if target.part == "data" and variant.passes:
            return self.computing
        if not variant.renamed:
            return cycles
        if target.part == "data" and not self.ends.computes:
            return 0.0
        return max(cycles - self._load, 0.0) if source.part == "data" else cycles

    @once
    def computing(self) -> float:
        """Cycles from loaded values to results in registers and flags, without the load."""
        if self._is_move or not self.ends.computes:
            return 0.0
        known, ranges = self.cost.latencies, self.cost.ranges
        every = [
            (s, f"{s.name}->{t.name}") for s in self.ends.sources for t in self.ends.targets
            if s.part != OLD and t.part != "data" and not self.ends.is_pointer(t)
        ]  # fmt: skip
        told = [(s, known[pair]) for s, pair in every if pair in known and pair not in ranges]
        ways = told or [(s, known[pair]) for s, pair in every if pair in known]
        direct = [cycles for s, cycles in ways if not self.ends.is_loaded(s)]
        if direct:
            return max(direct)
        through = [cycles for s, cycles in ways if self.ends.is_address(s)]
        if through:
            return max(min(through) - self._plain_load, 0.0)
        if not ways and self.ends.only_loads:
            return 0.0
        return max(min((cycles for _, cycles in ways), default=0.0) - self._load, USUAL_LATENCY)

    def base_of(self, column: Column) -> float:
        """Cycles of a value from dispatch on; of one that waits for something, that decides."""
        read = any(self.ends.sources[k].part != OLD for k, _ in column)
        return 0.0 if read else self.base()

    def base(self) -> float:
        """Cycles of a target that waits for nothing."""
        if self.variant.latency is not None:
            return self.variant.latency
        idle = self.cost.eliminated or self.variant.idiom == ZERO or "nop" in self.ends.form.attributes
        return 0.0 if idle else self._latencies.own or USUAL_LATENCY

    def is_open_store(self, target: Node) -> bool:
        """Whether the model has no latency of the way to memory."""
        if target.part != "data" or self.variant.renamed or self.variant.passes:
            return False
        return not any(pair.endswith(f"->{target.name}") for pair in self.cost.latencies)

    def guessed(self, column_of: Sequence[int]) -> frozenset[tuple[int, int]]:
        """(source, column) of pairs that have the latency of another pair of the form, or 1."""
        if self.variant.idiom or self.cost.eliminated or self.variant.latency is not None:
            return frozenset()
        return frozenset(
            (k, column)
            for k, s in enumerate(self.ends.sources)
            for t, column in zip(self.ends.targets, column_of, strict=True)
            if self._is_guessed(s, t)
        )

    def _is_guessed(self, source: Node, target: Node) -> bool:
        """Whether the model has no latency of a pair that lies in registers and flags."""
        inside = source.part in ("register", "flag") and target.part != "data"
        known: Mapping[str, float] = self.cost.latencies
        return (
            inside and f"{source.name}->{target.name}" not in known and not self._is_pointer(source, target)
        )

    def _is_pointer(self, source: Node, target: Node) -> bool:
        return self.ends.is_pointer(target) or self.ends.is_address(source)
