"""Ports that are dealt out in turn: what mixes of made-up forms show."""

from __future__ import annotations

from contextlib import closing
from types import SimpleNamespace

import pytest

from cyclescope.infer.machine_model import core_of_mixes
from cyclescope.infer.ports.builder import PortUsage
from cyclescope.infer.refute.calibration import DRAWN_FIRST, Judge, Trial, Verdicts, trials_of
from cyclescope.infer.refute.planner import mix_key
from cyclescope.infer.refute.turns import dealt_in_turn
from cyclescope.measure.record import STABLE, Record
from cyclescope.model.calibration import ClaimCalibration
from cyclescope.model.machine import Operation

LONG, SHORT = "Z", "X"  # two cycles and one of either of two ports: in turn two cycles, 1.5 at least
SETS = {"load": (1, 0), "other": (2, 3), "one": (4,)}


def found(right, wrong, best=1.5):
    """Classes that are dealt out in turn if so many mixes take what that makes them, and others the least."""
    usages = {
        name: PortUsage(1, "", (Operation((0, 1), 1, cycles),))
        for name, cycles in ((LONG, 2.0), (SHORT, 1.0))
    }
    model = SimpleNamespace(
        facts=SimpleNamespace(structure=SimpleNamespace(sets=SETS)),
        usages=usages,
        predicted=lambda forms: best,
    )
    plain = [2.0] * right + [1.5] * wrong
    trials = [Trial((LONG, SHORT), DRAWN_FIRST, 1.5, 0.0, 0.0, cycles) for cycles in plain]
    return dealt_in_turn(model, Judge(model, trials))


@pytest.mark.parametrize(("right", "wrong", "is_found"), [
    (15, 5, True), (14, 6, False), (300, 100, True), (299, 101, False), (19, 0, False), (20, 0, True),
])  # fmt: skip
def test_twenty_mixes_of_which_three_in_four_take_it(right, wrong, is_found):
    assert found(right, wrong) == (("load",) if is_found else ())


def test_mixes_that_take_as_long_for_another_reason_tell_nothing():
    assert found(50, 0, best=1.95) == ()


def test_mixes_whose_own_order_was_not_read_tell_nothing():
    assert found(19, 0) == found(0, 19) == ()


@pytest.mark.parametrize("orders", [(2.0, 1.5), (1.5, 2.0)])
def test_a_mix_has_the_cycles_of_the_order_of_its_forms(orders):
    records = [
        Record(*mix_key((LONG, SHORT), DRAWN_FIRST, order), cycles, 0.0, STABLE, 1, ())
        for order, cycles in enumerate(orders)
    ]
    store = SimpleNamespace(records_of=lambda quantities: records, close=lambda: None)
    with closing(store):
        (trial,) = trials_of(store)
    assert trial.plain == orders[0]
    assert trial.cycles == 1.5


def test_a_core_has_the_ports_of_the_classes_that_mixes_told():
    ports = SimpleNamespace(structure=SimpleNamespace(sets=SETS))
    told = Verdicts(0, {}, {}, ClaimCalibration(), evenness=0.25, in_turn=("load", "none any more"))
    assert core_of_mixes(ports, told) == {"evenness": 0.25, "in_turn": ((0, 1),)}
    assert core_of_mixes(None, told) == core_of_mixes(ports, None) == {}
