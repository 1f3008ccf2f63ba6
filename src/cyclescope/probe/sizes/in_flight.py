"""How many instructions of a kind are in flight at once?

A chain of slow operations that waits for nothing before it, then instructions of the kind, over and over. The
next chain runs beside the one before as long as its first operation gets in: a structure that is full keeps
it out until the chain has come to its end. Controls are chains that wait for each other, which is what it
takes then, and operations that wait for nothing, with as many instructions in between.

A neighbour on the same core takes a part of a structure for a second and leaves everything else as it is:
what overlaps is in flight, what does not may have had a neighbour. So the places around the end are asked
again, all in turns, until two such sweeps agree, each of which saw one that overlaps and the next that does
not side by side. How far the two lie apart is the error.

Of what is in flight of any kind mixes tell: of each another share is in the structures of every kind. What
ends them at the same number is what all instructions are in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import Enum
from functools import reduce
from itertools import combinations, cycle, groupby, islice

import msgspec

from cyclescope.model.facts import IN_FLIGHT, CoreAnswer
from cyclescope.probe.code import KernelLine, written
from cyclescope.probe.interval import Interval
from cyclescope.probe.levels import steady
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
from cyclescope.probe.sizes.fillers import FILLERS, SLOW, Filler
from cyclescope.remarks.probing import Read, Unclear, UnclearSize

CHAIN_LENGTH = 12  # operations: together longer than the fillers take, and few enough for a scheduler
MOST_IN_FLIGHT = 720  # instructions: more than any core of today has
_FIRST, _STEP = 4, 1.3  # of the coarse places: each is so many times the one before
_EACH = 16  # places between an overlap and none at which every one is asked
_FEWER = 8  # or so many of them
_CLEAR = 0.85  # of the time of chains that wait for each other: far from the end all takes less
_SLOPE = CHAIN_LENGTH + 4  # places that the step may take: a chain's operations leave one by one
_MOST_DOUBT = 0.06  # of the number: places between the last overlap and the first that is none, or so many
_STEP_DOUBT = 1  # instruction on either side of a step: of a Zen 5's loads 204 are seen one time, 205 another
_LEAST_DOUBT = 3  # that noise leaves open
_ASKED, _SERIAL, _FREE = "asked", "serial", "free"
_AGAIN = ("asked again", "third sweep", "fourth sweep")  # around the end, all in turns
_ENDS = 2  # of these that have to agree: one may have had a neighbour from its beginning to its end
_STAGES = 3 * (1 + len(_AGAIN))  # an end that is refuted is narrowed down and asked about anew
_TARGETS = "cefg"  # registers that nothing reads
_PLACES = math.ceil(math.log(MOST_IN_FLIGHT / _FIRST, _STEP))
_COARSE = (*dict.fromkeys(round(_FIRST * _STEP**n) for n in range(_PLACES)), MOST_IN_FLIGHT)


def _cases(isa: str) -> Iterator[ProbeCase]:
    for _, mixes in groupby(FILLERS.get(isa, ()), lambda filler: filler.subject):
        every = list(mixes)
        counts = (0, *_COARSE)
        points = (point for one in every for count in counts for point in _points(isa, one, count, not count))
        yield ProbeCase(every[0].subject, tuple(points), every[0].quick)


def _points(isa: str, filler: Filler, count: int, free: bool) -> Iterator[Point]:
    """A chain with so many fillers, asked and waiting for the one before; `free`: all operations apart."""
    slow = filler.slow or SLOW[isa]
    rest = (*written(isa, *filter(None, filler.source.split("; "))), *_fillers(isa, filler, count))
    (first,), (later,) = (written(isa, slow.replace("@", source)) for source in "ba")
    mix = filler.mix
    yield parallel(f"{_ASKED}{mix}", first, *[later] * (CHAIN_LENGTH - 1), *rest, x=count)
    yield parallel(f"{_SERIAL}{mix}", *[later] * CHAIN_LENGTH, *rest, x=count)
    if free:
        yield parallel(f"{_FREE}{mix}", *[first] * CHAIN_LENGTH, *rest, x=count)


def _fillers(isa: str, filler: Filler, count: int) -> tuple[KernelLine, ...]:
    """The kind's instructions, with targets in turn."""
    texts = filler.text.split("; ")
    turns = islice(zip(cycle(texts), cycle(_TARGETS)), math.lcm(len(texts), len(_TARGETS)))
    some = written(isa, *[text.replace("@", target) for text, target in turns])
    return tuple(some[number % len(some)] for number in range(count))


class _Overlap(Enum):
    """What a place shows: chains beside each other, one after the other, or neither for sure.

    Where sweeps differ the first of these counts.
    """

    SOME = 1
    NONE = 2
    UNSURE = 3


def _seen(readings: Readings, count: int, part: str = _ASKED) -> _Overlap:
    """Whether chains overlap: one operation of the chain is a step."""
    serial, asked = readings.get(_SERIAL, count), readings.get(part, count)
    if not steady(serial, asked):
        return _Overlap.UNSURE
    half_a_step = readings.get(_SERIAL, 0).value / CHAIN_LENGTH / 2
    gain = serial - asked
    if gain.low > half_a_step:
        return _Overlap.SOME
    return _Overlap.NONE if gain.high < half_a_step else _Overlap.UNSURE


def _states(readings: Readings) -> dict[int, _Overlap]:
    """What the sweeps show of each place: one that overlapped once has room, whatever the others say."""
    states: dict[int, _Overlap] = {}
    for part in (_ASKED, *_AGAIN):
        for count in readings.places(part):
            seen, before = _seen(readings, count, part), states.get(count, _Overlap.UNSURE)
            states[count] = min(seen, before, key=lambda state: state.value)
    return dict(sorted(states.items()))


def _between(readings: Readings) -> tuple[int, int] | None:
    """The last place with an overlap and the first without behind it; None where there is none."""
    states = _states(readings)
    last = max((count for count, state in states.items() if state is _Overlap.SOME), default=None)
    if last is None:
        return None
    end = next((count for count, state in states.items() if count > last and state is _Overlap.NONE), None)
    return None if end is None else (last, end)


def _side_by_side(readings: Readings, low: int, high: int) -> set[int]:
    """Places that do not overlap in sweeps that show an overlap at the end and none behind it."""
    found: set[int] = set()
    for part in _AGAIN:
        own = {count: _seen(readings, count, part) for count in readings.places(part)}
        near = [own[count] for count in own if low - _LEAST_DOUBT <= count <= low]
        if _Overlap.SOME in near and _Overlap.NONE not in near and own.get(high) is _Overlap.NONE:
            found |= {count for count, state in own.items() if state is _Overlap.NONE}
    return found


def _ends(readings: Readings) -> Iterator[tuple[int, int]]:
    """The last place with an overlap and the first without behind it, of every sweep that saw both."""
    for part in _AGAIN:
        own = {count: _seen(readings, count, part) for count in readings.places(part)}
        low = max((count for count, state in own.items() if state is _Overlap.SOME), default=None)
        behind = [count for count, state in own.items() if state is _Overlap.NONE and count > (low or 0)]
        if low is not None and behind:
            yield low, min(behind)


def _agreed(readings: Readings) -> tuple[int, int] | None:
    """Between what places sweeps with most room saw the end; None where they are too few or too far apart."""
    between, ends = _between(readings), sorted(_ends(readings))[-_ENDS:]
    if between is None or len(ends) < _ENDS:
        return None
    low, high = ends[0][0], max(between[0] + 1, *(end for _, end in ends))
    return (low, high) if high - low - 1 <= max(_LEAST_DOUBT, _MOST_DOUBT * low) else None


def _is_settled(readings: Readings, low: int, high: int) -> bool:
    """Whether another sweep would say nothing new of the end, and of places before it."""
    return _side_by_side(readings, low, high) > _refuted(readings, low) and _agreed(readings) is not None


def _refuted(readings: Readings, low: int) -> set[int]:
    """Places without an overlap before the last one with it."""
    return {n for n, state in _states(readings).items() if n < low and state is _Overlap.NONE}


def _more(case: ProbeCase, readings: Readings) -> Iterator[Point]:
    """What says more of the end of every mix."""
    isa, mixes = _of(case)
    for filler in mixes:
        yield from _nearer(isa, filler, readings.ending(filler.mix))


def _nearer(isa: str, filler: Filler, readings: Readings) -> Iterator[Point]:
    """Places between the last overlap and the first that is none: few of many, else all, side by side."""
    between = _between(readings)
    if between is None:
        return
    low, high = between
    if high not in readings.places(_FREE):
        *_, alone = _points(isa, filler, high, free=True)
        yield alone
    if high - low > _EACH:
        for count in range(low + 1, high, (high - low) // _FEWER):
            yield from _points(isa, filler, count, free=False)
        return
    if 0 < low - _SLOPE not in readings.places(_ASKED):
        yield from _points(isa, filler, low - _SLOPE, free=False)
    yield from _anew(isa, filler, readings, low, high)


def _anew(isa: str, filler: Filler, readings: Readings, low: int, high: int) -> Iterator[Point]:
    """Places around the end, and those before it that do not overlap; none where enough was seen."""
    part = next((one for one in _AGAIN if not readings.places(one)), None)
    if part is None or _is_settled(readings, low, high):
        return
    further = _LEAST_DOUBT if _side_by_side(readings, low, high) else _SLOPE
    for count in sorted({*_refuted(readings, low), *range(max(low - _LEAST_DOUBT, 1), high + further)}):
        asked, serial, *_ = _points(isa, filler, count, free=False)
        yield msgspec.structs.replace(asked, part=f"{part}{filler.mix}")
        if count not in readings.places(_SERIAL):
            yield serial


def _of(case: ProbeCase) -> tuple[str, list[Filler]]:
    """The instruction set and the fillers of a case."""
    form = case.points[0].lines[0].form
    for isa, fillers in FILLERS.items():
        if form in {(one.slow or SLOW[isa]).partition(": ")[0] for one in fillers}:
            return isa, [one for one in fillers if one.subject == case.subject]
    raise KeyError(case.subject)


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    """What all mixes end at: each has another share of what other structures hold."""
    _, mixes = _of(case)
    found = [_size(filler, readings.ending(filler.mix)) for filler in mixes]
    if not all(one.meets(other) for one, other in combinations(found, 2)):
        detail = Read.SIZES.of(min(one.value for one in found), max(one.value for one in found))
        raise Unresolved(UnclearSize.MIXES_DIFFER.of(), detail)
    return ProbeVerdict(CoreAnswer.VALUE, reduce(Interval.hull, found))


def _size(filler: Filler, readings: Readings) -> Interval:
    """How many of one mix. Raises Unresolved."""
    _check_overlap(readings)
    between = _between(readings)
    if between is None:
        raise Unresolved(UnclearSize.ALWAYS_OVERLAP.of(), Read.UP_TO.of(readings.places(_ASKED)[-1]))
    low, high = between
    if low < CHAIN_LENGTH:
        raise Unresolved(UnclearSize.FEW_IN_FLIGHT.of())
    _check_step(readings, low, high)
    agreed = _agreed(readings)
    if agreed is None or not _side_by_side(readings, low, high) > _refuted(readings, low):
        raise Unresolved(Unclear.LOOKS_DIFFER.of())
    return _around(agreed[0], agreed[1] - 1, filler)


def _around(low: int, high: int, filler: Filler) -> Interval:
    """So many at the least and at the most, with what else is in flight."""
    return Interval(low + filler.own[0] - _STEP_DOUBT, high + filler.own[1] + _STEP_DOUBT)


def _check_overlap(readings: Readings) -> None:
    """Raise Unresolved where chains with nothing in between may not overlap: by the most that they take."""
    alone, serial, free = (readings.get(part, 0) for part in (_ASKED, _SERIAL, _FREE))
    if not math.isfinite(serial.low):
        raise Unresolved(Unclear.LOOKS_DIFFER.of())
    if free.high > _CLEAR * serial.low:
        raise Unresolved(UnclearSize.NOTHING_OVERLAPS.of())
    if alone.high > _CLEAR * serial.low:
        raise Unresolved(UnclearSize.NO_OVERLAP.of())


def _least(readings: Readings, count: int) -> float:
    """What a place takes at the most, in the sweep that had most room."""
    parts = [part for part in (_ASKED, *_AGAIN) if count in readings.places(part)]
    return min(readings.get(part, count).high for part in parts)


def _check_step(readings: Readings, low: int, high: int) -> None:
    """Raise Unresolved for what is no step from overlap to none, or has another reason."""
    states = _states(readings)
    if _side_by_side(readings, low, high) & _refuted(readings, low):
        raise Unresolved(UnclearSize.OVERLAP_AGAIN.of())
    before = [n for n in states if n <= low - _SLOPE and states[n] is _Overlap.SOME] or [0]
    if _least(readings, before[-1]) > _CLEAR * readings.get(_SERIAL, before[-1]).low:
        raise Unresolved(UnclearSize.SHORT_CHAIN.of())
    alone = min((count for count in readings.places(_FREE) if count >= high), default=high)
    if readings.get(_FREE, alone).high > _CLEAR * readings.get(_SERIAL, alone).low:
        raise Unresolved(UnclearSize.AS_LONG.of())


PROBE = Probe(
    IN_FLIGHT,
    "How many instructions of a kind are in flight at once?",
    Model.PLATEAU,
    _cases,
    _judge,
    (
        "H. Wong, Measuring reorder buffer capacity",
        "T. Downs, robsize",
        "Agner Fog, test programs, out_of_order",
    ),
    unit="instructions",
    more=_more,
    stages=_STAGES,
    axis="instructions in between",
)
