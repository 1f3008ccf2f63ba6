"""Locations of the architectural state of RISC-V, as the runner numbers them (native/protocol.h)."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum


class RISCV(IntEnum):
    """First locations of RISC-V's registers."""

    GENERAL = 5
    FLOAT = 37
    VECTOR = 69
    FFLAGS = 101
    FRM = 102
    VXRM = 103
    VXSAT = 104
    VL = 105
    VTYPE = 106
    END = 107


def names() -> Iterator[str]:
    """What users call them, those behind the common ones."""
    yield from (f"x{n}" for n in range(32))
    yield from (f"f{n}" for n in range(32))
    yield from (f"v{n}" for n in range(32))
    yield from ("fflags", "frm", "vxrm", "vxsat", "vl", "vtype")
