"""When two values are the same."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from benchmarks.lib.results import Key

GRAIN = 0.01  # cycles: the last digit that is published


class Comparison(msgspec.Struct, frozen=True):
    """Two sets of values: how many agree, the others by how much (worst first), what is in one only."""

    same: int
    moved: tuple[tuple[float, Key, float, float], ...]
    lost: tuple[Key, ...]

    @property
    def total(self) -> int:
        """Values in either set."""
        return self.same + len(self.moved) + len(self.lost)

    def joined(self, other: Comparison) -> Comparison:
        """Both as one."""
        return Comparison(
            self.same + other.same,
            tuple(sorted(self.moved + other.moved, reverse=True)),
            self.lost + other.lost,
        )


def close(a: float, b: float, tolerance: float, grain: float = GRAIN) -> bool:
    """Within a share of the greater one, or within the grain (with what binary fractions add to it)."""
    return abs(a - b) <= max(tolerance * max(abs(a), abs(b)), grain) + 1e-9


def compare(first: Mapping[Key, float], second: Mapping[Key, float], tolerance: float) -> Comparison:
    """Values of two runs; a value that only one run has counts as different."""
    both = first.keys() & second.keys()
    moved = [(_distance(first[k], second[k]), k, first[k], second[k]) for k in both]
    far = [m for m in moved if not close(m[2], m[3], tolerance)]
    lost = tuple(sorted(first.keys() ^ second.keys()))
    return Comparison(len(both) - len(far), tuple(sorted(far, reverse=True)), lost)


def _distance(a: float, b: float) -> float:
    return abs(a - b) / max(abs(a), abs(b), GRAIN)
