"""How large are the caches, and how long does a load from each take?

A chain of loads through as much memory, in random order, walked on and on: what fits into a cache takes that
cache's time, what does not the next one's. An edge is told where it is sharp: other programs, and pages that
the system places anywhere, make caches look smaller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cyclescope.model.facts import CACHE_LEVELS, CoreAnswer
from cyclescope.probe.code import CHAIN_PLACE, PARALLEL, KernelLine, Setting, written
from cyclescope.probe.interval import Interval
from cyclescope.probe.memory.transfers import CHASE
from cyclescope.probe.plateaus import (
    WALKED,
    CacheLevel,
    level_end,
    numbered_level,
    steady_places,
)
from cyclescope.probe.question import Model, Point, Probe, ProbeCase, ProbeVerdict, Readings

SPACING = 64  # bytes: a line of most; where lines are longer, sizes stay what they are
LEAST_SIZE, MOST_SIZE = 4 << 10, 8 << 20  # bytes
PER_OCTAVE = 3  # sizes that are asked first
WALK_LOADS = 16  # in a body, which then keeps where it has come to
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
            points = tuple(walk(isa, size) for size in _sizes())
            yield ProbeCase(f"{level} level, {what}", points, level != CACHE_LEVELS[-1])


def _sizes() -> list[int]:
    octaves = (MOST_SIZE // LEAST_SIZE).bit_length() - 1
    found = [round(LEAST_SIZE * 2 ** (n / PER_OCTAVE)) for n in range(octaves * PER_OCTAVE + 1)]
    return [size // SPACING * SPACING for size in found]


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


def _more(case: ProbeCase, readings: Readings) -> Iterator[Point]:
    """Sizes between the last of a level and the next."""
    level, isa = _level(case, readings), _isa_of(case)
    last = level.places[-1]
    after = next((place for place in steady_places(readings) if place > last), None)
    step = max(last // _GRAIN // SPACING, 1) * SPACING
    if after is not None and "size" in case.subject:
        yield from (walk(isa, size) for size in range(last + step, after, step))


def _isa_of(case: ProbeCase) -> str:
    form = case.points[0].lines[0].form
    return next(isa for isa, text in CHASE.items() if text.partition(":")[0] == form)


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    level = _level(case, readings)
    if case.subject.endswith("load"):
        return ProbeVerdict(CoreAnswer.VALUE, level.cycles)
    last = level.places[-1]
    return ProbeVerdict(
        CoreAnswer.VALUE, Interval(last / KIB, (level_end(level, readings) - SPACING) / KIB), unit="KiB"
    )


PROBE = Probe(
    "caches",
    "How large are the caches, and how long does a load from each take?",
    Model.PLATEAU,
    _cases,
    _judge,
    ("Agner Fog, test programs, cache_latency", "L. McVoy, lmbench, lat_mem_rd"),
    more=_more,
)
