"""nanoBench's additions to assembly text: copies, and NOPs of every length."""

from __future__ import annotations

import iced_x86
import pytest

from cyclescope.analyze.read.repetition import expanded
from cyclescope.errors import UsageError
from cyclescope.isa.assembly.assemble import assemble
from cyclescope.isa.x86_64.padding import nop

X86 = "x86-64"


@pytest.mark.parametrize("length", range(1, 16))
def test_a_nop_of_every_length(length):
    code = nop(length)
    decoded = iced_x86.Decoder(64, code).decode()
    assert decoded.len == length
    assert decoded.mnemonic == iced_x86.Mnemonic.NOP
    assert not iced_x86.InstructionInfoFactory().info(decoded).used_registers() or length > 2
    assert assemble(expanded(f"|{length}; nop", X86)).code == code + b"\x90"
    assert assemble(expanded(f"nop; |{length}", X86)).instructions == 2


@pytest.mark.parametrize("length", [0, 16, 100])
def test_there_is_no_longer_nop(length):
    with pytest.raises(UsageError, match="1 to 15"):
        expanded(f"|{length}", X86)


def test_copies():
    assert (
        assemble(expanded("add rax, rbx; 3*|inc rcx; nop|; dec rdx", X86)).code
        == assemble("add rax, rbx; inc rcx; nop; inc rcx; nop; inc rcx; nop; dec rdx").code
    )
    assert assemble(expanded("2*|nop|", X86)).instructions == 2
    assert assemble(expanded("2 * |nop|; |3", X86)).instructions == 3
    assert expanded("add rax, rbx\nnop", X86) == "add rax, rbx\nnop", "other text stays as it is"


@pytest.mark.parametrize("text", ["0*|nop|", "250001*|nop|", "1000000*|add rax, rbx|"])
def test_copies_that_cannot_be(text):
    with pytest.raises(UsageError, match="no number of copies"):
        expanded(text, X86)


def test_a_million_characters_are_written_at_most():
    assert len(expanded("250000*|nop|", X86)) == 999_999


@pytest.mark.parametrize("isa", ["aarch64", "riscv64"])
def test_other_instruction_sets(isa):
    assert expanded("2*|nop|", isa) == "nop;nop"
    with pytest.raises(UsageError, match="no NOPs of a chosen length"):
        expanded("|4", isa)
