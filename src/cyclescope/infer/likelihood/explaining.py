"""What may explain readings on a group of ports, and the micro-operations that it is made of."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement

import msgspec

from cyclescope.infer.likelihood.arrays import Counts, np
from cyclescope.infer.likelihood.noise import MOST_TRIED
from cyclescope.model.machine import Operation


class UsageCandidate(msgspec.Struct, frozen=True):
    """Micro-operations of one group of ports, None for something else that holds them, with their nats.

    `missed` is by how many micro-operations they miss a class at most, `late` that their results come later
    than those of the blocking instructions.
    """

    operations: tuple[Operation, ...] | None
    nats: float
    missed: float
    late: bool = False


def operations_of(ports: tuple[int, ...], turns: int, each: int) -> Iterator[Operation]:
    """What takes so many turns of ports: micro-operations that take `each` of one, and one for the rest."""
    whole, rest = divmod(turns, each)
    if whole:
        yield Operation(ports, float(whole), float(each))
    if rest:
        yield Operation(ports, float(rest))


def multisets(sets: int, turns: int) -> Counts:
    """Turns of each of so many sets of ports in every explanation that is tried, the simplest first.

    Each micro-operation takes so many turns, but for one at most that takes a single one.
    """
    rows = [
        some for count in range(MOST_TRIED + 1)
        for some in combinations_with_replacement(range(sets), count)
    ]  # fmt: skip
    found = np.zeros((len(rows), sets), dtype=np.int64)
    for place, row in enumerate(rows):
        for one in row:
            found[place, one] += turns
    if turns == 1:
        return found
    fewer = found[found.sum(axis=1) < turns * MOST_TRIED]
    return np.concatenate([found, *(fewer + one for one in np.eye(sets, dtype=np.int64))])
