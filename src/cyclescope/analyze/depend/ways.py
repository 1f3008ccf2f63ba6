"""How long loads of what the block itself stored take, on cores of which probes measured that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from cyclescope.analyze.cost.instruction import PlacedCost
from cyclescope.analyze.decode.block import BlockInstruction
from cyclescope.analyze.decode.known_values import is_overwritten
from cyclescope.analyze.decode.locations import STACK_POINTER, Location, Places, location_of
from cyclescope.analyze.depend.memory import Passage
from cyclescope.model.behaviour.passing import MOST_SHORT, MemoryPassing, StoredLoad, work_of
from cyclescope.model.facts import MemoryWay

_Item = TypeVar("_Item")


class KnownWays:
    """The ways through memory of a block, by what is known of the core's; `costs` are plain costs.

    `sooner` are the cycles by which loads into general registers take less than those into vectors.
    """

    def __init__(
        self,
        instructions: Sequence[BlockInstruction],
        costs: Sequence[PlacedCost],
        places: Sequence[Places],
        passages: Sequence[Passage],
        passing: MemoryPassing,
        sooner: float = 0.0,
    ) -> None:
        self._instructions, self._costs, self._places = instructions, costs, places
        self._passages, self._passing, self._sooner = passages, passing, sooner
        last = instructions[-1].form
        loops = last is not None and "branch" in last.attributes
        self._few = loops and len(passages) <= MOST_SHORT

    def told(self) -> tuple[dict[int, float], set[int]]:
        """Cycles from memory by instructions that load what was stored, and the instructions that store it.

        Nothing of what no probe found out.
        """
        ways = [(p, self._stored_load(p)) for p in self._passages]
        read = {p.store for p in self._passages if p.load[0] != p.store[0]}
        known = {
            p: self._passing.cycles(one) for p, one in ways
            if p.store in read or not (self._is_chained(p) and self._is_plain(one))
        }  # fmt: skip
        open_ones = {p.store for p, cycles in known.items() if cycles is None}
        told = {
            p: max(c - self._earlier(p), 0.0) for p, c in known.items()
            if c is not None and p.store not in open_ones
        }  # fmt: skip
        loads: dict[int, float] = {}
        for passage, cycles in told.items():
            loads[passage.load[0]] = max(cycles, loads.get(passage.load[0], 0.0))
        return loads, {passage.store[0] for passage in told}

    def failed(self) -> tuple[Passage, ...]:
        """The ways whose loads wait until the store is in the cache."""
        return tuple(p for p in self._passages if self._passing.is_failed(self._stored_load(p)))

    def _earlier(self, passage: Passage) -> float:
        """Cycles by which what a vector stored is in a general register sooner: vectors are asked alone."""
        reader, writer = (self._instructions[n].form for n in (passage.load[0], passage.store[0]))
        assert reader is not None
        assert writer is not None
        return self._sooner if writer.vector_width and not reader.vector_width else 0.0

    def _is_plain(self, one: StoredLoad) -> bool:
        """Whether a way takes no longer than that by which latencies of instructions are measured."""
        plain = one._replace(way=MemoryWay.BASE, between=0, does=None, few=False)
        return self._passing.cycles(one) == self._passing.cycles(plain)

    def _is_chained(self, passage: Passage) -> bool:
        """Whether an instruction loads what it stored itself, and its latency was measured as such."""
        if passage.load[0] != passage.store[0]:
            return False
        placed = self._costs[passage.load[0]]
        return _own_trip(placed, passage.load[1]) in placed.cost.latencies

    def _stored_load(self, passage: Passage) -> StoredLoad:
        reader, writer = self._instructions[passage.load[0]], self._instructions[passage.store[0]]
        assert reader.form is not None
        assert writer.form is not None
        loaded, stored = reader.form.operands[passage.load[1]], writer.form.operands[passage.store[1]]
        vector = bool(reader.form.vector_width or writer.form.vector_width)
        updates = self._is_update(passage.load)
        does = None if updates else work_of(reader.form, loaded)
        sizes, way = (stored.width, loaded.width, passage.offset), self._way(passage)
        unasked = reader.form.on_masks_or_x87 or writer.form.on_masks_or_x87
        unasked |= "string" in reader.form.attributes
        ends = [(self._costs[number], operand) for number, operand in (passage.load, passage.store)]
        alone = max(placed.cost.latencies.get(_own_trip(placed, operand), 0.0) for placed, operand in ends)
        stores = ends[1][0]
        own = stores.cost.latencies.get(_own_trip(*ends[1])) if self._is_update(passage.store) else None
        updated = None if own is None else max(own - stores.computing, 0.0)
        return StoredLoad(
            *sizes, way, vector, passage.between, self._few, does, unasked, alone, updated, updates
        )

    def _way(self, passage: Passage) -> MemoryWay:
        """By what registers the two addresses are made."""
        source = self._instructions[passage.load[0]].memory[passage.load[1]]
        target = self._instructions[passage.store[0]].memory[passage.store[1]]
        if source is None or target is None:
            return MemoryWay.INDEXED
        registers = location_of(source.base), location_of(source.index)
        if registers != (location_of(target.base), location_of(target.index)):
            return MemoryWay.OTHER
        both = self._is_update(passage.load) and self._is_update(passage.store)
        if registers == (STACK_POINTER, None):
            return MemoryWay.STACK_UPDATED if both else self._stack_way(passage)
        if any(self._is_written_between(passage, one) for one in registers if one is not None):
            return MemoryWay.UPDATED if both else MemoryWay.REWRITTEN
        if both and self._passing.is_forwarded(MemoryWay.BASE):
            return MemoryWay.UPDATED  # whether a base is written that nobody renames by makes no difference
        return MemoryWay.INDEXED if registers[1] is not None else MemoryWay.BASE

    def _stack_way(self, passage: Passage) -> MemoryWay:
        between = self._between(passage, self._instructions)
        return MemoryWay.STACK_OVERWRITTEN if any(map(_overwrites_stack, between)) else MemoryWay.STACK

    def _is_update(self, access: tuple[int, int]) -> bool:
        """Whether an instruction reads what it writes there."""
        number, operand = access
        form = self._instructions[number].form
        return form is not None and form.operands[operand].read and form.operands[operand].write

    def _is_written_between(self, passage: Passage, base: Location | None) -> bool:
        return any(base in places.targets for places in self._between(passage, self._places))

    def _between(self, passage: Passage, some: Sequence[_Item]) -> Sequence[_Item]:
        """Those of a block's instructions, or of what belongs to them, from the store to the load."""
        load, store = passage.load[0], passage.store[0]
        if passage.distance == 0:
            return some[store:load]
        return (*some[store:], *some[:load], *(some if passage.distance > 1 else ()))


def _overwrites_stack(one: BlockInstruction) -> bool:
    """Whether the stack pointer is written whatever it was: not by a push or a pop, nor moved by a sum."""
    if one.form is None or "stack" in one.form.attributes:
        return False
    pairs = zip(one.form.operands, one.registers, strict=True)
    return any(is_overwritten(op) and location_of(register) == STACK_POINTER for op, register in pairs)


def _own_trip(placed: PlacedCost, operand: int) -> str:
    """The pair of what an instruction loads there and stores there."""
    data = f"{placed.form.operands[operand].name}.data"
    return f"{data}->{data}"
