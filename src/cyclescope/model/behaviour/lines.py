"""How the cache lines that a loop's code lies in limit it, as the probe `code-lines` found it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import ceil, inf

import msgspec

from cyclescope.model.behaviour.constants import ConstantRoom, constant_room
from cyclescope.model.facts import (
    BEGUN_LATE,
    CODE_LINES,
    LONGER_NOPS,
    SHORTEST_NOPS,
    Fact,
    begun_late,
    loop_of,
)

SPLIT_NOPS = range(4, 12)  # longer NOPs that fill a line to its end, behind which the loop's own end is
_SIZES = range(1, 9)  # bytes of a NOP
_END = 10  # bytes that the end of a loop has at most: a decrement and a branch that goes far
_SHORT_END = 8  # bytes that it has at least, on any instruction set
_STEP = (
    0.6  # cycles: one NOP more takes a quarter of a cycle where four are a cycle's slots, a step a whole one
)
_FLAT = 0.2  # cycles by which what takes whole cycles differs
_LINES, _MOST = (32, 64, 128), range(4, 17)  # bytes of a line, and slots that are got of it in a cycle
_ENDS = (1, 2)  # slots of the end of a loop, fused or not
_ROUNDING = 0.02  # relative: what a whole number of cycles is read too low by at most
_CLEARLY = 0.1  # cycles by which slots take less than lines that explain a reading
_FEWEST = 6  # readings that lines explain and slots do not

_Read = tuple[float, float]  # what was read less its error, and what was read: neighbours only add


def split_loop(nops: int, size: int) -> str:
    """The loop of so many NOPs of so many bytes whose end is in the next line."""
    return f"{loop_of(nops, size)}, its end in the next line"


class CodeLines(msgspec.Struct, frozen=True):
    """A loop gets at most `most` slots of its first line of `size` bytes in a cycle.

    Where that line has more, so many at a time take `more` cycles, and each further line takes at least one.
    With `apart` each line takes a cycle, however little of it is read. Of more no loop is sure: in two lines,
    with eight slots a cycle, NOPs take three cycles from 15 slots on, and other instructions two to three.
    Slots are kept in pieces of `piece`: one that begins in a line has what comes first in the next.
    A loop of `most` slots or fewer that goes on in the next line takes `split` cycles, where it has more than
    so many slots in its first line.
    """

    size: int
    most: int
    more: float
    apart: bool = False
    room: ConstantRoom | None = None
    piece: int = 1
    split: tuple[int, float] = (0, 0.0)

    def cycles(
        self, begin: int, slots: Sequence[tuple[int, float]], constants: Sequence[tuple[int, int]] = ()
    ) -> float:
        """Cycles of a trip through code that begins at an address, by the bytes and slots of instructions.

        0 where nothing is known to be in the way: what goes on from a short beginning into the next line is
        got together with it, unless lines are `apart`. `constants` are those of instructions, of 32 bits at
        most and of more; a line without `room` for them is looked at again.
        """
        return max(self._by_slots(begin, slots), self._by_constants(begin, slots, constants))

    def _by_constants(
        self, begin: int, slots: Sequence[tuple[int, float]], constants: Sequence[tuple[int, int]]
    ) -> float:
        if self.room is None or not constants:
            return 0.0
        pieces = list(zip(slots, constants, strict=True))
        held = self._filled(begin, [(size, self.room.places(*some)) for (size, _), some in pieces])
        filled = self._filled(begin, [(size, min(count, 1.0)) for (size, count), _ in pieces])
        looks = [max(self.room.looks(filled[line], held[line]), 1) for line in filled]
        return sum(1 + self.more * (one - 1) for one in looks) if max(looks) > 1 else 0.0

    def _by_slots(self, begin: int, slots: Iterable[tuple[int, float]]) -> float:
        lines = self._filled(begin, slots)
        if self.apart:
            return float(max(len(lines), ceil(sum(lines.values()) / self.most)))
        first, (kept, split) = lines.get(begin // self.size, 0.0), self.split
        if first > self.most:
            return self._cycles(lines)
        goes_on = len(lines) > 1 and sum(lines.values()) <= self.most
        return split if goes_on and split and first > kept else 0.0

    def each(self, begin: int, slots: Iterable[tuple[int, float]]) -> float:
        """The same where every line takes its cycles."""
        return self._cycles(self._filled(begin, slots))

    def _cycles(self, lines: Mapping[int, float]) -> float:
        cycles, left = 0.0, 0.0  # left: what the last piece has room for
        for count in lines.values():
            own = max(count - left, 0.0)
            left = -own % self.piece if own else left - count
            cycles += 1 + self.more * max(ceil(own / self.most) - 1, 0)
        return cycles

    def _filled(self, begin: int, slots: Iterable[tuple[int, float]]) -> dict[int, float]:
        """Slots by the number of the line."""
        at, lines = begin, dict[int, float]()
        for length, count in slots:
            for line in range(at // self.size, (at + length - 1) // self.size + 1):
                lines.setdefault(line, 0.0)
            lines[at // self.size] += count
            at += length
        return lines


def code_lines(facts: Sequence[Fact], nops: int = 1) -> CodeLines | None:
    """What explains the readings; None where nothing was asked, or they have no steps as lines make them.

    `nops` of the NOPs next to each other share a slot.

    In one line, trips take whole cycles more after the first step, the same from one step to the next. The
    steps are as many slots apart as are got at a time. Of longer NOPs one more step is where the line ends.
    Where slots hide some of the steps, lines of which each takes its cycles may explain what slots do not.
    """
    asked = (fact for fact in facts if fact.probe == CODE_LINES)
    known = {f.subject: (f.value - (f.error or 0.0), f.value) for f in asked if f.value is not None}
    counts = (*SHORTEST_NOPS, *LONGER_NOPS)
    sizes = [size for size in _SIZES if any(loop_of(n, size) in known for n in counts)]
    if len(sizes) < 2:
        return None
    short, long = (
        {n: known[loop_of(n, size)] for n in counts if loop_of(n, size) in known}
        for size, counts in zip(sizes, (SHORTEST_NOPS, LONGER_NOPS), strict=False)
    )
    found = _of_steps(short, long, sizes[1]) if nops == 1 else None
    if found is None:
        found = _explaining({sizes[0]: short, sizes[1]: long}, nops, _is_apart(known, sizes[0]))
    if found is None:
        return None
    split = _split({n: known[name] for n in SPLIT_NOPS if (name := split_loop(n, sizes[1])) in known})
    return msgspec.structs.replace(found, room=constant_room(known, sizes[0]), split=split)


def _split(read: Mapping[int, _Read]) -> tuple[int, float]:
    """The most slots with which a loop that goes on in the next line takes no longer, and what it takes with
    more: as much with however many.
    """
    steps = _steps(read)
    if len(steps) != 1 or not _is_flat(read, steps[0], max(read) + 1):
        return 0, 0.0
    return steps[0] - 1, float(round(read[steps[0]][1]))


def _is_apart(known: Mapping[str, _Read], size: int) -> bool:
    """Whether a few NOPs take a cycle longer where they begin shortly before the end of a line.

    They take no longer than more of them do, whatever disturbed their own reading.
    """
    no_fewer = [loop_of(n, size) for n in SHORTEST_NOPS if n >= BEGUN_LATE[0]]
    plain = min((known[name][1] for name in no_fewer if name in known), default=inf)
    late = known.get(begun_late(size))
    return late is not None and late[0] - plain > _STEP


def _explaining(read: Mapping[int, Mapping[int, _Read]], nops: int, apart: bool) -> CodeLines | None:
    """The lines that explain most readings by whole cycles, by the bytes of a NOP, and exceed none."""
    width = max(
        ((n / nops + 1) / value for some in read.values() for n, (_, value) in some.items() if value > 0),
        default=0.0,
    )
    best, most = None, _FEWEST - 1
    for size in _LINES:
        for slots in _MOST:
            for ends in _ENDS if width else ():
                lines = CodeLines(size, slots, 1.0, apart)
                explained = _explained(lines, read, width, ends, nops)
                if explained > most:
                    best, most = lines, explained
    return best


def _explained(
    lines: CodeLines, read: Mapping[int, Mapping[int, _Read]], width: float, ends: int, nops: int
) -> int:
    """How many readings are what lines take, where slots take clearly less; 0 where a reading is less."""
    found = 0
    for size, some in read.items():
        for n, (low, value) in some.items():
            slots = [(size, 1.0 / nops)] * n + [(_SHORT_END, float(ends))]
            cycles = max(lines.cycles(0, slots) if lines.apart else lines.each(0, slots), 1.0)
            if max(2 * value - low, value) < cycles * (1 - _ROUNDING):
                return 0
            by_slots = (n / nops + ends) / width
            found += by_slots + _CLEARLY < cycles and low - _FLAT < cycles
    return found


def _of_steps(short: Mapping[int, _Read], long: Mapping[int, _Read], bytes_of_long: int) -> CodeLines | None:
    """What steps of whole cycles tell."""
    steps = _steps(short)
    if len(steps) < 2 or not _is_flat(short, steps[0], steps[1]):
        return None
    most, more = steps[1] - steps[0], float(round(short[steps[0]][1])) - 1
    ends = [n for n in _steps(long) if n not in steps]
    powers = (_power(bytes_of_long * (n - 1), bytes_of_long * n + _END) for n in ends)
    size = next((power for power in powers if power), 0)
    if not size or steps[0] > most:
        return None
    lines = CodeLines(size, most, more)
    return msgspec.structs.replace(lines, piece=_piece(long, lines, bytes_of_long, most + 1 - steps[0]))


def _piece(long: Mapping[int, _Read], lines: CodeLines, bytes_of_long: int, end: int) -> int:
    """The slots of a piece, by how many more than are got at a time the second line has before a step."""
    full = lines.size // bytes_of_long
    steps = [n for n in _steps(long) if n > full and round(long[n][1]) - round(long[n - 1][1]) >= lines.more]
    more = steps[0] + end - 1 - full - lines.most if steps else 0
    pieces = (piece for piece in range(lines.most, 0, -1) if lines.most % piece == 0)
    return next((piece for piece in pieces if more > 0 and -full % piece == more), 1)


def _steps(read: Mapping[int, _Read]) -> list[int]:
    """Numbers of NOPs with which a trip takes clearly longer than with one less: by the lower ends, and by
    the whole cycles that are nearest, for what neighbours have added to a reading may be nothing.

    A lower end is no lower than with a NOP less, however unsure the reading is.
    """
    least = {n: max(low, read[n - 1][0]) if n - 1 in read else low for n, (low, _) in read.items()}
    return [
        n
        for before, n in pairwise(sorted(read))
        if n == before + 1
        and read[n][0] - least[before] > _STEP
        and round(read[n][1]) > round(read[before][1])
    ]


def _is_flat(read: Mapping[int, _Read], first: int, end: int) -> bool:
    """Whether trips take the same whole number of cycles from one step to the next."""
    some = [one for n, one in read.items() if first <= n < end]
    whole = round(some[0][1])
    return all(low - _FLAT < whole < 2 * value - low + _FLAT for low, value in some)


def _power(low: int, high: int) -> int:
    """The power of two that is more than `low` and less than `high`, 0 where there is none."""
    power = 1 << low.bit_length()
    return power if power < high else 0
