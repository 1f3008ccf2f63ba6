"""How many ways has the first cache, how large is it, and how long are its lines?

Loads from a number of lines at a fixed distance, over and over. Lines at the same place of every way share
a set, which has room for as many lines as there are ways. If the distance is the size of a way or more,
twice as many lines fit at half the distance, and as many at twice the distance. Then as many lines are
added some bytes further: if these are in the same lines' set they are too many, if in the next set they
fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from cyclescope.kernel.state import CHAIN_PAGES_BASE, FIRST_WINDOW
from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.code import CHAIN_PLACE, NUMBERS, PARALLEL, KernelLine, Setting, written
from cyclescope.probe.edges import inside
from cyclescope.probe.interval import Interval
from cyclescope.probe.levels import is_higher, steady
from cyclescope.probe.memory.caches import KIB, WALK_LOADS, walk_ends, walk_lines
from cyclescope.probe.memory.transfers import CHASE
from cyclescope.probe.plateaus import SAME_LEVEL
from cyclescope.probe.question import Model, Point, Probe, ProbeCase, ProbeVerdict, Readings, Unresolved
from cyclescope.remarks.probing import Read, Unclear, UnclearMemory

LEAST_PAGE = 4096  # bytes: within, caches that look at physical addresses have the lines where they are put
NEARER_LINES = (LEAST_PAGE // 4, LEAST_PAGE // 2)  # bytes from one line to the next
FARTHER_LINES = tuple(
    LEAST_PAGE * n for n in (1, 2, 3, 4, 5, 7, 8, 9, 11, 13)
)  # many: pages that lie anywhere agree by luck
LINE_DISTANCES = (*NEARER_LINES, *FARTHER_LINES)
MOST_WAYS_ASKED = 32  # of one set that are asked; no first cache has more
LINE_OFFSETS = (16, 32, 64, 128, 256)  # bytes: lines that there are, or were
_LEAST, _STEP = 2, 1.5  # lines that are asked first: each number is so many times the one before
_ALONE, _SAME_SET, _BEHIND = "lines of one set", "twice as many in one set", "as many behind them"
_WAYS, _SIZE, _LINE = (f"first level, {what}" for what in ("ways", "size", "line"))


class Circle(NamedTuple):
    """What links lines to a circle from o on: the next is @ behind, in c; a leads to it; what comes next."""

    begin: str
    next: tuple[str, ...]
    link: str
    go: str
    end: str


_CIRCLES: Mapping[str, Circle] = {
    "x86-64": Circle(
        "MOV_89 (R64, R64): a o", ("MOV_89 (R64, R64): c a", "ADD_01 (R64, R64): c @"),
        "MOV (M64, R64): a c", "MOV_89 (R64, R64): a c", "MOV (M64, R64): a o",
    ),
    "aarch64": Circle(
        "ORRXrs: a z o #0", ("ADDXrs: c a @ #0",), "STRXui: c a", "ORRXrs: a z c #0", "STRXui: o a"
    ),
    "riscv64": Circle("ADD: a o z", ("ADD: c a @",), "SD: c a", "ADD: a c z", "SD: o a"),
}  # fmt: skip


def _cases(isa: str) -> Iterator[ProbeCase]:
    points = (
        [lines_apart(isa, far, n) for far in LINE_DISTANCES for n in _counts(far)] if isa in CHASE else []
    )
    for subject in (_WAYS, _SIZE, _LINE) if points else ():
        yield ProbeCase(subject, tuple(points))


def _counts(distance: int) -> list[int]:
    """Numbers of lines that are asked first: of those nearer than a page as many more."""
    found, most = [_LEAST], MOST_WAYS_ASKED * max(LEAST_PAGE // distance, 1)
    while found[-1] < most:
        found.append(min(round(found[-1] * _STEP), most))
    return found


def lines_apart(isa: str, distance: int, count: int) -> Point:
    """A walk through so many lines, in random order."""
    begin, end = (f"{text} +{CHAIN_PLACE}" for text in walk_ends(isa))
    setting = Setting(chain=(count, distance))
    part = _part(distance)
    return Point(part, walk_lines(isa, end), count, PARALLEL, setting, WALK_LOADS, written(isa, begin))


def _part(distance: int) -> str:
    return f"{distance // KIB} KiB apart"


def _edge(readings: Readings, distance: int) -> tuple[int, int]:
    """The last number of lines that surely fit, and the first that surely do not. Raises Unresolved."""
    part = _part(distance)
    taken = {count: readings.get(part, count) for count in readings.places(part)}
    fewest = taken[min(taken)]
    if not steady(fewest):
        raise Unresolved(Unclear.LOOKS_DIFFER.of())
    most = (1 + SAME_LEVEL) * fewest.value
    after = next((count for count, one in taken.items() if one.low > most), None)
    if after is None:
        raise Unresolved(UnclearMemory.LINES_AS_FAST.of())
    return max(count for count, one in taken.items() if count < after and one.high <= most), after


def _fitting(readings: Readings, distance: int) -> int:
    """How many lines fit, all numbers around known. Raises Unresolved."""
    last, after = _edge(readings, distance)
    if after > last + 1:
        raise Unresolved(Unclear.LOOKS_DIFFER.of())
    return last


def _set(readings: Readings) -> tuple[int, int]:
    """Ways, and how far lines of one set are apart. Raises Unresolved.

    Where physical addresses say which set a line is in, those a page apart and more are in any: then not as
    many fit at every distance.
    """
    fit = {distance: _fitting(readings, distance) for distance in LINE_DISTANCES}
    ways = fit[LINE_DISTANCES[-1]]
    own = next(distance for distance, count in fit.items() if count == ways)
    for distance, count in fit.items():
        if count != ways * max(own // distance, 1):
            raise Unresolved(UnclearMemory.NO_SET.of(), Read.AT.of(fit))
    if not LINE_DISTANCES[0] < own <= LEAST_PAGE:
        raise Unresolved(UnclearMemory.NO_DISTANCE.of())
    return ways, own


def circle(isa: str, ways: int, offset: int | None, part: str) -> Point:
    """Loads from so many lines that are a page apart, and as many `offset` bytes behind, if it is given."""
    way = _CIRCLES[isa]
    texts = [way.begin, *_links(way, ways, "e")]
    if offset is not None:
        texts += [*_link(way, "f"), *_links(way, ways, "e")]
    count = ways if offset is None else 2 * ways
    numbers = {"e": LEAST_PAGE, "f": LEAST_PAGE + (offset or 0)}
    setting = Setting(
        numbers=tuple((NUMBERS[isa][letter], value) for letter, value in numbers.items()),
        pointers=((NUMBERS[isa]["o"], CHAIN_PAGES_BASE - FIRST_WINDOW),),
    )
    lines: tuple[KernelLine, ...] = written(isa, *[CHASE[isa]] * count)
    return Point(part, lines, offset or 0, PARALLEL, setting, count, written(isa, *texts, way.end))


def _links(way: Circle, count: int, step: str) -> list[str]:
    return _link(way, step) * (count - 1)


def _link(way: Circle, step: str) -> list[str]:
    return [*[text.replace("@", step) for text in way.next], way.link, way.go]


def _more(case: ProbeCase, readings: Readings) -> Iterator[Point]:
    """Numbers of lines between those that fit and those that do not, then places behind as many as fit."""
    isa = next(isa for isa, text in CHASE.items() if case.points[0].lines[0].form == text.partition(":")[0])
    for distance in LINE_DISTANCES:
        with suppress(Unresolved):
            last, after = _edge(readings, distance)
            for count in inside(last, after):
                yield lines_apart(isa, distance, count)
    with suppress(Unresolved):
        if case.subject == _LINE:
            ways, _ = _set(readings)
            yield circle(isa, ways, None, _ALONE)
            yield circle(isa, ways, 0, _SAME_SET)
            yield from (circle(isa, ways, offset, _BEHIND) for offset in LINE_OFFSETS)


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    ways, apart = _set(readings)
    if case.subject == _WAYS:
        return ProbeVerdict(CoreAnswer.VALUE, Interval(ways, ways))
    if case.subject == _SIZE:
        size = ways * apart / KIB
        return ProbeVerdict(CoreAnswer.VALUE, Interval(size, size), unit="KiB")
    return _line(readings)


def _line(readings: Readings) -> ProbeVerdict:
    """The least offset that leads to another set."""
    low, high = readings.get(_ALONE), readings.get(_SAME_SET)
    behind = {offset: readings.get(_BEHIND, offset) for offset in LINE_OFFSETS}
    shared = [offset for offset, one in behind.items() if is_higher(one, low, high)]
    if shared != list(LINE_OFFSETS[: len(shared)]) or not 0 < len(shared) < len(LINE_OFFSETS):
        raise Unresolved(UnclearMemory.NO_LINE_END.of(), Read.OF_ONE_SET.of(shared))
    size = LINE_OFFSETS[len(shared)]
    return ProbeVerdict(
        CoreAnswer.VALUE, Interval(size, size), steady(low, high, *behind.values()), unit="bytes"
    )


PROBE = Probe(
    "cache-sets",
    "How many ways has the first cache, how large is it, and how long are its lines?",
    Model.PLATEAU,
    _cases,
    _judge,
    ("Agner Fog, test programs, cache_latency", "A. Abel, nanoBench, CacheAnalyzer"),
    unit="ways",
    more=_more,
    events=("L1-dcache-load-misses",),
    axis="places",
)
