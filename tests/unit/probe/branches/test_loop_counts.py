"""Trips of loops whose end is predicted, on cores that are drawn with seeds that nobody tuned on."""

from __future__ import annotations

import random

import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.probe.branches import loop_counts
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.interval import Interval
from cyclescope.probe.layout import ALONE_IN_LOOP
from cyclescope.probe.question import Readings, Unresolved
from tests.support.made.probed import drawn, facts
from tests.support.made.readings import DrawnCore, answers

SEED = random.SystemRandom().randrange(1 << 30)
CORES = 200
PROBE = PROBES["loop-counts"]
(CASE,) = PROBE.cases("x86-64")


class Loops(DrawnCore):
    """A core that predicts the ends of loops of so many trips, and how long it takes to be wrong."""

    probe = PROBE

    def __init__(self, seed, steady=0.97, known=None, error=0.005, slow=0.0):
        super().__init__(seed, steady)
        draw, self.error, self.scatter = self.draw, error, error / 4
        self.known = draw.randint(6, 200) if known is None else known
        self.wrong, self.often = draw.uniform(10, 30), draw.uniform(0.8, 1.2)
        self.trip, self.slow = draw.choice((2.0, 2.0, 3.0)), slow

    def take(self, part, count):
        value = {"random": 5 + self.wrong / 2, "steady": 5.0}.get(part)
        if value is None:
            value = 1 + self.trip * count
            value += self.slow * count if part == "loop" else 0
            value += self.wrong * self.often if part == "loop" and count > self.known else 0
        return self.read(value)


@pytest.mark.parametrize(
    "steady", [pytest.param(1.0, marks=pytest.mark.slow), 0.97, pytest.param(0.8, marks=pytest.mark.slow)]
)
def test_what_drawn_cores_predict(steady):
    told = answers((Loops(SEED + number, steady) for number in range(CORES)), lambda core: core.judged(CASE))
    wrong = [(core.seed, value, core.known) for core, value in told if abs(value.value - core.known) > 2]
    assert wrong == [], f"seed {SEED}"
    assert len(told) > (0 if steady < 0.9 else 0.5 * CORES), f"seed {SEED}: {len(told)}"


@pytest.mark.parametrize(
    ("core", "reason"),
    [
        (Loops(1, 1.0, known=1000, error=0.001), "no loop takes longer"),
        (Loops(1, 1.0, known=2), "shortest loop"),
        (Loops(1, 1.0, known=100, error=0.1), "differ"),
        (Loops(1, 1.0, known=1000, slow=1.0), "take longer than their operations"),
        (Loops(1, 1.0, known=60, slow=0.2), "take longer than their operations"),
    ],
)
def test_what_is_no_edge_has_no_number(core, reason):
    with pytest.raises(Unresolved, match=reason):
        core.judged(CASE)


def slowed(wrongs):
    """What is said of a core whose longest loops take so many wrong predictions longer than 40 trips."""
    found = {("random", 0): 15.0, ("steady", 0): 5.0}
    for n in (*loop_counts.COARSE_TRIPS, *range(34, 60)):
        found["without branches", n] = 1.0 + 2 * n
        found["loop", n] = 1.0 + 2 * n + (20.0 if n > 40 else 0) * (wrongs if n > 300 else 1)
    readings = {key: Interval(value - 0.2, value + 0.2) for key, value in found.items()}
    return PROBE.judge(CASE, Readings(readings, {})).value


def test_how_much_longer_the_largest_loop_may_take():
    assert slowed(1.0) == Interval(40, 40)
    assert slowed(2.5) == Interval(40, 40)
    with pytest.raises(Unresolved, match="take longer than their operations"):
        slowed(3.5)


class SharedEntries(Loops):
    """A core that some counts of trips below `known` are too many for, as others have their entry."""

    def __init__(self, known, *lost):
        super().__init__(1, 1.0, known, error=0.001)
        self.lost = lost

    def take(self, part, count):
        if part == "loop" and count in self.lost:
            late = self.wrong * self.often
            return super().take(part, count) + Interval(late, late)
        return super().take(part, count)


@pytest.mark.parametrize(("lost", "low"), [((), 122), ((111,), 110), ((107, 111), 106)])
def test_counts_that_share_an_entry_leave_a_range(lost, low):
    """A Zen 3 knows the end of 110, 115 and 122 trips and not of 111, in every run."""
    assert SharedEntries(122, *lost).judged(CASE) == Interval(low, 122)


def test_how_wide_that_range_may_be():
    """A tenth to either side: a core that knows 45, and not 32, is told nothing."""
    with pytest.raises(Unresolved, match="no longer again"):
        SharedEntries(50, 32).judged(CASE)


def test_simulated_cores_predict_nothing_wrongly():
    (fact,) = facts(PROBE, SimulatedBackend(drawn([PROBE], 3)))
    assert fact.reason == "branches on random signs take hardly longer"


@pytest.mark.parametrize("isa", ["x86-64", "aarch64", "riscv64"])
def test_loops_and_their_operations_are_the_same_chain(isa):
    (case,) = PROBE.cases(isa)
    by_part = {(point.part, point.x): point for point in case.points}
    for count in loop_counts.COARSE_TRIPS:
        looped, straight = by_part["loop", count], by_part["without branches", count]
        trip = straight.lines[1:3]
        assert straight.lines == (straight.lines[0], *trip * count)
        assert looped.lines[:3] == (straight.lines[0], *trip), "a trip"
        assert looped.setting == straight.setting
        assert len(looped.lines) > ALONE_IN_LOOP, "as many instructions as a loop has at the least"
