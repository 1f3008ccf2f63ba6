"""Whether comparisons that are fused with branches take the place of additions."""

from __future__ import annotations

import secrets

import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.model.binding import port_bound
from cyclescope.model.facts import COUNTED_AMONG, FUSED_BRANCHES, CoreAnswer, fused_forms
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.interval import Interval
from cyclescope.probe.levels import ADDRESSED_SO, AMONG_OTHERS
from cyclescope.probe.question import ProbeCase, Readings, Unresolved
from tests.support.made.probed import drawn, facts

PROBE = PROBES[FUSED_BRANCHES]
ADDITION, CORES = "LEA_B_D8 (R64)", 6


def judged(error=0.01, waiting=1.0, **parts):
    parts["waiting"] = waiting
    found = {(part, 0): Interval(value - error, value + error) for part, value in parts.items()}
    return PROBE.judge(ProbeCase("", ()), Readings(found, {}))


@pytest.mark.parametrize(("asked", "additions"), [(2.0, 0.0), (2.25, 1.0), (2.5, 2.0)])
def test_what_an_addition_more_takes_is_the_measure(asked, additions):
    found = judged(asked=asked, plain=2.0, more=2.25, wider=2.0)
    assert found.answer is CoreAnswer.VALUE
    assert found.value.value == pytest.approx(additions, abs=0.01)


@pytest.mark.parametrize(("more", "wider"), [(2.01, 2.0), (2.25, 2.2)])
def test_where_units_are_not_the_limit_nothing_is_told(more, wider):
    with pytest.raises(Unresolved, match="more additions take no longer"):
        judged(asked=2.0, plain=2.0, more=more, wider=wider)


@pytest.mark.parametrize(("waiting", "told"), [(1.0, True), (1.97, True), (2.0, False), (3.0, False)])
def test_what_waits_for_each_other_tells_nothing(waiting, told):
    """Of each register there are as many in the loop as in a chain of them."""
    parts = {"asked": 2.0, "plain": 2.0, "more": 2.25, "wider": 2.0, "waiting": waiting}
    if told:
        assert judged(**parts).answer is CoreAnswer.VALUE
        return
    with pytest.raises(Unresolved, match="those of one register"):
        judged(**parts)


def test_additions_that_wait_for_what_their_target_was_tell_nothing():
    """On this drawn core they do, so that a third of its units are idle: the pairs cost nothing there."""
    found = facts(PROBE, SimulatedBackend(drawn([PROBE], 839012)))
    reasons = {fact.reason for fact in found if fact.subject not in COUNTED_AMONG}
    assert reasons == {"those of one register take as long: units are not what limits them"}


def bound(machine, **forms):
    """Cycles of so many of each form, however they are bound to ports."""
    loads = {}
    for form, count in forms.items():
        for op in machine.forms[form].operations or ():
            ports = sum(1 << port for port in op.ports)
            loads[ports] = loads.get(ports, 0.0) + count * op.count * op.cycles
    return port_bound(loads)[0]


def test_what_drawn_cores_have_comparisons_and_branches_take():
    """They fuse nothing, and have units of any kind: it is what both take of additions' ports, or more."""
    seed, told = secrets.randbelow(10**6), 0
    for number in range(CORES):
        machine = drawn([PROBE], seed + number)
        for fact in facts(PROBE, SimulatedBackend(machine)):
            filler = COUNTED_AMONG.get(fact.subject, ADDITION)
            plain, more = (bound(machine, **{filler: n}) for n in (AMONG_OTHERS, AMONG_OTHERS + ADDRESSED_SO))
            pair = fact.subject.partition(", among ")[0]
            beside = dict.fromkeys(fused_forms(pair), ADDRESSED_SO)
            both = bound(machine, **{filler: AMONG_OTHERS}, **beside)
            if fact.value is not None:
                told += 1
                truth = (both - plain) / (more - plain)
                assert fact.value + fact.error >= truth, f"seed {seed + number}: {fact}, truly {truth}"
    assert told, f"seeds from {seed}"
