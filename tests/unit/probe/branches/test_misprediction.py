"""Branches that are predicted wrongly: what the kernels compute, and what readings say."""

from __future__ import annotations

import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.probe.branches.misprediction import INCREMENT, MULTIPLIER, WRONG
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Readings, Unresolved
from tests.support.made.probed import drawn, facts

PROBE = PROBES["misprediction"]
(CASE,) = PROBE.cases("x86-64")


def judged(random, steady, is_steady=True):
    readings = {("random", 0): Interval(*random, is_steady), ("steady", 0): Interval(*steady)}
    return PROBE.judge(CASE, Readings(readings, {})).value


def test_signs_are_as_often_negative_as_not_and_follow_no_pattern():
    number, signs = 0x3F8000003F800000, []
    for _ in range(20000):
        number = (number * MULTIPLIER + INCREMENT) % (1 << 64)
        signs.append(number >> 63)
    assert sum(signs) / len(signs) == pytest.approx(WRONG, abs=0.02)
    for apart in range(1, 65):
        same = sum(one == other for one, other in zip(signs, signs[apart:], strict=False))
        assert same / (len(signs) - apart) == pytest.approx(0.5, abs=0.02)


def test_half_of_them_are_wrong():
    found = judged((14.9, 15.1), (5.0, 5.1))
    assert found.value == pytest.approx(19.9)


def test_processes_of_one_core_agree():
    """Where memory lies makes a wrong prediction of a Zen 5 take 18.5 to 21.7 cycles."""
    one, other = (judged((32 + cycles / 2, 32 + cycles / 2), (32, 32)) for cycles in (18.5, 21.7))
    assert one.high >= other.value
    assert other.low <= one.value
    assert one.error < 0.25 * one.value, "11 to 18 of one core are told from 20 of another"


def test_what_is_never_predicted_wrongly_has_no_cost():
    for random in ((5.5, 5.6), (5.8, 5.9)):
        with pytest.raises(Unresolved, match="hardly longer"):
            judged(random, (5.0, 5.1))
    assert judged((6.2, 6.3), (5.0, 5.1)).value >= 2
    with pytest.raises(Unresolved, match="differ"):
        judged((10, 20), (5, 6), is_steady=False)
    (fact,) = facts(PROBE, SimulatedBackend(drawn([PROBE], 3)))
    assert fact.reason == "branches on random signs take hardly longer"


@pytest.mark.parametrize(("error", "told"), [(0.5, True), (0.9, True), (1.1, False)])
def test_how_many_are_wrong_is_chance(error, told):
    """Of what random signs take there is the median where looks differ, which may be off by a tenth."""
    random = 15 - error, 15 + error
    if told:
        assert judged(random, (5, 5), is_steady=False).value == pytest.approx(20)
    else:
        with pytest.raises(Unresolved, match="differ"):
            judged(random, (5, 5), is_steady=False)
    assert {point.part for point in CASE.points if point.chance} == {"random"}


def test_numbers_go_on_where_the_last_run_has_ended():
    for isa in ("x86-64", "aarch64", "riscv64"):
        for point in next(iter(PROBE.cases(isa))).points:
            assert point.setup[0].at == point.lines[-1].at
            assert (len(point.lines) - 1) % point.count == 0
