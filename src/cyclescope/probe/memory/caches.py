"""How large are the caches, and how long does a load from each take?

A chain of loads through as much memory, in random order, walked on and on: what fits into a cache takes that
cache's time, what does not the next one's. An edge is told where it is sharp: other programs, and pages that
the system places anywhere, make caches look smaller.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress

from cyclescope.model.facts import CACHE_LEVELS, CoreAnswer
from cyclescope.probe.code import CHAIN_PLACE, PARALLEL, KernelLine, Setting, written
from cyclescope.probe.interval import Interval
from cyclescope.probe.memory.transfers import CHASE
from cyclescope.probe.plateaus import (
    FAR_BEYOND,
    FARTHER_BEYOND,
    MOST_OF,
    WALKED,
    CacheLevel,
    check_rises,
    level_end,
    numbered_level,
    steady_places,
)
from cyclescope.probe.question import Model, Point, Probe, ProbeCase, ProbeVerdict, Readings, Unresolved
from cyclescope.remarks.probing import UnclearMemory

SPACING = 64  # bytes: a line of most; where lines are longer, sizes stay what they are
LEAST_SIZE, MOST_SIZE = 4 << 10, 8 << 20  # bytes
PER_OCTAVE = 3  # sizes that are asked
# Bytes that are asked first, and how many times as many next while a level may go on: to walk through much
# takes long, most of all beside neighbours, who have a part of the large caches.
FIRST_SIZES, NEXT_SIZES = 256 << 10, 4
WALK_LOADS = 16  # in a body, which then keeps where it has come to
PAGE = 4096  # bytes
PAGE_STEP = PAGE + SPACING  # bytes from one to the next: another page, and another line of it
LEAST_TRANSLATED = 8  # pages: whatever translates addresses knows so many
MOST_TRANSLATED = 0.3  # of what loads take longer behind the end of a cache: more, and pages may be what ends
_PAGES, _LINES = "pages", "lines"
_PAGED = tuple(LEAST_TRANSLATED * PAGE << n for n in range(6))  # asked first: a hurry ends before others are
_STAGES = 6  # looks: two for sizes up to the most, and those that narrow ends down
_GRAIN = 16  # parts of a size that its end is looked for in
KIB = 1024


_STORES: Mapping[str, tuple[str, str]] = {  # where the walk goes on, and where it has come to
    "x86-64": ("MOV (R64, M64): o p", "MOV (M64, R64): p o"),
    "aarch64": ("LDRXui: o p", "STRXui: o p"),
    "riscv64": ("LD: o p", "SD: o p"),
}


def _cases(isa: str) -> Iterator[ProbeCase]:
    for level in CACHE_LEVELS if isa in CHASE else ():
        for what in ("size", "load"):
            walks = (walk(isa, size) for size in _sizes(FIRST_SIZES))
            pages = (point for size in _PAGED for point in _translation(isa, size))
            yield ProbeCase(f"{level} level, {what}", (*walks, *pages), level != CACHE_LEVELS[-1])


def _sizes(most: int) -> list[int]:
    """Sizes up to so many bytes."""
    octaves = (MOST_SIZE // LEAST_SIZE).bit_length() - 1
    found = [round(LEAST_SIZE * 2 ** (n / PER_OCTAVE)) for n in range(octaves * PER_OCTAVE + 1)]
    return [size // SPACING * SPACING for size in found if size <= most]


def _needed(case: ProbeCase, readings: Readings) -> int:
    """The most bytes that a level's end is known by, or so many more that it may show."""
    asked = max(readings.places(WALKED))
    try:
        last = _level(case, readings).places[-1]
    except Unresolved:
        return NEXT_SIZES * asked
    enough = (1 + 1 / PER_OCTAVE) * FARTHER_BEYOND * last
    return min(math.ceil(enough), NEXT_SIZES * asked) if asked < FARTHER_BEYOND * last else asked


def walk(isa: str, size: int) -> Point:
    """A walk through so many bytes, that goes on where the one before has ended."""
    begin, end = (f"{text} +{CHAIN_PLACE}" for text in walk_ends(isa))
    setting = Setting(chain=(size // SPACING, SPACING))
    return Point(WALKED, walk_lines(isa, end), size, PARALLEL, setting, WALK_LOADS, written(isa, begin))


def walk_ends(isa: str) -> tuple[str, str]:
    """What loads where a walk goes on, and what stores where it has come to."""
    return _STORES[isa]


def walk_lines(isa: str, end: str) -> tuple[KernelLine, ...]:
    """Loads, each of where the next one goes, and what keeps the last."""
    return written(isa, *[CHASE[isa]] * WALK_LOADS, end)


def _level(case: ProbeCase, readings: Readings) -> CacheLevel:
    return numbered_level(readings, CACHE_LEVELS.index(case.subject.partition(" ")[0]))


def _levels_before(case: ProbeCase, readings: Readings) -> list[CacheLevel]:
    """Those whose end an answer rests on: of a size its own, too. Raises Unresolved."""
    number = CACHE_LEVELS.index(case.subject.partition(" ")[0]) + ("size" in case.subject)
    return [numbered_level(readings, n) for n in range(number)]


def _ends(level: CacheLevel, readings: Readings) -> tuple[int, ...]:
    """A level's first size, and the first that is far beyond, in pages that may not be translated at once.

    Pages that are not translated at once may be what ends a level: its last sizes have some of them, then.
    """
    known, last = steady_places(readings), level.places[-1]
    beyond = next((place for place in known if place >= FAR_BEYOND * last), 0)
    first = min(max(level.places[0], LEAST_TRANSLATED * PAGE), last)
    return (first, beyond) if beyond // PAGE >= LEAST_TRANSLATED else ()


def _translation(isa: str, size: int) -> Iterator[Point]:
    """Loads from as many pages as so many bytes have, and from as many lines."""
    begin, end = (f"{text} +{CHAIN_PLACE}" for text in walk_ends(isa))
    for part, step in ((_PAGES, PAGE_STEP), (_LINES, SPACING)):
        setting = Setting(chain=(max(size // PAGE, 1), step))
        yield Point(part, walk_lines(isa, end), size, PARALLEL, setting, WALK_LOADS, written(isa, begin))


def _check_translation(level: CacheLevel, readings: Readings) -> None:
    """Raise Unresolved where loads may take longer behind a level because pages are translated.

    A walk through memory meets every page often, and waits for it less often than one that meets it once.
    """
    ends = _ends(level, readings)
    if not ends:
        return
    longer = steady_places(readings)[ends[1]] - level.cycles
    asked = readings.places(_PAGES)  # before the last size was known as well as now
    sizes = (
        max((n for n in asked if n <= ends[0]), default=0),
        min((n for n in asked if n >= ends[1]), default=0),
    )
    near, far = (readings.get(_PAGES, size) - readings.get(_LINES, size) for size in sizes)
    if (far - near).high > MOST_TRANSLATED * longer.value:
        raise Unresolved(UnclearMemory.TRANSLATED.of())


def _more(case: ProbeCase, readings: Readings) -> Iterator[Point]:
    """Larger sizes while a level may go on, and what tells more of its end."""
    most, asked = _needed(case, readings), readings.places(WALKED)
    yield from (walk(_isa_of(case), size) for size in _sizes(most) if size > asked[-1])
    with suppress(Unresolved):  # it may show with these
        yield from _nearer(case, readings)


def _nearer(case: ProbeCase, readings: Readings) -> Iterator[Point]:
    """What tells whether pages end levels, and sizes between the last of a level and the next."""
    isa, known = _isa_of(case), steady_places(readings)
    for level in (*_levels_before(case, readings), _level(case, readings)):
        for size in _ends(level, readings):
            yield from _translation(isa, size)
        last = level.places[-1]
        after = next((place for place in known if place > last), last)
        step = max(last // _GRAIN // SPACING, 1) * SPACING
        for least, most in ((last, after), _end_between(level, readings)):
            yield from (walk(isa, size) for size in range(least + step, most, step))


def _end_between(level: CacheLevel, readings: Readings) -> tuple[int, int]:
    """The first size behind a level that takes what the next one does, and the one before; or nothing.

    Between them and a level there may be sizes that take a little longer, as others have a few of its lines.
    """
    known, last = steady_places(readings), level.places[-1]
    beyond = next((taken for place, taken in known.items() if place >= FAR_BEYOND * last), None)
    if beyond is None:
        return last, last
    end = next(place for place in known if place > last and known[place].high >= MOST_OF * beyond.value)
    return max(place for place in known if place < end), end


def _isa_of(case: ProbeCase) -> str:
    form = case.points[0].lines[0].form
    return next(isa for isa, text in CHASE.items() if text.partition(":")[0] == form)


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    level = _level(case, readings)
    if case.subject.endswith("load"):
        found = ProbeVerdict(CoreAnswer.VALUE, level.cycles)
    else:
        least, most = level.places[-1], level_end(level, readings) - SPACING
        found = ProbeVerdict(CoreAnswer.VALUE, Interval(least / KIB, most / KIB), unit="KiB")
    for before in _levels_before(case, readings):
        check_rises(before, readings)
        _check_translation(before, readings)
    return found


PROBE = Probe(
    "caches",
    "How large are the caches, and how long does a load from each take?",
    Model.PLATEAU,
    _cases,
    _judge,
    ("Agner Fog, test programs, cache_latency", "L. McVoy, lmbench, lat_mem_rd"),
    more=_more,
    stages=_STAGES,
    events=("L1-dcache-load-misses", "dTLB-load-misses"),
    axis="bytes",
)
