"""Patterns of branches, on cores that are drawn with seeds that nobody tuned on."""

from __future__ import annotations

import random

import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.probe.branches import patterns
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import NUMBERS
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Readings, Unresolved
from tests.support.made.probed import drawn, facts
from tests.support.made.readings import DrawnCore, answers

SEED = random.SystemRandom().randrange(1 << 30)
CORES = 200
PROBE = PROBES["branch-patterns"]
CASES = {isa: {case.subject: case for case in PROBE.cases(isa)} for isa in NUMBERS}
BRANCH, JUMP = CASES["x86-64"]


class Patterns(DrawnCore):
    """A core that predicts patterns of so many, as a power of two, and what it does with longer ones."""

    probe = PROBE

    def __init__(self, seed, steady=0.97, known=None, soft=None):
        super().__init__(seed, steady)
        self.known = self.draw.randint(1, 8) if known is None else known
        self.soft = self.draw.choice((0, 0, 1)) if soft is None else soft
        self.same, self.wrong = self.draw.uniform(3, 6), self.draw.uniform(3, 30)

    def take(self, part, length):
        power = length.bit_length() - 1
        if part == "pattern" and 0 < power - self.known <= self.soft:
            return Interval(self.same * 0.9, self.same + self.wrong, is_steady=False)
        value = self.same + (self.wrong if part == "random" or power > self.known else 0)
        return self.read(value)


@pytest.mark.parametrize("subject", [BRANCH, JUMP])
@pytest.mark.parametrize("steady", [1.0, 0.97, 0.7])
def test_what_drawn_cores_predict(subject, steady):
    cores = (Patterns(SEED + number, steady) for number in range(CORES))
    told = answers(cores, lambda core: core.judged(CASES["x86-64"][subject]))
    wrong = [(core.seed, value) for core, value in told if not value.low <= 2**core.known <= value.high]
    assert wrong == [], f"seed {SEED}"
    assert len(told) > (0 if steady < 0.9 else 0.6 * CORES), f"seed {SEED}: {len(told)}"


@pytest.mark.parametrize(
    ("core", "reason"),
    [
        (Patterns(1, 1.0, known=20), "longest patterns are predicted"),
        (Patterns(1, 1.0, known=0, soft=0), "not even the shortest"),
        (Patterns(1, 1.0, known=2, soft=2), "differ"),
    ],
)
def test_what_is_not_told(core, reason):
    for subject in (BRANCH, JUMP):
        with pytest.raises(Unresolved, match=reason):
            core.judged(CASES["x86-64"][subject])


def test_one_pattern_may_be_in_doubt():
    verdict = Patterns(1, 1.0, known=4, soft=1).verdict(CASES["x86-64"][BRANCH])
    assert verdict.value == Interval(16, 32) and verdict.unit == "branches"
    assert Patterns(1, 1.0, known=4, soft=0).verdict(CASES["x86-64"][JUMP]).unit == "targets"


def shares(*costs):
    """What is said of patterns of 2, 4, ... that cost so much of what nobody can predict."""
    found = {("same", 0): 4.0, ("random", 0): 14.0}
    found |= {("pattern", 2 << n): 4.0 + 10 * cost for n, cost in enumerate(costs)}
    readings = {key: Interval(value - 0.01, value + 0.01) for key, value in found.items()}
    return PROBE.judge(CASES["x86-64"][BRANCH], Readings(readings, {})).value


def test_what_is_predicted_costs_next_to_nothing():
    assert shares(0, 0, 0.06, 0.9) == Interval(8, 8)
    assert shares(0, 0, 0.15, 0.9) == Interval(4, 4)
    with pytest.raises(Unresolved, match="again"):
        shares(0, 0, 0.5, 0.0)


@pytest.mark.parametrize(("cost", "is_told"), [(1.5, True), (0.7, False)])
def test_a_random_order_has_to_cost_something(cost, is_told):
    core = Patterns(1, 1.0, known=4, soft=0)
    core.wrong = cost
    if is_told:
        assert core.judged(CASES["x86-64"][BRANCH]) == Interval(16, 16)
    else:
        with pytest.raises(Unresolved, match="hardly longer"):
            core.judged(CASES["x86-64"][BRANCH])


def test_simulated_cores_predict_nothing_wrongly():
    found = facts(PROBE, SimulatedBackend(drawn([PROBE], 3)))
    assert [fact.is_resolved for fact in found] == [False, False]


def followed(isa, point, count):
    """What a kernel selects of so many numbers, by the constants in its registers."""
    values = dict(point.setting.numbers)
    multiplier, step, select, cut = (values[NUMBERS[isa][letter]] for letter in "efgh")
    number, found = 0x3F8000003F800000 & cut, []
    for _ in range(count):
        number = (number * multiplier + step) % (1 << 64)
        found.append(number & select)
    return found


@pytest.mark.parametrize("isa", list(NUMBERS))
def test_patterns_come_again_after_as_many_as_they_say(isa):
    for point in CASES[isa][BRANCH].points:
        if point.part == "pattern" and point.x <= 1024:
            period = point.x
            bits = [bool(one) for one in followed(isa, point, 3 * period)]
            assert bits[period:] == bits[:-period]
            assert bits[period // 2 :] != bits[: -(period // 2)]
            assert sum(bits[:period]) == period // 2


@pytest.mark.parametrize("isa", list(NUMBERS))
def test_a_jump_goes_through_all_targets_in_turn(isa):
    for point in CASES[isa][JUMP].points:
        if point.part == "pattern":
            count = point.x
            places = followed(isa, point, 2 * count)
            assert sorted(places[:count]) == [patterns.TARGET_SPACING * n for n in range(count)]
            assert places[count:] == places[:count]


@pytest.mark.parametrize("isa", list(NUMBERS))
def test_the_longest_pattern_that_is_surely_told_passes_in_every_run(isa):
    for case in CASES[isa].values():
        for point in case.points:
            assert point.count == patterns.PASSED == dict(point.setting.numbers)[NUMBERS[isa]["B"]]
            assert point.setup[0].at == 64
