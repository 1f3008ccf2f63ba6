"""Stores to places that were loaded themselves: whether iterations meet there, nobody knows."""

from __future__ import annotations

import shutil

import pytest

from tests.support.code.blocks import predicted

pytestmark = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)

SAID = "different places"


def said(text):
    return [note for note in predicted(text, loop=True).notes if SAID in note]


@pytest.mark.parametrize(
    "text",
    [
        "mov rax, [rsi]; add rsi, 8; add qword ptr [rdi + rax*8], 1",
        "movzx eax, byte ptr [rsi]; inc rsi; inc qword ptr [rdi + rax*8]",
        "mov rax, [rsi]; and rax, 3; mov rcx, [rdi + rax*8]; inc rcx; mov [rdi + rax*8], rcx; add rsi, 8",
    ],
)
def test_iterations_may_meet_where_the_place_was_loaded(text):
    assert len(said(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "add qword ptr [rdi + rax*8], 1; add rax, 1",  # goes on by itself
        "mov rax, [rsi]; add rsi, 8; mov [rdi + rax*8], rcx",  # stores alone
        "mov rax, [rsi]; mov rcx, [rdi + rax*8]; mov [rdi + rax*8 + 8], rcx; add rsi, 8",  # elsewhere
        "mov rax, [rsi]; mov rcx, [rdi + rax*8]; lea rax, [rbx + 8]; mov [rdi + rax*8], rcx",
        "mov rax, [rsi]; lea rax, [rbx + 8]; add qword ptr [rdi + rax*8], 1",
        "mov rax, [rsi]; add rsi, 8; add rcx, [rdi + rax*8]",
        "mov rax, [rax]; add qword ptr [rax + 8], 1",  # a list
        "pop rax; add qword ptr [rsp], 1",
    ],
)
def test_nothing_is_said_of_other_places(text):
    assert not said(text)
