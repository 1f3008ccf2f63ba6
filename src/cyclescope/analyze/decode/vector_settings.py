"""What comments can say of RISC-V's vectors."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple


class Vectors(NamedTuple):
    """The width of elements (bits) and the length multiplier as comments say, 0 where they do not."""

    sew: int = 0
    lmul: Fraction = Fraction(0)
