"""How likely each size of the union of some classes' ports is."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec


class UnionEvidence(msgspec.Struct, frozen=True):
    """Two classes, or three, with the nats against every size that the union of their ports may have.

    Without a reading they were not `asked`: any size is as good, and what they share is no claim. They may be
    of two `sides` of a core; `across` those that share ports at a price, however many of their classes do.
    Nothing tells sizes of `hidden` and more from each other, which fill the front end.
    """

    first: str
    second: str
    nats: Mapping[int, float]
    asked: bool = True
    across: bool = False
    sides: frozenset[str] = frozenset()
    hidden: float = math.inf
    third: str = ""

    def __hash__(self) -> int:
        return hash((self.first, self.second, self.third, frozenset(self.nats.items())))

    @property
    def classes(self) -> frozenset[str]:
        """The classes by their representatives."""
        return frozenset((self.first, self.second, *((self.third,) if self.third else ())))

    @property
    def best(self) -> float:
        """Nats against the likeliest size."""
        return min(self.nats.values())

    def against(self, size: int) -> float:
        """Nats more than the likeliest size costs."""
        return self.nats[size] - self.best

    def sizes(self, most: float) -> list[int]:
        """Sizes that are not worse by more than some nats."""
        return [size for size in self.nats if self.against(size) <= most]
