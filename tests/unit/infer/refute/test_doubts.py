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
    ({"high": (100, 89)}, True), ({"high": (100, 91)}, False), ({"medium": (100, 74)}, True),
    ({"medium": (100, 76)}, False), ({"high": (19, 1)}, False), ({"high": (20, 1)}, True),
])  # fmt: skip
def test_levels_have_to_hold(mixes, bad):
    assert [doubt.meaning for doubt in doubts(model(mixes))] == [Doubt.MIXES] * bad


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
