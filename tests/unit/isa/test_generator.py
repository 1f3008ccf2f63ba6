"""The generator of the instruction table: what it makes is what ships, and its rules one by one."""

from __future__ import annotations

import json
import lzma
import shutil
from importlib import resources

import pytest
from iced_x86 import Code, OpCodeInfo

from tools.x86_64 import generate, names, templates
from tools.x86_64.enumerate_forms import Builder, user_mode_variants, variants
from tools.x86_64.operands import Op, facts


@pytest.fixture(scope="module")
def shipped():
    file = resources.files("cyclescope.isa.x86_64").joinpath("tables/forms.json.xz")
    return json.loads(lzma.decompress(file.read_bytes()))


def variant_of(code, **wanted):
    """The one variant of an iced opcode with these properties."""
    plain = {"memory": False, "mask": "", "rounding": "", "high": (), "prefix": "", "zero_immediate": False}
    found = [
        v
        for v in variants(code, OpCodeInfo(code))
        if all(getattr(v, key) == value for key, value in (plain | wanted).items())
    ]
    (variant,) = found
    return variant


def facts_of(code, **wanted):
    variant = variant_of(code, **wanted)
    return facts(variant, Builder(variant).build())


# --- the whole -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_shipped_table_is_what_the_generator_makes(shipped, monkeypatch):
    """All but LLVM's names, which need its tool; a second run of the generator like the first."""
    known = iter([form[7][0] for form in shipped["forms"] if form[8]])
    monkeypatch.setattr(names, "llvm_names", lambda codes: [next(known) for _ in codes])
    monkeypatch.setattr(names, "tool_version", lambda tool: "")
    made = json.loads(json.dumps(generate.build()))
    made["source"]["llvm_names"] = shipped["source"]["llvm_names"]
    for key in shipped:
        assert made[key] == shipped[key], key
    assert made.keys() == shipped.keys()


@pytest.mark.skipif(shutil.which("llvm-mc-22") is None, reason="needs llvm-mc-22 of LLVM 22")
def test_llvm_gives_the_shipped_names(shipped):
    every = list(user_mode_variants())
    some = range(0, len(every), 29)
    forms = [(shipped["forms"][i], templates.make(every[i])) for i in some]
    wanted = [form[7][0] for form, template in forms if template]
    assert names.llvm_names([t.example for _, t in forms if t]) == wanted


def test_the_summary_counts(shipped):
    text = generate.summary(shipped)
    assert text.startswith(f"{len(shipped['forms'])} forms")
    assert "'evex': 12375" in text


# --- variants ------------------------------------------------------------------------------------


def count(code):
    return len(list(variants(code, OpCodeInfo(code))))


def test_variants_of_an_opcode():
    assert count(Code.IMUL_R64_RM64) == 2  # register, memory
    assert count(Code.ADD_RM8_R8) == 4 + 2 * 2  # low and high bytes; memory with and without LOCK
    assert count(Code.LEA_R64_M) == 13  # kinds of addresses
    assert count(Code.MOVSB_M8_M8) == 2  # with and without REP
    assert count(Code.SHL_RM64_IMM8) == 4  # the immediate 0 is a variant
    # none, merge, zero: registers with and without rounding, memory, broadcast
    assert count(Code.EVEX_VADDPS_ZMM_K1Z_ZMM_ZMMM512B32_ER) == 3 * (2 + 1 + 1)


def test_only_user_mode_of_64_bit():
    codes = {v.code for v in user_mode_variants()}
    assert Code.HLT not in codes
    assert Code.AAA not in codes
    assert {Code.CPUID, Code.IMUL_R64_RM64} <= codes


# --- facts ---------------------------------------------------------------------------------------


def test_facts_of_an_addition():
    found = facts_of(Code.ADC_RM64_R64)
    assert [(op.name, op.cls, op.read, op.write) for op in found.operands] == [
        ("op1", "R64", True, True),
        ("op2", "R64", True, False),
    ]
    assert found.flags_read == ["CF"]
    assert found.flags_written == ["CF", "PF", "AF", "ZF", "SF", "OF"]
    assert found.attributes == {"legacy"}


def test_rules_that_iced_does_not_have():
    assert facts_of(Code.MOV_R8_RM8, high=()).operands[0].read  # the rest of the register stays
    assert "mxcsr" in facts_of(Code.ADDPS_XMM_XMMM128).attributes
    assert "mxcsr" not in facts_of(Code.ANDPS_XMM_XMMM128).attributes
    assert set(facts_of(Code.SHL_RM64_CL).flags_read) == {"CF", "PF", "AF", "ZF", "SF", "OF"}
    assert facts_of(Code.SHL_RM64_IMM8).flags_read == []
    clzero = [op for op in facts_of(Code.CLZEROQ).operands if op.kind == "memory"]
    assert [(op.name, op.width, op.write) for op in clzero] == [("[RAX]", 512, True)]


def test_blocks_name_no_registers_behind_their_first():
    pair = facts_of(Code.EVEX_VP2INTERSECTD_KP1_XMM_XMMM128B32)
    assert [op.name for op in pair.operands] == ["op1", "op2", "op3"]
    block = facts_of(Code.EVEX_V4FMADDPS_ZMM_K1Z_ZMMP3_M128, memory=True)
    assert [op.fixed for op in block.operands] == ["", "block4", ""]


# --- templates -----------------------------------------------------------------------------------


def test_a_template():
    template = templates.make(variant_of(Code.IMUL_R64_RM64))
    assert template.base.to_bytes(template.length, "little").hex() == "480fafc0"
    assert template.fields == {"0": [27, 28, 29, 2], "1": [24, 25, 26, 0]}  # ModRM and REX
    assert (template.displacement, template.immediates, template.modrm) == (None, [], -1)


def test_a_template_with_an_address():
    template = templates.make(
        variant_of(Code.EVEX_VADDPS_ZMM_K1Z_ZMM_ZMMM512B32_ER, memory=True, broadcast=False)
    )
    assert template.displacement == (6, 1, 64)
    assert template.modrm == 5
    assert template.fields["base"][3] == 13  # inverted, in the first payload byte


def test_no_template_where_the_example_does_not_come_back():
    assert templates.make(variant_of(Code.XBEGIN_REL16)) is None


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("CMOVE", "CMOVZ"),
        ("SETA", "SETNBE"),
        ("JGE", "JNL"),
        ("RET", "RET_NEAR"),
        ("ADD", "ADD"),
        ("JB", "JB"),
    ],
)
def test_spellings_of_xed(name, expected):
    assert names.mnemonic(name) == expected


def test_operands_in_names():
    ops = [
        Op("op1", "register", "R64"),
        Op("op2", "register", "R8l", fixed="CL"),
        Op("op3", "register", "ST"),
        Op("op4", "address", "LEA_B"),
        Op("op5", "register", "K", fixed="pair"),
        Op("RAX", "register", "R64", implicit=True, fixed="RAX"),
    ]
    assert names.operand_strings(ops) == ["R64", "CL", "STi", "K"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ADD (R64, R64)", "ADD_01 (R64, R64)"),
        ("ADD_LOCK (M64, R64)", "ADD_01_LOCK (M64, R64)"),
        ("VMOVAPS_EVEX (XMM, XMM)", "VMOVAPS_01_EVEX (XMM, XMM)"),
        ("MOVSD_XMM (XMM, XMM)", "MOVSD_XMM_01 (XMM, XMM)"),
        ("VMOVAPS_Z (XMM, K, XMM)", "VMOVAPS_01_Z (XMM, K, XMM)"),
        ("LFENCE", "LFENCE_01"),
    ],
)
def test_opcodes_go_before_what_a_name_ends_with(name, expected):
    assert names.insert_suffix(name, "01") == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (Code.ADD_RM64_R64, "01"),
        (Code.MOVAPS_XMM_XMMM128, "0F28"),
        (Code.VEX_VMOVAPS_XMM_XMMM128, "28"),
        (Code.PSHUFB_XMM_XMMM128, "0F3800"),
        (Code.LFENCE, "0FAEE8"),
    ],
)
def test_opcode_bytes(code, expected):
    assert names.opcode_suffix(OpCodeInfo(code)) == expected


def test_names_made_unique():
    """Twins get their opcode; a relic gets one next to the usual encoding, which stays as it is."""
    twins = [variant_of(Code.ADD_RM64_R64), variant_of(Code.ADD_R64_RM64)]
    assert names.unique(["ADD (R64, R64)"] * 2, twins) == ["ADD_01 (R64, R64)", "ADD_03 (R64, R64)"]
    relic = [variant_of(Code.LFENCE), variant_of(Code.LFENCE_E9)]
    assert names.unique(["LFENCE"] * 2, relic) == ["LFENCE", "LFENCE_0FAEE9"]
    assert names.unique(["A", "B"], twins) == ["A", "B"]


@pytest.mark.parametrize(
    ("form_id", "code", "expected"),
    [
        ("IMUL (R64, R64)", Code.IMUL_R64_RM64, "IMUL (R64, R64)"),
        ("SHL (R8l, I8)", Code.SHL_RM8_IMM8, "SHL_R0 (R8l, I8)"),
        ("IMUL (R64, R64, I32)", Code.IMUL_R64_RM64_IMM32, "IMUL_IMMZ (R64, R64, I32)"),
        ("FADD (ST0, STi)", Code.FADD_ST0_STI, "FADD (ST0, ST(i))"),
        ("CLFLUSH (M8)", Code.CLFLUSH_M8, "CLFLUSH (M512)"),
        ("UD1 (R64, R64)", Code.UD1_R64_RM64, ""),
        ("TWIN [ADD_RM64_R64]", Code.ADD_RM64_R64, ""),
    ],
)
def test_names_of_uops_info(form_id, code, expected):
    variant = next(iter(variants(code, OpCodeInfo(code))))
    assert names.uops_info_name(form_id, variant) == expected


# --- LLVM's answers ------------------------------------------------------------------------------


def answers(monkeypatch, *groups, unknown=()):
    """What llvm-mc would print: opcodes of every instruction, fillers, and the sentinel."""
    lines = [f"<MCInst #1 {name}" for group in groups for name in (*group, "NOOP", "NOOP", "TRAP")]
    monkeypatch.setattr(names, "_disassemble", lambda codes, tool: ("\n".join(lines), set(unknown)))
    return names.llvm_names([b""] * len(groups))


def test_one_opcode_per_instruction(monkeypatch):
    groups = [["IMUL64rr"], ["LOCK_PREFIX", "ADD64mr"], [], ["PUSH64r", "POP64r"], ["NOOP"]]
    assert answers(monkeypatch, *groups) == ["IMUL64rr", "ADD64mr", "NOOP", "", "NOOP"]


def test_an_instruction_that_is_the_sentinel_itself(monkeypatch):
    assert answers(monkeypatch, ["TRAP"], ["IMUL64rr"]) == ["TRAP", "IMUL64rr"]


def test_what_is_not_decoded_has_no_name(monkeypatch):
    assert answers(monkeypatch, ["IMUL64rr"], ["ADD8mr"], [], unknown=(1, 2)) == ["IMUL64rr", "", ""]


@pytest.mark.skipif(shutil.which("llvm-mc-22") is None, reason="needs llvm-mc-22 of LLVM 22")
def test_llvm_decodes_no_shift_arithmetic_left():
    sal, shl, nop = bytes.fromhex("c0f002"), bytes.fromhex("c0e002"), b"\x90"
    assert names.llvm_names([sal, shl, nop, sal]) == ["", "SHL8ri", "NOOP", ""]


def test_a_wrong_number_of_answers_is_an_error(monkeypatch):
    monkeypatch.setattr(names, "_disassemble", lambda codes, tool: ("<MCInst #1 IMUL64rr", set()))
    with pytest.raises(RuntimeError, match="0 of 1"):
        names.llvm_names([b""])


# --- small parts ---------------------------------------------------------------------------------


def test_interner():
    intern = generate.Interner()
    assert [intern(["a"]), intern(["b"]), intern(["a"])] == [0, 1, 0]
    assert intern.values == [["a"], ["b"]]


def test_records():
    op = Op("op1", "memory", "M64", 64, read=True, write=True, conditional=True, implicit=True, element="f32")
    assert generate.operand_record(op) == ["op1", "memory", "M64", 64, 15, "", "f32"]
    assert generate.mask_of(["CF", "ZF", "DF"]) == 0b1001001
