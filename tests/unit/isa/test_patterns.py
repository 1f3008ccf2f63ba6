"""Patterns find the forms a user means, and say what to do where they find none."""

from __future__ import annotations

from contextlib import suppress

import pytest

from cyclescope.errors import UsageError
from cyclescope.isa.encode import default_immediates
from cyclescope.isa.find.pattern import LONGEST, by_example, names, select
from cyclescope.isa.text import assembly
from tests.unit.isa.decoding import choices


def ids(table, *patterns):
    return [form.id for form in select(table, patterns)]


def test_no_pattern_is_everything(table):
    assert select(table, []) == list(table)


@pytest.mark.parametrize("word", ["imul", "IMUL", " imul "])
def test_a_mnemonic_in_any_case(table, word):
    assert ids(table, word) == [form.id for form in table if form.mnemonic == "IMUL"]


def test_a_glob_over_mnemonics(table):
    found = {form.mnemonic for form in select(table, ["VADD*"])}
    assert {"VADDPS", "VADDSD", "VADDSUBPD", "VADDPH"} <= found
    assert all(name.startswith("VADD") for name in found)


def test_a_question_mark_is_one_character(table):
    assert {form.mnemonic for form in select(table, ["cmov?"])} >= {"CMOVO", "CMOVE"}
    assert "CMOVNO" not in {form.mnemonic for form in select(table, ["cmov?"])}


def test_a_glob_over_ids(table):
    assert ids(table, "VPADDD (YMM, YMM*") == ["VPADDD (YMM, YMM, YMM)", "VPADDD (YMM, YMM, M256)"]


def test_features(table):
    found = select(table, ["isa:AVX2"])
    assert found == [form for form in table if "AVX2" in form.features]
    assert len(found) > 250


def test_a_glob_over_features(table):
    found = select(table, ["isa:avx512*"])
    assert found == [form for form in table if any(f.startswith("AVX512") for f in form.features)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("IMUL (R64, R64)", ["IMUL (R64, R64)"]),
        ("ADD_03 (R64, R64)", ["ADD_03 (R64, R64)"]),
        ("ADD (R64, R64)", ["ADD_01 (R64, R64)", "ADD_03 (R64, R64)"]),  # without the opcode: both
        ("VFMADD231PD (YMM, YMM, YMM)", ["VFMADD231PD (YMM, YMM, YMM)"]),
        ("IMUL64rr", ["IMUL (R64, R64)"]),
        ("vaddpszrrkz", ["VADDPS_Z (ZMM, K, ZMM, ZMM)"]),
        ("SHLD_IMMB (R64, R64, I8)", ["SHLD (R64, R64, I8)"]),
        ("FADD (ST(i), ST0)", ["FADD (STi, ST0)"]),
        ("CLFLUSH (M512)", ["CLFLUSH (M8)"]),
        ("CDQ", ["CDQ"]),
        ("ADD_01 (R64,R64)", ["ADD_01 (R64, R64)"]),
        ("imul(r64,r64)", ["IMUL (R64, R64)"]),
        ("FADD(ST(i),ST0)", ["FADD (STi, ST0)"]),
    ],
)
def test_exact_names(table, name, expected):
    """Ids, LLVM's and uops.info's names."""
    assert ids(table, name) == expected


def test_synonyms_of_conditions(table):
    assert ids(table, "CMOVE") == ids(table, "CMOVZ")
    assert ids(table, "cmovc rax, rbx") == ids(table, "cmovb rax, rbx") == ["CMOVB (R64, R64)"]
    assert ids(table, "jnc") == ids(table, "jae") != []
    assert ids(table, "setnc al") == ["SETNB (R8l)"]


def test_several_patterns_in_table_order_without_doubles(table):
    both = ids(table, "MULX", "ADCX", "MULX (R64*")
    order = {form.id: i for i, form in enumerate(table)}
    assert both == sorted(set(ids(table, "ADCX") + ids(table, "MULX")), key=order.__getitem__)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("imul rax, rbx", ["IMUL (R64, R64)"]),
        ("add rax, rbx", ["ADD_01 (R64, R64)", "ADD_03 (R64, R64)"]),
        ("add ecx, 5", ["ADD (R32, I32)", "ADD (R32, I8)"]),
        ("add ecx, 500", ["ADD (R32, I32)"]),
        ("add rax, -129", ["ADD (RAX, I32)", "ADD (R64, I32)"]),
        ("mov ah, bl", ["MOV_88 (R8h, R8l)", "MOV_8A (R8h, R8l)"]),
        ("lock add dword ptr [rax], ecx", ["ADD_LOCK (M32, R32)"]),
        ("rep movsb", ["MOVSB_REPE"]),
        ("repne scasb", ["SCASB_REPNE"]),
        ("shl rdx, cl", ["SHL (R64, CL)"]),
        ("vaddps zmm1{k2}{z}, zmm2, zmm3", ["VADDPS_Z (ZMM, K, ZMM, ZMM)"]),
        ("vaddps zmm1{k2}, zmm2, dword ptr [rax]{1to16}", ["VADDPS (ZMM, K, ZMM, M32_1to16)"]),
        ("vaddps zmm1, zmm2, zmm3, {rn-sae}", ["VADDPS_ER (ZMM, ZMM, ZMM)"]),
        ("vaddps zmm1, zmm2, zmm3{rn-sae}", ["VADDPS_ER (ZMM, ZMM, ZMM)"]),
        ("vpgatherdd ymm1, [rax+ymm2*4], ymm3", ["VPGATHERDD (YMM, VSIB_YMM, YMM)"]),
        ("fadd st, st(3)", ["FADD (ST0, STi)"]),
        ("fadd st(3), st(0)", ["FADD (STi, ST0)"]),
        ("fucom st(1)", ["FUCOM (ST0, STi)"]),
        ("xchg rax, [rbx]", ["XCHG (M64, R64)"]),
        ("xchg [rbx], rax", ["XCHG (M64, R64)"]),
        ("xchg rax, rbx", ["XCHG (R64, R64)", "XCHG (R64, RAX)"]),
        ("test rax, [rbx]", ["TEST (M64, R64)"]),
        ("call rax", ["CALL_NEAR (R64)"]),
        ("jmp r9", ["JMP (R64)"]),
        ("loop away", ["LOOP_O16_E2 (Rel8)", "LOOP_E2 (Rel8)", "LOOP_O16 (Rel8)", "LOOP (Rel8)"]),
        ("jne .+16", ["JNZ_O16 (Rel8)", "JNZ (Rel8)", "JNZ_O16 (Rel16)", "JNZ (Rel32)"]),
    ],
)
def test_assembly_examples(table, text, expected):
    assert ids(table, text) == expected


@pytest.mark.parametrize(
    ("address", "classes"),
    [
        ("[rbx]", ["B"]),
        ("[rbp]", ["B_D8", "B_D32"]),
        ("[rbx+8]", ["B_D8", "B_D32"]),
        ("[rbx - 0x80]", ["B_D8", "B_D32"]),
        ("[rbx+128]", ["B_D32"]),
        ("[rbx+rcx]", ["B_I"]),
        ("[rbx + rcx*1 + 8]", ["B_I_D8", "B_I_D32"]),
        ("[rbx+rcx*4]", ["B_IS"]),
        ("[8+4*rcx+rbx]", ["B_IS_D8", "B_IS_D32"]),
        ("[r13+r12*2]", ["B_IS_D8", "B_IS_D32"]),
        ("[rcx*1]", ["I_D32"]),
        ("[rcx*8-1]", ["IS_D32"]),
        ("[0x40]", ["D32"]),
        ("[rip+5]", ["R_D32"]),
        ("[rip+symbol]", ["R_D32"]),
        ("[rbx+symbol]", ["B_D32"]),
    ],
)
def test_an_address_chooses_the_form_of_lea(table, address, classes):
    assert ids(table, f"lea rax, {address}") == [f"LEA_{cls} (R64)" for cls in classes]


def test_an_address_without_a_size_is_every_width(table):
    widths = {form.operands[0].width for form in select(table, ["neg [rax]"])}
    assert widths == {8, 16, 32, 64}


def test_the_text_of_a_form_finds_it(table):
    """One form in five; the offset keeps the interesting low numbers in."""
    for form in [f for f in table if f.encoding is not None][2::5]:
        (registers,) = list(choices(form, 3))[2:]
        displacement = 64 if form.encoding.displacement else 0
        text = assembly(form, registers, displacement, default_immediates(form))
        assert form in by_example(table, text), text


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("imuli", "IMUL"),
        ("VADDPQ*", "VPADDQ"),
        ("ADD (R64 R64)", "ADD"),
        ("add rax, xmm0", "ADD"),
        ("vaddps zmm1, zmm2, [rax]{1to8}", "VADDPS"),  # sixteen are needed
        ("isa:AVX3", "AVX2"),
        ("zzzzqqq", "cyclescope forms"),
        ("isa:", "cyclescope forms"),
        ("", "cyclescope forms"),
        ("lock", "did you mean"),
        ("add rax, [rbx", "ADD"),
        ("test 5, rbx", "TEST"),
        ("call eax", "CALL"),
        ("lea rax, [ebx]", "LEA"),
        ("lea rax, []", "LEA"),
        ("fma4", "isa:FMA4"),
    ],
)
def test_an_unknown_pattern_has_a_suggestion(table, pattern, hint):
    with pytest.raises(UsageError) as caught:
        select(table, ["imul", pattern])
    assert repr(pattern) in caught.value.message
    assert hint in caught.value.remedy.command
    assert caught.value.exit_code == 2


def test_brackets_are_no_character_class(table):
    """The ids of twins hold brackets."""
    twin = next(form.id for form in table if "[" in form.id)
    assert ids(table, twin.lower()) == [twin]


@pytest.mark.parametrize("pattern", ["a" * 100_000, "add " + "a" * 100_000, "(" * 100_000, "*" * 1001])
def test_a_pattern_longer_than_any_name_is_refused_at_once_and_quoted_in_part(table, pattern):
    with pytest.raises(UsageError, match="longer than any name") as error:
        select(table, [pattern])
    assert len(str(error.value)) < 250


def test_the_longest_names_and_examples_are_far_shorter_than_a_pattern_may_be(table):
    longest = max(max(map(len, names(form))) for form in table)
    assert longest * 4 < LONGEST
    assert select(table, ["*" * LONGEST]) == list(table)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("{evex} vaddps xmm0, xmm1, xmm2", True),
        ("vaddps (%rax){1to4}, %xmm1, %xmm0{%k1}", True),
        ("ADD (R64, R64)", False),
        ("{evex}", False),
    ],
)
def test_what_looks_written_is_given_to_an_assembler(table, line, wanted):
    asked = []
    with suppress(UsageError):
        select(table, [line.replace("vaddps", "vadd_ps")], read=lambda isa, text: asked.append(text) or [])
    assert bool(asked) == wanted
