"""How likely readings of forms are with every explanation: of many forms at once.

What numpy takes for a few hundred numbers is mostly beginning: for some forms together it begins once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cyclescope.infer.likelihood.arrays import Array, np
from cyclescope.infer.likelihood.expected import Expected
from cyclescope.infer.likelihood.noise import Look, Scatter, told_by

UNUSUAL = 3.0  # less among other classes than a form of these ports costs: one member of a class in twenty
UNEVEN = 1.1  # anything between these two: one member of a class in three

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
    values, errors, shares, near = told.transpose(2, 0, 1, 3)[:, :, :, expected.every_owner]
    every = expected.numbers(near, [beside for _, beside in asked])
    count, least = len(expected.owners), expected.least
    costs = noise.costs(values, errors, every, expected.every_tail)
    usual, as_usual = every[..., :count], costs[..., :count]
    between = noise.between(values[..., :count], errors[..., :count], least, usual) + UNEVEN
    as_least = (costs[..., count:] + UNUSUAL)[..., expected.floor]
    unusual = np.minimum(as_usual, np.minimum(as_least, between))
    total = (shares[..., :count] * np.where(usual > least, unusual, as_usual)).sum(axis=1)
    return np.asarray(total[:, expected.places].sum(axis=1))
