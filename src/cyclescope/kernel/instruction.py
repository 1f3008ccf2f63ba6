"""Instructions: forms with values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from cyclescope.isa.encode import encode, readdressed
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.text import assembly

PADDING, PADDED = b"\x3e", "ds"  # a segment that says nothing in 64-bit mode

Made = TypeVar("Made")


class _Once(Generic[Made]):
    """What is asked for again and again: made once, and then an attribute. A cached_property takes a lock."""

    def __init__(self, make: Callable[[Instruction], Made]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    def __get__(self, one: Instruction, owner: type[Instruction]) -> Made:
        found: Made = one.__dict__.setdefault(self._name, self._make(one))
        return found


class Instruction(msgspec.Struct, frozen=True, dict=True):
    """A form with register numbers (one per encoding slot) and constants.

    `padding` is the number of prefixes without a meaning in front of it (x86-64), which make it longer.
    `scale` is what its index is multiplied by, and an address with one `is_short` without a displacement.
    """

    form: InstructionForm
    registers: tuple[int, ...] = ()
    displacement: int = 0
    immediates: tuple[int, ...] | None = None
    index: int | None = None
    padding: int = 0
    scale: int = 1
    is_short: bool = False

    @_Once
    def code(self) -> bytes:
        """Machine code."""
        found = encode(self.form, self.registers, self.displacement, self.immediates, self.index)
        if self.scale > 1 or self.is_short:
            found = readdressed(self.form, found, self.scale, self.is_short)
        return PADDING * self.padding + found if self.padding else found

    @_Once
    def text(self) -> str:
        """Intel-syntax assembly."""
        found = assembly(
            self.form, self.registers, self.displacement, self.immediates, self.index, self.scale
        )
        return f"{PADDED} " * self.padding + found if self.padding else found
