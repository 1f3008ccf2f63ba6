"""What a reading may be, at the least and at the most."""

from __future__ import annotations

import math

import msgspec

from cyclescope.measure.record import ERRORS, STABLE
from cyclescope.measure.sampling import DISTURBED, Measurement


class Interval(msgspec.Struct, frozen=True):
    """A value with its error, in the unit of what was read.

    `is_steady` says that the readings behind it agree.
    """

    low: float
    high: float
    is_steady: bool = True

    @property
    def value(self) -> float:
        """The middle."""
        return (self.low + self.high) / 2

    @property
    def error(self) -> float:
        """How far the value may be off."""
        return (self.high - self.low) / 2

    def __sub__(self, other: Interval) -> Interval:
        return Interval(self.low - other.high, self.high - other.low, self.is_steady and other.is_steady)

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high, self.is_steady and other.is_steady)

    def scaled(self, factor: float) -> Interval:
        """So many times as much; the factor is above 0."""
        return Interval(self.low * factor, self.high * factor, self.is_steady)

    def inverse(self) -> Interval:
        """One by it; of what is above 0."""
        return Interval(1 / self.high, 1 / self.low, self.is_steady)

    def with_error(self, share: float) -> Interval:
        """With an error of so much of it at least: what looks within one process do not show."""
        error = max(self.error, share * abs(self.value))
        return Interval(self.value - error, self.value + error, self.is_steady)

    def meets(self, other: Interval) -> bool:
        """Whether both can be the same."""
        return self.low <= other.high and other.low <= self.high

    def hull(self, other: Interval) -> Interval:
        """From the least to the most of both."""
        steady = self.is_steady and other.is_steady
        return Interval(min(self.low, other.low), max(self.high, other.high), steady)


def interval_of(measurement: Measurement) -> Interval:
    """What a usable measurement leaves open; of rounds that disagree all of them.

    Beside a neighbour that never rests it is at most what was read: how much less it is alone nobody knows.
    """
    cycles, spread = measurement.cycles, measurement.spread
    if measurement.error == DISTURBED:
        return Interval(-math.inf, cycles + spread, is_steady=False)
    if measurement.verdict == STABLE:
        return Interval(cycles - ERRORS * spread, cycles + ERRORS * spread)
    least = min((value for value in measurement.rounds if value > 0), default=cycles)
    return Interval(min(least, cycles), cycles + spread, is_steady=False)
