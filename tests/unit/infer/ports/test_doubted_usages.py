"""What speaks against a usage that fits all that was measured."""

from __future__ import annotations

import pytest

from cyclescope.infer.likelihood.structure import Structure
from cyclescope.infer.ports.facts import PortFacts
from cyclescope.infer.ports.timed import TimedJudge
from cyclescope.infer.timing.results import LOW, MEDIUM
from cyclescope.model.machine import Operation
from tests.support.classes import StatedEvidence, classes_of
from tests.support.front_ends import StatedFrontEnd

LOAD = "MOV (R64, M64)"


def doubts(table, name, known, slots, throughput, turns=1.0, hiding=(), load=()):
    """Of a core where one set of ports of some register files may be as wide as the front end."""
    classes = classes_of(table, {LOAD: len(load)}, {LOAD: "m"})
    front_end = StatedFrontEnd(table, 5.0, saturating=frozenset(hiding))
    facts = PortFacts(front_end, StatedEvidence(classes, {}, Structure(4, {LOAD: load})), ())
    return dict(TimedJudge(facts, None).doubts(table[name], known, slots, throughput, turns))


def test_what_is_slow_for_few_cycles_may_have_fewer_ports(table):
    one = (Operation((0, 1)),)
    assert doubts(table, "IMUL (R64, R64)", one, 1.0, 0.5) == {}
    assert list(doubts(table, "IMUL (R64, R64)", one, 1.0, 2.0).values()) == [LOW]
    assert list(doubts(table, "DIVPD (XMM, XMM)", one, 1.0, 3.0).values()) == [MEDIUM]


def test_only_what_is_dropped_needs_no_port(table):
    assert list(doubts(table, "IMUL (R64, R64)", (), 1.0, 0.2).values()) == [LOW]
    assert list(doubts(table, "NOP", (), 1.0, 0.2).values()) == [MEDIUM]
    assert list(doubts(table, "NOP", (), 1.0, 0.4).values()) == [LOW, MEDIUM]
    assert list(doubts(table, "IMUL (R64, R64)", (Operation((0, 1)),), 2.0, 0.5).values()) == [MEDIUM]


def test_turns_that_late_results_take_explain_slowness(table):
    one = (Operation((0, 1)),)
    assert list(doubts(table, "IMUL (R64, R64)", one, 1.0, 1.0).values()) == [LOW]
    assert doubts(table, "IMUL (R64, R64)", one, 1.0, 1.0, turns=2.0) == {}


@pytest.mark.parametrize(
    ("name", "hiding", "level"),
    [("MOV_89 (R64, R64)", "", MEDIUM), ("MOV_89 (R64, R64)", "r", LOW), ("NOP", "r", MEDIUM)],
)
def test_a_move_may_need_a_port_where_ports_are_as_many_as_slots(table, name, hiding, level):
    """Nothing tells one that was eliminated from one for any of those ports; a NOP needs none."""
    assert list(doubts(table, name, (), 1.0, 0.2, hiding=hiding).values()) == [level]


@pytest.mark.parametrize(("slots", "hiding", "level"), [(1.0, "r", []), (2.0, "r", [LOW]), (2.0, "", [])])
def test_a_slot_that_accesses_do_not_need_may_bring_what_never_shows(table, slots, hiding, level):
    """Where as many ports as the front end has slots may be one set: a load comes in the slot of another."""
    known = (Operation((2, 3)), Operation((0, 1)))
    found = doubts(table, "CMOVNL (R32, M32)", known, slots, 0.5, hiding=hiding, load=(2, 3))
    assert list(found.values()) == level
