"""What a class of blocking instructions should cost by an explanation of a form."""

from __future__ import annotations

from typing import NamedTuple

from cyclescope.infer.likelihood.arrays import Array, Places, np


class Expected(NamedTuple):
    """What explanations cost classes at least and as a rule, and with which tail readings scatter.

    Every different expectation of a class is there once, `owners` are the classes' numbers, `places` has
    those of each explanation by class. `together` is as a rule where the instances stand in one place.
    """

    names: tuple[str, ...]
    least: Array
    usual: Array
    together: Array
    tails: Places
    owners: Places
    places: Places


def begun(inside: Array, instances: int, width: int) -> Array:
    """What micro-operations cost a class where loops take whole cycles, if that is no number of them."""
    found = np.ceil(inside * instances / width) * width / instances
    return np.where(found % 1, found, 0.0)
