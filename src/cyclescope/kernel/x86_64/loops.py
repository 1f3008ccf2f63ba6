"""Blocks of x86-64 in kernels: the end of a loop."""

from __future__ import annotations

import struct

_SHORT_JUMP = -128


def loop_end(counter: int, before: int) -> bytes:
    """A decrement of a register and a branch over so many bytes back while it is not 0."""
    down = bytes([0x48 | counter >> 3, 0xFF, 0xC8 | counter & 7])  # dec
    short = -(before + len(down) + 2)
    if short >= _SHORT_JUMP:
        return down + struct.pack("<Bb", 0x75, short)  # jnz
    return down + b"\x0f\x85" + struct.pack("<i", -(before + len(down) + 6))
