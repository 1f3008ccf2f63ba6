"""How many cycles the front end needs for a loop."""

from __future__ import annotations

from collections.abc import Sequence

SETTLING = 12  # repetitions of a loop before the average is taken, over as many again
_ROUNDING = 1e-6


def dispatch_cycles(slots: Sequence[float], width: float, whole: bool = False) -> float:
    """Cycles per repetition of instructions that take so many slots each, `width` slots per cycle.

    With `whole`, the slots of an instruction are in one cycle: where they do not fit any more, the rest of
    the cycle stays empty. Instructions of more slots than a cycle has are divided all the same.
    """
    if not whole or max(slots, default=0.0) <= 1:
        return sum(slots) / width
    used = settled = 0.0
    for repetition in range(2 * SETTLING):
        if repetition == SETTLING:
            settled = used
        for number in slots:
            free = width - used % width
            if free + _ROUNDING < number <= width:
                used += free
            used += number
    return (used - settled) / SETTLING / width
