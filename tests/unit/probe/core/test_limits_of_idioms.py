"""When an instruction that is renamed at a rate of its own is a zero idiom, on readings written down."""

from __future__ import annotations

import pytest

from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Readings, Unresolved

PROBE = PROBES["zero-idioms"]
CASE = next(case for case in PROBE.cases("x86-64") if case.subject == "PXOR (XMM, XMM)")


def verdict(**cycles):
    found = {(part, 0): Interval(value - 0.02, value + 0.02) for part, value in cycles.items()}
    return PROBE.judge(CASE, Readings(found, {}))


@pytest.mark.parametrize(
    ("asked", "answer"),
    [(2.5, CoreAnswer.ZERO), (2.65, CoreAnswer.ZERO), (2.94, CoreAnswer.ZERO), (3.25, CoreAnswer.EXECUTED)],
)
def test_what_runs_faster_alone_needs_no_unit(asked, answer):
    """Six in a cycle, of instructions of which four are executed in one."""
    found = verdict(idle=2.5, asked=asked, busy=3.25, alone=1.66, ordinary=2.5)
    assert found.answer is answer


@pytest.mark.parametrize("alone", [2.1, 2.5])
def test_what_is_little_faster_alone_is_not_resolved(alone):
    with pytest.raises(Unresolved):
        verdict(idle=2.5, asked=2.94, busy=3.25, alone=alone, ordinary=2.5)


def test_where_the_front_end_limits_nothing_is_executed_for_sure():
    """Three slots each, of four a cycle: what needs no unit is as slow."""
    with pytest.raises(Unresolved):
        verdict(idle=8.25, asked=9.75, busy=9.75, alone=7.5, ordinary=7.5)
    assert verdict(idle=8.25, asked=8.25, busy=9.75, alone=7.5, ordinary=7.5).answer is CoreAnswer.ZERO


def test_what_is_slower_than_more_ordinary_instances_is_not_resolved():
    with pytest.raises(Unresolved):
        verdict(idle=2.5, asked=2.94, busy=2.5, alone=1.66, ordinary=2.5)


def test_where_chains_limit_ordinary_instances_what_breaks_them_is_no_zero_idiom():
    """Ten that wait four cycles for themselves, of ports that execute ten in 2.5: more take no longer."""
    with pytest.raises(Unresolved):
        verdict(idle=4.0, asked=3.9, busy=4.0, alone=2.5, ordinary=4.0)
