"""Lines of assembly text: what each is, and what the text is written in."""

from __future__ import annotations

import pytest

from cyclescope.analyze.read.syntax import ATT, INTEL, guess_isa, guess_syntax, split


def kinds(text, isa="x86-64"):
    return [(line.kind, line.labels, line.text) for line in split(text.splitlines(), isa)]


@pytest.mark.parametrize(
    ("line", "kind", "labels", "text"),
    [
        ("\tadd rax, rbx  # comment", "code", (), "add rax, rbx"),
        ("a: b: 1: add rax, rbx", "code", ("a", "b", "1"), "add rax, rbx"),
        (".L4:", "label", (".L4",), ""),
        ('"operator new":', "label", ("operator new",), ""),
        (" ", "empty", (), ""),
        ("f<int>(double*, char const*):", "label", ("f<int>(double*, char const*)",), ""),
        ("# only a comment", "empty", (), ""),
        ("\t.globl f", "directive", (), ".globl f"),
        ("\t.p2align 4,,10", "padding", (), ".p2align 4,,10"),
        ("\t.byte 100, 103, 0x90", "bytes", (), ".byte 100, 103, 0x90"),
        ("\t.long .L4-.L7", "data", (), ".long .L4-.L7"),
        ('\t.ascii "# no comment"', "data", (), '.ascii "# no comment"'),
        ("x = 5", "directive", (), "x = 5"),
        ("mov eax, DWORD PTR fs:0[rax]", "code", (), "mov eax, DWORD PTR fs:0[rax]"),
        ("add /* one */ rax, rbx // two", "code", (), "add   rax, rbx"),
        ("lock; addl $1, (%rax)", "code", (), "lock; addl $1, (%rax)"),
    ],
)
def test_kinds_of_lines(line, kind, labels, text):
    assert kinds(line) == [(kind, labels, text)]


def test_comments_over_several_lines():
    assert [k for k, _, _ in kinds("nop /* a\nadd rax, rbx\n*/ sub rax, rbx")] == ["code", "empty", "code"]


def test_what_a_macro_is_made_of_has_no_line_of_its_own():
    text = ".macro twice x\nadd \\x, \\x\n.rept 2\nnop\n.endr\n.endm\ntwice rax\n.rept 3\nnop\n.endr\nnop"
    assert [k for k, _, _ in kinds(text)] == [
        *["directive"] * 6,
        "code",
        "padding",
        *["directive"] * 2,
        "code",
    ]


def test_what_is_for_debuggers_names_no_code():
    assert kinds(".section .debug_info\n.quad .L1")[1][0] == "directive"


def test_data_outside_the_code_is_none_of_it():
    text = (
        '.text\n.byte 1\n.section .rodata\n.byte 1\n.text\nnop\n.data\n.long 1\n.section .x,"ax"\n.byte 0x90'
    )
    found = [k for k, _, _ in kinds(text) if k != "directive"]
    assert found == ["bytes", "table", "code", "table", "bytes"]


@pytest.mark.parametrize(
    ("text", "syntax"),
    [
        ("add %rax, %rbx", ATT),
        ("push $5\nret", ATT),
        ("addq (,%rcx,8), %rax\nnop", ATT),
        ("add rax, rbx", INTEL),
        ("MOV EAX, DWORD PTR [RBX]", INTEL),
        ("vaddpd zmm1{k1}, zmm2, [rax]{1to8}", INTEL),
        ("nop\nret", INTEL),
    ],
)
def test_syntax_is_recognised(text, syntax):
    assert guess_syntax(split(text.splitlines(), "x86-64"), isa="x86-64") == syntax


@pytest.mark.parametrize(
    ("text", "isa"),
    [
        ("add %rax, %rbx", "x86-64"),
        ("vfmadd213pd ymm0, ymm1, YMMWORD PTR [rdi+rax]", "x86-64"),
        ("ldr d31, [x15, x18, lsl 3]\nfadd d1, d31, d0\nstr d5, [x14], 8", "aarch64"),
        ("fmla v0.4s, v1.4s, v2.4s\nld1w {z0.s}, p0/z, [x0]\nb.ne .L2", "aarch64"),
        ("ldr w0, [sp, 12]\nadd w0, w0, 1\nret", "aarch64"),
        ("fld fa5,0(a0)\nfadd.d fa4,fa5,fa3\naddi a0,a0,8\nbne a0,a1,.L3", "riscv64"),
        ("vsetvli t0, a0, e64, m1\nvle64.v v8, (a1)", "riscv64"),
        ("addi s0, s0, 8\nbne s0, s1, .L2", "riscv64"),
        ("ld s0, 32(sp)\nld s1, 24(sp)", "riscv64"),
        ("add x2, x2, #104\nadd x24, x24, #6", "aarch64"),
        ("fadd s0, s0, s1", "aarch64"),
        ("push rsi\nmov sil, al", "x86-64"),
        ("fld st(0)\nfstp st(1)", "x86-64"),  # RISC-V has FLD, too
        ("nop", "x86-64"),
    ],
)
def test_instruction_sets_are_recognised(text, isa):
    assert guess_isa(text.splitlines()) == isa


def test_a_long_line_is_not_read_to_its_end():
    assert guess_isa(["add $1, %rax  # " + " " * 200 + "ldr x0, [x1] " * 1000]) == "x86-64"
