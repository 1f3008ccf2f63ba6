"""Assembly text, and machine code from it."""

from __future__ import annotations

import shutil

import pytest

from cyclescope.errors import BackendUnavailable, UnsupportedInstruction
from cyclescope.isa.assembly import assemble
from cyclescope.isa.text import assembly

needs_as = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)


@pytest.mark.parametrize(
    ("form_id", "arguments", "text"),
    [
        ("IMUL (R64, R64)", {"registers": (0, 3)}, "imul rax, rbx"),
        ("ADD_00 (R8h, R8l)", {"registers": (4, 3)}, "add ah, bl"),
        ("ADD (R32, I8)", {"registers": (9,), "immediates": (-1,)}, "add r9d, -1"),
        ("ADD (R32, I8)", {"registers": (9,)}, "add r9d, 2"),
        ("SHL (R64, 1)", {"registers": (0,)}, "shl rax, 1"),
        ("SHL (R64, CL)", {"registers": (0,)}, "shl rax, cl"),
        ("MOV (R64, M64)", {"registers": (3, 14)}, "mov rbx, qword ptr [r14]"),
        ("MOV (R64, M64)", {"registers": (3, 14), "displacement": -8}, "mov rbx, qword ptr [r14-8]"),
        (
            "MOV (R64, M64)",
            {"registers": (3, 14), "displacement": 8, "index": 5},
            "mov rbx, qword ptr [r14+rbp+8]",
        ),
        ("ADD_LOCK (M32, R32)", {"registers": (0, 1)}, "lock add dword ptr [rax], ecx"),
        ("MOVSB_REPE", {"registers": ()}, "rep movsb"),
        (
            "LEA_B_IS_D8 (R64)",
            {"registers": (0, 1, 2), "displacement": 16},
            "lea rax, [rcx+rdx*2+16]",
        ),
        ("LEA_R_D32 (R64)", {"registers": (0,), "displacement": 16}, "lea rax, [rip+16]"),
        ("VADDPS_Z (ZMM, K, ZMM, ZMM)", {"registers": (1, 2, 3, 4)}, "vaddps zmm1{k2}{z}, zmm3, zmm4"),
        (
            "VADDPS (ZMM, K, ZMM, M32_1to16)",
            {"registers": (1, 2, 3, 0)},
            "vaddps zmm1{k2}, zmm3, dword ptr [rax]{1to16}",
        ),
        ("VADDPS_ER (ZMM, ZMM, ZMM)", {"registers": (1, 2, 3)}, "vaddps zmm1, zmm2, zmm3, {rn-sae}"),
        ("VRNDSCALEPS_SAE (ZMM, ZMM, I8)", {"registers": (1, 2)}, "vrndscaleps zmm1, zmm2, {sae}, 2"),
        (
            "VPGATHERDD (YMM, VSIB_YMM, YMM)",
            {"registers": (1, 0, 2, 3)},
            "vpgatherdd ymm1, dword ptr [rax+ymm2], ymm3",
        ),
        ("FADD (ST0, STi)", {"registers": (3,)}, "fadd st, st(3)"),
        ("FCOM_D8D0 (ST0, STi)", {"registers": (3,)}, "fcom st(3)"),
        ("CLFLUSH (M8)", {"registers": (0,)}, "clflush byte ptr [rax]"),
        ("LDTILECFG (M512)", {"registers": (0,)}, "ldtilecfg [rax]"),
        ("JZ (Rel8)", {"registers": (), "immediates": (-2,)}, "je .+0"),  # to itself
        ("JZ (Rel32)", {"registers": ()}, "je .+6"),  # to the next instruction
    ],
)
def test_text(table, form_id, arguments, text):
    assert assembly(table[form_id], **arguments) == text


def test_lines_of_a_text():
    text = "add rax, rbx; imul rcx, rdx # ; nop\n\n  top:\n dec rsi ;"
    assert assemble.lines_of(text) == ["add rax, rbx", "imul rcx, rdx", "top:", "dec rsi"]


@needs_as
def test_machine_code_of_a_text():
    done = assemble.assemble("top: ; add rax, rbx # sum\n.p2align 1\nimul rax, rbx; jmp top")
    assert (done.code[:3].hex(), done.code[-6:].hex()) == ("4801d8", "480fafc3ebf6")
    assert done.instructions == 3  # a label and a directive are none


@needs_as
def test_an_error_names_the_line():
    with pytest.raises(UnsupportedInstruction, match=r"'frobnicate rax' cannot be assembled: no such"):
        assemble.assemble("nop\nfrobnicate rax\nnop")


def test_no_assembler_is_one_clear_error(monkeypatch):
    monkeypatch.setattr(assemble.shutil, "which", lambda name: None)
    with pytest.raises(BackendUnavailable) as caught:
        assemble.assemble("nop")
    assert "binutils" in caught.value.remedy
    assert caught.value.exit_code == 4
