"""Semicolons begin comments for some assemblers, and instructions for GNU as."""

from __future__ import annotations

import pytest

from cyclescope.analyze.choose.source import Choice, read_block
from cyclescope.analyze.read.assemblers import tools
from cyclescope.analyze.read.semicolons import without_comments

NOTE = "line{} {}: what follows a semicolon is taken for a comment"


@pytest.mark.parametrize(
    ("lines", "intel", "kept"),
    [
        (["add rax, rbx", "dec rdi ; loop counter"], True, ["add rax, rbx", "dec rdi"]),
        (["add rax, rbx", "dec rdi\t;nop ; nop"], True, ["add rax, rbx", "dec rdi"]),
        (["add rax, rbx", "dec rdi; nop"], True, None),
        (["dec rdi ; nop"], True, None),  # as one types it
        ([".intel_syntax noprefix", "dec rdi ; nop"], True, None),
        (["dec %rdi ; nop", "nop"], False, None),
        (["; nop", "dec %rdi ; nop"], False, ["", "dec %rdi"]),
        (["; nop", "subs x0, x0, #1 ; nop"], False, ["", "subs x0, x0, #1"]),
        (["nop", "lock ; add [rbx], rax ; nop"], True, ["nop", "lock ; add [rbx], rax"]),
        (["nop", "a: rep ; stosb"], True, None),
        (["nop", '"a b": rep ; stosb'], True, None),
        (["nop", '.string "a ; b" ; c'], True, ["nop", '.string "a ; b"']),
    ],
)
def test_what_is_kept(lines, intel, kept):
    assert without_comments(lines, intel)[0] == (kept or lines)


def test_what_is_said():
    assert [*map(str, without_comments(["nop", "nop ; a", "; b"], True)[1])] == [NOTE.format("", 2)]
    assert [*map(str, without_comments(["nop ; a", "nop ; a"], True)[1])] == [NOTE.format("s", "1, 2")]
    assert without_comments(["nop", "; b"], True)[1] == ()


@pytest.mark.skipif(not tools("x86-64"), reason="needs an assembler")
@pytest.mark.parametrize("comment", ["; loop counter", ";nop", "; ret"])
def test_a_comment_that_is_an_instruction_is_none(comment):
    block = read_block(f".L3:\n add rax, rbx\n dec rdi {comment}\n jne .L3\n", "x86-64", Choice(whole=True))
    assert [one.form.mnemonic for one in block] == ["ADD", "DEC", "JNE"]
    assert block.notes == (NOTE.format("", 3),)


@pytest.mark.skipif(not tools("x86-64"), reason="needs an assembler")
def test_markers_behind_semicolons_are_found():
    block = read_block("add rax, rbx\n; OSACA-BEGIN\n dec rdi ; x\n; OSACA-END\n nop\n", "x86-64")
    assert [one.form.mnemonic for one in block] == ["DEC"]
