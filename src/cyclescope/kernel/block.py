"""Blocking instructions with registers, and the independent instances of a form that they are mixed with."""

from __future__ import annotations

import msgspec

from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import Kernel

Register = tuple[str, int]  # register file and number


class BlockingSequence(msgspec.Struct, frozen=True):
    """Instances of a blocking instruction, to be repeated, and the registers that they read and write."""

    form: str
    instructions: tuple[Instruction, ...]
    reads: frozenset[Register]
    writes: frozenset[Register]

    def take(self, count: int, first: int = 0) -> list[Instruction]:
        """`count` instances, beginning with number `first`."""
        have = self.instructions
        return [have[(first + i) % len(have)] for i in range(count)]


class UsedRegisters(msgspec.Struct, frozen=True):
    """The registers of each of some independent instances of a form, and what they write and read."""

    form: InstructionForm
    registers: tuple[tuple[int, ...], ...]
    writes: frozenset[Register]
    reads: frozenset[Register]


class Instances(UsedRegisters, frozen=True, kw_only=True):
    """Independent instances of a form, as a kernel."""

    kernel: Kernel
