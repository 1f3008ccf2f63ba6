"""Locations of the architectural state, as the runner numbers them (native/protocol.h).

A set of locations is an integer with one bit per location.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cyclescope.isa.form import FLAGS
from cyclescope.isa.register import register_name

FIRST_PAGE, SECOND_PAGE, STACK_PAGE, EXIT, FAULT = range(5)
GENERAL, FLAG, XMM, YMM, ZMM, MASK, X87 = 5, 21, 28, 60, 92, 124, 132
MXCSR, X87_CONTROL, X87_STATUS, END = 140, 141, 142, 143
BYTES = 18  # of a set on the wire
PUSHED = X87 + 7  # the x87 register a push fills: the top of the stack is register 0


def _names() -> tuple[str, ...]:
    names = ["memory", "memory at the second pointer", "stack memory", "next instruction", "fault"]
    names += [register_name("R64", n) for n in range(16)]
    names += [f"flags.{flag}" for flag in FLAGS]
    for bits in ("127:0", "255:128", "511:256"):
        names += [f"{'ZMM' if bits[0] != '1' else 'XMM'}{n}[{bits}]" for n in range(32)]
    names += [f"K{n}" for n in range(8)]
    names += [f"x87 register {n}" for n in range(8)]
    return (*names, "MXCSR", "x87 control word", "x87 status word")


NAMES = tuple(name.replace("[127:0]", "") for name in _names())


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
