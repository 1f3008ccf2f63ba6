"""Instructions: forms with values."""

from __future__ import annotations

from functools import cached_property

import msgspec

from cyclescope.isa.encode import encode
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.text import assembly


class Instruction(msgspec.Struct, frozen=True, dict=True):
    """A form with register numbers (one per encoding slot) and constants."""

    form: InstructionForm
    registers: tuple[int, ...] = ()
    displacement: int = 0
    immediates: tuple[int, ...] | None = None
    index: int | None = None

    def code(self) -> bytes:
        """Machine code."""
        return encode(self.form, self.registers, self.displacement, self.immediates, self.index)

    def text(self) -> str:
        """Intel-syntax assembly."""
        return self._text

    @cached_property
    def _text(self) -> str:
        return assembly(self.form, self.registers, self.displacement, self.immediates, self.index)
