"""Locations of the architectural state, as the runner numbers them (native/protocol.h).

The first ones are common; those of an instruction set follow. A set of locations is an integer with one
bit per location.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from functools import cache

from cyclescope.isa.form import FLAGS
from cyclescope.isa.register import register_name

FIRST_PAGE, SECOND_PAGE, STACK_PAGE, EXIT, FAULT, REGISTERS = range(6)
LOCATIONS = 144  # at most
BYTES = LOCATIONS // 8  # of a set on the wire
CONDITION_FLAGS = ("N", "Z", "C", "V")  # of AArch64
_COMMON = ("memory", "memory at the second pointer", "stack memory", "next instruction", "fault")


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


@cache
def names(isa: str) -> tuple[str, ...]:
    """What users call the locations of an instruction set."""
    own = {"x86-64": _x86_64, "aarch64": _aarch64, "riscv64": _riscv64}[isa]
    return (*_COMMON, *own())


def _x86_64() -> Iterator[str]:
    yield from (register_name("R64", n) for n in range(16))
    yield from (f"flags.{flag}" for flag in FLAGS)
    yield from (f"XMM{n}" for n in range(32))
    yield from (f"ZMM{n}[{bits}]" for bits in ("255:128", "511:256") for n in range(32))
    yield from (f"K{n}" for n in range(8))
    yield from (f"x87 register {n}" for n in range(8))
    yield from ("MXCSR", "x87 control word", "x87 status word")


def _aarch64() -> Iterator[str]:
    yield from (f"X{n}" for n in range(31))
    yield "SP"
    yield from (f"flags.{flag}" for flag in CONDITION_FLAGS)
    yield from (f"V{n}" for n in range(32))
    yield from (f"Z{n}[VL:128]" for n in range(32))
    yield from (f"P{n}" for n in range(16))
    yield from ("FFR", "FPCR", "FPSR")


def _riscv64() -> Iterator[str]:
    yield from (f"x{n}" for n in range(32))
    yield from (f"f{n}" for n in range(32))
    yield from (f"v{n}" for n in range(32))
    yield from ("fflags", "frm", "vxrm", "vxsat", "vl", "vtype")


def location_set(numbers: Iterable[int]) -> int:
    """The set of some locations."""
    result = 0
    for number in numbers:
        result |= 1 << number
    return result


def members(locations: int) -> Iterator[int]:
    """The numbers in a set, ascending."""
    while locations:
        lowest = locations & -locations
        yield lowest.bit_length() - 1
        locations ^= lowest
