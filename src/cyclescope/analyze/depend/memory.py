"""Dependencies through memory: which load reads what which store wrote, how many iterations before.

Addresses are compared as linear expressions (`values`): equal unknowns and overlapping bytes are the same
place, different unknowns are taken to be different places. The block is gone through three times, so that
pointers that other registers were moved to are known; stores that are further back are found by the bytes
that both addresses move by in an iteration.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from cyclescope.analyze.decode.block import Address
from cyclescope.analyze.decode.known_values import (
    KnownValues,
    OperandsSeen,
    Terms,
    Value,
    implied_amount,
    is_overwritten,
    keeps_value,
)
from cyclescope.analyze.depend.compiled.passages import MemoryFound
from cyclescope.analyze.depend.followed import Followed, FollowedResult, LocatedInstruction, followed
from cyclescope.analyze.depend.traffic import (
    MemoryAccess,
    MovingAccess,
    cycles_of_banks,
    cycles_of_chunks,
    cycles_of_crossing,
    cycles_of_lines,
    longer_across,
    moving,
)
from cyclescope.isa.dataflow import AMOUNT
from cyclescope.isa.registry import instruction_set
from cyclescope.model.behaviour.published import CoreBehaviour

BLOCK_TURNS = 3  # a pointer is followed through two moves, each to an iteration later: those of rotated loops
_NOTHING_KNOWN = CoreBehaviour()
MOST_TERMS = 4  # of a value that is followed: no address has more


class Passage(msgspec.Struct, frozen=True, gc=False):
    """A load at `load` (instruction, operand) of what `store` wrote, `distance` iterations before.

    It begins `offset` bytes behind the store, with `between` other stores after that one.
    """

    load: tuple[int, int]
    store: tuple[int, int]
    distance: int
    offset: int = 0
    between: int = 0


class Memory(msgspec.Struct, frozen=True, gc=False):
    """What a block does to memory: loads of what it stored, and cycles in which its `chunks` of stores leave.

    `banks` are the cycles of one iteration in which the loads of the busiest bank of the cache are done,
    `crossing` those of all loads, or all stores, where some have bytes in two lines, and `longer` by how many
    loads take longer for that.
    """

    passages: tuple[Passage, ...] = ()
    chunks: float = 0.0
    banks: float = 0.0
    crossing: float = 0.0
    longer: float = 0.0


def through_memory(
    lines: Sequence[LocatedInstruction],
    in_flight: int,
    core: CoreBehaviour = _NOTHING_KNOWN,
    *,
    isa: str,
) -> Memory:
    """Dependencies through memory, at most `in_flight` stores back, and what else is known of the core's."""
    accesses = [one for line in lines for one in line.accesses]
    stores, loads = any(one.write for one in accesses), any(one.read for one in accesses)
    chunks = core.store_chunk if stores else None
    lines_of_stores = core.store_lines if stores else None
    banks = core.banks if loads else None
    crossings = core.crossing if loads else None, core.store_crossing if stores else None
    passes = stores and loads
    if not (passes or chunks or lines_of_stores or banks or any(crossings)):
        return Memory()
    found = _Search(in_flight, passes)
    steps = followed(lines, instruction_set(isa).arithmetic.results)
    found.go_through(steps)
    return Memory(
        tuple(found.passages()) if passes else (),
        max(
            cycles_of_chunks(found.moving(write=True), chunks) if chunks else 0.0,
            cycles_of_lines(found.moving(write=True), lines_of_stores) if lines_of_stores else 0.0,
        ),
        cycles_of_banks(found.moving(write=False), banks) if banks else 0.0,
        max(
            cycles_of_crossing(found.moving(write), crossing) if crossing else 0.0
            for write, crossing in zip((False, True), crossings, strict=True)
        ),
        longer_across(found.moving(write=False), crossings[0]) if crossings[0] else 0.0,
    )


def memory_of(found: MemoryFound) -> Memory:
    """The same by compiled code."""
    passages = [Passage((a, b), (c, d), e, f, g) for a, b, c, d, e, f, g in found.passages]
    return Memory(tuple(passages), found.chunks, found.banks, found.crossing, found.longer)


class _Stored(msgspec.Struct, frozen=True, gc=False):
    """A store in a round; `order` counts all of them."""

    number: int
    access: MemoryAccess
    order: int


class _Touched(NamedTuple):
    """What an instruction accesses in a round; addresses are by operand, LEA's among them."""

    addresses: tuple[Value | None, ...]
    loads: list[MemoryAccess]
    stores: list[MemoryAccess]


class _Search:
    """The rounds, with the youngest store to every place; it `passes` where loads may get what is stored."""

    def __init__(self, in_flight: int, passes: bool) -> None:
        self._in_flight, self._passes = in_flight, passes
        self._count = 0  # of stores
        self._values = KnownValues()
        self._youngest: dict[tuple[Terms, int], _Stored] = {}  # by byte
        self._rounds: list[list[MemoryAccess]] = []
        self._found: dict[tuple[int, int], Passage] = {}
        self._fixed: dict[int, _Touched] = {}

    def go_through(self, steps: Sequence[Followed]) -> None:
        """Go through the block until all is known: where all rounds are the same, twice."""
        rounds = 2 if all(step.fixed and not (step.writes or step.stores) for step in steps) else BLOCK_TURNS
        for number in range(rounds):
            self._round(number, steps, number == rounds - 1)

    def _round(self, number: int, steps: Sequence[Followed], last: bool) -> None:
        accesses: list[MemoryAccess] = []
        self._rounds.append(accesses)
        passes, loads = self._passes, self._passes and last
        for step in steps:
            touched = self._fixed.get(step.place) or self._touched(step)
            accesses += touched.loads
            if loads:
                for load in touched.loads:
                    self._load(number, load)
            stored = self._results(step, touched.addresses) if step.writes or step.stores else {}
            accesses += touched.stores
            for store in touched.stores:
                if passes:
                    self._store(number, store)
                if store.place[1] in stored:
                    self._values.store(store.address, stored[store.place[1]])

    def _touched(self, step: Followed) -> _Touched:
        """What an instruction accesses, once for all rounds where its addresses are the same in all."""
        instruction = step.line.instruction
        addresses = [None if a is None else self._values.address(instruction, a) for a in instruction.memory]
        found = _Touched(tuple(addresses), [], [])
        for position, size, read, write in step.accesses:
            address = addresses[position]
            if read and address is not None:
                found.loads.append(MemoryAccess((step.place, position), address, size, False))
            if write and address is not None:
                found.stores.append(MemoryAccess((step.place, position), address, size, True))
        if step.fixed:
            self._fixed[step.place] = found
        return found

    def _results(self, step: Followed, addresses: tuple[Value | None, ...]) -> dict[int, Value]:
        """Write the registers of an instruction; what it stores, by operand."""
        seen = OperandsSeen(step.line.form, self._operands(step, addresses), addresses)
        written = [self._written(one, step, seen) for one in step.writes]
        stored = {
            one.position: self._stored(step, seen, one.position)
            for one in step.accesses
            if one.write and step.stores
        }
        for one, value in zip(step.writes, written, strict=True):
            self._values.set(one.location, value)
        return stored

    def _operands(self, step: Followed, addresses: tuple[Value | None, ...]) -> tuple[Value | None, ...]:
        values = self._values
        found: list[Value | None] = []
        for seen in step.operands:
            if seen is None or isinstance(seen, Value):
                found.append(seen)
            elif isinstance(seen, int):
                address = addresses[seen]
                found.append(None if address is None else values.loaded(address))
            else:
                found.append(values.register(seen))
        return tuple(found)

    def _written(self, one: FollowedResult, step: Followed, seen: OperandsSeen) -> Value:
        """What a register holds afterwards; a pointer is moved on by the stack or an address."""
        value: Value | None = None
        if one.pushed:
            value = self._values.register(one.location).plus(Value(one.pushed))
        elif one.address is not None:
            value = _written_back(seen, self._values.register(one.location), one.address)
        if value is None and one.rule is not None:
            value = one.rule(seen)
        if value is None or len(value.terms) > MOST_TERMS:
            value = self._values.unknown((one.number, *self._inputs(step, seen)))
        return value

    def _stored(self, step: Followed, seen: OperandsSeen, position: int) -> Value:
        op = seen.form.operands[position]
        if keeps_value(op):
            sources = [
                value
                for other, value in zip(seen.form.operands, seen.operands, strict=True)
                if not other.implicit and not other.is_memory and not other.role and value is not None
            ]
            if len(sources) == 1:
                return sources[0]
        return self._values.unknown(("stored", position, *self._inputs(step, seen)))

    def _inputs(self, step: Followed, seen: OperandsSeen) -> tuple[object, ...]:
        """All that the results of an instruction depend on: the same whenever these are the same."""
        read = tuple([self._values.register(location) for location in step.line.reads])
        both = zip(seen.form.operands, seen.operands, strict=True)
        operands = tuple([None if is_overwritten(op) else value for op, value in both])
        return seen.form.id, step.line.instruction.immediates, read, operands

    # --- accesses --------------------------------------------------------------------------------

    def _load(self, number: int, access: MemoryAccess) -> None:
        terms, youngest = access.address.terms, None
        for byte in access.own_bytes:
            stored = self._youngest.get((terms, byte))
            if stored is not None and (youngest is None or stored.order > youngest.order):
                youngest = stored
        if youngest is not None and self._count - youngest.order <= self._in_flight:
            place, offset = youngest.access.place, access.address.constant - youngest.access.address.constant
            self._found[access.place] = Passage(
                access.place, place, number - youngest.number, offset, self._count - youngest.order - 1
            )

    def _store(self, number: int, access: MemoryAccess) -> None:
        stored, terms = _Stored(number, access, self._count), access.address.terms
        self._count += 1
        for byte in access.own_bytes:
            self._youngest[terms, byte] = stored

    def passages(self) -> list[Passage]:
        """What was found, with the stores that are further back, unless more than those are in flight."""
        if self._count > self._in_flight:
            return list(self._found.values())
        stores: dict[tuple[Terms, int | None], list[MemoryAccess]] = {}
        for one in self.moving(write=True):
            stores.setdefault((one.access.address.terms, one.step), []).append(one.access)
        for one in self.moving(write=False):
            if one.step and one.access.place not in self._found:
                self._further(one.access, one.step, stores.get((one.access.address.terms, one.step), ()))
        return list(self._found.values())

    def moving(self, write: bool) -> list[MovingAccess]:
        """Loads, or stores, of the last round with how they move."""
        return moving(self._rounds[-1], self._rounds[-2], write)

    def _further(self, load: MemoryAccess, stride: int, stores: Sequence[MemoryAccess]) -> None:
        """The nearest store that the load reaches after more iterations than there were rounds."""
        best, source = sys.maxsize, None
        for store in stores:
            about = (store.address.constant - load.address.constant) // stride
            for distance in (about, about + 1):
                moved = MemoryAccess(
                    load.place, load.address.plus(Value(distance * stride)), load.size, False
                )
                if BLOCK_TURNS <= distance < best and _overlap(moved, store):
                    best, source = distance, store
        between = best * self._count // BLOCK_TURNS
        if source is not None and between <= self._in_flight:
            offset = load.address.constant + best * stride - source.address.constant
            self._found[load.place] = Passage(load.place, source.place, best, offset, between)


def _written_back(step: OperandsSeen, old: Value, address: Address) -> Value | None:
    """The base of an address afterwards: the address, or what an immediate makes of it."""
    if address.writeback == "pre":
        return old.plus(Value(address.displacement))
    operands = list(zip(step.form.operands, step.operands, strict=True))
    for op, value in operands:
        if op.cls.startswith(AMOUNT) and value is not None:
            return old.plus(Value(implied_amount(op)) if value == Value(0) else value)
    added = [value for op, value in operands if op.kind == "immediate" and value is not None]
    return old.plus(added[0]) if len(added) == 1 else None


def _overlap(one: MemoryAccess, other: MemoryAccess) -> bool:
    a, b = one.address.constant, other.address.constant
    return a < b + other.size and b < a + one.size
