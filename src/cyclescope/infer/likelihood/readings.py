"""How likely readings of forms are with every explanation: of many forms at once.

What numpy takes for a few hundred numbers is mostly beginning: for some forms together it begins once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cyclescope.infer.likelihood.arrays import Array, np
from cyclescope.infer.likelihood.expected import Expected
from cyclescope.infer.likelihood.noise import Look, Scatter, tail_of, told_by

UNUSUAL = 3.0  # less among other classes than a form of these ports costs: one member of a class in twenty
UNEVEN = 1.1  # anything between these two: one member of a class in three
_STALLS = (1.0, 2.0, 3.0)  # cycles for which everything may stand still

Looks = Mapping[str, Sequence[Look]]
Asked = tuple[Looks, Mapping[str, float]]  # readings of a form, and what else costs each class as a rule


def nats_of(noise: Scatter, expected: Expected, asked: Sequence[Asked]) -> list[Array]:
    """Nats of all readings of each form with every explanation, in the order of the forms."""
    by_number: dict[int, list[int]] = {}
    for place, (looks, _) in enumerate(asked):
        by_number.setdefault(max(map(len, looks.values()), default=0), []).append(place)
    found: dict[int, Array] = {}
    for number, places in by_number.items():
        some = [asked[place] for place in places]
        found |= zip(places, _alike(noise, expected, some, number), strict=True)
    return [found[place] for place in range(len(asked))]


def _alike(noise: Scatter, expected: Expected, asked: Sequence[Asked], number: int) -> Array:
    """The same of forms that were read as often in one class, a row for each.

    Readings of the same are not independent, as what adds to one adds to the other: they count as one.
    """
    if not number:
        return np.zeros((len(asked), expected.places.shape[1]))
    told = np.array([
        [told_by([looks.get(name, ()) for name in expected.names], n) for n in range(number)]
        for looks, _ in asked
    ])  # fmt: skip
    values, errors, shares, near, waits = told.transpose(2, 0, 1, 3)[:, :, :, expected.every_owner]
    every = expected.numbers(near, waits, [beside for _, beside in asked])
    count, least = len(expected.owners), expected.least
    costs = noise.costs(values, errors, every, expected.every_tail)
    usual, as_usual = every[..., :count], costs[..., :count]
    between = noise.between(values[..., :count], errors[..., :count], least, usual) + UNEVEN
    as_least = (costs[..., count:] + UNUSUAL)[..., expected.floor]
    as_least = np.where(waits[..., :count] > 0, as_least - UNUSUAL, as_least)
    unusual = np.minimum(as_usual, np.minimum(as_least, between))
    total = (shares[..., :count] * np.where(usual > least, unusual, as_usual)).sum(axis=1)
    return np.asarray(total[:, expected.places].sum(axis=1))


class Unrelated(NamedTuple):
    """Nats of readings without micro-operations: they may be anything, or whole cycles of all classes.

    `widest` is the number of ports of the widest class that it was read in.
    """

    anything: float
    stalled: float
    widest: float

    def nats(self, slots: float) -> float:
        """The likelier; that everything stands still shows where slots let nothing cost a class as much."""
        return min(self.anything, self.stalled) if self.widest > max(2.0, slots + 0.5) else self.anything


def unrelated_of(noise: Scatter, widths: Mapping[str, int], every: Sequence[Looks]) -> list[Unrelated]:
    """That of the readings of each form; `widths` are the ports of the classes."""
    rows = [
        (look.value, look.error, widths[name], 1 / len(some))
        for looks in every for name, some in looks.items() for look in some
    ]  # fmt: skip
    values, errors, sizes, weights = np.array(rows, dtype=np.float64).reshape(-1, 4).T.copy()
    anything = noise.anything(errors)
    stalls = np.multiply.outer(_STALLS, sizes)
    stalled = noise.costs(values, errors, stalls, tail_of(near=True, full=False))
    found, end = [], 0
    for looks in every:
        own = slice(end, end := end + sum(map(len, looks.values())))
        share, cycles = weights[own], stalled[:, own].copy()  # as of one form alone: added in the same order
        nats = float(min(cycles @ share)) if len(looks) > 1 else math.inf
        widest = max((widths[name] for name in looks), default=0)
        found.append(Unrelated(float(share @ anything[own]), nats, widest))
    return found
