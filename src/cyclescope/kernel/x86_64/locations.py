"""Locations of the architectural state of x86-64, as the runner numbers them (native/protocol.h)."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from cyclescope.isa.form import FLAGS
from cyclescope.isa.register import register_name


class X86(IntEnum):
    """First locations of x86-64's registers; `X87` are the stack's, its top register 0."""

    GENERAL = 5
    FLAGS = 21
    XMM = 28
    YMM = 60  # bits 128 to 255
    ZMM = 92  # bits 256 to 511
    MASK = 124
    X87 = 132
    MXCSR = 140
    FCW = 141
    FSW = 142
    END = 143


def names() -> Iterator[str]:
    """What users call them, those behind the common ones."""
    yield from (register_name("R64", n) for n in range(16))
    yield from (f"flags.{flag}" for flag in FLAGS)
    yield from (f"XMM{n}" for n in range(32))
    yield from (f"ZMM{n}[{bits}]" for bits in ("255:128", "511:256") for n in range(32))
    yield from (f"K{n}" for n in range(8))
    yield from (f"x87 register {n}" for n in range(8))
    yield from ("MXCSR", "x87 control word", "x87 status word")
