"""What a class of blocking instructions should cost by an explanation of a form."""

from __future__ import annotations

from typing import NamedTuple

from cyclescope.infer.likelihood.arrays import Array, Places, np


class Expected(NamedTuple):
    """What explanations cost classes at least and as a rule, and with which tail readings scatter.

    Every different expectation of a class is there once, `owners` are the classes' numbers, `places` has
    those of each explanation, a row for each class. `together` is as a rule where the instances stand in one
    place.
    """

    names: tuple[str, ...]
    least: Array
    usual: Array
    together: Array
    tails: Places
    owners: Places
    places: Places


def joined(one: Expected, other: Expected) -> Expected:
    """What two lots of explanations cost the same classes, the second behind the first."""
    return Expected(
        one.names,
        np.concatenate((one.least, other.least)),
        np.concatenate((one.usual, other.usual)),
        np.concatenate((one.together, other.together)),
        np.concatenate((one.tails, other.tails)),
        np.concatenate((one.owners, other.owners)),
        np.concatenate((one.places, other.places + len(one.least)), axis=1),
    )


def begun(inside: Array, instances: int, width: int) -> Array:
    """What micro-operations cost a class where loops take whole cycles, if that is no number of them."""
    found = np.ceil(inside * instances / width) * width / instances
    return np.where(found % 1, found, 0.0)
