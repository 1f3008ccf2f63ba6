"""Locations of the architectural state, as the runner numbers them (native/protocol.h).

The first ones are common; those of an instruction set follow (`kernel/NAME/locations.py`). A set of
locations is an integer with one bit per location.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from cyclescope.isa.registry import instruction_set

FIRST_PAGE, SECOND_PAGE, STACK_PAGE, EXIT, FAULT, REGISTERS = range(6)
LOCATIONS = 144  # at most
BYTES = LOCATIONS // 8  # of a set on the wire
_COMMON = ("memory", "memory at the second pointer", "stack memory", "next instruction", "fault")


@cache
def names(isa: str) -> tuple[str, ...]:
    """What users call the locations of an instruction set."""
    return (*_COMMON, *instruction_set(isa).module("kernel", "locations").names())


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
