"""Instructions: forms with values."""

from __future__ import annotations

import msgspec

from cyclescope.isa.encode import encode, readdressed
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.text import assembly
from cyclescope.once import once

PADDING, PADDED = b"\x3e", "ds"  # a segment that says nothing in 64-bit mode


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

    @once
    def code(self) -> bytes:
        """Machine code."""
        found = encode(self.form, self.registers, self.displacement, self.immediates, self.index)
        if self.scale > 1 or self.is_short:
            found = readdressed(self.form, found, self.scale, self.is_short)
        return PADDING * self.padding + found if self.padding else found

    @once
    def text(self) -> str:
        """Intel-syntax assembly."""
        found = assembly(
            self.form, self.registers, self.displacement, self.immediates, self.index, self.scale
        )
        return f"{PADDED} " * self.padding + found if self.padding else found
