"""Code that runs at one of two rates is not `ok`; what neighbours make of a round is no rate."""

from __future__ import annotations

import random

import pytest

from cyclescope.backend.base import OK, Sample
from cyclescope.measure.bench import settled_of
from cyclescope.measure.record import STABLE, UNSTABLE
from cyclescope.measure.sampling import TWO_RATES, summarise


def rounds(*others, cycles=5.0):
    return [Sample(cycles, 0.01, OK, accepted=4, rejected=4, other=other) for other in others]


@pytest.mark.parametrize(
    "others", [(6.46, 6.44), (6.46, 6.44, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), (9.0, 6.46, 6.45)]
)
def test_a_rate_that_two_rounds_and_a_quarter_of_all_tell(others):
    found = summarise(rounds(*others))
    assert (found.verdict, found.error, found.cycles) == (UNSTABLE, TWO_RATES, 5.0)
    assert found.cycles + found.spread == pytest.approx(6.45, abs=0.011)


@pytest.mark.parametrize(
    "others", [(0.0, 0.0), (6.46, 0.0), (6.46, 6.52), (6.46, 6.45, *[0.0] * 7), (4.9, 4.9)]
)
def test_one_round_or_rounds_that_differ_tell_none(others):
    found = summarise(rounds(*others))
    assert (found.verdict, found.error) == (STABLE, "")


def test_bench_tells_both_rates_after_its_rounds():
    known = rounds(*(6.44, 6.46, 0.0, 6.45) * 5)
    assert settled_of(known[:4], 0.0, 5) is None
    found = settled_of(known, 0.0, 5)
    assert (found.verdict, found.error, found.cycles) == (UNSTABLE, TWO_RATES, 5.0)


def test_what_neighbours_slow_is_hardly_ever_called_a_rate():
    """One round in ten is told to have a second cluster, where one in ten thousand was beside busy loops."""
    draw = random.Random(1)
    drawn = [draw.uniform(5.1, 10.0) if draw.random() < 0.1 else 0.0 for _ in range(8000)]
    verdicts = [summarise(rounds(*pair)).verdict for pair in zip(drawn[::2], drawn[1::2], strict=True)]
    assert verdicts.count(UNSTABLE) < 0.005 * len(verdicts)
