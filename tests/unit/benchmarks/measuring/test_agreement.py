"""When two runs agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.lib.agreement import close, compare
from benchmarks.lib.results import claimed
from benchmarks.measuring.repeat import same_usages
from cyclescope.infer.timing.results import FormTiming

A, B, C = ("a", "", ""), ("b", "op1", "op2"), ("c", "", "")
CYCLES = st.floats(0.0, 1e4)


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        (100.0, 102.0, True),
        (100.0, 97.9, False),
        (0.25, 0.26, True),  # the grain
        (0.25, 0.27, False),
        (0.0, 0.0, True),
        (0.0, 1.0, False),
    ],
)
def test_two_percent_or_a_hundredth_of_a_cycle(one, two, same):
    assert close(one, two, 0.02) is same


@given(CYCLES, CYCLES)
def test_agreement_has_no_direction(one, two):
    assert close(one, two, 0.02) == close(two, one, 0.02)


def test_values_in_one_run_only_count_as_different():
    found = compare({A: 1.0, B: 2.0}, {A: 1.0, C: 2.0}, 0.02)
    assert (found.same, found.moved, found.lost, found.total) == (1, (), (B, C), 3)


def test_what_moved_comes_worst_first():
    found = compare({A: 1.0, B: 2.0, C: 4.0}, {A: 1.1, B: 4.0, C: 4.0}, 0.02)
    assert [(key, one, two) for _, key, one, two in found.moved] == [(B, 2.0, 4.0), (A, 1.0, 1.1)]


@given(st.dictionaries(st.sampled_from([A, B, C]), CYCLES))
def test_a_run_agrees_with_itself(values):
    found = compare(values, values, 0.0)
    assert found.same == found.total == len(values)


def test_parts_join_to_a_whole():
    first, second = compare({A: 1.0}, {A: 2.0}, 0.02), compare({B: 1.0, C: 1.0}, {B: 1.0}, 0.02)
    both = first.joined(second)
    assert (both.same, len(both.moved), both.lost, both.total) == (1, 1, (C,), 3)


@pytest.mark.parametrize(
    ("two", "passed"), [({"A": "1*p0", "B": "?"}, True), ({"A": "1*p1"}, False), ({}, False)]
)
def test_usages_that_both_runs_claim_are_the_same(two, passed):
    assert same_usages("two runs", {"A": "1*p0", "C": "1*p2"}, two).passed is passed


def test_what_is_claimed_of_ports():
    found = [
        FormTiming(name, {}, "ok", None, (), ports=ports, ports_confidence=confidence)
        for name, ports, confidence in (("A", "1*p0", "high"), ("B", "1*p1", "low"), ("C", None, ""))
    ]
    assert claimed(found) == {"A": "1*p0"}
