"""Blocks of AArch64 in kernels: the end of a loop."""

from __future__ import annotations

import struct


def loop_end(counter: int, before: int) -> bytes:
    """A decrement of a register and a branch over so many bytes back while it is not 0."""
    down = struct.pack("<I", 0xD1000400 | counter << 5 | counter)  # sub x, x, #1
    return down + struct.pack("<I", 0xB5000000 | (-(before + 4) // 4 & 0x7FFFF) << 5 | counter)  # cbnz
