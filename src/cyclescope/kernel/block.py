"""Blocking instructions with registers, to be mixed with forms under test."""

from __future__ import annotations

import msgspec

from cyclescope.kernel.instruction import Instruction

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
