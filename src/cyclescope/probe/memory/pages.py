"""How many pages does a core know the addresses of, and how much longer do loads from others take?

A chain of loads in random order, one from each page and never twice from the same line of it, beside a chain
through as many lines that are next to each other: what takes longer is the translation of addresses.
"""

from __future__ import annotations

from collections.abc import Iterator

from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.code import CHAIN_PLACE, PARALLEL, Setting, written
from cyclescope.probe.interval import Interval
from cyclescope.probe.memory.caches import PAGE, WALK_LOADS, walk_ends, walk_lines
from cyclescope.probe.memory.transfers import CHASE
from cyclescope.probe.plateaus import WALKED, levels_of
from cyclescope.probe.question import Model, Point, Probe, ProbeCase, ProbeVerdict, Readings, Unresolved
from cyclescope.remarks.probing import Unclear, UnclearMemory

LEAST_PAGES, MOST_PAGES = 8, 3072
# Bytes from one line to the next, and from a line of a page to one of the next: no two in one of the longest
# lines, and both in the same sets of a cache whose ways are as large as pages.
APART = 128
_PER_OCTAVE = 2  # numbers that are asked first
_PAGES, _LINES = "pages", "lines"
OWN_PAGES = 1  # of what times the walk, as its stack: a core may know it beside those that are walked
_GRAIN = 24  # parts of a number that its end is looked for in
ENTRIES, MISS = "first level, entries", "first level, miss"


def _cases(isa: str) -> Iterator[ProbeCase]:
    for subject in (ENTRIES, MISS) if isa in CHASE else ():
        yield ProbeCase(subject, tuple(point for count in _counts() for point in _points(isa, count)))


def _counts() -> list[int]:
    octaves = range(_PER_OCTAVE * (MOST_PAGES // LEAST_PAGES).bit_length())
    found = [round(LEAST_PAGES * 2 ** (n / _PER_OCTAVE)) for n in octaves]
    return [count for count in found if count <= MOST_PAGES]


def _points(isa: str, count: int) -> Iterator[Point]:
    """Loads from so many pages, and from as many lines next to each other."""
    begin, end = (f"{text} +{CHAIN_PLACE}" for text in walk_ends(isa))
    for part, step in ((_PAGES, PAGE + APART), (_LINES, APART)):
        lines, setting = walk_lines(isa, end), Setting(chain=(count, step))
        yield Point(part, lines, count, PARALLEL, setting, WALK_LOADS, written(isa, begin))


def translated(readings: Readings) -> Readings:
    """What loads from pages would take with all lines in the nearest cache, by the number of pages.

    Raises Unresolved for what is not measured.
    """
    places = readings.places(_PAGES)
    nearest = readings.get(_LINES, places[0])
    found: dict[tuple[str, int], Interval] = {}
    for place in places:
        longer = readings.get(_PAGES, place) - readings.get(_LINES, place)
        error = longer.error
        middle = longer.value + nearest.value
        found[WALKED, place] = Interval(middle - error, middle + error, longer.is_steady)
    return Readings(found, {})


def _more(case: ProbeCase, readings: Readings) -> Iterator[Point]:
    """Numbers between the last that takes no longer and the first that does."""
    last, after = _edge(translated(readings))
    isa = next(isa for isa, text in CHASE.items() if case.points[0].lines[0].form == text.partition(":")[0])
    step = max(last // _GRAIN, 1)
    for count in range(last + step, after, step):
        yield from _points(isa, count)


def _edge(readings: Readings) -> tuple[int, int]:
    """The last number of pages that takes no longer than the fewest, and the first that surely does."""
    levels = levels_of(readings)
    if not levels or levels[0].places[0] != LEAST_PAGES:
        raise Unresolved(UnclearMemory.FEWEST_PAGES.of())
    last = levels[0].places[-1]
    places = readings.places(WALKED)
    after = next(
        (n for n in places if n > last and readings.get(WALKED, n).low > levels[0].cycles.high), None
    )
    if after is None:
        raise Unresolved(UnclearMemory.PAGES_AS_FAST.of())
    return last, after


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    found = translated(readings)
    last, after = _edge(found)
    levels = levels_of(found)
    if len(levels) < 2 or levels[1].places[0] > 2 * last:
        raise Unresolved(UnclearMemory.NO_MORE_PAGES.of())
    miss = levels[1].cycles - levels[0].cycles
    if case.subject == MISS:
        return ProbeVerdict(CoreAnswer.VALUE, miss)
    if after - last > max(1, 2 * last // _GRAIN):
        raise Unresolved(Unclear.LOOKS_DIFFER.of())
    return ProbeVerdict(CoreAnswer.VALUE, Interval(last, after - 1 + OWN_PAGES), unit="pages")


PROBE = Probe(
    "pages",
    "How many pages does a core know the addresses of, and how much longer do loads from others take?",
    Model.PLATEAU,
    _cases,
    _judge,
    ("Agner Fog, test programs, cache_latency", "L. McVoy, lmbench, lat_mem_rd"),
    more=_more,
    events=("dTLB-load-misses", "L1-dcache-load-misses"),
    axis="pages, or as many lines",
)
