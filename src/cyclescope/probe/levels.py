"""Which of two levels a reading is at, where both are readings themselves."""

from __future__ import annotations

from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Unresolved

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


def steady(*readings: Interval) -> bool:
    """Whether all of them are."""
    return all(reading.is_steady for reading in readings)
