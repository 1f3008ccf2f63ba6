"""What a core makes of the lines that a loop's code lies in, as its probe `code-lines` found it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import ceil

import msgspec

from cyclescope.model.facts import CODE_LINES, LONGER_NOPS, SHORTEST_NOPS, Fact, loop_of

_SIZES = range(1, 9)  # bytes of a NOP
_END = 10  # bytes that the end of a loop has at most: a decrement and a branch that goes far
_STEP = (
    0.6  # cycles: one NOP more takes a quarter of a cycle where four are a cycle's slots, a step a whole one
)
_FLAT = 0.2  # cycles by which what takes whole cycles differs

_Read = tuple[float, float]  # what was read less its error, and what was read: neighbours only add


class CodeLines(msgspec.Struct, frozen=True):
    """A loop gets at most `most` slots of its first line of `size` bytes in a cycle.

    Where that line has more, so many at a time take `more` cycles, and each further line takes at least one.
    """

    size: int
    most: int
    more: float

    def cycles(self, begin: int, slots: Iterable[tuple[int, float]]) -> float:
        """Cycles of a trip through code that begins at an address, by the bytes and slots of instructions.

        0 where nothing is known to be in the way: what goes on from a short beginning into the next line is
        got together with it.
        """
        at, lines = begin, dict[int, float]()
        for length, count in slots:
            for line in range(at // self.size, (at + length - 1) // self.size + 1):
                lines.setdefault(line, 0.0)
            lines[at // self.size] += count
            at += length
        if lines.get(begin // self.size, 0.0) <= self.most:
            return 0.0
        return sum(1 + self.more * max(ceil(count / self.most) - 1, 0) for count in lines.values())


def code_lines(facts: Sequence[Fact]) -> CodeLines | None:
    """What explains the readings; None where nothing was asked, or they have no steps as lines make them.

    In one line, trips take whole cycles more after the first step, the same from one step to the next. The
    steps are as many slots apart as are got at a time. Of longer NOPs one more step is where the line ends.
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
    steps = _steps(short)
    if len(steps) < 2 or not _is_flat(short, steps[0], steps[1]):
        return None
    most, more = steps[1] - steps[0], float(round(short[steps[0]][1])) - 1
    ends = [n for n in _steps(long) if n not in steps]
    powers = (_power(sizes[1] * (n - 1), sizes[1] * n + _END) for n in ends)
    size = next((power for power in powers if power), 0)
    return CodeLines(size, most, more) if size and steps[0] <= most else None


def _steps(read: Mapping[int, _Read]) -> list[int]:
    """Numbers of NOPs with which a trip takes clearly longer than with one less: by the lower ends, and by
    the whole cycles that are nearest, for what neighbours have added to a reading may be nothing.
    """
    return [
        n
        for before, n in pairwise(sorted(read))
        if n == before + 1
        and read[n][0] - read[before][0] > _STEP
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
