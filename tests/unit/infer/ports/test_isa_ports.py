"""Ports of simulated AArch64 and RISC-V machines, and pairing rules of those that issue in order."""

from __future__ import annotations

from contextlib import closing

import pytest

from benchmarks.drawn.round_trip import QUIET, compare, in_order, measure, sample
from cyclescope.backend.simulated import LOUD, SimulatedBackend
from cyclescope.infer.campaign import Campaign
from cyclescope.infer.machine_model import build_model
from cyclescope.infer.ports.approach import read_approach
from cyclescope.infer.ports.candidates import candidates, domains, files_of, memory_of
from cyclescope.infer.ports.in_order import QUICK, SLOW, issues_in_order
from cyclescope.isa.table import load_table
from cyclescope.measure.plan import Planner
from cyclescope.measure.record import Record
from cyclescope.measure.store import Store
from cyclescope.model.facts import HIGH, MEDIUM
from cyclescope.remarks.ports import NoPorts
from cyclescope.session.machines import load_model

ALL = (
    "neoverse-v1", "neoverse-v2", "neoverse-n2", "a64fx", "sifive-p670", "xiangshan-nanhu", "sifive-p550",
)  # fmt: skip
ORDERED = ("cortex-a510", "cortex-a55", "spacemit-x60", "sifive-7-series")


def check(name, count, noise):
    machine = load_model(name)
    table = load_table(machine.isa)
    comparison, verdicts, _ = compare(machine, table, sample(table, machine, count), noise)
    assert comparison.same_structure()
    sure = [v for v in verdicts if v.identifiable]
    assert len(sure) > count / 3
    assert sum(v.right for v in sure) >= 0.97 * len(sure)
    wrong = [v for v in verdicts if not v.right and v.confidence == HIGH]
    assert len(wrong) <= len(verdicts) / 200


def test_a_noisy_machine_is_recovered():
    check("sifive-p550", 100, LOUD)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_all_machines_are_recovered(name):
    check(name, 1000, LOUD)


def test_stores_of_two_slots_have_ports_and_loads_keep_theirs():
    """Stores of Neoverse V2 as LLVM has them: two of the loads' three ports, and a datum that none shows."""
    machine = load_model("neoverse-v2")
    table = load_table(machine.isa)
    names = "LDRXui", "STRXui", "STRQui"
    comparison, _, _ = compare(machine, table, [table[name] for name in names], QUIET)
    usages = [comparison.builder.usage(table[name], 0.5) for name in names]
    load, store, vector = ({op.ports for op in usage.operations} for usage in usages)
    [[loads], [stores]] = load, store
    assert {*stores} < {*loads}
    assert stores in vector
    assert [usage.confidence for usage in usages[1:]] == [MEDIUM, MEDIUM]


def test_what_moves_its_base_is_counted_with_a_base_for_each_instance(tmp_path):
    """Loads of two registers that Ampere1B takes four cycles for to move one base, as LLVM has them."""
    machine, table = load_model("ampere1b"), load_table("aarch64")
    form = table["LD1Twov2d_POST"]
    with closing(SimulatedBackend(machine)) as backend, closing(Store(tmp_path / "s", machine.name)) as store:
        facts = Campaign(table, backend, store).front_end([form]).front_end
    assert facts.told(form)[0] == 2


# --- in order --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ordered(tmp_path_factory):
    """A few forms on a core that issues in order, and its store."""
    machine, table = load_model("spacemit-x60"), load_table("riscv64")
    forms = [table[name] for name in ("ADD", "MUL", "FADD_D", "FDIV_D", "LD", "SD", "DIV", "FMV_X_D")]
    path = tmp_path_factory.mktemp("in_order") / "store.sqlite"
    with closing(measure(machine, table, forms, QUIET, path)) as store:
        yield store, table, read_approach(store, table), forms


def test_a_core_that_issues_in_order_says_so_in_place_of_ports(ordered):
    _, table, approach, forms = ordered
    assert approach.in_order
    assert approach.ports is None
    planner = Planner(table, lambda form: True)
    usages = {form.id: approach.usage(form, planner) for form in forms}
    assert {usage.ports for usage in usages.values()} == {None}
    assert [one.meaning for one in usages["FADD_D"].remarks][:2] == [NoPorts.IN_ORDER, NoPorts.ISSUES_WITH]
    assert all(usage.slots is None for usage in usages.values())


def test_pairing_rules(ordered):
    """The X60 issues two instructions a cycle, one of them for floating point."""
    approach = ordered[2]
    together, apart = approach.rules("FADD_D")
    assert {"LD", "SD"} <= set(together)
    assert any(approach.table[name].operands[0].file == "f" for name in apart)
    together, apart = approach.rules("ADD")
    assert not apart
    assert {"LD", "SD"} <= set(together)


def test_the_model_of_a_core_that_issues_in_order(ordered):
    store, table, _, _ = ordered
    model = build_model(store, table)
    assert model.core.in_order
    assert model.core.width == 2
    assert not model.ports
    assert model.forms["FADD_D"].operations is None
    assert NoPorts.IN_ORDER.value in model.forms["FADD_D"].note
    assert any("the core issues in order" in note for note in model.provenance.notes)


def order_record(form, source, count, cycles):
    return Record(form, "order", source, "", f"x{count}", cycles, 0.0, "ok", 1, ())


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({8: 17, 12: 21, 16: 25, 24: 33}, True),
        ({8: 12, 12: 12, 16: 16, 24: 24}, False),
        ({8: 12.5, 12: 14, 16: 18.5, 24: 26}, False),
        ({12: 16.8, 16: 21}, True),
        ({12: 16.2, 16: 20}, False),
        ({8: 12, 12: 21}, True),  # what tells more counts more
        ({12: 21}, True),
        ({}, False),
    ],
)
def test_order_of_issue(found, expected):
    """A chain of four multiplications of three cycles, and as many additions as said, a cycle each."""
    alone = [order_record("MUL", "", SLOW, 12.0), *(order_record("ADDI", "", n, n) for n in QUICK)]
    records = alone + [order_record("MUL", "ADDI", *pair) for pair in found.items()]
    assert issues_in_order(records) == expected
    assert not issues_in_order(records[1:]), "nothing is known of the first chain"


def test_what_cannot_tell_the_order_of_issue_is_not_asked():
    """A multiplication of a cycle waits for nothing: in order three cycles more of 24."""
    alone = [order_record("MUL", "", SLOW, 4.0), order_record("ADDI", "", 24, 24.0)]
    assert not issues_in_order([*alone, order_record("MUL", "ADDI", 24, 27.0)])


@pytest.mark.slow
@pytest.mark.parametrize("name", ORDERED)
def test_all_cores_in_order(name):
    machine = load_model(name)
    table = load_table(machine.isa)
    checks = in_order(machine, table, sample(table, machine, 400), LOUD)
    assert [c for c in checks if not c.passed] == []


# --- candidates ------------------------------------------------------------------------------------


def test_blocking_instructions_of_other_instruction_sets():
    for isa, good, bad in (
        ("aarch64", {"ADDXrs", "MADDXrrr", "FADDDrr", "ADDv2i64", "LDRXui", "STRQui"},
         {"ADDSXrs", "LDRXpost", "LDADDX", "FADD_ZPmZ_D", "B", "RET", "CSELXr"}),
        ("riscv64", {"ADD", "MUL", "FADD_D", "LD", "FSD"}, {"C_ADD", "AMOADD_D", "BEQ", "VADD_VV", "LW"}),
    ):  # fmt: skip
        found = {form.id for form in candidates(load_table(isa))}
        assert good <= found
        assert found.isdisjoint(bad)


def test_register_files_that_forms_work_on():
    arm, risc = load_table("aarch64"), load_table("riscv64")
    assert files_of(arm["ADDXrs"]) == {"r"}
    assert files_of(arm["FMOVXDr"]) == {"r", "v"}
    assert files_of(risc["LD"]) == {"m"}
    assert domains(arm["CSELXr"]) == {"r"}
    assert domains(arm["CNTP_XPP_B"]) == {"r", "p", "v"}
    assert domains(risc["FLD"]) == {"r", "f", "m"}
    assert memory_of(risc["ADD"]) is None
    assert memory_of(risc["SD"]).write
