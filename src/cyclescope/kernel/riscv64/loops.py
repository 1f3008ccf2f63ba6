"""Blocks of RISC-V in kernels: the end of a loop."""

from __future__ import annotations

import struct


def loop_end(counter: int, before: int) -> bytes:
    """A decrement of a register and a branch over so many bytes back while it is not 0; "" if too far."""
    down = struct.pack("<I", 0xFFF00013 | counter << 15 | counter << 7)  # addi x, x, -1
    distance = -(before + 4)
    return down + struct.pack("<I", 0x1063 | counter << 15 | _branch(distance)) if distance >= -4096 else b""


def _branch(distance: int) -> int:
    """The fields of a branch's distance in bytes."""
    d = distance & 0x1FFF
    return (d >> 12 & 1) << 31 | (d >> 5 & 0x3F) << 25 | (d >> 1 & 15) << 8 | (d >> 11 & 1) << 7
