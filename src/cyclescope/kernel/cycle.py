"""Closed chains of links alone, and the keys of links that their latencies are found under."""

from __future__ import annotations

import msgspec

from cyclescope.kernel.instruction import Instruction

NOP = "nop"  # no link: a sequence of NOPs, than which no instruction is faster
TRANSFER = "transfer.r>v"  # a move to a vector register alone, without restoring the value
MASK_SYNC = "sync.mask"  # mask operand to result of the instruction that makes masks of vectors


class Cycle(msgspec.Struct, frozen=True):
    """A closed chain: `keys` are the links in one period.

    The control is the chain with `cut` inserted before instruction number `at`.
    """

    name: str
    items: tuple[Instruction, ...]
    keys: tuple[str, ...]
    cut: tuple[Instruction, ...]
    at: int = 0

    @property
    def control(self) -> tuple[Instruction, ...]:
        """The same instructions with the dependency cut."""
        return self.items[: self.at] + self.cut + self.items[self.at :]
