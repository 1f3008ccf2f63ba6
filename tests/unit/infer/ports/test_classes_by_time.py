"""Which forms are of one class, by what two of them take together, and which classes have ports."""

from __future__ import annotations

import pytest

from cyclescope.infer.ports.classes import grouped_by_time
from tests.support.made.classes import classes_of, cost_records, facts_by_time
from tests.support.made.front_ends import StatedFrontEnd

FOUR, ADD = "VPADDB (XMM, XMM, XMM)", "LEA_B_D32 (R64)"
GROUP = {("v", 2): ["a", "b", "c"]}


@pytest.mark.parametrize(
    ("times", "members"),
    [(1.95, {"a": ["a", "b"], "c": ["c"]}), (1.85, {"a": ["a"], "b": ["b"], "c": ["c"]})],
)
def test_forms_that_take_nearly_twice_as_long_together_have_the_same_ports(times, members):
    """The more of their ports are the same the longer: two of three that are take 1.5 times as long."""
    pairs = {frozenset("ab"): times, frozenset("ac"): 1.0, frozenset("bc"): 1.0}
    assert grouped_by_time(GROUP, pairs) == (members, [])


def test_those_that_were_not_measured_together_are_told():
    assert grouped_by_time(GROUP, {frozenset("ab"): 2.0}) == ({"a": ["a", "b"]}, [("a", "c", 2)])


@pytest.mark.parametrize("shared", [True, False])
def test_moves_have_ports_where_instructions_of_other_registers_share_them(table, shared):
    """A drawn core has five ports for vectors and general registers, and moves alone were sampled of five."""
    moves = "MOVSX (R64, R8l)"
    widths, files = {FOUR: 4, ADD: 2, moves: 5}, {FOUR: "v", ADD: "r", moves: "r"}
    pairs = {(moves, FOUR): 9 / 5 if shared else 1.0, (moves, ADD): 7 / 5, (ADD, FOUR): 1.0}
    confined = {
        FOUR: {FOUR: 1.0, ADD: 0.0, moves: float(shared)}, ADD: {FOUR: 0.0, ADD: 1.0, moves: 1.0},
        moves: {FOUR: 0.0, ADD: 0.0, moves: 1.0},
    }  # fmt: skip
    classes = classes_of(table, widths, files, None, pairs)
    facts = facts_by_time(classes, cost_records(classes, confined), StatedFrontEnd(table, 12.0))
    assert (moves in facts.evidence.units) != shared
