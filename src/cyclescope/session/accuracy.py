"""How far predictions are off: statistics of predicted against measured cycles."""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from math import nan, sqrt

import msgspec

_NEAR, _WITHIN = 0.05, 0.10  # relative errors whose shares are told
_ROUNDED = 0.02  # of an interval's end, and of a lower bound: the noise of a measurement


class PredictedTime(msgspec.Struct, frozen=True):
    """A measured and a predicted time in cycles, with what the predictor says of its own error.

    `interval` and `lower` are None where it says nothing.
    """

    measured: float
    predicted: float
    interval: tuple[float, float] | None = None
    lower: float | None = None

    @property
    def error(self) -> float:
        """Relative, less than 0 where the prediction is too low."""
        return self.predicted / self.measured - 1


class Accuracy(msgspec.Struct, frozen=True):
    """Errors in percent of the measured cycles, over `blocks` predictions.

    `mape` is the mean, `median` the median of the absolute errors; `within_5`, `within_10` and the others
    are shares in percent: of predictions too low or too high by more than 5 %, of measurements within the
    interval, of measurements more than 2 % below the lower bound. None where nothing says.
    """

    blocks: int
    mape: float | None
    median: float | None
    kendall_tau: float | None
    within_5: float | None
    within_10: float | None
    too_low: float | None
    too_high: float | None
    interval_coverage: float | None
    interval_width: float | None
    below_lower: float | None


def accuracy(pairs: Sequence[PredictedTime]) -> Accuracy:
    """Statistics of predictions."""
    errors = [pair.error for pair in pairs]
    sizes = list(map(abs, errors))
    said = [pair for pair in pairs if pair.interval is not None]
    bounded = [pair for pair in pairs if pair.lower is not None]
    return Accuracy(
        len(pairs),
        _percent(statistics.fmean(sizes)) if sizes else None,
        _percent(statistics.median(sizes)) if sizes else None,
        kendall_tau([(p.measured, p.predicted) for p in pairs]),
        share(e <= _NEAR for e in sizes),
        share(e <= _WITHIN for e in sizes),
        share(e < -_NEAR for e in errors),
        share(e > _NEAR for e in errors),
        share(map(_is_covered, said)),
        _percent(statistics.median(map(_width, said))) if said else None,
        share(pair.measured * (1 + _ROUNDED) < (pair.lower or 0.0) for pair in bounded),
    )


def share(holds: Iterable[bool]) -> float | None:
    """How many of a hundred hold; None of none."""
    found = list(holds)
    return 100 * sum(found) / len(found) if found else None


def _percent(value: float) -> float:
    return 100 * value


def _is_covered(pair: PredictedTime) -> bool:
    low, high = pair.interval or (nan, nan)
    return low * (1 - _ROUNDED) <= pair.measured <= high * (1 + _ROUNDED)


def _width(pair: PredictedTime) -> float:
    low, high = pair.interval or (nan, nan)
    return (high - low) / pair.measured


# --- rank correlation ------------------------------------------------------------------------------


def kendall_tau(points: Iterable[tuple[float, float]]) -> float | None:
    """Kendall's tau-b of pairs, by Knight's method; None where one side is always the same."""
    ordered = sorted(points)
    n = len(ordered)
    every = n * (n - 1) // 2
    same_x, same_y = _ties(x for x, _ in ordered), _ties(y for _, y in ordered)
    if every in (same_x, same_y):
        return None
    swaps = _inversions([y for _, y in ordered])
    concordant_less_discordant = every - same_x - same_y + _ties(ordered) - 2 * swaps
    return concordant_less_discordant / sqrt((every - same_x) * (every - same_y))


def _ties(values: Iterable[object]) -> int:
    """Pairs of equal values."""
    return sum(count * (count - 1) // 2 for count in Counter(values).values())


def _inversions(values: list[float]) -> int:
    """Pairs in the wrong order, by merging."""
    if len(values) < 2:
        return 0
    half = len(values) // 2
    left, right = values[:half], values[half:]
    found = _inversions(left) + _inversions(right)
    left.sort()
    return found + sum(len(left) - bisect_right(left, value) for value in right)
