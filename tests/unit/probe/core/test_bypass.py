"""Results that come later to operations of another kind."""

from __future__ import annotations

import random
import struct

import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Readings, Unresolved
from tests.support.made.probed import NOISE, drawn, facts

SEED = random.SystemRandom().randrange(1 << 30)
PROBE = PROBES["bypass"]
CASES = list(PROBE.cases("x86-64"))


def judged(first, second, both, is_steady=True):
    found = {
        (part, 0): Interval(value, value, is_steady)
        for part, value in {"first": first, "second": second, "in turn": both}.items()
    }
    return PROBE.judge(CASES[0], Readings(found, {})).value


def test_it_is_what_both_take_longer_than_alone():
    assert judged(1.0, 3.0, 6.0).value == pytest.approx(2.0)
    assert judged(2.0, 3.0, 4.0).value == pytest.approx(-1.0), "operations that wait in a chain of their own"
    with pytest.raises(Unresolved, match="differ"):
        judged(1.0, 3.0, 6.0, is_steady=False)


def test_drawn_cores_have_no_such_delays():
    told = 0
    for number in range(4):
        for fact in facts(PROBE, SimulatedBackend(drawn([PROBE], SEED + number), noise=NOISE)):
            if fact.is_resolved:
                told += 1
                assert abs(fact.value) <= fact.error + 0.02, f"seed {SEED + number}: {fact}"
    assert told > len(CASES), f"seed {SEED}"


@pytest.mark.parametrize("isa", ["x86-64", "aarch64"])
def test_every_pair_is_asked_once_and_numbers_stay(isa):
    cases = list(PROBE.cases(isa))
    assert len({frozenset(case.subject.split(" and ")) for case in cases}) == len(cases)
    held = [struct.unpack("<f", value[:4])[0] for _, value in cases[0].points[0].setting.vectors]
    assert held[0] == held[2] == 1.0
    assert held[1] == 0.0
