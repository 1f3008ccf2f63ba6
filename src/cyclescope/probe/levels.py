"""Which of two levels a reading is at, where both are readings themselves."""

from __future__ import annotations

from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Unresolved

MOST_ERROR = 0.1  # of a value: more would not tell 4 accesses a cycle from 5
_NEAR = 0.3  # of the way between two levels: what is farther from both is at none


def is_higher(reading: Interval, low: Interval, high: Interval) -> bool:
    """Whether a reading is at the higher of two levels. Raises Unresolved where that is not clear.

    That has to be so wherever in their intervals the three are. A reading may be above the higher level, or
    below the lower.
    """
    if low.high >= high.low:
        raise Unresolved(
            "the levels to compare with are not apart", f"{_shown(low)} and {_shown(high)} cycles"
        )
    if reading.high <= low.low + _NEAR * (high.low - low.low):
        return False
    if reading.low >= high.high - _NEAR * (high.high - low.high):
        return True
    detail = f"{_shown(reading)} cycles, and levels of {_shown(low)} and {_shown(high)}"
    raise Unresolved("the reading is not clearly at one of two levels", detail)


def _shown(reading: Interval) -> str:
    return f"{reading.value:.2f}+-{reading.error:.2f}"


def precise(reading: Interval, cycles: float = 0.0) -> Interval:
    """A reading whose looks agree, up to a share of it or so many cycles. Raises Unresolved for others."""
    if not reading.is_steady or reading.error > max(MOST_ERROR * abs(reading.value), cycles):
        raise Unresolved("looks at the same kernel differ")
    return reading


def rate(taken: Interval) -> Interval:
    """How many a cycle, up to a share of it; less sure where code lies differently. Raises Unresolved."""
    if taken.low <= 0 or taken.error > MOST_ERROR * taken.value:
        least, most = (f"{1 / value:.2f}" if value > 0 else "any" for value in (taken.high, taken.low))
        raise Unresolved("it depends on where the code lies, or looks differ", f"{least} to {most} per cycle")
    return taken.inverse()


def steady(*readings: Interval) -> bool:
    """Whether all of them are."""
    return all(reading.is_steady for reading in readings)
