"""How many jumps does the core know the targets of, and what does a jump take that it knows?

Jumps that are always taken, each to the next, so many bytes apart: those whose targets it knows take the
same, whatever their number, and others longer. What ends at the same number of jumps whether they are near to
each other or far away is no cache of code, which would end at the same number of bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

from cyclescope.model.facts import CACHE_LEVELS, CoreAnswer
from cyclescope.probe.code import KernelLine
from cyclescope.probe.interval import Interval
from cyclescope.probe.layout import ALONE_IN_LOOP, Branch, Fill, Item, Label, laid_out
from cyclescope.probe.plateaus import (
    CLEARLY,
    FAR_BEYOND,
    SAME_LEVEL,
    SOFT,
    WALKED,
    CacheLevel,
    numbered_level,
    steady_places,
)
from cyclescope.probe.question import (
    CYCLES,
    Model,
    Point,
    Probe,
    ProbeCase,
    ProbeVerdict,
    Readings,
    Unresolved,
    parallel,
)
from cyclescope.remarks.probing import Unclear, UnclearBranches, UnclearMemory

JUMP_SPACINGS = (8, 16, 32)  # bytes from one jump to the next: each twice the one before
LEAST_JUMPS = 16
MOST_BYTES = 63900  # of a kernel's jumps: what fills its body is 1604 bytes at the most, and all of it 65535
PER_DOUBLING = 2  # numbers that are asked first
SAME_NUMBER = 0.1  # of a number that two spacings show: they differ by less
SAME_TIME = 0.06  # of what a jump takes
# Of the way to what jumps take far beyond: an end that is soon so far up is steep. A Zen 3's first level
# ends at once with jumps 32 bytes apart, and with jumps 8 bytes apart between 1024 and 2700.
HALF_WAY = 0.5
_PARTS = 16  # of a number, in which its end is looked for
_JUMPS, _EACH = "jumps", "each"
# A jump to the next, so short that it is in one line of code wherever the runner puts the kernel; one that
# reaches over what fills the body, and that.
_WAYS: Mapping[str, tuple[str, str, str]] = {
    "x86-64": ("JMP (Rel8): #@", "JMP (Rel32): #@", "NOP"),
    "aarch64": ("B: #@", "B: #@", "NOP"),
    "riscv64": ("JAL: z #@", "JAL: z #@", "ADDI: z z #0"),
}


def _cases(isa: str) -> Iterator[ProbeCase]:
    points = [jumps(isa, spacing, n) for spacing in JUMP_SPACINGS if isa in _WAYS for n in counts(spacing)]
    for level in CACHE_LEVELS[:2] if points else ():
        for what in (_JUMPS, _EACH):
            yield ProbeCase(f"{level} level, {what}", tuple(points), level == CACHE_LEVELS[0])


def counts(spacing: int) -> list[int]:
    """Numbers of jumps so far apart that are asked first."""
    every = [round(LEAST_JUMPS * 2 ** (n / PER_DOUBLING)) for n in range(PER_DOUBLING * 12)]
    most = MOST_BYTES // spacing
    return [*(n for n in every if n < most), most]


def jumps(isa: str, spacing: int, count: int) -> Point:
    """So many jumps, the last over what makes the body long enough to be the only one in its loop."""
    jump, last, nop = _WAYS[isa]
    items: list[Item] = []
    for number in range(count - 1):
        items += [Branch(jump, str(number + 1)), Fill(spacing), Label(str(number + 1))]
    items += [Branch(last, "end"), *[nop] * ALONE_IN_LOOP, Label("end")]
    lines: tuple[KernelLine, ...] = laid_out(isa, items)
    return parallel(_part(spacing), *lines, x=count, count=count)


def _part(spacing: int) -> str:
    return f"{spacing} bytes apart"


def apart(readings: Readings, spacing: int) -> Readings:
    """Readings of one spacing, as those of a walk."""
    part = _part(spacing)
    found = {(WALKED, place): readings.get(part, place) for place in readings.places(part)}
    return Readings(found, {})


def _number(case: ProbeCase) -> int:
    return CACHE_LEVELS.index(case.subject.partition(" ")[0])


class _Shown(NamedTuple):
    """How many jumps a level has by one distance, what each takes, and whether the next is soon there."""

    number: Interval
    each: Interval
    is_steep: bool


def _shown(case: ProbeCase, readings: Readings, spacing: int) -> _Shown:
    """What a distance shows: from the last number that takes the same to the first that surely takes longer.

    How much longer these take depends on where they lie, so that readings need not be steady. Raises
    Unresolved where they soon take hardly longer.
    """
    own = apart(readings, spacing)
    _check_first(own, readings)
    level = numbered_level(own, _number(case))
    last, base = level.places[-1], level.cycles.high
    behind = {place: own.get(WALKED, place) for place in own.places(WALKED) if place > last}
    beyond = next((taken for place, taken in behind.items() if place >= FAR_BEYOND * last), None)
    if beyond is None:
        raise Unresolved(UnclearMemory.NO_BEYOND.of())
    soon = max((taken.low for place, taken in behind.items() if place <= (1 + SOFT) * last), default=0.0)
    if beyond.low < CLEARLY * base:
        raise Unresolved(UnclearMemory.BEYOND_AS_FAST.of())
    if soon < CLEARLY * base:
        raise Unresolved(UnclearMemory.SOFT_EDGE.of())
    number = Interval(last, (_leaves(level, own) or last + 1) - 1)
    if number.error > SAME_NUMBER * number.value:
        raise Unresolved(Unclear.LOOKS_DIFFER.of())
    return _Shown(number, level.cycles, soon >= base + HALF_WAY * (beyond.high - base))


def _check_first(own: Readings, readings: Readings) -> None:
    """Raise Unresolved where jumps of another distance are surely faster: then these miss the first level."""
    every = [steady_places(apart(readings, spacing)).values() for spacing in JUMP_SPACINGS]
    fastest = min((taken.high for some in every for taken in some), default=math.inf)
    if numbered_level(own, 0).cycles.low > (1 + SAME_TIME) * fastest:
        raise Unresolved(UnclearBranches.FASTER_ELSEWHERE.of())


def _leaves(level: CacheLevel, readings: Readings) -> int | None:
    """The first number behind a level's last of which jumps surely take longer, if there is one."""
    behind = (place for place in readings.places(WALKED) if place > level.places[-1])
    most = (1 + SAME_LEVEL) * level.cycles.high
    return next((place for place in behind if readings.get(WALKED, place).low > most), None)


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    """What two distances agree on, one of which has a steep end: targets that collide have none."""
    shown: list[_Shown] = []
    for spacing in JUMP_SPACINGS:
        try:
            found = _shown(case, readings, spacing)
        except Unresolved:
            continue
        for one in shown:
            if _are_same(one, found) and (one.is_steep or found.is_steep):
                return _verdict(case, one.number.hull(found.number), one.each.hull(found.each))
        shown.append(found)
    if len(shown) < 2:
        raise Unresolved(UnclearBranches.NO_DISTANCES.of())
    if any(_are_same(*two) for two in combinations(shown, 2)):
        raise Unresolved(UnclearBranches.BY_AND_BY.of())
    raise Unresolved(UnclearBranches.DISTANCES_DIFFER.of())


def _are_same(one: _Shown, other: _Shown) -> bool:
    return _agree(one.number, other.number, SAME_NUMBER) and _agree(one.each, other.each, SAME_TIME)


def _agree(one: Interval, other: Interval, most: float) -> bool:
    return abs(one.value - other.value) <= most * min(one.value, other.value)


def _verdict(case: ProbeCase, number: Interval, each: Interval) -> ProbeVerdict:
    if case.subject.endswith(_EACH):
        return ProbeVerdict(CoreAnswer.VALUE, each, unit=CYCLES)
    return ProbeVerdict(CoreAnswer.VALUE, number)


def _more(case: ProbeCase, readings: Readings) -> Iterator[Point]:
    """Numbers between the last of a level and the next, at every distance."""
    form = case.points[0].lines[0].form
    isa = next(isa for isa, (jump, _, _) in _WAYS.items() if form == jump.partition(":")[0])
    for spacing in JUMP_SPACINGS:
        for count in between(apart(readings, spacing), case):
            yield jumps(isa, spacing, count)


def between(own: Readings, case: ProbeCase) -> Iterator[int]:
    """Numbers between the last of a case's level and the first of which jumps surely take longer."""
    try:
        level = numbered_level(own, _number(case))
        after = _leaves(level, own)
    except Unresolved:
        return
    last = level.places[-1]
    if after is not None:
        yield from range(last + max(last // _PARTS, 1), after, max(last // _PARTS, 1))


PROBE = Probe(
    "branch-targets",
    "How many jumps does the core know the targets of, and what does a jump take that it knows?",
    Model.PLATEAU,
    _cases,
    _judge,
    ("Agner Fog, test programs, jmp", "H. Wong, The microarchitecture of branch target buffers"),
    unit="jumps",
    more=_more,
    axis="jumps",
)
