"""How often may a loop run before its end is predicted wrongly?

A loop runs the same number of times again and again, as one long chain of operations. It is compared with
the same chain without branches: the difference is the cost of the loop's end. The cost of a wrong
prediction is measured as well.

Between loops whose end is always predicted and those whose end never is, a core may know some and not
others, whose histories share an entry: then the number is anywhere between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.branches.misprediction import sign_branches, wrong_prediction
from cyclescope.probe.code import DEPENDENT, NUMBERS, Setting, written
from cyclescope.probe.edges import TWICE, WRONG, check_edge, edge, inside
from cyclescope.probe.interval import Interval
from cyclescope.probe.layout import ALONE_IN_LOOP, Branch, Item, Label, laid_out
from cyclescope.probe.levels import MOST_ERROR, steady
from cyclescope.probe.question import Model, Point, Probe, ProbeCase, ProbeVerdict, Readings, Unresolved
from cyclescope.remarks.probing import UnclearBranches

COARSE_TRIPS = (4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128, 181, 256, 362)  # trips that are asked first
LEAST_TRIPS = 4  # that whatever predicts loops has
MOST_WRONG = 3.0  # wrong predictions that the largest loop takes longer: a loop that is just slow takes more
_CHAIN = 2  # additions of a trip: one cycle each, so that branches have time to be taken
_LOOP, _STRAIGHT = "loop", "without branches"
_SUBJECT = "trips of a loop"
_MINUS_ONE, _ZERO = (1 << 64) - 1, 0


class CountedLoop(NamedTuple):
    """Counting: in a, with f to begin with, e of 0 and b of -1; back while a is not 0; to the end."""

    add: str
    back: str
    jump: str
    nop: str


_WAYS: Mapping[str, CountedLoop] = {
    "x86-64": CountedLoop("ADD_01 (R64, R64): a #", "JNZ (Rel8): #@", "JMP (Rel32): #@", "NOP"),
    "aarch64": CountedLoop("ADDXrs: a a # #0", "CBNZX: a #@", "B: #@", "NOP"),
    "riscv64": CountedLoop("ADD: a a #", "BNE: a z #@", "JAL: z #@", "ADDI: z z #0"),
}


def _cases(isa: str) -> Iterator[ProbeCase]:
    if isa in _WAYS:
        points = [point for count in COARSE_TRIPS for point in _points(isa, count)]
        yield ProbeCase(_SUBJECT, (*sign_branches(isa), *points))


def _points(isa: str, count: int) -> Iterator[Point]:
    """A loop of so many trips, alone in the loop around it, and its operations."""
    way = _WAYS[isa]
    begin, trip = way.add.replace("#", "f", 1), _trip(way)
    rest: list[Item] = [Branch(way.jump, "end"), *[way.nop] * ALONE_IN_LOOP, Label("end")]
    looped: list[Item] = [begin, Label("trip"), *trip, Branch(way.back, "trip"), *rest]
    registers = {"a": _ZERO, "b": _MINUS_ONE, "e": _ZERO, "f": count}
    setting = Setting(numbers=tuple((NUMBERS[isa][letter], value) for letter, value in registers.items()))
    yield Point(_LOOP, laid_out(isa, looped), count, DEPENDENT, setting)
    yield Point(_STRAIGHT, written(isa, begin, *trip * count), count, DEPENDENT, setting)


def _trip(way: CountedLoop) -> list[str]:
    """A chain of additions, of which the last counts."""
    return [way.add.replace("#", register, 1) for register in "e" * (_CHAIN - 1) + "b"]


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    wrong, longer = wrong_prediction(readings), _longer(readings)
    low, high = edge(longer, wrong, 0, UnclearBranches.NO_LOOP.of())
    if longer[max(longer)].high > MOST_WRONG * wrong.low:
        raise Unresolved(UnclearBranches.LONGER_LOOPS.of())
    if low < LEAST_TRIPS:
        raise Unresolved(UnclearBranches.SHORTEST_LOOP.of())
    last, above = _last(longer, wrong, low, high)
    check_edge(longer, wrong, last, above, UnclearBranches.LOOPS_AGAIN.of())
    every = [readings.get(part, count) for part in (_LOOP, _STRAIGHT) for count in (low, above)]
    trips = Interval(low, above - 1, steady(wrong, *every))
    if trips.error > MOST_ERROR * trips.value:
        raise Unresolved(UnclearBranches.LOOPS_AGAIN.of())
    return ProbeVerdict(CoreAnswer.VALUE, trips)


def _last(longer: Mapping[int, Interval], wrong: Interval, low: int, high: int) -> tuple[int, int]:
    """The last loop whose end is surely predicted, and the first behind it whose end surely is not."""
    right = [n for n, more in longer.items() if n <= TWICE * high and more.high < WRONG * wrong.low]
    last = max([low, *right])
    return last, next((n for n, more in longer.items() if n > last and more.low > WRONG * wrong.high), high)


def _longer(readings: Readings) -> dict[int, Interval]:
    """Cycles that a loop takes longer than its operations, by its trips."""
    return {
        count: readings.get(_LOOP, count) - readings.get(_STRAIGHT, count) for count in readings.places(_LOOP)
    }


def _more(case: ProbeCase, readings: Readings) -> Iterator[Point]:
    """Trips between the last loop whose end is predicted and the first whose end is not, here and again."""
    longer, wrong = _longer(readings), wrong_prediction(readings)
    low, high = edge(longer, wrong, 0, UnclearBranches.NO_LOOP.of())
    last, above = _last(longer, wrong, low, high)
    isa = next(isa for isa in _WAYS if case.points[:2] == tuple(sign_branches(isa)))
    for count in sorted({*inside(low, high), *inside(last, above)}):
        yield from _points(isa, count)


PROBE = Probe(
    "loop-counts",
    "How often may a loop run before its end is predicted wrongly?",
    Model.PLATEAU,
    _cases,
    _judge,
    ("Agner Fog, test programs, branch",),
    unit="trips",
    more=_more,
    events=("branch-misses",),
    axis="trips",
)
