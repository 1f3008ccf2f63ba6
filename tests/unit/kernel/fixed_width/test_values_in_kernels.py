"""Values that kernels of AArch64 and RISC-V hold, so that what is measured takes place in every iteration."""

from __future__ import annotations

import pytest

from cyclescope.isa.table import load_table
from cyclescope.kernel.aarch64.registers import POOLS as AARCH64
from cyclescope.kernel.fixed_width.numbers import compared_bytes
from cyclescope.kernel.fixed_width.values import TOWARDS_ZERO
from cyclescope.kernel.state import FIRST_WINDOW
from tests.support.code.fixed_width import planner, reads

FIVES = {
    "CASB": b"\5",
    "CASH": b"\5\0",
    "CASALW": b"\5\0\0\0",
    "CASX": b"\5" + bytes(7),
    "CASPW": b"\5\0\0\0",
    "CASPALX": b"\5" + bytes(7),
}


def kernels(isa, form_id):
    form = load_table(isa)[form_id]
    return [*planner(isa).throughput(form), *planner(isa).latency(form)]


def latency(isa, form_id, source, target):
    found = planner(isa).latency(load_table(isa)[form_id])
    return next((made for made in found if (made.source, made.target) == (source, target)), None)


@pytest.mark.parametrize("form_id", FIVES)
def test_a_compare_and_swap_finds_what_it_compares_with(form_id):
    """Otherwise it stores nothing, and what is read back comes from the store before it."""
    form, wanted = load_table("aarch64")[form_id], FIVES[form_id]
    assert compared_bytes(form) == len(wanted)
    for made in kernels("aarch64", form_id):
        state = made.kernel.state
        memory = [*state.fill, state.vector, *[value for n, value in state.vectors if n == AARCH64.value]]
        assert {value[: len(wanted)] * (64 // len(wanted)) for value in memory} == {*memory}
        assert all(value.startswith(wanted) for value in memory)
        for instruction in made.kernel.body:
            if instruction.form is form:
                data = {n for kind, n in reads(instruction, "aarch64") if kind == "r"}
                addresses = {AARCH64.base, AARCH64.alias, *AARCH64.others}
                assert {state.general[n] for n in data - addresses} == {5}
                assert state.general[AARCH64.others[0]] > FIRST_WINDOW


def test_other_forms_have_values_of_their_own():
    assert compared_bytes(load_table("aarch64")["LDADDX"]) == 0
    assert len({*kernels("aarch64", "LDADDX")[0].kernel.state.general[:8]}) == 8


def test_what_is_added_to_exponents_is_zero():
    exponent = 16  # z16, of the throughput kernels too
    for form_id in ("FSCALE_ZPmZ_H", "FSCALE_ZPmZ_D"):
        for made in kernels("aarch64", form_id):
            assert dict(made.kernel.state.vectors)[exponent] == bytes(64), made.variant
            assert ("v", exponent) in reads(made.kernel.body[-1], "aarch64") or made.source
    chain = latency("aarch64", "FSCALE_ZPmZ_D", "op4", "op1")
    assert chain.variant.startswith("link")
    assert chain.kernel.body[-1].registers[-1] == AARCH64.nought


def test_products_with_a_constant_do_not_overflow():
    """Towards zero the greatest number stays when it is doubled."""
    for form_id in ("FMUL_ZPmI_H", "FMUL_ZPmI_S", "FMUL_ZPmI_D"):
        assert {made.kernel.state.control for made in kernels("aarch64", form_id)} == {TOWARDS_ZERO}
    assert TOWARDS_ZERO >> 22 == 3  # FPCR.RMode
    assert {made.kernel.state.control for made in kernels("aarch64", "FMUL_ZPmZ_D")} == {0}


def test_both_sources_of_an_extraction_are_in_the_result():
    for made in kernels("aarch64", "EXT_ZZI"):
        assert {i.immediates[0] for i in made.kernel.body if i.form.id == "EXT_ZZI"} == {3}


def test_flags_that_are_written_as_a_whole_have_no_chain():
    assert latency("aarch64", "MSR", "NZCV", "NZCV") is None
    assert latency("aarch64", "MSR", "op2", "NZCV") is not None


@pytest.mark.parametrize(
    ("form_id", "register"),
    [("VSOXEI16_V@e8,m1", 9), ("VSUXEI64_V@e32,m4", 12), ("VSOXEI32_V@e32,m1", 8), ("VLUXEI16_V@e8,m1", 24)],
)
def test_the_last_indices_of_a_store_depend_on_what_it_wrote(form_id, register):
    target = "op1" if form_id.startswith("VL") else "[op2].data"
    body = latency("riscv64", form_id, "op3", target).kernel.body
    assert [i.registers[0] for i in body[-2:]] == [register] * 2
