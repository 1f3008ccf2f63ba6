"""What may explain readings on a group of ports, and the micro-operations that it is made of."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

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
