"""Blocking instructions beside the form under test: neither waits for the other where that can be."""

from __future__ import annotations

import pytest

from cyclescope.isa.table import load_table
from cyclescope.kernel.chain import Unmeasurable
from cyclescope.measure.plan import PLANS, Planner
from cyclescope.measure.ports import PortPlanner


@pytest.mark.parametrize(
    ("isa", "form", "blocker"),
    [
        ("aarch64", "TBXv16i8Four", "ASR_ZZI_D"),
        ("aarch64", "ORV_VPZ_H", "UZP1_PPP_B"),
        ("x86-64", "VPERMD (YMM, YMM, YMM)", "VPHMINPOSUW (XMM, XMM)"),
        ("x86-64", "CMOVB (R64, R64)", "PDEP (R64, R64, R64)"),
        ("riscv64", "SUB", "XOR"),
    ],
)
def test_a_form_does_not_read_what_blocking_instructions_write(isa, form, blocker):
    table = load_table(isa)
    plans = PortPlanner(Planner(table, lambda form: True))
    found = plans.planner.instances(table[form], 2)
    used = plans.planner.used_registers(table[form], 2)
    assert (used.registers, used.writes, used.reads) == (found.registers, found.writes, found.reads)
    block = plans.beside(table[blocker], found)
    assert plans.beside(table[blocker], used) == block
    dialect = plans.planner.dialect
    read = set().union(*[dialect.read(table[form], numbers) for numbers in found.registers])
    written = set().union(*[dialect.written(table[form], numbers) for numbers in found.registers])
    assert read
    assert block.writes.isdisjoint(read)
    assert (block.reads | block.writes).isdisjoint(written)


@pytest.mark.parametrize("isa", ["x86-64", "aarch64", "riscv64"])
def test_what_is_planned_of_a_whole_table_is_kept(isa):
    """Every stage of a run goes over all forms."""
    table = load_table(isa)
    dialect = Planner(table, lambda form: True).dialect
    assert len({dialect.signature(form) for form in table}) <= PLANS


@pytest.mark.parametrize("isa", ["x86-64", "aarch64", "riscv64"])
def test_blocking_instructions_do_not_wait_for_each_other(isa):
    table = load_table(isa)
    plans = PortPlanner(Planner(table, lambda form: True))
    seen = 0
    for form in list(table)[::7]:
        try:
            block = plans.block(form)
        except Unmeasurable:
            continue
        if block and not any(op.is_register and op.read and op.write for op in form.operands):
            seen += 1
            assert block.reads.isdisjoint(block.writes), form.id
    assert seen > 200


@pytest.mark.parametrize("name", ["VPMULUDQ (XMM, XMM, XMM)", "VPADDD_Z (YMM, K, YMM, YMM)"])
def test_blocking_instructions_leave_masks_for_what_is_in_flight(name):
    """Of a core's few: they write one, and those that nobody uses hold no value."""
    table = load_table("x86-64")
    plans = PortPlanner(Planner(table, lambda form: True))
    form, blocker = table[name], table["KNOTB (K, K)"]
    kernel = plans.against(form, blocker, 2, 8).make().kernel
    used = {one for i in kernel.body for one in plans.planner.dialect.written(i.form, i.registers)}
    used |= {one for i in kernel.body for one in plans.planner.dialect.read(i.form, i.registers)}
    held = {number for file, number in used if file == "k"}
    zero = [plans.planner.dialect.helpers.mask_zero(n).code for n in range(8)]
    assert len(held) == 2
    assert [zero[n] in kernel.setup for n in range(8)] == [n not in held for n in range(8)]
    others = plans.against(form, table["VPABSB (XMM, XMM)"], 2, 8).make().kernel
    assert not any(code in others.setup for code in zero)
