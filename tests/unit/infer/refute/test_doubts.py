"""What a measured model should not lack."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.infer.refute.doubts import doubts
from cyclescope.isa.registry import instruction_set, isa_names
from cyclescope.isa.table import load_table
from cyclescope.model.calibration import ClaimCalibration, TriedMixes
from cyclescope.model.machine import MEASURED, Core, FormCost, MachineModel, Operation, Provenance
from cyclescope.remarks.model import Doubt

FORMS = [form for forms in instruction_set("x86-64").roles.plain.values() for form in forms]


def model(mixes=None, without=(), **changes):
    costs = {name: FormCost(1, () if name in without else (Operation((0,)),)) for name in FORMS}
    calibration = (
        None if mixes is None else ClaimCalibration({n: TriedMixes(*some, 0.01) for n, some in mixes.items()})
    )
    found = MachineModel("m", "x86-64", Provenance(MEASURED), Core(4), ("0",), costs, calibration=calibration)
    return msgspec.structs.replace(found, **changes)


def test_nothing_is_wrong_with_a_model_whose_claims_hold():
    assert list(doubts(model({"high": (100, 97), "medium": (50, 41), "low": (30, 2)}))) == []


@pytest.mark.parametrize("form", FORMS)
def test_every_plain_form_needs_a_port(form):
    (doubt,) = doubts(model({"high": (100, 99)}, without=(form,)))
    assert (doubt.meaning, doubt.values[0]) == (Doubt.PLAIN_WITHOUT_PORT, form)


def test_what_was_not_measured_is_not_missed():
    found = model({"high": (100, 99)})
    assert list(doubts(msgspec.structs.replace(found, forms={}))) == []


@pytest.mark.parametrize(("mixes", "bad"), [
    ({"high": (1000, 919)}, True), ({"high": (1000, 921)}, False), ({"medium": (1000, 869)}, True),
    ({"medium": (1000, 871)}, False), ({"low": (1000, 1)}, False),
    ({"high": (19, 1)}, False), ({"high": (20, 1)}, True),
])  # fmt: skip
def test_levels_predict_as_many_mixes_as_they_say_within_three_points(mixes, bad):
    assert [doubt.meaning for doubt in doubts(model(mixes))] == [Doubt.MIXES] * bad


@pytest.mark.parametrize(("ports", "bad"), [
    (("high", 1000, 964), True), (("high", 1000, 966), False), (("medium", 1000, 919), True),
    (("medium", 1000, 921), False),
])  # fmt: skip
def test_ports_allow_as_many_mixes_as_levels_say_within_three_points(ports, bad):
    level, number, held = ports
    found = model({}).calibration
    found = msgspec.structs.replace(found, ports={level: TriedMixes(number, held, 0.01)})
    assert [doubt.meaning for doubt in doubts(model({}, calibration=found))] == [Doubt.PORTS] * bad


@pytest.mark.parametrize(("held", "bad"), [(90, True), (91, False)])
def test_of_few_mixes_more_may_fail_by_chance(held, bad):
    """Two standard errors of a hundred mixes of which 95 should hold are 4.4 points."""
    assert len(list(doubts(model({"high": (100, held)})))) == bad


def test_a_model_that_nothing_tested_says_so():
    assert list(doubts(model())) == [Doubt.UNTESTED.of()]


def test_other_models_are_not_doubted():
    assert list(doubts(model(without=FORMS, ports=()))) == []
    assert list(doubts(model(without=FORMS, provenance=Provenance("published")))) == []
    assert list(doubts(model(without=FORMS, core=Core(2, in_order=True)))) == []


@pytest.mark.parametrize("isa", isa_names())
def test_the_plain_forms_exist(isa):
    table = load_table(isa)
    assert all(form in table for forms in instruction_set(isa).roles.plain.values() for form in forms)
