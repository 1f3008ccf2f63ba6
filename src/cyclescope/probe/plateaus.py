"""Runs of a sweep that take the same, one level after the other, and where they end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

from cyclescope.measure.sampling import AGREE
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Readings, Unresolved
from cyclescope.remarks.probing import UnclearMemory

SAME_LEVEL = 0.06  # relative: loads of one level differ by less
SPAN = 1.5  # times the least size that the most of a level is, at the least
CLEARLY = 1.3  # times as long as in a level: what loads from beyond it take at the least
FAR_BEYOND = 2  # times a level's size: what loads take there is compared with
FARTHER_BEYOND = 3  # times its size: loads take as long there, but where what fits differs from set to set
STILL_LONGER = 1.1  # times as long as at twice the size: then what does not fit there came by and by
MOST_OF = 0.85  # of that: an edge ends where loads take so much
SOFT = 0.35  # of a level's size: a longer edge is soft; that of four ways is a quarter
WALKED = "walk"


class CacheLevel(NamedTuple):
    """Places of a sweep that take the same, and what it is."""

    places: tuple[int, ...]
    cycles: Interval


def levels_of(readings: Readings) -> list[CacheLevel]:
    """Runs of places that take the same, over a range of sizes. Raises Unresolved for what has no reading."""
    cycles = {place: readings.get(WALKED, place) for place in readings.places(WALKED)}
    found: list[CacheLevel] = []
    rest = list(cycles)
    while rest:
        if not cycles[rest[0]].is_steady:
            rest = rest[1:]
            continue
        run, rest = _run(rest, cycles)
        if run[-1] >= SPAN * run[0]:
            steady = [cycles[place].value for place in run if cycles[place].is_steady]
            found.append(CacheLevel(tuple(run), Interval(min(steady), max(steady))))
    return found


def _run(places: Sequence[int], cycles: Mapping[int, Interval]) -> tuple[list[int], list[int]]:
    """Places that take the same as the first, up to one that surely takes more or less; it and the rest."""
    most, least = (cycles[places[0]].value * times for times in (1 + SAME_LEVEL, 1 / (1 + SAME_LEVEL)))
    others = (n for n, place in enumerate(places) if cycles[place].low > most or cycles[place].high < least)
    number = next(others, len(places))
    own = [place for place in places[1:number] if cycles[place].high <= most]
    return [places[0], *own], list(places[number:])


def steady_places(readings: Readings) -> dict[int, Interval]:
    """Steady readings by place, in order."""
    every = {place: readings.get(WALKED, place) for place in readings.places(WALKED)}
    return {place: interval for place, interval in every.items() if interval.is_steady}


def numbered_level(readings: Readings, number: int) -> CacheLevel:
    """The level of a number, from 0 on. Raises Unresolved where none is, or there may be one before it."""
    found = levels_of(readings)
    if not found or found[0].places[0] != readings.places(WALKED)[0]:
        raise Unresolved(UnclearMemory.SMALLEST_DIFFER.of())
    if number >= len(found):
        raise Unresolved(UnclearMemory.NO_MORE_SIZES.of())
    for level, after in pairwise(found[: number + 1]):
        if after.places[0] > FAR_BEYOND * level.places[-1]:
            raise Unresolved(UnclearMemory.HIDDEN_LEVEL.of())
    return found[number]


def check_rises(level: CacheLevel, readings: Readings) -> None:
    """Raise Unresolved where loads from more memory surely take less, from a level's end to the next one's.

    More does not fit where less did not: pages share sets by where they lie.
    """
    last = level.places[-1]
    after = next((other.places[-1] for other in levels_of(readings) if other.places[0] > last), last)
    most = max(after, FARTHER_BEYOND * last)
    behind = [cycles for place, cycles in steady_places(readings).items() if last < place <= most]
    if any(less.low > (1 + AGREE) * more.high for less, more in combinations(behind, 2)):
        raise Unresolved(UnclearMemory.FALLS.of())


def level_end(level: CacheLevel, readings: Readings) -> int:
    """The first size behind a level's last at which loads take what the next level's do.

    Raises Unresolved where that is far, or takes hardly longer: neither is the end of a cache.
    """
    known, last = steady_places(readings), level.places[-1]
    beyond = next((place for place in known if place >= FAR_BEYOND * last), None)
    if beyond is None:
        raise Unresolved(UnclearMemory.NO_BEYOND.of())
    if known[beyond].low < CLEARLY * level.cycles.high:
        raise Unresolved(UnclearMemory.BEYOND_AS_FAST.of())
    farther = next((place for place in known if place >= FARTHER_BEYOND * last), None)
    if farther is None:
        raise Unresolved(UnclearMemory.NO_BEYOND.of())
    if known[farther].low > STILL_LONGER * known[beyond].high:
        raise Unresolved(UnclearMemory.SOFT_EDGE.of())
    end = next(
        place for place in known if place > last and known[place].high >= MOST_OF * known[beyond].value
    )
    if end > (1 + SOFT) * last:
        raise Unresolved(UnclearMemory.SOFT_EDGE.of())
    return end
