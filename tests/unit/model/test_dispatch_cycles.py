"""Cycles of the front end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyclescope.model.dispatch_cycles import dispatch_cycles


@pytest.mark.parametrize(
    ("slots", "width", "divided", "whole"),
    [
        ([1] * 6, 6, 1, 1),
        ([1] * 7, 6, 7 / 6, 7 / 6),
        ([2] * 3, 6, 1, 1),
        ([2, 2], 3, 4 / 3, 2),  # a slot stays empty in every cycle
        ([1, 2, 2], 3, 5 / 3, 2),  # 2 1 | 2 and a gap
        ([4, 3], 6, 7 / 6, 2),
        ([8], 6, 8 / 6, 8 / 6),  # more than a cycle has: divided
        ([0.5, 0.5, 1], 4, 0.5, 0.5),
        ([], 4, 0, 0),
    ],
)
def test_cycles(slots, width, divided, whole):
    assert dispatch_cycles(slots, width) == pytest.approx(divided)
    assert dispatch_cycles(slots, width, whole=True) == pytest.approx(whole)


loops = st.lists(st.integers(1, 4), min_size=1, max_size=12)


@given(loops, st.integers(4, 8))
def test_gaps_only_cost(slots, width):
    whole = dispatch_cycles(slots, width, whole=True)
    assert whole >= dispatch_cycles(slots, width) - 1e-9
    assert whole <= len(slots)


@given(loops, st.integers(4, 8))
def test_without_long_instructions_nothing_is_lost(slots, width):
    ones = [1] * sum(slots)
    assert dispatch_cycles(ones, width, whole=True) == dispatch_cycles(slots, width)
