"""Vectors that are loaded and stored together: when a core is known to take longer for both."""

from __future__ import annotations

import pytest

from cyclescope.model.behaviour.found import measured_behaviour
from cyclescope.model.facts import (
    BANKS,
    CROSSING,
    CoreAnswer,
    Fact,
    WideLoad,
    beside_stores,
    wide_loads,
    wide_stores,
)


def told(load, store, two, three, bits=512):
    """Cycles of a load, of a store, and of two and three loads with a store."""
    rates = {
        wide_stores(bits): (1, store),
        beside_stores(bits, 2): (3, two),
        beside_stores(bits, 3): (4, three),
    }
    facts = [
        Fact(BANKS, subject, CoreAnswer.VALUE, number / cycles, 0.001)
        for subject, (number, cycles) in rates.items() if cycles
    ]  # fmt: skip
    return [*facts, Fact(CROSSING, wide_loads(bits, WideLoad.INSIDE), CoreAnswer.VALUE, load, 0.002)]


@pytest.mark.parametrize(
    ("cycles", "found"),
    [
        ((1.0, 2.0, 2.5, 3.25), (0.75, 1.0)),
        ((1.0, 2.0, 2.34, 3.25), None),  # may be what loads or stores take
        ((1.0, 2.0, 2.36, 3.25), (0.89, 0.58)),
        ((1.0, 2.2, 2.5, 3.25), None),
        ((1.2, 2.0, 2.5, 3.25), None),
        ((1.0, 2.0, 2.5, 2.4), None),
        ((1.0, 2.0, 2.5, 4.0), None),  # no store would take any time
        ((1.0, 2.0, 2.5, 0.0), None),
        ((1.0, 0.0, 2.5, 3.25), None),
    ],
)
def test_both_have_to_take_clearly_more_than_either_alone(cycles, found):
    known = measured_behaviour(told(*cycles), isa="x86-64").beside_stores
    assert [(one.size, pytest.approx((one.load, one.store))) for one in known] == (
        [] if found is None else [(64, found)]
    )


def test_every_size_has_its_own():
    facts = told(1.0, 2.0, 2.5, 3.25) + told(0.5, 1.0, 1.3, 1.8, 256) + told(0.5, 1.0, 1.0, 1.5, 128)
    assert {one.size for one in measured_behaviour(facts, isa="x86-64").beside_stores} == {32, 64}


def test_without_loads_alone_nothing_is_known():
    facts = [fact for fact in told(1.0, 2.0, 2.5, 3.25) if fact.probe == BANKS]
    assert measured_behaviour(facts, isa="x86-64").beside_stores == ()


def test_the_narrowest_vectors_tell_what_a_store_takes_behind_loads():
    facts = told(1.0, 2.0, 2.5, 3.25) + told(0.5, 1.0, 1.0, 1.57, 128)
    known = measured_behaviour(facts, isa="x86-64").together
    assert known == {2: pytest.approx(1.0), 3: pytest.approx(1.57, abs=0.001)}
    assert measured_behaviour([], isa="x86-64").together == {}
