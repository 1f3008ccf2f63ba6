"""Statistics of predictions, Kendall's tau against its definition."""

from __future__ import annotations

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyclescope.session.accuracy import PredictedTime, accuracy, kendall_tau, share


def by_definition(points):
    """Tau-b: concordant and discordant pairs, one by one."""
    agree = same_x = same_y = every = 0
    for n, (x, y) in enumerate(points):
        for a, b in points[:n]:
            every += 1
            same_x += x == a
            same_y += y == b
            agree += ((x > a) - (x < a)) * ((y > b) - (y < b))
    down = (every - same_x) * (every - same_y)
    return agree / sqrt(down) if down else None


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=30))
def test_tau_with_many_ties_is_that_of_its_definition(points):
    assert kendall_tau(points) == pytest.approx(by_definition(points))


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 10)), max_size=25))
def test_tau_of_numbers_is_that_of_its_definition(points):
    assert kendall_tau(points) == pytest.approx(by_definition(points))


def test_tau_at_its_ends():
    assert kendall_tau([(1, 1), (2, 2), (3, 3)]) == pytest.approx(1)
    assert kendall_tau([(1, 3), (2, 2), (3, 1)]) == pytest.approx(-1)
    assert kendall_tau([(1, 1)]) is None
    assert kendall_tau([(1, 5), (2, 5)]) is None


def test_errors_are_percent_of_what_was_measured():
    found = accuracy([PredictedTime(2.0, 1.0), PredictedTime(1.0, 1.2), PredictedTime(4.0, 4.0)])
    assert found.blocks == 3
    assert found.mape == pytest.approx(100 * (0.5 + 0.2 + 0.0) / 3)
    assert found.median == pytest.approx(20)
    assert (found.too_low, found.too_high) == pytest.approx((100 / 3, 100 / 3))


def test_shares_within_5_and_10_percent_hold_their_ends():
    found = accuracy([PredictedTime(1.0, 1 + e) for e in (0.049, -0.049, 0.051, 0.099, 0.101)])
    assert found.within_5 == pytest.approx(40)
    assert found.within_10 == pytest.approx(80)


def test_coverage_allows_for_the_noise_of_measuring():
    pairs = [PredictedTime(m, 1.0, (1.0, 2.0)) for m in (0.985, 0.975, 2.035, 2.045, 1.5)]
    found = accuracy([*pairs, PredictedTime(5.0, 1.0)])
    assert found.interval_coverage == pytest.approx(60)
    assert found.interval_width == pytest.approx(100 / 1.5)


def test_a_lower_bound_is_broken_by_more_than_noise_only():
    found = accuracy([PredictedTime(m, 1.0, None, 1.0) for m in (1.0, 0.985, 0.975, 0.5)])
    assert found.below_lower == pytest.approx(50)


def test_nothing_is_said_of_nothing():
    found = accuracy([])
    assert (found.blocks, found.mape, found.within_5, found.interval_coverage) == (0, None, None, None)
    assert share([]) is None
