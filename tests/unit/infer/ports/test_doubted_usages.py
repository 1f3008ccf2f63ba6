"""What speaks against a usage that fits all that was measured."""

from __future__ import annotations

from cyclescope.infer.ports.timed import TimedJudge
from cyclescope.infer.timing.results import LOW, MEDIUM
from cyclescope.model.machine import Operation
from tests.support.classes import classes_of, facts_by_time
from tests.support.front_ends import StatedFrontEnd


def doubts(table, name, known, slots, throughput):
    facts = facts_by_time(classes_of(table, {}, {}), (), StatedFrontEnd(table, 5.0))
    return dict(TimedJudge(facts, None).doubts(table[name], known, slots, throughput))


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
