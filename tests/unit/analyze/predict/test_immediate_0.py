"""Forms of an immediate of 0, and machines that do not tell them apart."""

from __future__ import annotations

import msgspec

from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.isa.table import load_table
from cyclescope.model.machine import FormCost, Operation
from tests.support.code.blocks import block, toy


def test_an_immediate_of_0_costs_as_any_where_a_machine_does_not_tell_them_apart():
    table = load_table("x86-64")
    any_lane, lane_0 = (table[f"VEXTRACTF128 (XMM, YMM, {cls})"] for cls in ("I8", "0"))
    text = "vextractf128 xmm0, ymm1, 0; vextractf128 xmm2, ymm3, 0"
    costs = {any_lane.id: FormCost(1.0, (Operation((0,)),))}
    machine = msgspec.structs.replace(toy(), forms=costs)
    assert Predictor(machine).predict(block(text)).bounds["ports"] == 2
    costs[lane_0.id] = FormCost(1.0, (Operation((0, 1)),))
    assert Predictor(machine).predict(block(text)).bounds["ports"] == 1
    assert Predictor(machine).predict(block(text.replace(", 0", ", 1"))).bounds["ports"] == 2
