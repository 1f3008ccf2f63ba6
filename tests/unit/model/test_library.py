"""Machine models that ship."""

from __future__ import annotations

from importlib import resources

import pytest

from cyclescope.errors import UsageError
from cyclescope.isa.table import load_table
from cyclescope.model.check import problems
from cyclescope.model.library import summaries
from cyclescope.model.machine import EXTRACTED
from cyclescope.model.ports import notation, port_throughput
from cyclescope.session.machines import load_model

ALL = list(summaries())
COUNTS = {"x86-64": 17, "aarch64": 27, "riscv64": 18}  # distinct models in LLVM 22


def usage(machine, form):
    return notation(machine.forms[form].operations, machine.ports)


def test_every_model_of_llvm_is_there():
    assert {isa: sum(m.isa == isa for m in ALL) for isa in COUNTS} == COUNTS
    assert sum(m.form_count for m in ALL) > 340_000


def test_the_archives_are_small():
    folder = resources.files("cyclescope.model").joinpath("machines")
    assert sum(len(f.read_bytes()) for f in folder.iterdir() if f.name.endswith(".xz")) < 180_000


@pytest.mark.parametrize("machine", ALL, ids=lambda m: m.name)
def test_every_model_says_where_it_comes_from(machine):
    origin = machine.provenance
    assert (origin.kind, origin.licence) == (EXTRACTED, "Apache-2.0 WITH LLVM-exception")
    assert origin.version.startswith("22.")
    assert "LLVM" in origin.source


@pytest.mark.parametrize("summary", ALL, ids=lambda m: m.name)
def test_every_model_is_consistent(summary):
    machine = load_model(summary.name)
    assert not list(problems(machine))
    assert len(machine.forms) == summary.form_count
    assert machine.ports == summary.ports


@pytest.mark.parametrize("summary", ALL, ids=lambda m: m.name)
def test_every_port_is_used(summary):
    machine = load_model(summary.name)
    used = {p for cost in machine.forms.values() for op in cost.operations for p in op.ports}
    assert used == set(range(len(machine.ports)))


def test_names_belong_to_one_machine():
    names = [name for m in ALL for name in (m.name, *m.aliases)]
    assert len(names) == len(set(names))
    assert all(name == name.lower() for name in names)


def test_a_machine_has_many_names_in_any_case():
    assert load_model("SKX") is load_model("skylake-avx512") is load_model("CLX")
    assert load_model("sifive-u74").name == "sifive-7-series"
    assert any("znver5" in note for note in load_model("znver4").provenance.notes)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("zen6", "zen5"),
        ("icelake", "icelake-client"),
        ("neoverse", "neoverse-n1"),
        ("qqqq", "machines list"),
    ],
)
def test_unknown_names_are_met_with_near_ones(name, said):
    with pytest.raises(UsageError, match=said):
        load_model(name)


# --- what LLVM's models say -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "form", "expected"),
    [
        ("skylake", "IMUL (R64, R64)", "1*p1"),
        ("skylake", "VADDPD (YMM, YMM, YMM)", "1*p01"),
        ("skylake", "VADDPD (YMM, YMM, M256)", "1*p01+1*p23"),  # groups around p01 add nothing
        ("skylake", "MOV (M64, R64)", "1*p4+1*p237"),
        ("skylake", "VDIVPD (YMM, YMM, YMM)", "1*p0+1*pFPDivider/8"),  # one micro-operation, a busy divider
        ("haswell", "VADDPD (YMM, YMM, YMM)", "1*p1"),
        ("alderlake", "VADDPD (YMM, YMM, YMM)", "1*p15"),
        ("znver3", "VADDPD (YMM, YMM, YMM)", "1*pFP2,FP3"),
        ("znver3", "DIV (R64)", "1*pALU0/17"),
    ],
)
def test_port_usage(name, form, expected):
    machine = load_model(name)
    assert set(usage(machine, form).split("+")) == set(expected.split("+"))


def test_loads_and_stores_of_zen_share_their_units():
    machine = load_model("znver3")
    operations = machine.forms["MOV (R64, M64)"].operations
    load, *_ = [op for op in operations if len(op.ports) == 3 and op.count == 1]
    names = [machine.ports[p] for p in load.ports]
    assert names in (["LSU0", "LSU1", "LSU2"], ["AGU0", "AGU1", "AGU2"])
    assert not any(port.startswith(("Load", "Store")) for port in machine.ports)


def test_latencies_are_per_pair():
    machine = load_model("skylake")
    assert machine.forms["IMUL (R64, R64)"].latencies["op2->op1"] == 3
    loaded = machine.forms["VADDPD (YMM, YMM, M256)"].latencies
    assert loaded["op2->op1"] == 4  # read after the load
    assert loaded["op3.address->op1"] == loaded["op3.index->op1"] == 11
    assert "op3.data->op1" not in loaded


def test_a_late_accumulator_is_in_the_chain_of_the_form():
    latencies = load_model("cortex-a57").forms["MADDXrrr"].latencies
    assert latencies == {"op2->op1": 5, "op3->op1": 5, "op4->op1": 3}
    tied = load_model("cortex-a57").forms["FMLAv4f32"].latencies
    assert tied == {"op1->op1": 4, "op3->op1": 10, "op4->op1": 10}


def test_idioms_and_eliminated_moves():
    zen, lake = load_model("znver3").forms, load_model("skylake").forms
    assert zen["VPXOR (XMM, XMM, XMM)"].idiom == lake["PXOR (XMM, XMM)"].idiom == "zero"
    assert zen["PCMPEQD (XMM, XMM)"].idiom == "breaking"
    assert not zen["VPADDD (XMM, XMM, XMM)"].idiom
    assert zen["MOVAPS_0F28 (XMM, XMM)"].eliminated
    assert not zen["VPADDD (XMM, XMM, XMM)"].eliminated


def test_cores():
    skylake, cortex = load_model("skylake").core, load_model("cortex-a53").core
    assert (skylake.width, skylake.reorder_buffer, skylake.in_order) == (6, 224, False)
    assert (cortex.width, cortex.reorder_buffer, cortex.in_order) == (2, 0, True)
    zen = load_model("znver3").core
    assert zen.load_buffer and zen.store_buffer
    assert {s.name: s.entries for s in zen.schedulers} == {"FP": 64, "Int": 96}


def test_no_form_needs_more_of_one_port_than_all_its_cycles():
    for name in ("skylake", "znver4", "neoverse-v1", "sifive-p870"):
        for cost in load_model(name).forms.values():
            total = sum(op.count * op.cycles for op in cost.operations)
            widest = max((len(op.ports) for op in cost.operations), default=1)
            assert total / max(1, widest * len(cost.operations)) <= port_throughput(cost.operations) <= total


def test_forms_are_those_of_the_table():
    table = {form.id for form in load_table("x86-64")}
    assert set(load_model("znver4").forms) <= table


def test_mask_registers_have_latencies():
    machine = load_model("skylake-avx512")
    assert machine.forms["KADDW (K, K, K)"].latencies == {"op2->op1": 4, "op3->op1": 4}
    masked = machine.forms["VPADDD_Z (ZMM, K, ZMM, ZMM)"].latencies
    assert masked["op2->op1"] == masked["op3->op1"] == 1
    assert machine.forms["VPCMPD (K, ZMM, ZMM, I8)"].latencies["op2->op1"] == 4
