"""Kernels looked at more than once: what two looks agree on is steady, what none do has no value.

What disturbs a core lasts for tenths of seconds, longer than the rounds of one look, which then agree on what
is wrong. So every kernel has an independent second look, and those whose looks differ have more.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from cyclescope.measure.plan import Experiment
from cyclescope.measure.record import FAILED
from cyclescope.measure.sampling import Measurement, Sampler
from cyclescope.probe.interval import Interval, interval_of
from cyclescope.probe.turns import Pausing
from cyclescope.remarks.remark import Remark

LEAST_LOOKS = 2  # at a kernel: one may be wrong as a whole
MOST_LOOKS = 7  # at a kernel; beside neighbours that never rest the rest has no value
# Seconds before a third look at cores that have neighbours, then twice as long each time: what disturbs lasts
# for a tenth to some seconds.
LOOK_PAUSE = 0.1
_FEWEST = 4  # rounds that have quarters

Look = tuple[Interval, Measurement]


class Looks:
    """What was seen of one kernel; `is_cut_short` where more looks would have been taken with more time."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.failed: Measurement | None = None
        self.is_cut_short = False
        self._seen: list[Look] = []
        self._agreed: tuple[Look, Look] | None = None

    def add(self, measurement: Measurement) -> None:
        """Take another look."""
        if measurement.verdict == FAILED:
            self.failed = measurement
        else:
            self._seen.append((interval_of(measurement), measurement))
            self._agreed = self._agreeing()

    def refuse(self, reason: Remark) -> None:
        """Take back what was seen: it is not what was asked about."""
        self.failed = msgspec.structs.replace(self.measurement, verdict=FAILED, error=reason.text)

    def _agreeing(self) -> tuple[Look, Look] | None:
        """The lowest two steady looks that agree: what disturbs makes slower."""
        steady = sorted((look for look in self._seen if look[0].is_steady), key=lambda look: look[0].value)
        return next(((one, other) for one, other in pairwise(steady) if one[0].meets(other[0])), None)

    @property
    def is_settled(self) -> bool:
        """Whether more looks would say nothing new."""
        return self.failed is not None or self._agreed is not None

    @property
    def interval(self) -> Interval:
        """What the looks leave open."""
        if self._agreed is not None:
            return self._agreed[0][0].hull(self._agreed[1][0])
        low = min(interval.low for interval, _ in self._seen)
        high = max(interval.high for interval, _ in self._seen)
        return Interval(low, high, is_steady=False)

    @property
    def median(self) -> Interval:
        """The middle of the rounds of all looks, and as far from it as the range of their middle half.

        Two medians of so many rounds are no farther apart, even where a core changes from one to the other.
        """
        rounds = [value for _, measurement in self._seen for value in measurement.rounds if value > 0]
        if len(rounds) < _FEWEST:
            return self.interval
        low, middle, high = statistics.quantiles(rounds, n=4)
        return Interval(middle - (high - low), middle + (high - low), is_steady=False)

    def read(self, varies: bool, chance: bool) -> Interval:
        """The reading; of what `varies` the median, as of what is in part `chance` where no two agree."""
        return self.median if varies or (chance and self._agreed is None) else self.interval

    @property
    def measurement(self) -> Measurement:
        """The look that stands for all: the lowest that another one agrees with, or the last."""
        if self.failed is not None:
            return self.failed
        return (self._agreed[0] if self._agreed is not None else self._seen[-1])[1]


def look(
    sampler: Sampler,
    experiments: Iterable[Experiment],
    once: bool,
    pause: float = LOOK_PAUSE,
    until: float = math.inf,
) -> Pausing[Sequence[Looks]]:
    """Look at kernels until each is settled, or often enough, or `until` (`time.monotonic`) is there.

    `once` where cycles mean nothing.
    """
    found = {experiment.key: Looks(experiment) for experiment in experiments}
    for number in range(1 if once else MOST_LOOKS):
        open_ones = [one for one in found.values() if not one.is_settled]
        if not open_ones:
            break
        if number >= LEAST_LOOKS:
            yield pause * 2 ** (number - LEAST_LOOKS)
            if time.monotonic() > until:
                for one in open_ones:
                    one.is_cut_short = True
                break
        for settled in sampler.measure([one.experiment for one in open_ones]):
            for experiment, measurement in settled:
                found[experiment.key].add(measurement)
    return list(found.values())
