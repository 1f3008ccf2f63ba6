"""Dependencies through memory: which load reads what which store wrote, how many iterations before.

Addresses are compared as linear expressions (`values`): equal unknowns and overlapping bytes are the same
place, different unknowns are taken to be different places. The block is gone through three times, so that
pointers that other registers were moved to are known; stores that are further back are found by the bytes
that both addresses move by in an iteration.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from math import ceil, gcd
from typing import NamedTuple

import msgspec

from cyclescope.analyze.decode.block import Address, BlockInstruction
from cyclescope.analyze.decode.locations import Location, location_of
from cyclescope.analyze.decode.values import (
    KnownValues,
    OperandsSeen,
    Terms,
    Value,
    implied_amount,
    moves_stack,
    result,
    stack_change,
)
from cyclescope.isa.dataflow import AMOUNT
from cyclescope.isa.record import ResultKind
from cyclescope.isa.registry import DEFAULT, instruction_set
from cyclescope.model.behaviour.published import CoreBehaviour, LoadBanks, LoadCrossing, StoreChunks

_ROUNDS = 3
_GRANULE = 8  # bytes
_LARGEST = 64  # bytes of an access that are looked at
_NOTHING_KNOWN = CoreBehaviour()
_MEMORY: Location = ("memory", 0)  # all of it
_PERIODS = 4  # of chunks that are gone through, so that ends do not count
_MOST_TERMS = 4  # of a value that is followed: no address has more


class Passage(msgspec.Struct, frozen=True):
    """A load at `load` (instruction, operand) of what `store` wrote, `distance` iterations before.

    It begins `offset` bytes behind the store, with `between` other stores after that one.
    """

    load: tuple[int, int]
    store: tuple[int, int]
    distance: int
    offset: int = 0
    between: int = 0


class MemoryAccess(msgspec.Struct, frozen=True):
    """One memory operand in one round."""

    place: tuple[int, int]
    address: Value
    size: int
    write: bool


class LocatedInstruction(msgspec.Struct, frozen=True):
    """An instruction with the locations that it reads and writes; targets have their operand or -1."""

    instruction: BlockInstruction
    reads: tuple[Location, ...]
    writes: tuple[tuple[int, Location], ...]


class Memory(msgspec.Struct, frozen=True):
    """What a block does to memory: loads of what it stored, and cycles in which its `chunks` of stores leave.

    `banks` are the cycles of one iteration in which the loads of the busiest bank of the cache are done,
    `crossing` those of all loads, where some have bytes in two lines.
    """

    passages: tuple[Passage, ...] = ()
    chunks: float = 0.0
    banks: float = 0.0
    crossing: float = 0.0


def through_memory(
    lines: Sequence[LocatedInstruction],
    in_flight: int,
    core: CoreBehaviour = _NOTHING_KNOWN,
    isa: str = DEFAULT,
) -> Memory:
    """Dependencies through memory, at most `in_flight` stores back, and what else is known of the core's."""
    operands = [op for line in lines for op in _memory_operands(line)]
    stores, loads = any(op.write for op in operands), any(op.read for op in operands)
    chunks = core.store_chunk if stores else None
    banks, crossing = (core.banks, core.crossing) if loads else (None, None)
    passes = stores and loads
    if not (passes or chunks or banks or crossing):
        return Memory()
    found = _Search(in_flight, instruction_set(isa).arithmetic.results)
    steps = _steps(lines)
    for number in range(_ROUNDS):
        found.round(number, steps)
    return Memory(
        tuple(found.passages()) if passes else (),
        found.chunks(chunks) if chunks else 0.0,
        found.busiest(banks) if banks else 0.0,
        found.across(crossing) if crossing else 0.0,
    )


class _Followed(NamedTuple):
    """An instruction that accesses memory or whose results are followed, since addresses are made of them."""

    place: int
    line: LocatedInstruction
    accesses: tuple[tuple[int, int, bool, bool], ...]  # position, bytes, whether it is read, written
    results: bool


def _steps(lines: Sequence[LocatedInstruction]) -> list[_Followed]:
    """The instructions that the search needs."""
    needed = _needed(lines)
    found = []
    for place, line in enumerate(lines):
        form = line.instruction.form
        assert form is not None
        accesses = tuple(
            (position, _bytes(op.width), op.read, op.write)
            for position, op in enumerate(form.operands)
            if op.is_memory and line.instruction.memory[position] is not None
        )
        stored = _MEMORY in needed and any(write for *_, write in accesses)
        results = stored or any(location in needed for _, location in line.writes)
        if accesses or results:
            found.append(_Followed(place, line, accesses, results))
    return found


def _needed(lines: Sequence[LocatedInstruction]) -> set[Location]:
    """Locations that addresses are made of, memory among them where something loaded is part of one."""
    made: dict[Location, set[Location]] = {_MEMORY: set()}
    found: set[Location] = set()
    for line in lines:
        operands = _memory_operands(line)
        for _, location in line.writes:
            made.setdefault(location, set()).update(line.reads, [_MEMORY] * any(op.read for op in operands))
        if any(op.write for op in operands):
            made[_MEMORY].update(line.reads)
        for address in line.instruction.memory if operands else ():
            registers = (address.base, address.index) if address is not None else ()
            found.update(filter(None, map(location_of, registers)))
    work = list(found)
    while work:
        new = made.get(work.pop(), set()) - found
        found |= new
        work += new
    return found


def _memory_operands(line: LocatedInstruction) -> list[_Operand]:
    form = line.instruction.form
    assert form is not None
    pairs = zip(form.operands, line.instruction.memory, strict=True)
    return [_Operand(op.read, op.write) for op, address in pairs if op.is_memory and address is not None]


class _Operand(msgspec.Struct, frozen=True):
    read: bool
    write: bool


class _Stored(msgspec.Struct, frozen=True):
    """A store in a round; `order` counts all of them."""

    number: int
    access: MemoryAccess
    order: int


class _Search:
    """The rounds, with the youngest store to every place."""

    def __init__(self, in_flight: int, results: Mapping[str, ResultKind]) -> None:
        self._in_flight = in_flight
        self._outcomes = results  # by mnemonic
        self._count = 0  # of stores
        self._values = KnownValues()
        self._youngest: dict[tuple[Terms, int], _Stored] = {}
        self._rounds: list[list[MemoryAccess]] = []
        self._found: dict[tuple[int, int], Passage] = {}

    def round(self, number: int, steps: Sequence[_Followed]) -> None:
        """Go through the block once more."""
        self._rounds.append([])
        for step in steps:
            self._step(number, step)

    def _step(self, number: int, followed: _Followed) -> None:
        place, line, accesses, results = followed
        instruction, values = line.instruction, self._values
        addresses = tuple(None if a is None else values.address(instruction, a) for a in instruction.memory)
        for position, size, read, _ in accesses:
            address = addresses[position]
            if read and address is not None:
                self._load(number, MemoryAccess((place, position), address, size, False))
        if results:
            assert instruction.form is not None
            step = OperandsSeen(instruction.form, self._operands(instruction, addresses), addresses)
            inputs = self._inputs(line, step)
            self._write(line, step, inputs)
        for position, size, _, write in accesses:
            address = addresses[position]
            if write and address is not None:
                self._store(number, MemoryAccess((place, position), address, size, True))
                if results:
                    values.store(address, self._stored(step, position, inputs))

    def _operands(
        self, instruction: BlockInstruction, addresses: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        form, values = instruction.form, self._values
        assert form is not None
        found: list[Value | None] = []
        for position, op in enumerate(form.operands):
            location, address = location_of(instruction.registers[position]), addresses[position]
            immediate = instruction.immediates[position]
            if op.is_memory and address is not None:
                found.append(values.loaded(address) if op.width >= 32 else None)
            elif location is not None:
                found.append(values.register(location))
            elif op.is_register and op.file:  # the zero register of AArch64 and RISC-V
                found.append(Value(0))
            else:
                found.append(None if immediate is None else Value(immediate))
        return tuple(found)

    def _inputs(self, line: LocatedInstruction, step: OperandsSeen) -> tuple[object, ...]:
        """Everything that a result depends on."""
        read = tuple(self._values.register(location) for location in line.reads)
        return (step.form.id, line.instruction.immediates, read, step.operands)

    def _write(self, line: LocatedInstruction, step: OperandsSeen, inputs: tuple[object, ...]) -> None:
        values = self._values
        new = []
        for number, (position, location) in enumerate(line.writes):
            value = self._moved(line, step, position, location)
            if value is None and position >= 0:
                value = result(step, position, self._outcomes.get(step.form.mnemonic))
            if value is None or len(value.terms) > _MOST_TERMS:
                value = values.unknown((number, *inputs))
            new.append((location, value))
        for location, value in new:
            values.set(location, value)

    def _moved(
        self, line: LocatedInstruction, step: OperandsSeen, position: int, location: Location
    ) -> Value | None:
        """A pointer that the instruction moves on: the stack's, or the base of an address."""
        old = self._values.register(location)
        if moves_stack(step.form, location) and step.form.operands[position].implicit:
            return old.plus(Value(stack_change(step.form)))
        for address in line.instruction.memory:
            if address is not None and address.writeback and location_of(address.base) == location:
                return _written_back(step, old, address)
        return None

    def _stored(self, step: OperandsSeen, position: int, inputs: tuple[object, ...]) -> Value:
        op = step.form.operands[position]
        if not op.read and op.width >= 32:
            sources = [
                value
                for other, value in zip(step.form.operands, step.operands, strict=True)
                if not other.implicit and not other.is_memory and not other.role and value is not None
            ]
            if len(sources) == 1:
                return sources[0]
        return self._values.unknown(("stored", position, *inputs))

    # --- accesses --------------------------------------------------------------------------------

    def _load(self, number: int, access: MemoryAccess) -> None:
        self._rounds[-1].append(access)
        if number < _ROUNDS - 1:
            return
        known = (self._youngest.get((access.address.terms, granule)) for granule in _granules(access))
        stores = [stored for stored in known if stored and _overlap(stored.access, access)]
        youngest = max(stores, key=lambda stored: stored.order, default=None)
        if youngest is not None and self._count - youngest.order <= self._in_flight:
            place, offset = youngest.access.place, access.address.constant - youngest.access.address.constant
            self._found[access.place] = Passage(
                access.place, place, number - youngest.number, offset, self._count - youngest.order - 1
            )

    def _store(self, number: int, access: MemoryAccess) -> None:
        self._rounds[-1].append(access)
        stored = _Stored(number, access, self._count)
        self._count += 1
        for granule in _granules(access):
            self._youngest[access.address.terms, granule] = stored

    def passages(self) -> list[Passage]:
        """What was found, with the stores that are further back."""
        moving = self._moving()
        stores: dict[tuple[Terms, int], list[MemoryAccess]] = {}
        for access, stride in moving:
            if access.write:
                stores.setdefault((access.address.terms, stride), []).append(access)
        for access, stride in moving:
            if not access.write and access.place not in self._found:
                near = stores.get((access.address.terms, stride), [])[:_LARGEST]
                self._further(access, stride, near)
        return list(self._found.values())

    def chunks(self, chunks: StoreChunks) -> float:
        """Cycles per iteration in which stores leave; unknown parts of addresses are taken to be aligned.

        Those of one chunk that follow each other leave as many at a time as the core does, and a chunk with
        an odd one among them takes the cycle all the same.
        """
        before = {a.place: a.address for a in self._rounds[-2] if a.write}
        moves = []
        for access in self._rounds[-1]:
            if access.write:
                old = before[access.place]
                known = old.terms == access.address.terms
                moves.append((access, access.address.constant - old.constant if known else None))
        steps = {step for _, step in moves}
        rounds = _PERIODS * max(chunks.size // gcd(step or 0, chunks.size) for step in steps)
        visited = [
            place for number in range(rounds) for access, step in moves
            for place in _visited(access, step, number, chunks.size)
        ]  # fmt: skip
        each = len(visited) / rounds
        runs = [len(list(run)) for _, run in groupby(visited)]
        if len(runs) == 1:
            return each / chunks.most if chunks.most < chunks.size else 0.0
        whole = runs[1:-1] or runs  # the first and the last may have begun before, and go on
        return sum(ceil(run / chunks.most) for run in whole) * each / sum(whole)

    def busiest(self, banks: LoadBanks) -> float:
        """Cycles of the bank with most loads, over all iterations; unknown parts are taken to be aligned.

        A load is in every bank that it has bytes in; pointers that move on visit others in turn.
        """
        before = {a.place: a.address for a in self._rounds[-2] if not a.write}
        used = [0.0] * (banks.period // banks.width)
        for access in self._rounds[-1]:
            if access.write:
                continue
            old = before[access.place]
            known = old.terms == access.address.terms
            step = access.address.constant - old.constant if known else banks.width
            rounds = banks.period // gcd(step, banks.period)
            for number in range(rounds):
                first = access.address.constant + number * step
                places = range(first // banks.width, (first + access.size - 1) // banks.width + 1)
                for place in places[: len(used)]:
                    used[place % len(used)] += 1 / rounds
        return max(used) / banks.most

    def across(self, crossing: LoadCrossing) -> float:
        """Cycles of all loads, 0 where none is in two lines; unknown parts are taken to be aligned."""
        before = {a.place: a.address for a in self._rounds[-2] if not a.write}
        loads = [access for access in self._rounds[-1] if not access.write]
        share = sum(_share_across(one, before[one.place], crossing.line) for one in loads)
        return len(loads) * crossing.each + share * crossing.extra if share else 0.0

    def _moving(self) -> list[tuple[MemoryAccess, int]]:
        """Accesses of the last round that move by a constant, with it."""
        before = {(a.place, a.write): a.address for a in self._rounds[-2]}
        last = [(a, before[a.place, a.write]) for a in self._rounds[-1]]
        return [
            (a, a.address.constant - old.constant)
            for a, old in last
            if a.address.terms == old.terms and a.address.constant != old.constant
        ]

    def _further(self, load: MemoryAccess, stride: int, stores: Sequence[MemoryAccess]) -> None:
        """The nearest store that the load reaches after more iterations than there were rounds."""
        best, source = sys.maxsize, None
        for store in stores:
            about = (store.address.constant - load.address.constant) // stride
            for distance in (about, about + 1):
                moved = MemoryAccess(
                    load.place, load.address.plus(Value(distance * stride)), load.size, False
                )
                if _ROUNDS <= distance < best and _overlap(moved, store):
                    best, source = distance, store
        between = best * self._count // _ROUNDS
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


def _share_across(access: MemoryAccess, old: Value, line: int) -> float:
    """The share of iterations in which an access has bytes in two lines; none where it is not followed."""
    if old.terms != access.address.terms:
        return 0.0
    step = access.address.constant - old.constant
    rounds = line // gcd(step, line)
    places = ((access.address.constant + number * step) % line for number in range(rounds))
    return sum(line - access.size < place for place in places) / rounds


def _visited(access: MemoryAccess, step: int | None, number: int, size: int) -> list[tuple[object, int]]:
    """The chunks that a store goes to in an iteration; one that is not followed goes to another in each."""
    if step is None:
        return [((access.address.terms, number), 0)]
    first = access.address.constant + number * step
    places = range(first // size, (first + access.size - 1) // size + 1)
    if len(places) == 1:
        return [(access.address.terms, places[0])]
    return [((access.address.terms, access.place, number), at) for at in places]  # together with no other


def _bytes(bits: int) -> int:
    return max(bits // 8, 1)


def _granules(access: MemoryAccess) -> range:
    first = access.address.constant
    return range(first // _GRANULE, (first + min(access.size, _LARGEST) - 1) // _GRANULE + 1)


def _overlap(one: MemoryAccess, other: MemoryAccess) -> bool:
    a, b = one.address.constant, other.address.constant
    return a < b + other.size and b < a + one.size
