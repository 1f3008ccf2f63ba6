"""What published inputs of other tools have in them, and compilers do not write."""

from __future__ import annotations

import pytest

from cyclescope.analyze.choose.source import Choice, read_block, read_program
from cyclescope.analyze.read import assembler, assemblers
from cyclescope.analyze.read.assemblers import tools
from cyclescope.errors import CyclescopeError, SourceError, UnsupportedInstruction
from cyclescope.session.predict import predict

WHOLE = Choice(whole=True)
EVERY = [tool for isa in ("x86-64", "aarch64", "riscv64") for tool in tools(isa)]

needs_x86 = pytest.mark.skipif(not tools("x86-64"), reason="needs an assembler")
needs_aarch64 = pytest.mark.skipif(not tools("aarch64"), reason="needs an assembler for aarch64")
needs_riscv64 = pytest.mark.skipif(not tools("riscv64"), reason="needs an assembler for riscv64")


def texts(code, isa=""):
    return [one.text for one in read_block(code, isa, WHOLE)]


@pytest.fixture(params=tools("x86-64"), ids=lambda tool: tool.name)
def tool(request, monkeypatch):
    """One assembler for x86 at a time."""
    monkeypatch.setattr(assembler, "tools", lambda _: (request.param,))


@needs_x86
class TestNumbers:
    """Numbers with a letter behind them, which llvm-mca reads."""

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("shl $1fh, %eax", 31), ("shl eax, 1fh", 31), ("mov eax, [rbx+0a0h]", None),
            ("shl $101b, %eax", 5), ("shl eax, 1000b", 8), ("add eax, 0C8H", 200),
        ],
    )  # fmt: skip
    def test_hexadecimal_and_binary(self, tool, text, value):
        _, one = read_block(f"nop\n{text}\n", "x86-64", WHOLE)
        assert value in (None, *one.immediates)
        if value is None:
            assert [address.displacement for address in one.memory if address] == [160]

    @pytest.mark.parametrize("text", ["jmp 101b", "call 101b", "bt eax, 11b, 2", "shl eax, 12b"])
    def test_what_is_no_number_stays_refused(self, tool, text):
        with pytest.raises(UnsupportedInstruction, match="line 2: "):
            read_block(f"nop\n{text}\n", "x86-64", WHOLE)


@needs_x86
class TestSizes:
    """NASM's sizes, of which GNU as takes `dword [rbx]` for four bytes further."""

    @pytest.mark.parametrize(
        ("written", "meant"),
        [
            ("mov dword [rbx], eax", "mov dword ptr [rbx], eax"),
            ("MOV EAX, DWORD[rbx+8]", "mov eax, dword ptr [rbx+8]"),
            ("mov rax, qword [rbx]", "mov rax, qword ptr [rbx]"),
            ("add byte [rbx+rcx*4], 1", "add byte ptr [rbx+rcx*4], 1"),
            ("vmovups ymm0, yword [rbx]", "vmovups ymm0, ymmword ptr [rbx]"),
            ("movups xmm0, oword[rbx]", "movups xmm0, xmmword ptr [rbx]"),
            ("fld tword [rbx]", "fld tbyte ptr [rbx]"),
            ("mov rax, qword [rel f]", "mov rax, qword ptr f[rip]"),
        ],
    )
    def test_are_no_distances(self, tool, written, meant):
        _, one = read_block(f"nop\n{written}\nf:\n", "x86-64", WHOLE)
        _, other = read_block(f"nop\n{meant}\nf:\n", "x86-64", WHOLE)
        assert (one.form, one.memory, one.registers) == (other.form, other.memory, other.registers)

    def test_a_store_is_loaded_again(self, tool):
        text = ".L3:\n mov dword [rbx], eax\n mov eax, dword ptr [rbx]\n add rcx, 1\n jne .L3\n"
        assert predict(text, "skylake").bottleneck == "loop_carried"

    def test_in_a_string_they_are_text(self, tool):
        assert texts('mov eax, 1\nadd eax, dword [rbx]\n.section .rodata\n.string "byte [x]"\n')


@needs_x86
@pytest.mark.parametrize("mode", [".code32", ".code16", "\t.code16gcc", ".686P", " .model flat"])
def test_code_of_another_mode_is_refused(mode):
    with pytest.raises(SourceError, match=r"line 2: '\..*', but only 64-bit code is analysed"):
        read_program(f"nop\n{mode}\ninc eax\n", "x86-64")


@needs_x86
def test_code_of_64_bits_may_say_so():
    assert texts(".code64\ninc %eax\n# .code32\n") == ["inc %eax"]


@needs_riscv64
def test_code_for_32_bits_of_risc_v_is_said():
    text = '\t.attribute arch, "rv{}i2p1_m2p0"\n\tlw a0, 0(a1)\n'
    block = read_block(text.format(32), "riscv64", WHOLE)
    assert block.notes == ("line 1: code for RV32, read as the same instructions of RV64",)
    assert read_block(text.format(64), "riscv64", WHOLE).notes == ()


@needs_x86
@pytest.mark.parametrize("label", [".LC0", ".LCPI0_0", "LCPI3_1", "lCPI0_0"])
def test_constants_of_a_filtered_listing_are_no_instructions(label):
    constants = f"{label}:\n .long 0\n .long 1083129856\n"
    assert texts(f"f:\n mov eax, 1\n ret\n{constants}g:\n .byte 0x90\n") == ["mov eax, 1", "ret", "nop"]
    assert texts(f"{constants} nop\n .byte 0x90\n") == ["nop", "nop"]


@needs_aarch64
def test_what_another_assembler_knows_is_read(monkeypatch):
    """Extensions of every assembler are allowed: bfloat16 and SVE2's ones are no part of its default."""
    llvm = [tool for tool in tools("aarch64") if tool.name.startswith("llvm-mc")]
    if not llvm:
        pytest.skip("needs llvm-mc")
    monkeypatch.setattr(assembler, "tools", lambda _: tuple(llvm))
    text = ".arch armv8-a\nbfcvt z0.h, p0/m, z1.s\nsm4e z0.s, z0.s, z1.s\nldg x0, [x1]\nmrs x3, ZCR_EL3\n"
    assert len(read_block(text, "aarch64", WHOLE)) == 4


@pytest.mark.parametrize("tool", EVERY, ids=lambda tool: tool.name)
def test_options_are_not_empty(tool):
    assert all(option and not option.endswith(("=", ",")) for option in (*tool.command, *tool.more))


def test_a_text_that_looks_like_nothing_is_not_said_to_be_another_machines():
    for isa in ("aarch64", "riscv64", "x86-64"):
        if assemblers.tools(isa):
            with pytest.raises(CyclescopeError) as raised:
                read_program("there is no code in here\n", isa)
            assert "looks like" not in str(raised.value)


@needs_riscv64
@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("vsm4k.vi v4, v8, 8", "the assemblers here are too old for it"),
        ("vsm5k.vi v4, v8, 8", "correct or delete"),
    ],
)
def test_an_instruction_that_only_the_assemblers_here_do_not_know(line, remedy, monkeypatch, tmp_path):
    old = tmp_path / "as"
    old.write_text('#!/bin/sh\necho "x.s:2: Error: unrecognized opcode" >&2\nexit 1\n')
    old.chmod(0o755)
    tool = tools("riscv64")[0]._replace(name="old", command=(str(old),), extensions=(), more=())
    monkeypatch.setattr(assembler, "tools", lambda _: (tool,))
    with pytest.raises(UnsupportedInstruction, match="line 1: old refuses") as raised:
        read_program(f"{line}\n", "riscv64")
    assert raised.value.remedy.startswith(remedy)
