"""What the length of encodings costs: cycles per slot of instructions of every length, and bytes per cycle.

Long instructions are limited by the bytes that are fetched; short ones may be slower as well, if a piece of
code holds more of them than a core decodes or keeps. Mixes of both are not measured, so only the limit by
bytes is used for other code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from cyclescope.measure.ports import blocked
from cyclescope.measure.record import ERRORS, STABLE, Reading

LIMITED = 1.05  # times the cycles of a slot: less is what readings of the width differ by
_ALIKE = 0.04  # relative: bytes per cycle of different lengths that one limit explains
_ENOUGH = 3  # lengths that have to agree on the bytes per cycle: two may by chance


class FetchLimit(msgspec.Struct, frozen=True, array_like=True):
    """Cycles that a cycle's slots take with instructions of so many bytes each: 1 for no limit."""

    bytes: int
    cycles: float
    error: float

    @property
    def is_limited(self) -> bool:
        """Whether the length makes instructions slower."""
        return self.cycles > max(LIMITED, 1 + ERRORS * self.error)


def fetch_limits(readings: Iterable[Reading], width: float) -> tuple[FetchLimit, ...]:
    """The limits by length, shortest first; the least of a length, where several encodings were asked.

    NOPs that share slots may be faster than other instructions. How long they are when they stop sharing says
    nothing about those, so only what is slower than a slot each is a limit.
    """
    found = [
        FetchLimit(
            blocked(r.variant), round(max(r.cycles * width / r.instances, 1.0), 3),
            round(r.spread * width / r.instances, 3),
        )
        for r in readings if r.verdict == STABLE
    ]  # fmt: skip
    least: dict[int, FetchLimit] = {}
    for one in sorted(found, key=lambda limit: (limit.bytes, limit.cycles)):
        least.setdefault(one.bytes, one)
    return tuple(least.values())


def bytes_per_cycle(limits: Sequence[FetchLimit], width: float) -> float:
    """Bytes of code that arrive in a cycle where long instructions show it, else 0.

    All lengths from some length on have to be limited, and by the same number of bytes.
    """
    rates = [one.bytes * width / one.cycles for one in _limited_at_the_end(limits)]
    if len(rates) < _ENOUGH or max(rates) - min(rates) > _ALIKE * max(rates):
        return 0.0
    return round(sum(rates) / len(rates), 1)


def _limited_at_the_end(limits: Sequence[FetchLimit]) -> list[FetchLimit]:
    found: list[FetchLimit] = []
    for one in sorted(limits, key=_bytes, reverse=True):
        if not one.is_limited:
            break
        found.append(one)
    return found


def _bytes(limit: FetchLimit) -> int:
    return limit.bytes
