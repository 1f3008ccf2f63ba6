"""The order of issue, on simulated cores that nobody tuned on."""

from __future__ import annotations

import random

import msgspec
import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.model.facts import CoreAnswer
from cyclescope.model.library import shipped
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Readings, Unresolved
from cyclescope.probe.sizes import issue_order
from tests.support.made.probed import drawn, facts

SEED = random.SystemRandom().randrange(1 << 30)
PROBE = PROBES["issue-order"]


@pytest.mark.parametrize("in_order", [False, True])
def test_drawn_cores(in_order):
    known = CoreAnswer.IN_ORDER if in_order else CoreAnswer.OUT_OF_ORDER
    told = set()
    for number in range(5):
        machine = drawn([PROBE], SEED + number)
        core = msgspec.structs.replace(machine.core, in_order=in_order)
        found = facts(PROBE, SimulatedBackend(msgspec.structs.replace(machine, core=core)))
        told |= {fact.answer for fact in found if fact.is_resolved}
    assert told == {known}, f"seed {SEED}"


@pytest.mark.parametrize("name", ["cortex-a55", "neoverse-n1", "rocket", "sifive-p550"])
def test_cores_of_other_instruction_sets(name):
    machine = shipped(name)
    answers = {fact.answer for fact in facts(PROBE, SimulatedBackend(machine))}
    known = CoreAnswer.IN_ORDER if machine.core.in_order else CoreAnswer.OUT_OF_ORDER
    assert answers == {known}


def judged(asked, turns=24.0, one=48.0):
    """What readings are judged to be."""
    case = next(iter(PROBE.cases("x86-64")))
    taken = dict(zip((point.part for point in case.points), (asked, turns, one), strict=True))
    return PROBE.judge(case, Readings({(part, 0): Interval(v, v) for part, v in taken.items()}, {})).answer


def test_a_scheduler_that_holds_half_of_a_chain_tells_nothing():
    assert judged(24.0) is CoreAnswer.OUT_OF_ORDER
    assert judged(44.0) is CoreAnswer.IN_ORDER
    with pytest.raises(Unresolved):
        judged(34.0)


def test_units_that_take_one_operation_at_a_time_tell_nothing():
    with pytest.raises(Unresolved, match="not apart"):
        judged(48.0, turns=48.0)


def test_a_chain_is_long_enough_to_wait_for_and_short_enough_for_any_scheduler():
    """In order all but the last of each chain are waited for: of operations of three cycles that has to be
    nearer to one chain than a level may be off; the least schedulers of today hold eight."""
    latency, run = 3, issue_order.RUN
    in_order, turns, one = 2 * ((run - 1) * latency + 1), run * latency, 2 * run * latency
    assert (one - in_order) / (one - turns) < 0.2
    assert run <= 8
