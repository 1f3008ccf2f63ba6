"""Barriers: what waits behind them, and what only takes its time beside a chain."""

from __future__ import annotations

import pytest

from cyclescope.model.facts import BARRIERS, VECTOR, CoreAnswer, barrier_subject
from cyclescope.probe.catalogue import NEEDED, PROBES
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import ProbeCase, Readings, Unresolved

PROBE = PROBES[BARRIERS]


def judged(*behind, alone=(48.0, 96.0), error=0.1):
    """What the probe says of two chains behind a barrier, and alone."""
    found = {
        (part, length): Interval(value - error, value + error)
        for part, values in (("alone", alone), ("behind", behind))
        for length, value in zip((16, 32), values, strict=True)
    }
    return PROBE.judge(ProbeCase("LFENCE", ()), Readings(found, {}))


def test_a_barrier_that_holds_up_takes_its_cycles_besides():
    """As LFENCE and MFENCE of a Zen 5."""
    found = judged(62.0, 110.0)
    assert (found.answer, found.value.value) == (CoreAnswer.PRESENT, pytest.approx(14.0))
    assert judged(105.5, 153.6).value.value == pytest.approx(57.6)


@pytest.mark.parametrize("behind", [(48.0, 96.0), (76.0, 96.0), (180.0, 180.0), (48.4, 96.4)])
def test_a_barrier_beside_which_a_chain_goes_on_holds_up_nothing(behind):
    """It takes less than the chains, or more than the shorter one, or than both, or hardly any time."""
    assert judged(*behind).answer is CoreAnswer.ABSENT


def test_what_begins_a_cycle_later_waits():
    """The least that waiting takes: a result that is there when it is asked for comes a cycle later."""
    assert judged(49.2, 97.2).answer is CoreAnswer.PRESENT
    assert judged(48.7, 96.7).answer is CoreAnswer.ABSENT


def test_nothing_is_told_of_a_chain_that_is_hidden_in_part():
    with pytest.raises(Unresolved):
        judged(86.0, 110.0)


@pytest.mark.parametrize("isa", ["x86-64", "aarch64", "riscv64"])
def test_each_barrier_is_asked_of_integers_and_of_vectors(isa):
    subjects = [case.subject for case in PROBE.cases(isa)]
    assert BARRIERS in NEEDED
    assert subjects and subjects[1::2] == [barrier_subject(one, VECTOR) for one in subjects[::2]]
    for case in PROBE.cases(isa):
        assert {(p.part, p.x) for p in case.points} == {(p, n) for p in ("alone", "behind") for n in (16, 32)}
        lengths = [len(point.lines) for point in case.points]
        assert lengths == [16, 32, 17, 33]
