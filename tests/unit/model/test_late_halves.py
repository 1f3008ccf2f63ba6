"""Accesses between two halves of their ports, where what the last one got is known late."""

from __future__ import annotations

import pytest

from cyclescope.model.machine import Core, Halves, Operation
from cyclescope.model.ports import Dealt, _late, late_throughput

PORTS = {"s": (0, 1, 2, 3), "v": (2, 3), "t": (0, 1)}
ZEN5 = Core(8.0, whole=True)


def cycles(order, late=1, core=ZEN5, slots=1.0, astray=0.0):
    loop = [Dealt(slots, 1.0, (Operation(PORTS[k]),)) if k in PORTS else Dealt(slots, 0.0, ()) for k in order]
    return late_throughput(loop, Halves((0, 1), (2, 3), astray, late), core)


@pytest.mark.parametrize(("order", "late", "taken"), [
    ("sv", 1, 0.571), ("ssv", 1, 0.928), ("svv", 1, 1.0), ("ssvv", 1, 1.427), ("svvv", 1, 1.571),
    ("sssvv", 1, 1.571), ("sssv", 1, 1.142), ("s", 1, 0.25), ("v", 1, 0.5), ("", 1, 0.0), ("nnnn", 1, 0.0),
    ("v", 2, 0.5), ("sv", 2, 0.5), ("tv", 1, 0.571), ("nnnnnnsv", 1, 0.5),
])  # fmt: skip
def test_the_first_of_a_cycle_goes_on_from_cycles_before(order, late, taken):
    """Those of one cycle are what a Zen 5 takes: seven accesses fill a cycle of eight slots."""
    assert cycles(order, late) == pytest.approx(taken, rel=0.01)


def test_where_cycles_of_dispatch_end_counts():
    """With a slot for each access, or with others between, the same accesses take less or more."""
    assert cycles("sv", core=Core(8.0)) == pytest.approx(0.5)
    assert cycles("sssvn") != pytest.approx(cycles("sssv"), rel=0.05)


def test_the_first_of_a_cycle_alone_goes_astray():
    assert cycles("svvvvvvn", astray=0.5) == pytest.approx(3.25), "half of the time it is with the others"
    assert cycles("vsvvvvvn", astray=0.5) == pytest.approx(3.0), "what is not the first never is"


def test_fractions_of_slots_take_what_they_take_on_the_average():
    assert cycles("ssv", slots=1.01) == pytest.approx(cycles("ssv", slots=1.0), rel=0.2)


def test_the_same_accesses_at_the_same_places_are_looked_at_once():
    _late.cache_clear()
    assert cycles("ssnv") == cycles("ssnv")
    assert cycles("svvvvvvn", astray=0.5) != cycles("svvvvvvn")
    assert (_late.cache_info().hits, _late.cache_info().misses) == (1, 3)
