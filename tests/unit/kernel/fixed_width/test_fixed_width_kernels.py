"""Kernels of AArch64 and RISC-V: code that means what was planned, independent instances, kept registers."""

from __future__ import annotations

import re

import pytest

from cyclescope.isa.dataflow import is_old
from cyclescope.isa.decode import decoder
from cyclescope.isa.form import model_form_id
from cyclescope.isa.table import load_table
from cyclescope.kernel.aarch64.registers import POOLS as AARCH64
from cyclescope.kernel.chain import Use
from cyclescope.kernel.riscv64.registers import POOLS as RISCV64
from cyclescope.kernel.state import FIRST_WINDOW, STACK_TOP
from tests.support.code.fixed_width import ISAS, planner, reads, sample, writes

POOLS = {"aarch64": AARCH64, "riscv64": RISCV64}
OWN = {"branch", "call", "return", "exclusive"}  # attributes of forms with sequences of their own


def experiments(isa):
    for form in sample(isa):
        for experiment in (*planner(isa).throughput(form), *planner(isa).latency(form)):
            yield form, experiment


@pytest.mark.parametrize("isa", ISAS)
def test_code_decodes_to_the_instructions_that_were_planned(isa):
    known = decoder(isa)
    for form in sample(isa)[::3]:
        for experiment in planner(isa).latency(form)[:2]:
            code, position = experiment.kernel.code, 0
            for instruction in experiment.kernel.body:
                size = instruction.form.bits.length
                found = known.decode(code[position : position + size])
                same = load_table(isa)[model_form_id(instruction.form)]
                assert found.length == size
                assert same.bits.matches(int.from_bytes(code[position : position + size], "little")), form.id
                position += size
            assert position == len(code)


@pytest.mark.parametrize("isa", ISAS)
def test_instances_of_a_sequence_are_independent(isa):
    checked = 0
    for form in sample(isa):
        if form.attributes & OWN or any(op.read and op.write and op.fixed for op in form.operands):
            continue
        for experiment in planner(isa).throughput(form):
            if experiment.variant.startswith(("broken", "fast", "slow", "with ")):
                continue
            before: set = set()
            for instruction in experiment.kernel.body:
                base = {("r", n) for n in (POOLS[isa].base, *POOLS[isa].others)}
                shared = {r for r in reads(instruction, isa) if r[0] in "rvfp"} & before - base
                assert not shared, (form.id, experiment.variant, instruction.text)
                before |= writes(instruction, isa)
            checked += 1
    assert checked > 1000


@pytest.mark.parametrize("isa", ISAS)
def test_nothing_writes_the_registers_that_a_kernel_stands_on(isa):
    pools = POOLS[isa]
    kept = {("r", n) for n in (pools.counter, pools.constant)}
    if isa == "riscv64":
        kept |= {("r", 3), ("r", 4)}  # gp and tp belong to the C library
    for form, experiment in experiments(isa):
        for instruction in experiment.kernel.body:
            assert not writes(instruction, isa) & kept, (form.id, instruction.text)


@pytest.mark.parametrize("isa", ISAS)
def test_addresses_hold_memory_and_the_stack(isa):
    for form, experiment in experiments(isa):
        general = experiment.kernel.state.general
        assert general[POOLS[isa].base] == general[POOLS[isa].alias] == FIRST_WINDOW, form.id
        onto_stack = any(op.role == "base" and op.fixed for op in form.operands)
        data = onto_stack and experiment.quantity == "latency"  # links reach the data windows only
        assert general[POOLS[isa].stack] == (FIRST_WINDOW if data else STACK_TOP)


@pytest.mark.parametrize("isa", ISAS)
def test_every_pair_has_a_chain_or_a_reason(isa):
    for form in sample(isa):
        plan = planner(isa).plan(form)
        missing = {(m.source, m.target) for m in plan.missing}
        assert plan.streams or ("", "") in missing
        assert all(m.reason for m in plan.missing)
        chained = {(c.source, c.target) for c in plan.chains}
        assert not chained & missing


@pytest.mark.parametrize("isa", ISAS)
def test_chains_have_the_instances_that_they_count(isa):
    for form in sample(isa):
        for chain in planner(isa).plan(form).chains:
            uses = sum(isinstance(item, Use) for item in chain.items)
            assert uses == chain.count, (form.id, chain)


def text(isa, form_id, source, target):
    form = load_table(isa)[form_id]
    found = planner(isa).latency(form)
    return next(e.kernel.text().splitlines() for e in found if (e.source, e.target) == (source, target))


def test_an_accumulator_chain_is_the_instruction_alone():
    assert text("aarch64", "FMADDDrrr", "op4", "op1") == ["fmadd d1, d16, d17, d1"]
    assert text("riscv64", "FMADD_D", "op4", "op1") == ["fmadd.d fa0, fs2, fs3, fa0, dyn"]


def test_an_address_keeps_its_value():
    load, sign, *twice = text("aarch64", "LDRXui", "op2", "op1")
    assert load == "ldr x1, [x20, #0]"
    assert sign == "sbfm x24, x1, #0, #31"
    assert twice == ["eor x20, x20, x24"] * 2


def test_a_base_that_moves_on_is_put_back_unless_it_is_what_is_measured():
    assert text("aarch64", "LDPXpost", "op1", "op1") == ["ldp x1, x2, [x20], #0"]
    assert text("aarch64", "STRXpre", "op2", "[op1].data")[0] == "orr x20, xzr, x21"


def test_data_of_a_write_back_access_does_not_reach_the_base():
    form = load_table("aarch64")["LD1Rv8b_POST"]
    pairs = {(e.source, e.target) for e in planner("aarch64").latency(form)}
    assert ("[op1].data", "op1") not in pairs
    assert ("op4", "op1") in pairs and ("op4", "op2") not in pairs


def test_instances_that_would_share_a_base_or_memory_have_several():
    for isa, form_id in (("aarch64", "STRXpre"), ("aarch64", "LDADDX"), ("riscv64", "AMOADD_W")):
        found = planner(isa).throughput(load_table(isa)[form_id])
        kernel = next(e.kernel for e in found if e.variant.startswith("bases"))
        pools = POOLS[isa]
        bases = {next(n for n in reversed(i.registers)) for i in kernel.body}
        if form_id == "STRXpre":
            bases = {i.registers[0] for i in kernel.body}
        assert bases == {pools.base, *pools.others}
        assert len({kernel.state.general[n] for n in bases}) == len(bases)
    plain = planner("aarch64").throughput(load_table("aarch64")["LDRXui"])
    assert not any(e.variant.startswith("bases") for e in plain)


def test_flags_are_cut_before_what_reads_them():
    assert text("aarch64", "ADCSXr", "op2", "op1") == ["subs xzr, x23, x23", "adcs x1, x1, x10"]
    assert text("aarch64", "ADCSXr", "NZCV", "NZCV") == ["adcs x1, x9, x10"]


def test_divisions_keep_both_values_and_have_two_classes_of_them():
    for isa, form_id in (("aarch64", "UDIVXr"), ("riscv64", "DIVU")):
        form = load_table(isa)[form_id]
        found = [e for e in planner(isa).latency(form) if e.source == "op2"]
        assert [e.variant for e in found] == ["fast", "slow"]
        fast, slow = (e.kernel.state.general for e in found)
        number = POOLS[isa].pools["source"]["r"][0]
        assert fast[number] == 3 and slow[number] > 1 << 60
        assert found[0].links == ("xor", "xor")


def test_a_vector_configuration_is_set_before_its_kernels():
    form = load_table("riscv64")["VADD_VV@e32,m2"]
    for experiment in planner("riscv64").latency(form):
        assert experiment.kernel.setup == bytes.fromhex("d77f100d")  # vsetvli t6, zero, e32, m2, ta, ma
        if not is_old(experiment.source):
            assert experiment.kernel.text() in ("vadd.vv v8, v8, v28", "vadd.vv v8, v24, v8")


def test_vectors_of_addresses_hold_addresses_and_indices_are_nothing():
    form = load_table("aarch64")["GLD1D_IMM"]
    state = planner("aarch64").latency(form)[0].kernel.state
    assert dict(state.vectors)[AARCH64.addresses][:8] == FIRST_WINDOW.to_bytes(8, "little")
    form = load_table("riscv64")["VLUXEI64_V@e64,m4"]
    kernel = planner("riscv64").throughput(form)[0].kernel
    index = next(n for (o, _), n in zip(_fields(form), kernel.body[0].registers, strict=True)
                 if form.operands[o].role == "index")  # fmt: skip
    zeros = {n for n, value in kernel.state.vectors if value == bytes(64)}
    assert set(range(index, index + 4)) <= zeros


def _fields(form):
    return [(field.operand, field) for field in form.bits.fields if field.is_register]


def test_branches_are_taken_or_not_by_their_registers():
    def first(form_id):
        form = load_table("riscv64")[form_id]
        return {e.variant: e.kernel.text().splitlines()[0] for e in planner("riscv64").throughput(form)}

    assert first("BNE") == {"not taken x8": "bne s6, s6, 4", "taken x8": "bne s6, s8, 16"}
    form = load_table("aarch64")["CBZX"]
    texts = {e.variant: e.kernel.text().splitlines()[0] for e in planner("aarch64").throughput(form)}
    assert texts == {"not taken x8": "cbz x23, #4", "taken x8": "cbz x22, #16"}


def test_a_store_exclusive_comes_after_its_load():
    for isa, form_id, partner in (("aarch64", "STXRX", "ldxr"), ("riscv64", "SC_D", "lr.d")):
        found = planner(isa).throughput(load_table(isa)[form_id])
        assert len(found) == 1
        assert found[0].kernel.text().startswith(partner)


def test_instructions_of_other_widths_are_not_run():
    assert planner("riscv64").probe_kernel(load_table("riscv64")["C_JAL"]) is None
    assert "RV32" in planner("riscv64").reason(load_table("riscv64")["C_JAL"], "", "")


def offsets(isa, form_id, instructions):
    """Offsets in bytes of instances' data, as the text says them."""
    return [int(re.search(r"#?(-?\d+)[\](]", i.text)[1]) for i in instructions if i.form.id == form_id]


@pytest.mark.parametrize(
    ("isa", "form_id", "size"),
    [
        ("riscv64", "LD", 8), ("riscv64", "FLH", 2), ("riscv64", "C_LW", 4), ("aarch64", "LDRXui", 8),
        ("aarch64", "LDURXi", 8), ("aarch64", "STLURWi", 4), ("aarch64", "STURQi", 16),
        ("aarch64", "STPQi", 32),
    ],
)  # fmt: skip
def test_data_of_instances_are_aligned_and_apart(isa, form_id, size):
    form = load_table(isa)[form_id]
    longest = max(planner(isa).throughput(form), key=lambda experiment: experiment.count)
    found = offsets(isa, form_id, longest.kernel.body)
    assert found[:4] == [0, size, 2 * size, 3 * size]
    blocking = offsets(isa, form_id, planner(isa).dialect.block(form, ()).instructions)
    assert len(set(blocking)) == 8
    assert all(offset % size == 0 and offset >= 8 * size for offset in blocking)


def test_a_check_of_a_signature_comes_after_its_making():
    found = planner("aarch64").throughput(load_table("aarch64")["AUTIA"])
    assert [e.variant for e in found] == ["with PACIA x8"]
    assert found[0].kernel.text().splitlines()[:2] == ["pacia x1, x2", "autia x1, x2"]
    assert planner("aarch64").latency(load_table("aarch64")["AUTIASP"])
    assert "where the code is" in planner("aarch64").reason(load_table("aarch64")["AUTIASPPCi"], "", "")


def test_the_longest_vectors_have_results_in_more_than_one_group():
    table = load_table("riscv64")
    for form_id, groups in (("VADD_VV@e32,m8", 2), ("VADD_VX@e32,m8", 3), ("VDIV_VV@e32,m8", 2)):
        body = planner("riscv64").throughput(table[form_id])[0].kernel.body
        assert len({made.registers[0] for made in body}) == groups, form_id


def test_vector_divisions_of_integers_have_two_classes_of_values():
    for isa, form_id in (("aarch64", "SDIV_ZPmZ_S"), ("riscv64", "VDIV_VV@e32,m1")):
        form = load_table(isa)[form_id]
        made = planner(isa)
        assert [e.variant for e in made.throughput(form)] == ["fast", "slow"]
        chains = [e for e in made.latency(form) if e.target == "op1" and not is_old(e.source)]
        assert {e.variant for e in chains} == {"fast", "slow"}
        values = {e.variant: {bytes(v[:4]) for _, v in e.kernel.state.vectors} | {e.kernel.state.vector[:4]}
                  for e in chains}  # fmt: skip
        assert (3).to_bytes(4, "little") in values["fast"] and (2).to_bytes(4, "little") in values["fast"]
        assert (0x343A9ED7).to_bytes(4, "little") in values["slow"]


def test_instructions_that_only_begin_another_are_not_measured():
    assert "unpredictable" in planner("aarch64").dialect.unmeasurable(load_table("aarch64")["MOVPRFX_ZZ"])
