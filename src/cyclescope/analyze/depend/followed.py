"""Which instructions of a block have to be followed to know where it accesses memory, and what they read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from cyclescope.analyze.decode.block import Address, BlockInstruction
from cyclescope.analyze.decode.known_values import Rule, Value, moved_by, rule_of
from cyclescope.analyze.decode.locations import Location, location_of
from cyclescope.isa.form import InstructionForm, MemoryOperand
from cyclescope.isa.record import ResultKind

MEMORY: Location = ("memory", 0)  # all of it
Seen = Location | Value | int | None  # a register, a constant, a memory operand, nothing that is followed


class LocatedInstruction(NamedTuple):
    """An instruction with the locations that it reads and writes; targets have their operand or -1.

    `accesses` are its operands in memory whose addresses are known, `addressed` what all its addresses are
    made of, `changed` the locations that it writes.
    """

    instruction: BlockInstruction
    reads: tuple[Location, ...]
    writes: tuple[tuple[int, Location], ...]
    accesses: tuple[MemoryOperand, ...]
    addressed: tuple[Location, ...]
    changed: frozenset[Location]

    @property
    def form(self) -> InstructionForm:
        """Its form: all instructions that are located are known."""
        assert self.instruction.form is not None
        return self.instruction.form


class FollowedResult(NamedTuple):
    """A result that is followed: `number` of the instruction's, in a register.

    `pushed` are the bytes by which a push, a pop or a string instruction moves it, 0 for everything else;
    `address` is the one that it is the written-back base of; a `rule` says for others what their value is.
    """

    number: int
    location: Location
    pushed: int
    address: Address | None
    rule: Rule | None


class Followed(NamedTuple):
    """An instruction at a `place` in the block that accesses memory, or whose results addresses are made of.

    `operands` say by position what is seen of each; both they and `writes` are empty where no result is
    followed. `stores` tells that what it stores is, `fixed` that no instruction writes what its addresses are
    made of.
    """

    place: int
    line: LocatedInstruction
    accesses: tuple[MemoryOperand, ...]
    operands: tuple[Seen, ...] = ()
    writes: tuple[FollowedResult, ...] = ()
    stores: bool = False
    fixed: bool = False


def followed(lines: Sequence[LocatedInstruction], results: Mapping[str, ResultKind]) -> list[Followed]:
    """The instructions that have to be followed; `results` has by mnemonic what kind of value one makes."""
    changed: set[Location] = set()
    changed.update(*[line.changed for line in lines])
    addressed = {location for line in lines if line.accesses for location in line.addressed}
    if changed.isdisjoint(addressed):
        return [Followed(n, line, line.accesses, fixed=True) for n, line in enumerate(lines) if line.accesses]
    needed = _needed(lines)
    found = []
    for place, line in enumerate(lines):
        stores = MEMORY in needed and any(one.write for one in line.accesses)
        fixed = changed.isdisjoint(line.addressed)
        if stores or not needed.isdisjoint(line.changed):
            writes = tuple(_written(line, needed, results.get(line.form.mnemonic)))
            found.append(Followed(place, line, line.accesses, _seen(line), writes, stores, fixed))
        elif line.accesses:
            found.append(Followed(place, line, line.accesses, fixed=fixed))
    return found


def _needed(lines: Sequence[LocatedInstruction]) -> set[Location]:
    """Locations that addresses are made of, memory among them where something loaded is part of one."""
    made: dict[Location, set[Location]] = {MEMORY: set()}
    work: list[Location] = []
    for line in lines:
        accesses = line.accesses
        reads = (*line.reads, MEMORY) if any(one.read for one in accesses) else line.reads
        for _, location in line.writes:
            made.setdefault(location, set()).update(reads)
        if any(one.write for one in accesses):
            made[MEMORY].update(line.reads)
        if accesses:
            work += line.addressed
    found = set(work)
    while work:
        new = made.get(work.pop(), set()) - found
        found |= new
        work += new
    return found


def _written(
    line: LocatedInstruction, needed: set[Location], kind: ResultKind | None
) -> Iterator[FollowedResult]:
    form = line.form
    for number, (position, location) in enumerate(line.writes):
        if location in needed:
            pushed = moved_by(form, position) if position >= 0 else 0
            rule = rule_of(form, position, kind)
            yield FollowedResult(number, location, pushed, _written_back(line.instruction, location), rule)


def _written_back(instruction: BlockInstruction, location: Location) -> Address | None:
    """The address whose base, at a location, the instruction moves on."""
    moved = (one for one in instruction.memory if one is not None and one.writeback)
    return next((one for one in moved if location_of(one.base) == location), None)


def _seen(line: LocatedInstruction) -> tuple[Seen, ...]:
    """What is seen of every operand."""
    instruction = line.instruction
    found: list[Seen] = []
    for position, op in enumerate(line.form.operands):
        location = location_of(instruction.registers[position])
        immediate = instruction.immediates[position]
        if op.is_memory and instruction.memory[position] is not None:
            found.append(position)
        elif location is not None:
            found.append(location)
        elif op.is_register and op.file:  # the zero register of AArch64 and RISC-V
            found.append(Value(0))
        else:
            found.append(None if immediate is None else Value(immediate))
    return tuple(found)
