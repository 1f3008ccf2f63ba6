"""Which forms are of one class, by what two of them take together."""

from __future__ import annotations

import pytest

from cyclescope.infer.ports.classes import grouped_by_time

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
