"""Blocks of AArch64 in kernels: the end of a loop, and what copies cannot have."""

from __future__ import annotations

import struct

from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.aarch64.special import unmeasurable


def unfit(form: InstructionForm) -> str:
    """Why user space cannot run copies of a form, or ""."""
    return unmeasurable(form)


def loop_end(counter: int, before: int) -> bytes:
    """A decrement of a register and a branch over so many bytes back while it is not 0."""
    down = struct.pack("<I", 0xD1000400 | counter << 5 | counter)  # sub x, x, #1
    return down + struct.pack("<I", 0xB5000000 | (-(before + 4) // 4 & 0x7FFFF) << 5 | counter)  # cbnz
