"""The logarithmic scale of drawings that have cycles on both axes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

SIDE, MARGIN = 300.0, 46.0  # pixels of a drawing, and of its axes, which the longest number takes


class Scale(NamedTuple):
    """From the least to the most that is drawn."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """Pixels from the axis."""
        return round(SIDE * math.log(value / self.low) / math.log(self.high / self.low), 1)

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Powers of ten with what is between them, if the numbers then leave each other room."""
        between = (1, 2, 5) if self.at(2 * self.low) >= MARGIN else (1,)
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)))
        ticks = (step * 10.0**decade for decade in decades for step in between)
        return ((self.at(tick), f"{tick:g}") for tick in ticks if self.low <= tick <= self.high)
