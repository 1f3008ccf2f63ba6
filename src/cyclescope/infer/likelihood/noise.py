"""How readings among blocking instructions scatter about what ports explain, learned from the run itself.

A neighbour, or a core that chooses ports before it knows which will be free, makes a reading larger and
never smaller. So the scatter has three parts: a normal distribution as wide as the rounds of a reading
differ, a tail above it, and a few readings that are worthless.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import msgspec

from cyclescope.infer.likelihood.arrays import Array, Places, np
from cyclescope.measure.record import HALF_WITHIN

MOST_TRIED = 4  # micro-operations for one set of ports: more are not tried, nor is a reading taken for more
SMALLEST_ERROR = 0.02  # micro-operations: rounds that differ less still share one alignment and one clock
_WEIGHT = 20.0  # readings that what is expected before any is seen counts for
_FAR = 3.0  # times the error: three normal readings of a thousand are further off
_PEAK = math.sqrt(math.tau)  # one, to the normal distribution at its likeliest


class Tail(msgspec.Struct, frozen=True):
    """The part of the readings that something adds to, and by how many micro-operations on average."""

    share: float
    length: float


class Look(msgspec.Struct, frozen=True):
    """A reading in micro-operations, and its own error as its rounds show it.

    `together` says that the instances stood in one place: units that are chosen early are chosen worse then.
    `waits` that each waited for a blocking instruction, and that all of it was ready at once then.
    """

    value: float
    error: float
    together: bool = False
    waits: bool = False


def told_by(looks: Sequence[Sequence[Look]], number: int) -> tuple[list[float], ...]:
    """Values and errors of the look of this number at each class, share of all, together, waiting."""
    none = Look(0.0, 1.0)  # any, for it has no share
    some = [(one[number], 1 / len(one)) if number < len(one) else (none, 0.0) for one in looks]
    return (
        [look.value for look, _ in some], [look.error for look, _ in some],
        [share for _, share in some], [float(look.together) for look, _ in some],
        [float(look.waits) for look, _ in some],
    )  # fmt: skip


class Scatter(msgspec.Struct, frozen=True):
    """Times the readings' own errors that they scatter, what adds to them, and the share worth nothing.

    The first of `tails` is for blocking instructions with which a form shares no port, the second for those
    with which it shares some, and two more for the same where the loop nearly fills the front end.
    """

    scale: float = 1.2
    tails: tuple[Tail, Tail, Tail, Tail] = (Tail(0.05, 0.1), Tail(0.2, 0.2), Tail(0.2, 0.4), Tail(0.2, 0.4))
    spoiled: float = 0.02

    def costs(self, values: Array, errors: Array, expected: Array, tails: Places | int) -> Array:
        """Nats that readings cost against expected numbers of micro-operations, each with its tail."""
        shares, lengths = _arrays(self.tails)
        share, length = shares[tails], lengths[tails]
        width = self.scale * np.maximum(errors, SMALLEST_ERROR)
        off = values - expected
        normal = np.exp(-0.5 * (off / width) ** 2)
        added = share * 0.5 * _PEAK * width / length * np.exp(-np.maximum(off, 0.0) / length)
        likely = np.where(off > 0, (1 - share) * normal + added, normal)
        return np.asarray(-np.log(likely + self.spoiled * _PEAK * width / MOST_TRIED))

    def between(self, values: Array, errors: Array, least: Array, most: Array) -> Array:
        """Nats of readings that are anywhere between two numbers of micro-operations."""
        width = _PEAK * self.scale * np.maximum(errors, SMALLEST_ERROR)
        inside = (values > least) & (values < most)
        likely = np.minimum(width / np.maximum(most - least, width), 1.0)
        return np.where(inside, -np.log(likely), np.inf)

    def anything(self, errors: Array) -> Array:
        """Nats of readings that nothing explains: they may be anywhere."""
        return np.asarray(
            -np.log(np.minimum(_PEAK * self.scale * np.maximum(errors, SMALLEST_ERROR) / MOST_TRIED, 1.0))
        )


@cache
def _arrays(tails: tuple[Tail, ...]) -> tuple[Array, Array]:
    """Shares and lengths of tails, by place."""
    return np.array([tail.share for tail in tails]), np.array([tail.length for tail in tails])


def alike(tail: Tail, spoiled: float = 0.01) -> Scatter:
    """The scatter where all readings have the same tail."""
    return Scatter(1.2, (tail,) * 4, spoiled)


def tail_of(near: bool, full: bool) -> int:
    """The place of the tail of readings that share ports, in loops that nearly fill the front end."""
    return 2 * full + near


def learned(readings: Sequence[Sequence[tuple[float, float]]]) -> Scatter:
    """The scatter of readings by their tails, each by how many micro-operations it is off and its own error.

    What falls below the expected is noise alone, and tells how wide that is.
    """
    start = Scatter()
    ratios = sorted(-off / max(error, SMALLEST_ERROR) for some in readings for off, error in some if off < 0)
    count = len(ratios)
    middle = ratios[count // 2] / HALF_WITHIN if count else start.scale
    scale = max((count * middle + _WEIGHT * start.scale) / (count + _WEIGHT), 1.0)
    far = sum(ratio > _FAR * scale for ratio in ratios)
    spoiled = (2 * far + _WEIGHT * start.spoiled) / (2 * count + _WEIGHT)
    one, two, three, four = (
        _tail(some, scale, tail) for some, tail in zip(readings, start.tails, strict=True)
    )
    return Scatter(scale, (one, two, three, four), min(spoiled, 0.2))


def _tail(readings: Sequence[tuple[float, float]], scale: float, start: Tail) -> Tail:
    more = [off for off, error in readings if off > _FAR * scale * max(error, SMALLEST_ERROR)]
    share = (len(more) + _WEIGHT * start.share) / (len(readings) + _WEIGHT)
    length = (math.fsum(more) + _WEIGHT * start.share * start.length) / (len(more) + _WEIGHT * start.share)
    return Tail(min(share, 0.5), length)
