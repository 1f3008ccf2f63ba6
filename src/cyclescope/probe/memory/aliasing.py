"""Does a load wait for a store to another page, at the same place in it?

A chain of loads of a pointer to itself, with a store before each: at the same place of another page, and at
another place. A load that wrongly waits for the store takes longer.
"""

from __future__ import annotations

from collections.abc import Iterator

from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.code import NUMBERS, Setting, written
from cyclescope.probe.levels import steady
from cyclescope.probe.memory.transfers import CHASE, PLAIN_TRANSFERS
from cyclescope.probe.question import (
    Model,
    Point,
    Probe,
    ProbeCase,
    ProbeVerdict,
    Readings,
    Unresolved,
    parallel,
)
from cyclescope.remarks.probing import Unclear

PAGE = 4096  # bytes: the least that there is, and what is compared of addresses first
PAGES = (1, 2, 3, 4, 8, 16)  # apart
BESIDE = 256  # bytes, where nothing can be mistaken
_LONGER = 1.0  # cycles that a load which waits takes longer at least


def _cases(isa: str) -> Iterator[ProbeCase]:
    for pages in PAGES if isa in CHASE else ():
        points = (_point(isa, "same place", pages * PAGE), _point(isa, "other place", pages * PAGE + BESIDE))
        yield ProbeCase(f"{pages} pages apart" if pages > 1 else "a page apart", points, pages <= 2)


def _point(isa: str, part: str, apart: int) -> Point:
    store = PLAIN_TRANSFERS[isa][-1].store.replace("@", "p")
    place = apart + 8
    setting = Setting(pointers=((NUMBERS[isa]["o"], place),), stored=((place, place),))
    return parallel(part, *written(isa, f"{store} +8", CHASE[isa]), setting=setting)


WAITS_DIFFER = 0.34  # of the time: a Zen 5 waits 3.5 cycles for most pages, 7.0 for some, as they lie


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    same, other = readings.get("same place"), readings.get("other place")
    if not steady(same, other):
        raise Unresolved(Unclear.LOOKS_DIFFER.of())
    longer = same - other
    if longer.low <= 0 < _LONGER <= longer.high:
        raise Unresolved(Unclear.UNDECIDED.of())
    if longer.low > 0 and longer.high >= _LONGER:
        return ProbeVerdict(CoreAnswer.ALIASED, longer.with_error(WAITS_DIFFER))
    return ProbeVerdict(CoreAnswer.ABSENT, longer)


PROBE = Probe(
    "4k-aliasing",
    "Does a load wait for a store to another page, at the same place in it?",
    Model.TWO_LEVEL,
    _cases,
    _judge,
    ("Agner Fog, test programs, cache_banks", "Intel, optimization manual, 4-Kbyte aliasing"),
)
