"""Operands are what their names say, and where values make no difference none is told."""

from __future__ import annotations

import math
import random
import struct
import sys

import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.core.special_values import KINDS
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Readings, Unresolved
from tests.support.made.probed import NOISE, drawn, facts

SEED = random.SystemRandom().randrange(1 << 30)
PROBE = PROBES["special-values"]
LEAST = sys.float_info.min


def operands(kind):
    return [struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in KINDS[kind]]


def test_operands_are_what_they_are_called():
    assert 0 < operands("subnormal operand")[0] < LEAST
    first, second = operands("subnormal result")
    assert first >= LEAST
    assert second >= LEAST
    assert 0 < first * second < LEAST
    assert math.isinf(operands("infinity")[0])
    assert math.isnan(operands("NaN")[0])
    assert operands("zero")[0] == 0


def test_nothing_is_longer_where_values_make_no_difference():
    for number in range(3):
        found = facts(PROBE, SimulatedBackend(drawn([PROBE], SEED + number), noise=NOISE))
        told = [fact for fact in found if fact.is_resolved]
        assert len(told) >= len(found) / 2, f"seed {SEED}"
        assert [fact for fact in told if abs(fact.value) > fact.error + 0.02] == [], f"seed {SEED}"


def test_what_it_takes_longer_is_the_answer():
    case = next(iter(PROBE.cases("x86-64")))
    plain, asked = Interval(4.0, 4.1), Interval(127.0, 128.0)
    verdict = PROBE.judge(case, Readings({("plain", 0): plain, ("asked", 0): asked}, {}))
    assert verdict.answer is CoreAnswer.VALUE
    assert (verdict.value.low, verdict.value.high) == pytest.approx((122.9, 124.0))
    shaky = Interval(4.0, 90.0, is_steady=False)
    with pytest.raises(Unresolved):
        PROBE.judge(case, Readings({("plain", 0): plain, ("asked", 0): shaky}, {}))
