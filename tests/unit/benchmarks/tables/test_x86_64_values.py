"""Values followed through kernels of x86-64, on the machine itself."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

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
    is_denormal,
)
from benchmarks.values.reasons import known
from benchmarks.values.tracer import tracer
from benchmarks.values.unreached import (
    ALIKE,
    CARRY,
    CLEARED,
    COMPARED,
    COMPARISON,
    EXCHANGED,
    GOT_POINTER,
    KEPT,
    LENGTHS,
    LOADED,
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
from cyclescope.host.uname import host_isa
from cyclescope.isa.dataflow import pairs
from cyclescope.isa.table import load_table
from cyclescope.kernel.state import FIRST_WINDOW
from cyclescope.measure.plan import Planner

pytestmark = pytest.mark.slow  # of a program of benchmarks, which is for the night as well

LEGACY = frozenset(("BASE", "SSE", "SSE2", "SSE3", "SSE4", "X87", "FXSR"))  # all that any x86-64 has, nearly


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """What follows kernels of some forms on this machine."""
    if host_isa() != "x86-64":
        pytest.skip("needs an x86-64 machine")
    listed = load_table("x86-64")
    process = tracer("x86-64", (), tmp_path_factory.mktemp("tracer"))

    def found(*names):
        plans = Planner(listed, lambda form: LEGACY.issuperset(form.features))
        return list(findings(process, plans, [listed[name] for name in names]))

    yield found
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


def test_pointers_change_where_nothing_is_loaded(here):
    """The last register of a stream of LEA is one of the kernel's pointers, and gets its lower half."""
    assert [f for f in here("LEA_B (R16)", "LEA_B_D32 (R16)") if f.problem] == []


@pytest.mark.parametrize("name", ["STOSQ", "STOSW", "MOVSQ", "MOVSB", "CMPSQ", "CMPSB", "SCASB"])
def test_strings_are_where_their_pointers_lead(here, name):
    """What is compared, or copied, is in two places; a pointer is followed like an address."""
    found = here(name)
    assert len(found) > 5
    assert [f for f in found if f.problem and f.reason != POINTERS] == []


@pytest.mark.slow
def test_strings_in_one_place_are_noticed(here):
    with patch("cyclescope.kernel.x86_64.operands.SECOND_WINDOW", FIRST_WINDOW):
        found = {(f.form, f.source, f.target): f for f in here("CMPSQ", "MOVSQ")}
    for key in (("CMPSQ", "[RSI].data", "flags.ZF"), ("MOVSQ", "RDI", "[RDI].data")):
        assert found[key].problem and not found[key].reason


def test_of_repeated_loads_the_last_one_stays(here):
    found = here("LODSQ_REPE", "LODSB_REPE")
    assert {f.reason for f in found if f.problem} <= {REPEATED, LOADED, POINTERS}
    assert any(f.source == "[RSI].data" and not f.problem for f in found)


def test_lanes_are_chosen_of_both_sources(here):
    if " avx2 " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("needs AVX2")
    for name in ("VPERM2F128 (YMM, YMM, YMM, I8)", "VPERM2I128 (YMM, YMM, YMM, I8)"):
        assert [f for f in here(name) if f.problem] == []
        with patch("cyclescope.kernel.x86_64.dialect.immediates", lambda mnemonic: (1,)):
            assert {f.source for f in here(name) if f.problem and not f.reason} >= {"op3"}


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
        ("LODSQ_REPE", "RAX", "RAX", LOADED),
        ("LODSQ_REPE", "[RSI].data", "RAX", ""),
        ("SCASQ_REPE", "RAX", "RDI", GOT_POINTER),
        ("SCASQ_REPE", "RAX", "RCX", ""),
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


@pytest.mark.slow
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
