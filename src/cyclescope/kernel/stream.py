"""Plans of throughput kernels."""

from __future__ import annotations

import msgspec

from cyclescope.kernel.chain import Use
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import CANARY, FAST

MAXIMUM = 16
BASES = "bases"  # variant: instances go by several bases, each with memory of its own
MANY_BASES = 5
LENGTHS = (8, 12, MAXIMUM)  # 12: a multiple of most dispatch widths


class Stream(msgspec.Struct, frozen=True):
    """Plan of one throughput kernel: `count` instances of the form per body.

    `variant` is `plain`, `broken` (with dependency-breaking instructions), `same register`,
    `indexed`, `bases` or `unrolled`; `length` the number of independent instances.
    """

    variant: str
    length: int
    items: tuple[Use | Instruction, ...]
    count: int
    flags: int = CANARY | FAST
