"""Finding forms of AArch64 and RISC-V."""

from __future__ import annotations

import pytest

from cyclescope.errors import UsageError
from cyclescope.isa.find.pattern import select
from cyclescope.isa.table import load_table


def ids(isa, *patterns):
    return [form.id for form in select(load_table(isa), patterns, expand=False)]


@pytest.mark.parametrize(
    ("isa", "pattern", "expected"),
    [
        ("aarch64", "FMADDDrrr", ["FMADDDrrr"]),
        ("aarch64", "fmadddrrr", ["FMADDDrrr"]),
        ("aarch64", "fmadd", ["FMADDDrrr", "FMADDHrrr", "FMADDSrrr"]),
        ("aarch64", "LDPX*", ["LDPXi", "LDPXpost", "LDPXpre"]),
        ("riscv64", "ADD", ["ADD"]),
        ("riscv64", "vadd.v?", ["VADD_VI", "VADD_VV", "VADD_VX"]),
        ("riscv64", "vadd", ["VADD_VI", "VADD_VV", "VADD_VX"]),
        ("riscv64", "lr.w", ["LR_W"]),
    ],
)
def test_by_name(isa, pattern, expected):
    assert ids(isa, pattern) == expected


@pytest.mark.parametrize(
    ("isa", "pattern", "expected"),
    [
        ("aarch64", "add x1, x2, x3, lsl #2", ["ADDXrs"]),
        ("aarch64", "ADD  X1,X2,X3", ["ADDXrs"]),
        ("aarch64", "add x1, x2, w3, uxtw #2", ["ADDXrx"]),
        ("aarch64", "and x1, x2, #0xff", ["ANDXri"]),
        ("aarch64", "ld1 {v0.16b, v1.16b}, [x2]", ["LD1Twov16b"]),
        ("aarch64", "b.ne #16", ["Bcc"]),
        ("aarch64", "add z1.s, p2/m, z1.s, z3.s", ["ADD_ZPmZ_S"]),
        ("riscv64", "addi a0, a1, -4", ["ADDI"]),
        ("riscv64", "lw a0, 8(sp)", ["LW"]),
        ("riscv64", "vadd.vv v1, v2, v3, v0.t", ["VADD_VV"]),
        ("riscv64", "cm.push {ra, s0}, -16", ["CM_PUSH"]),
    ],
)
def test_by_an_example(isa, pattern, expected):
    assert ids(isa, pattern) == expected


@pytest.mark.parametrize(
    ("isa", "example"),
    [
        ("aarch64", "add z1.s, p2/m, z2.s, z3.s"),  # the result is the first source
        ("aarch64", "and x1, x2, #5"),  # no mask
        ("aarch64", "ldr x1, [x2, #300]"),  # no multiple of 8, too far for LDUR
        ("riscv64", "addi a0, a1, 5000"),
        ("riscv64", "add a0, a1"),
        ("riscv64", "vl2re8.v v1, (a0)"),  # a group of two begins at an even one
    ],
)
def test_what_no_form_encodes(isa, example):
    with pytest.raises(UsageError, match="no instruction form matches"):
        ids(isa, example)


def test_by_feature():
    sve = select(load_table("aarch64"), ["isa:SVE"])
    assert {form.features for form in sve} >= {("SVE",), ("SVE|SME",)}
    assert not any(form.features == ("SVE2",) for form in sve)
    assert "SH1ADD_UW" in ids("riscv64", "isa:zba")


@pytest.mark.parametrize(
    ("isa", "pattern", "hint"),
    [
        ("aarch64", "FMADDDrr", "FMADDDrrr"),
        ("aarch64", "isa:SVE22", "`cyclescope forms` lists them|did you mean"),
        ("riscv64", "zba", "isa:ZBA finds the forms"),
        ("riscv64", "mve", "did you mean mv"),
        ("aarch64", "and x1, x2, #5", "no form of this name has these operands; there are 'and x1, x2, x3'"),
        ("riscv64", "rol a0, a1, 3", "there are 'rol a0, a1, a2'"),
    ],
)
def test_hints(isa, pattern, hint):
    with pytest.raises(UsageError) as error:
        ids(isa, pattern)
    assert any(part in str(error.value.remedy) for part in hint.split("|"))


@pytest.mark.parametrize(("isa", "pattern"), [("aarch64", "SAL"), ("aarch64", "SETZ"), ("aarch64", "SETPE")])
def test_names_that_x86_has_for_others_find_nothing(isa, pattern):
    """There SAL is SHL, and SETZ and SETE are one; here SHL shifts vectors, and SETE sets memory."""
    with pytest.raises(UsageError):
        ids(isa, pattern)


def test_of_two_spellings_the_tables_is_suggested():
    with pytest.raises(UsageError) as caught:
        ids("riscv64", "rorr")
    assert "did you mean ROR, RORW, RORI?" in caught.value.remedy.command
