"""What readings say beside others: which of two levels one is at, and how many others it stands for."""

from __future__ import annotations

from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import ProbeVerdict, Readings, Unresolved
from cyclescope.remarks.probing import Read, Unclear, UnclearCore
from cyclescope.remarks.remark import Remark

MOST_ERROR = 0.1  # of a value: more would not tell 4 accesses a cycle from 5
ADDRESSED_SO = 8  # instances in a body, at places of their own: an update waits for the one at its place
AMONG_OTHERS = 64  # beside them: cores with a third more slots than units are still bound by the units
BEYOND_NOPS = 0.5  # of what more additions take: where more NOPs take as long, units are no limit
_NEAR = 0.3  # of the way between two levels: what is farther from both is at none


def is_higher(reading: Interval, low: Interval, high: Interval) -> bool:
    """Whether a reading is at the higher of two levels. Raises Unresolved where that is not clear.

    That has to be so wherever in their intervals the three are. A reading may be above the higher level, or
    below the lower.
    """
    if low.high >= high.low:
        raise Unresolved(Unclear.ONE_LEVEL.of(), Read.LEVELS.of(_read(low), _read(high)))
    if reading.high <= low.low + _NEAR * (high.low - low.low):
        return False
    if reading.low >= high.high - _NEAR * (high.high - low.high):
        return True
    detail = Read.AMONG_LEVELS.of(_read(reading), _read(low), _read(high))
    raise Unresolved(Unclear.BETWEEN_LEVELS.of(), detail)


def _read(reading: Interval) -> Remark:
    return Read.CYCLES.of(reading.value, reading.error)


def precise(reading: Interval, cycles: float = 0.0) -> Interval:
    """A reading whose looks agree, up to a share of it or so many cycles. Raises Unresolved for others."""
    if not reading.is_steady or reading.error > max(MOST_ERROR * abs(reading.value), cycles):
        raise Unresolved(Unclear.LOOKS_DIFFER.of())
    return reading


def rate(taken: Interval) -> Interval:
    """How many a cycle, up to a share of it; less sure where code lies differently. Raises Unresolved."""
    if taken.low <= 0 or taken.error > MOST_ERROR * taken.value:
        least, most = (f"{1 / value:.2f}" if value > 0 else "any" for value in (taken.high, taken.low))
        raise Unresolved(Unclear.PLACE_MATTERS.of(), Read.RATES.of(least, most))
    return taken.inverse()


def steady(*readings: Interval) -> bool:
    """Whether all of them are."""
    return all(reading.is_steady for reading in readings)


def places_taken(readings: Readings, without: Remark) -> ProbeVerdict:
    """How many of the additions around it, each, one takes the place of: the parts `asked` and `plain`.

    `more` has one of them more per instance, `wider` a NOP more instead, which takes less where the units are
    the limit. Raises Unresolved, with `without`, where one more takes no longer.
    """
    asked, plain, more = (readings.get(part) for part in ("asked", "plain", "more"))
    step = more - plain
    if step.low <= 0:
        raise Unresolved(without)
    if (more - readings.get("wider")).low < BEYOND_NOPS * step.value:
        raise Unresolved(UnclearCore.NOT_UNITS.of())
    taken = (asked - plain).scaled(1 / step.value)
    return ProbeVerdict(CoreAnswer.VALUE, taken, steady(asked, plain, more), "each")
