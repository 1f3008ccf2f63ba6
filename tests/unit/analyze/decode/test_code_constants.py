"""Constants in the code of an instruction: those that caches of decoded instructions keep with it."""

from __future__ import annotations

import shutil

import pytest

from tests.support.code.blocks import block

pytestmark = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)


@pytest.mark.parametrize(
    ("text", "constants"),
    [
        ("mov eax, 0x12345678", (1, 0)), ("movabs rax, 0x123456789abc", (0, 1)), ("add rax, rbx", (0, 0)),
        ("cmp dword ptr [rsi + 8], 5", (2, 0)), ("cmp dword ptr [rsi], 5", (1, 0)), ("jne 0", (1, 0)),
        ("lea rax, [rip + 100]", (1, 0)), ("mov rax, [rbx + rcx * 8]", (0, 0)), ("sar eax, 1", (0, 0)),
        ("nop dword ptr [rax + 8]", (0, 0)), ("ret", (0, 0)), ("mov rax, [0x1000]", (1, 0)),
        ("vpsrld xmm0, xmm1, 3", (1, 0)), ("push 5", (1, 0)),
    ],
)  # fmt: skip
def test_constants_of_an_instruction(text, constants):
    (one,) = block(text).instructions
    assert one.constants == constants
