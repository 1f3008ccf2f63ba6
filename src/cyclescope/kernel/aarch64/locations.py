"""Locations of the architectural state of AArch64, as the runner numbers them (native/protocol.h)."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

CONDITION_FLAGS = ("N", "Z", "C", "V")


class A64(IntEnum):
    """First locations of AArch64's registers; `WIDE` are the bits of Z registers above Q's."""

    GENERAL = 5  # X0 to X30, SP
    FLAGS = 37  # N Z C V
    VECTOR = 41
    WIDE = 73
    PREDICATE = 105
    FFR = 121
    FPCR = 122
    FPSR = 123
    END = 124


def names() -> Iterator[str]:
    """What users call them, those behind the common ones."""
    yield from (f"X{n}" for n in range(31))
    yield "SP"
    yield from (f"flags.{flag}" for flag in CONDITION_FLAGS)
    yield from (f"V{n}" for n in range(32))
    yield from (f"Z{n}[VL:128]" for n in range(32))
    yield from (f"P{n}" for n in range(16))
    yield from ("FFR", "FPCR", "FPSR")
