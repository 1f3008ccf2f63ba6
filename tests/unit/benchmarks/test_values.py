"""Values followed through kernels under qemu-user: sound kernels pass, and kernels broken on purpose fail."""

from __future__ import annotations

import os
import shlex
from functools import cache
from pathlib import Path
from unittest.mock import patch

import msgspec
import pytest

from benchmarks.emulated import emulator
from benchmarks.values.follow import (
    _DIVIDES,
    CONSTANT_FLAG,
    MORE_LOADED,
    NO_DIFFERENCE,
    NO_NUMBER,
    REWRITTEN,
    STACK,
    ZERO,
    findings,
    helper,
    is_denormal,
    judged,
    questions_of,
)
from benchmarks.values.places import Places
from benchmarks.values.reasons import known
from benchmarks.values.tracer import AS_IT_IS, tracer
from benchmarks.values.unreached import (
    ALIKE,
    CARRY,
    CLEARED,
    COMPARED,
    COMPARISON,
    EXCHANGED,
    KEPT,
    LENGTHS,
    OTHER_END,
    POINTERS,
    POSITIVE,
    REPEATED,
    REST,
    SHUFFLED,
    STAYS,
    UNMASKED,
    UPPER,
    why_unreached,
)
from cyclescope.errors import BackendUnavailable
from cyclescope.host.uname import host_isa
from cyclescope.isa.dataflow import pairs
from cyclescope.isa.table import load_table
from cyclescope.kernel.locations import names
from cyclescope.measure.plan import Planner
from tests.support.fixed_width import planner

# Kernels of these forms once ran on with predicates that had become false, read back another half than the
# one stored, moved a register to itself, loaded what no single store had written, divided by what was left,
# worked on what is no number, compared with what was not there, or had indices that the store did not need.
FORMS = {
    "aarch64": [
        "ST1B", "CMPEQ_PPzZZ_B", "CMPGE_PPzZZ_H", "ADD_ZPmZ_B", "STPXi", "STPQpre", "STNPDi", "LDPSWi",
        "LDPXi", "LD2B", "SDIV_ZPmZ_S", "UDIVR_ZPmZ_D", "FDIV_ZPmZ_D", "FSQRTDr", "FCMGE16", "FCVTDHr",
        "FMUL_ZPmZ_S", "MUL_ZI_S", "CSELXr", "ADCSXr", "LDADDX", "STRXui", "CASALX", "CASH", "CASPX",
        "FSCALE_ZPmZ_D", "FMUL_ZPmI_D", "EXT_ZZI", "MSR", "LDUMAXX", "URSQRTE_ZPmZ_S", "SCVTF_ZPmZ_StoD",
    ],
    "riscv64": [
        "VMV1R_V", "VMV8R_V", "VMV_V_V@e32,m1", "VL2RE8_V", "VLSEG2E8_V@e8,m1", "VDIV_VV@e32,m1",
        "VREMU_VX@e16,m1", "VDIVU_VV@e64,m8", "VFDIV_VV@e32,mf2", "VFDIV_VF@e64,m1,masked", "VMSBC_VXM@e8,m1",
        "FCVT_H_S", "VMFLE_VF@e32,m1", "VFWADD_VV@e16,m1", "VADD_VV@e32,m1,masked", "AMOADD_D", "DIV", "SD",
        "VSLIDEUP_VX@e32,m1", "VSOXEI16_V@e8,m1", "VSUXEI64_V@e32,m4", "VMADC_VIM@e64,m1", "VMFEQ_VF@e32,m8",
    ],
}  # fmt: skip


@cache
def machine(isa):
    """A tracer of an instruction set, kept for all tests."""
    try:
        words = shlex.split(emulator(isa))[:-1]
        return tracer(isa, words)
    except BackendUnavailable as error:
        pytest.skip(f"needs qemu-user and a cross compiler: {error}")


@pytest.fixture(scope="module", params=list(FORMS))
def isa(request, tmp_path_factory):
    with patch.dict(os.environ, XDG_CACHE_HOME=str(tmp_path_factory.mktemp("cache"))):
        machine(request.param)
    yield request.param
    machine(request.param).close()


def question(isa, form_id, source, target, variant=""):
    """What is to be seen of one kernel."""
    found = questions_of(planner(isa), Places(planner(isa)), load_table(isa)[form_id])
    return next(
        q for q in found if (q.source, q.target) == (source, target) and q.variant.startswith(variant)
    )


def problem(isa, asked):
    return judged(asked, next(machine(isa).run([asked.job])), names(isa))


def with_items(asked, change):
    """The kernel with other instructions: `change` gets the list of items."""
    items = list(asked.job.items)
    change(items)
    return msgspec.structs.replace(asked, job=msgspec.structs.replace(asked.job, items=tuple(items)))


def test_values_prove_the_kernels_of_forms_that_were_broken(isa):
    forms = [load_table(isa)[name] for name in FORMS[isa]]
    found = list(findings(machine(isa), planner(isa), forms))
    assert {f.form for f in found} == set(FORMS[isa])
    assert [f"{f.form} {f.source} {f.target} {f.variant}: {f.problem}" for f in found if f.problem] == []


def made(isa, form_id, *values):
    return planner(isa).dialect.helpers.make(form_id, *values)


def last(*made_of):
    """Another last instruction."""

    def change(isa, items):
        items[-1] = helper(made(isa, *made_of))

    return change


def added(*made_of):
    """One more instruction at the end."""

    def change(isa, items):
        items.append(helper(made(isa, *made_of)))

    return change


def last_two(*made_of):
    """Other last two instructions, the same."""

    def change(isa, items):
        items[-2:] = [helper(made(isa, *made_of))] * 2

    return change


def form(*made_of):
    """Other registers of the form."""

    def change(isa, items):
        items[0] = msgspec.structs.replace(items[0], code=made(isa, *made_of).code())

    return change


def alone(isa, items):
    """No way back."""
    del items[1:]


BROKEN = [
    # the predicate that is restored through itself
    ("aarch64", "ST1B", "op2", "[op3].data", last("ORR_PPzPP", 7, 7, 7, 7), "P7 not as at the start"),
    ("aarch64", "CMPEQ_PPzZZ_B", "op2", "NZCV", last("ORR_PPzPP", 7, 7, 7, 7), "P7 not as at the start"),
    # the second register of a pair, read back from where the first one is
    ("aarch64", "STPXi", "op2", "[op3].data", last("LDRXui", 10, 21, 0), "does not come back"),
    # a load of more than one store has written
    ("aarch64", "LDPSWi", "[op3].data", "op1", last("STRWui", 1, 21, 0), "more than one store"),
    ("riscv64", "VLE32_V@e32,m2", "[op2].data", "op1", last("VS1R_V", 8, 8), "more than one store"),
    # a register moved to itself
    ("riscv64", "VMV1R_V", "op2", "op1", form("VMV1R_V", 8, 8), "changes nothing"),
    ("riscv64", "VMV8R_V", "op2", "op1", form("VMV8R_V", 8, 8), "changes nothing"),
    # quotients divided again
    ("riscv64", "VDIV_VV@e32,m1", "op2", "op1", last("VAND_VI@e32,m1", 24, 8, 31), "operands of a division"),
    # an address that is lost, and a value
    ("aarch64", "LDRXui", "op2", "op1", alone, "does not come back"),
    ("aarch64", "ADDXrs", "op2", "op1", added("MOVZXi", 1, 5, 0), "the tag is lost"),
    # numbers that become none
    ("aarch64", "FCMGE16", "op2", "op1", added("FCMGE16", 16, 16, 17), "a number of f16 decays"),
    # indices of elements that others are stored over
    ("riscv64", "VSOXEI16_V@e8,m1", "op3", "[op2].data", last_two("VXOR_VV@e8,m1", 8, 8, 16), "come back"),
    # a store whose predicate is false all along
    ("aarch64", "ST1B", "op1", "[op3].data", added("PFALSE", 7), "P7 not as at the start"),
]  # fmt: skip


@pytest.mark.parametrize(("own", "form_id", "source", "target", "change", "expected"), BROKEN)
def test_kernels_broken_on_purpose_are_noticed(isa, own, form_id, source, target, change, expected):
    if own != isa:
        pytest.skip("of another instruction set")
    asked = question(isa, form_id, source, target)
    assert problem(isa, asked) == ""
    assert expected in problem(isa, with_items(asked, lambda items: change(isa, items)))


def with_state(asked, **changes):
    """The kernel that starts from another state."""
    state = msgspec.structs.replace(asked.job.state, **changes)
    return msgspec.structs.replace(asked, job=msgspec.structs.replace(asked.job, state=state))


@pytest.mark.parametrize("form_id", ["FMUL_ZPmI_H", "FMUL_ZPmI_S", "FMUL_ZPmI_D"])
def test_numbers_that_decay_slowly_are_noticed(isa, form_id):
    if isa != "aarch64":
        pytest.skip("of another instruction set")
    asked = question(isa, form_id, "op1", "op1")
    assert problem(isa, asked) == ""
    assert "decays" in problem(isa, with_state(asked, control=0))


def test_a_store_that_does_not_take_place_is_noticed(isa):
    if isa != "aarch64":
        pytest.skip("of another instruction set")
    asked = question(isa, "CASALX", "op3", "[op4].data")
    found = next(machine(isa).run([asked.job])).events[0]
    assert problem(isa, asked) == "" and found.mode == AS_IT_IS
    compared = with_state(asked, vector=bytes(64), fill=(bytes(64), bytes(64)))
    assert next(machine(isa).run([compared.job])).events[0].mode != AS_IT_IS


# --- x86-64, on the machine itself -----------------------------------------------------------------

LEGACY = frozenset(("BASE", "SSE", "SSE2", "SSE3", "SSE4", "X87", "FXSR"))  # all that any x86-64 has, nearly


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """What follows kernels of some forms on this machine."""
    if host_isa() != "x86-64":
        pytest.skip("needs an x86-64 machine")
    listed = load_table("x86-64")
    plans = Planner(listed, lambda form: LEGACY.issuperset(form.features))
    process = tracer("x86-64", (), tmp_path_factory.mktemp("tracer"))
    yield lambda *names: list(findings(process, plans, [listed[name] for name in names]))
    process.close()


def test_a_dot_product_takes_both_its_sources(here):
    found = here("DPPS (XMM, XMM, I8)", "DPPD (XMM, XMM, I8)")
    assert len(found) > 6
    assert [f for f in found if f.problem] == []


def test_a_dot_product_of_nothing_is_noticed(here):
    if " avx " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("needs AVX: older forms keep the upper half of a register, and a tag in it")
    with patch("cyclescope.kernel.x86_64.dialect.immediates", lambda mnemonic: None):
        found = here("VDPPS (XMM, XMM, XMM, I8)")
    streams = [f for f in found if not f.source and not f.variant.startswith("same register")]
    assert {f.problem for f in streams} == {NO_DIFFERENCE}
    assert not any(f.reason for f in found if f.problem == NO_DIFFERENCE)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("CMPPS (XMM, XMM, I8)", NO_NUMBER),
        ("HSUBPD (XMM, XMM)", NO_NUMBER),
        ("SHLD (R32, R32, 0)", ZERO),
        ("F2XM1", STACK),
    ],
)
def test_what_has_no_proof_has_a_reason(here, name, reason):
    found = [f for f in here(name) if f.problem]
    assert found
    assert {f.reason or known(f) for f in found} == {reason}


def test_numbers_that_grow_have_no_reason(here):
    with patch("cyclescope.kernel.x86_64.dialect.immediates", lambda mnemonic: (0xFF,)):
        found = [f for f in here("DPPS (XMM, XMM, I8)") if f.problem]
    assert {f.problem for f in found} == {"a number of f32 decays"}
    assert not any(f.reason for f in found)


def test_denormal_numbers():
    assert is_denormal("f32", bytes((1, 0, 0, 0)))
    assert not is_denormal("f32", bytes(4))
    assert not is_denormal("f32", bytes((0, 0, 0x80, 0x3F)))


@pytest.mark.parametrize(
    ("name", "source", "target", "reason"),
    [
        ("CMPXCHG (R64, R64)", "op2", "RAX", COMPARED),
        ("CMPXCHG (R64, R64)", "RAX", "RAX", COMPARED),
        ("CMPXCHG (R64, R64)", "op1", "RAX", ""),
        ("CMPXCHG (R64, R64)", "op2", "op1", ""),
        ("CMPXCHG (R64, R64)", "op2", "flags.ZF", COMPARISON),
        ("CMPXCHG (R64, R64)", "RAX", "flags.ZF", ""),
        ("CMPXCHG16B (M128)", "RCX", "RDX", COMPARED),
        ("CMPXCHG16B (M128)", "op1.data", "RDX", ""),
        ("CMPXCHG16B (M128)", "RCX", "op1.data", ""),
        ("CMPXCHG16B (M128)", "op1.index", "flags.ZF", ""),
        ("XGETBV", "ECX", "RDX", UPPER),
        ("XGETBV", "ECX", "RAX", ""),
        ("MUL (R16)", "DX", "AX", REST),
        ("MUL (R16)", "DX", "flags.CF", REST),
        ("MUL (R16)", "AX", "DX", ""),
        ("IMUL (R16, R16, I16)", "op1", "flags.CF", REST),
        ("IMUL (R16, R16, I16)", "op2", "flags.CF", ""),
        ("IMUL (R16, R16)", "op1", "flags.CF", ""),
        ("MUL (R16)", "op1", "AX", ""),
        ("PCMPESTRI (XMM, XMM, I8)", "op1", "flags.ZF", LENGTHS),
        ("PCMPESTRI (XMM, XMM, I8)", "EDX", "flags.ZF", ""),
        ("PCMPESTRI (XMM, XMM, I8)", "op1", "flags.CF", ""),
        ("PCMPISTRI (XMM, XMM, I8)", "op2", "flags.ZF", ""),
        ("VPCONFLICTQ (ZMM, M64_1to8)", "op2.data", "op1", ALIKE),
        ("VPCONFLICTQ (ZMM, M64_1to8)", "", "", ALIKE),
        ("VPCONFLICTQ (ZMM, M512)", "op2.data", "op1", ""),
        ("VPCONFLICTQ (YMM, K, M64_1to4)", "op2", "op1", ""),
        ("VPERMPS_Z (YMM, K, YMM, M32_1to8)", "op3", "op1", SHUFFLED),
        ("VPERMPS_Z (YMM, K, YMM, M32_1to8)", "op2", "op1", ""),
        ("VPERMPS_Z (YMM, K, YMM, M32_1to8)", "op4.data", "op1", ""),
        ("VPERMQ_EVEX (YMM, YMM, M64_1to4)", "op2", "op1", SHUFFLED),
        ("VPERMT2Q (YMM, YMM, M64_1to4)", "op2", "op1", ""),
        ("VBLENDMPS (XMM, XMM, XMM)", "op2", "op1", UNMASKED),
        ("VBLENDMPS (XMM, XMM, XMM)", "op3", "op1", ""),
        ("SHR (R32, CL)", "flags.CF", "op1", KEPT),
        ("SHR (R32, CL)", "flags.CF", "flags.CF", ""),
        ("SHR (R32, CL)", "op1", "flags.SF", POSITIVE),
        ("SHR (R32, CL)", "op1", "flags.CF", ""),
        ("RCR (R32, 1)", "flags.CF", "flags.CF", CARRY),
        ("RCR (R32, 1)", "flags.CF", "op1", ""),
        ("RCL (M32, 1)", "flags.CF", "flags.OF", CARRY),
        ("RCR (R32, 1)", "flags.CF", "flags.OF", ""),
        ("RCR (M8, CL)", "flags.CF", "flags.CF", ""),
        ("RCR (M8, CL)", "flags.OF", "op1.data", KEPT),
        ("SHRD (M32, R32, I8)", "op1.data", "flags.SF", OTHER_END),
        ("SHRD (M32, R32, I8)", "op2", "flags.SF", ""),
        ("SHRD (M32, R32, I8)", "op2", "flags.PF", OTHER_END),
        ("SHLD (R16, R16, CL)", "op2", "flags.SF", OTHER_END),
        ("SHLD (R16, R16, CL)", "op2", "flags.PF", ""),
        ("XADD (R32, R32)", "op2", "op2", EXCHANGED),
        ("XADD (R32, R32)", "op1", "op2", ""),
        ("XADD (R32, R32)", "op2", "op1", ""),
        ("BSF (R64, R64)", "op1", "flags.ZF", STAYS),
        ("BSF (R64, R64)", "op2", "flags.ZF", ""),
        ("BSF (R64, R64)", "op1", "op1", ""),
        ("LODSD", "[RSI].data", "RSI", POINTERS),
        ("LODSD", "[RSI].data", "EAX", ""),
        ("MOVSQ_REPE", "RCX", "RDI", REPEATED),
        ("MOVSQ_REPE", "[RSI].data", "RCX", POINTERS),
        ("MOVSQ_REPE", "[RSI].data", "[RDI].data", ""),
        ("CMPSB_REPE", "[RSI].data", "RCX", ""),
        ("VGATHERQPS (XMM, K, VSIB_XMM)", "op1", "op2", CLEARED),
        ("VGATHERQPS (XMM, K, VSIB_XMM)", "op2", "op1", ""),
        ("VGATHERQPS (XMM, VSIB_XMM, XMM)", "op2.index", "op3", CLEARED),
        ("VGATHERQPS (XMM, VSIB_XMM, XMM)", "op1", "op1", ""),
        ("VSCATTERQPS (VSIB_XMM, K, XMM)", "op3", "op2", CLEARED),
        ("VSCATTERQPS (VSIB_XMM, K, XMM)", "op3", "op1.data", ""),
        ("ADD_03 (R64, R64)", "op2", "flags.CF", ""),
    ],
)
def test_only_pairs_that_pass_no_value_have_that_reason(name, source, target, reason):
    form = load_table("x86-64")[name]
    assert not source or (source, target) in {(p.source.name, p.target.name) for p in pairs(form)}
    assert why_unreached(form, source, target) == reason


@pytest.mark.parametrize("name", ["CMPXCHG (R64, R64)", "CMPXCHG8B (M64)", "MUL (R16)"])
def test_no_kernel_fails_where_no_value_passes(here, name):
    found = here(name)
    assert {(f.source, f.target, f.variant): f.problem for f in found if f.problem and not f.reason} == {}
    unreached = {f.reason for f in found if f.problem}
    assert unreached <= {COMPARED, COMPARISON, REST}


def test_a_flag_that_any_source_reaches_is_not_always_the_same(here):
    """Of CMPXCHG a comparison decides the flags; nothing decides those of POPCNT but ZF."""
    with patch("benchmarks.values.follow.why_unreached", lambda form, source, target: ""):
        found = [f for f in here("CMPXCHG (R64, R64)") if f.target.startswith("flags.")]
    assert {f.reason for f in found} == {""}
    assert {f.target for f in here("POPCNT (R64, R64)") if f.reason == CONSTANT_FLAG} == {
        "flags.CF", "flags.PF", "flags.AF", "flags.SF", "flags.OF"
    }  # fmt: skip


def test_the_address_of_a_comparison_with_memory_reaches_the_flags(here):
    """Only where memory holds what it is compared with in some places, and not in others."""
    found = [f for f in here("CMPXCHG8B (M64)") if f.source in ("op1.address", "op1.index")]
    assert {f.target for f in found if not f.problem} == {"op1.data", "RAX", "RDX", "flags.ZF"}
    assert [f.problem for f in found if f.problem] == []


def test_a_form_of_flags_alone_is_followed(here):
    assert {f.problem for f in here("CMC")} == {""}


def test_roots_divide_and_their_estimates_do_not(here):
    """The operand of a root has to stay; estimates, whose operand is the last of them, come from a table."""
    divides = ("SQRTSS", "VSQRTSD", "FSQRT", "FDIVR", "UDIVR", "VFRDIV.VF", "SDIV", "REMU")
    assert all(_DIVIDES.match(name) for name in divides)
    assert not any(
        map(_DIVIDES.match, ("RSQRTPS", "VRSQRT14PD", "FRSQRTE", "FRSQRTS", "URSQRTE", "VFRSQRT7.V"))
    )
    assert {f.problem for f in here("RSQRTPS (XMM, XMM)", "SQRTSS (XMM, XMM)")} == {""}


def test_carries_are_met(here):
    """What a carry decides shows only beside its edge, of one width, and of the constant in the code."""
    forms = ("ADC (AX, I16)", "SBB (R64, M64)", "SBB (R64, I32)", "ADC_12 (R8h, R8l)")
    found = [f for f in here(*forms) if f.source == "flags.CF"]
    assert {f.target for f in found if f.target.startswith("flags.")} >= {"flags.CF", "flags.OF", "flags.ZF"}
    assert {f"{f.form} {f.target}": f.problem for f in found if f.problem} == {}


def test_what_is_changed_in_place_is_stored_as_a_whole(here):
    found = {
        (f.source, f.target): f for f in here("ADD (M64, I32)") if f.problem == f"the form {MORE_LOADED}"
    }
    assert {f.reason for f in found.values()} == {REWRITTEN}


def test_an_address_tells_where_something_was_stored(here):
    """Also where the bit that is set was set before, as in half of all places."""
    forms, parts = ("OR (M8, I8)", "BTR (M32, R32)"), ("op1.address", "op1.index")
    found = [f for f in here(*forms) if f.source in parts and f.target == "op1.data"]
    assert {(f.form, f.source): f.problem for f in found} == {(n, part): "" for n in forms for part in parts}
