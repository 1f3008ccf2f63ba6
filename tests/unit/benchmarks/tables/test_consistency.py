"""Relations that hold on every core: shipped models keep them, and models that do not are found out."""

from __future__ import annotations

import msgspec
import pytest

from benchmarks.tables import consistency
from benchmarks.tables.consistency import (
    RELATIONS,
    folded,
    loads_last,
    memory_units,
    policies,
    stack_known,
    violations,
)
from cyclescope.analyze.cost.instruction import PlacedCosts
from cyclescope.isa.riscv64 import vector_types
from cyclescope.isa.table import load_table
from cyclescope.session.machines import load_model

EVERY = 11  # forms; the benchmark takes all


@pytest.mark.parametrize("machine", ["znver1", "znver4", "sandybridge", "skylake-avx512", "atom"])
def test_x86_models_keep_them(machine):
    assert list(violations(machine, EVERY)) == []


@pytest.mark.parametrize("machine", ["sifive-p670", "spacemit-x60"])
def test_riscv_models_keep_them(machine):
    assert list(violations(machine, 5 * EVERY)) == []


def changed(machine, form, **fields):
    """A shipped machine on which one form costs something else."""
    model = load_model(machine)
    cost = msgspec.structs.replace(model.forms[form], **fields)
    return PlacedCosts(msgspec.structs.replace(model, forms={**model.forms, form: cost}))


def test_a_folded_form_that_is_too_fast_or_too_slow_is_found():
    form = "VADDPD (XMM, XMM, M128)"
    known = load_model("znver1").forms[form].latencies
    forms = [load_table("x86-64")[form]]
    assert not list(folded(changed("znver1", form), forms))
    for wrong in (-1, 1):
        costs = changed("znver1", form, latencies={**known, "op2->op1": known["op2->op1"] + wrong})
        assert len(list(folded(costs, forms))) == 1


def test_a_load_that_costs_nothing_is_found():
    form = "ADD (R64, M64)"
    costs = changed("skylake", form, latencies={"op1->op1": 1, "op2.address->op1": 0})
    assert list(loads_last(costs, [load_table("x86-64")[form]]))


def test_a_stack_without_latencies_is_found():
    form = "FMUL (ST0, STi)"
    assert not list(stack_known(changed("skylake", form), [load_table("x86-64")[form]]))
    assert len(list(stack_known(changed("skylake", form, latencies={}), [load_table("x86-64")[form]]))) == 2


def test_an_address_unit_for_lea_is_found():
    form, table = "LEA_B_D8 (R64)", load_table("x86-64")
    forms = [table[form], table["ADD (R64, I8)"], table["MOV (R64, M64)"]]
    loads = [op for op in load_model("znver4").forms["MOV (R64, M64)"].operations if len(op.ports) == 3]
    assert not list(memory_units(changed("znver4", form), forms))
    assert list(memory_units(changed("znver4", form, operations=tuple(loads)), forms))


def test_policies_that_hide_a_type_are_found(monkeypatch):
    forms = [load_table("riscv64")["VDIV_VV"]]
    costs = PlacedCosts(load_model("sifive-x390"))
    assert not list(policies(costs, forms))
    monkeypatch.setattr(vector_types, "applicable", lambda form, configuration: configuration)
    assert list(policies(costs, forms))


def test_every_relation_is_documented():
    for relation in {r for some in RELATIONS.values() for r in some}:
        assert relation.__doc__
    assert consistency.__doc__
