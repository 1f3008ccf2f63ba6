"""Plans of throughput kernels."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from cyclescope.kernel.chain import Use
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import CANARY, FAST
from cyclescope.kernel.variant import Kind

MAXIMUM = 16
UPDATES = 32  # instances at most of what reads and writes memory: each comes back to what it stored later
BASES = "bases"  # variant: instances go by several bases, each with memory of its own
MANY_BASES = 5
CUTTING = (Kind.BASES, Kind.BROKEN, Kind.FAST, Kind.PLAIN)  # the first one that a form has cuts most
LENGTHS = (8, 12, MAXIMUM)  # 12: a multiple of most dispatch widths


class Stream(msgspec.Struct, frozen=True):
    """Plan of one throughput kernel: `count` instances of the form per body.

    `variant` is `plain`, `broken` (with dependency-breaking instructions), `same register`,
    `indexed`, `bases` or `unrolled`; `length` the number of independent instances;
    `setup` is machine code that runs once before the body, behind what the form itself needs.
    """

    variant: str
    length: int
    items: tuple[Use | Instruction, ...]
    count: int
    flags: int = CANARY | FAST
    setup: bytes = b""

    def spelled(self, speed: str) -> str:
        """The variant as a store has it, of a class of values (`fast`, `slow`) or "" for all."""
        return speed or (f"{self.variant} x{self.length}" if self.length > 1 else self.variant)


def kind_of(kinds: Iterable[Kind]) -> Kind | None:
    """The kind of sequence, of those that a form has, whose instances depend least on each other."""
    found = set(kinds)
    return next((kind for kind in CUTTING if kind in found), None)
