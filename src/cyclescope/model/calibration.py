"""How often the claims of a measured model hold: what mixes showed that had no part in making it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

LEVELS = ("high", "medium", "low")
NEAR = 0.10  # of the predicted cycles: a mix within it is predicted
ENOUGH = 20  # mixes: shares of fewer are chance
GOOD = {"high": 0.9, "medium": 0.75}  # of the mixes: less, and a level does not say what it means


class TriedMixes(msgspec.Struct, frozen=True):
    """So many mixes, how many of them took what was predicted within `NEAR`, and the mean error."""

    number: int
    held: int
    error: float

    @property
    def share(self) -> float:
        """Of the mixes that held."""
        return self.held / self.number if self.number else 0.0


class ClaimCalibration(msgspec.Struct, frozen=True, omit_defaults=True):
    """By the confidence of the least sure form: mixes, and of these those that ports of such a form decide.

    The mixes were drawn after everything that they test had been settled. `orders` is by how much the
    same instructions in another order differ, relative: half of the mixes by less than the first number,
    95 of 100 by less than the second. Of the `claims` for ports, `covered` were in a mix at all; fresh
    mixes `refuted` so many of them, whose confidence is low now, and left less of it to those `doubted`, as
    mixes with other forms of their kind hold too seldom.
    """

    mixes: Mapping[str, TriedMixes] = {}
    ports: Mapping[str, TriedMixes] = {}
    orders: tuple[float, float] = (0.0, 0.0)
    claims: int = 0
    covered: int = 0
    refuted: int = 0
    doubted: int = 0

    @property
    def bad(self) -> Mapping[str, TriedMixes]:
        """Levels of confidence that hold less often than they say."""
        return {
            level: tried for level, tried in self.mixes.items()
            if level in GOOD and tried.number >= ENOUGH and tried.share < GOOD[level]
        }  # fmt: skip
