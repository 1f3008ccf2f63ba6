"""Instructions: forms with values."""

from __future__ import annotations

import msgspec

from cyclescope.isa.encode import encode
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.text import assembly

PADDING, PADDED = b"\x3e", "ds"  # a segment that says nothing in 64-bit mode


class Instruction(msgspec.Struct, frozen=True, dict=True):
    """A form with register numbers (one per encoding slot) and constants.

    `padding` is the number of prefixes without a meaning in front of it (x86-64), which make it longer.
    """

    form: InstructionForm
    registers: tuple[int, ...] = ()
    displacement: int = 0
    immediates: tuple[int, ...] | None = None
    index: int | None = None
    padding: int = 0

    def code(self) -> bytes:
        """Machine code."""
        found: bytes | None = self.__dict__.get("_code")  # what is asked for again and again is made once
        if found is None:
            found = encode(self.form, self.registers, self.displacement, self.immediates, self.index)
            found = self.__dict__["_code"] = PADDING * self.padding + found
        return found

    def text(self) -> str:
        """Intel-syntax assembly."""
        found: str | None = self.__dict__.get("_text")
        if found is None:
            found = assembly(self.form, self.registers, self.displacement, self.immediates, self.index)
            found = self.__dict__["_text"] = f"{PADDED} " * self.padding + found
        return found
