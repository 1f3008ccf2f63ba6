"""What a class of blocking instructions should cost by an explanation of a form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property

from cyclescope.infer.likelihood.arrays import Array, Places, np


class Expected:
    """What explanations cost classes at least and as a rule, and with which tail readings scatter.

    Every different expectation of a class is there once, `owners` are the classes' numbers, `places` has
    those of each explanation, a row for each class. `together` is as a rule where the instances stand in one
    place, `at_once` where all micro-operations of each are ready at once.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        least: Array,
        usual: Array,
        together: Array,
        at_once: Array,
        tails: Places,
        owners: Places,
        places: Places,
    ) -> None:
        self.names = names
        self.least, self.usual, self.together, self.at_once = least, usual, together, at_once
        self.tails, self.owners, self.places = tails, owners, places
        self.costs = cache(self._costs)

    @cached_property
    def _floors(self) -> tuple[Array, Places]:
        """Owner, tail and number of every different least cost, and its place there of each expectation."""
        kinds, where = np.unique(np.stack([self.owners, self.tails, self.least]), axis=1, return_inverse=True)
        return kinds, where.reshape(-1)

    @property
    def floor(self) -> Places:
        """The place of each expectation's least cost behind all expectations."""
        return self._floors[1]

    @cached_property
    def every_owner(self) -> Places:
        """The owner of every expectation, then that of every different least cost."""
        return np.concatenate((self.owners, self._floors[0][0].astype(np.intp)))

    @cached_property
    def every_tail(self) -> Places:
        """The tail of every expectation, then that of every different least cost."""
        return np.concatenate((self.tails, self._floors[0][1].astype(np.intp)))

    def numbers(self, near: Array, waits: Array, beside: Sequence[Mapping[str, float]]) -> Array:
        """What classes are expected to cost as a rule by each form, then every different least cost once.

        `near` and `waits` have a row for every look at each form, above 0 where instances stand in one place
        and where they wait, `beside` what else costs each class as a rule.
        """
        count = len(self.owners)
        found = np.empty(near.shape)
        usual = np.where(near[..., :count] > 0, self.together, self.usual)
        found[..., :count] = np.where(waits[..., :count] > 0, np.maximum(usual, self.at_once), usual)
        if any(beside):
            more = np.array([[some.get(name, 0.0) for name in self.names] for some in beside])
            found[..., :count] += more[:, None, self.owners]
        found[..., count:] = self._floors[0][2]
        return found

    def _costs(self, place: int) -> list[tuple[str, float, float]]:
        """What an explanation costs each class at least and as a rule."""
        kinds = self.places[:, place]
        return [*zip(self.names, self.least[kinds].tolist(), self.usual[kinds].tolist(), strict=True)]


def joined(one: Expected, other: Expected) -> Expected:
    """What two lots of explanations cost the same classes, the second behind the first."""
    rows = [
        np.concatenate(pair)
        for pair in (
            (one.owners, other.owners), (one.least, other.least), (one.usual, other.usual),
            (one.together, other.together), (one.at_once, other.at_once), (one.tails, other.tails),
        )
    ]  # fmt: skip
    kinds, where = np.unique(np.stack(rows), axis=1, return_inverse=True)
    places = np.concatenate((one.places, other.places + len(one.least)), axis=1)
    owners, tails = kinds[0].astype(np.intp), kinds[5].astype(np.intp)
    least, usual, together, at_once = kinds[1:5]
    return Expected(
        one.names, least, usual, together, at_once, tails, owners, where.reshape(-1)[places]
    )  # fmt: skip


def begun(inside: Array, instances: int, width: int) -> Array:
    """What micro-operations cost a class where loops take whole cycles, if that is no number of them."""
    found = np.ceil(inside * instances / width) * width / instances
    return np.where(found % 1, found, 0.0)
