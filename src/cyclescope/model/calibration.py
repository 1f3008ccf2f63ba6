"""How often the claims of a measured model hold: what mixes showed that had no part in making it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum

import msgspec

LEVELS = ("high", "medium", "low")
NEAR = 0.10  # of the predicted cycles: a mix within it is predicted
ENOUGH = 20  # mixes: shares of fewer are chance
# What levels say: so many mixes take what is predicted, and of those that ports decide what these allow.
PREDICTED = {"high": 0.95, "medium": 0.9}
ALLOWED = {"high": 0.995, "medium": 0.95}
TOLERATED = 0.03  # by which a share may fall short of what its level says
_CHANCE = 2.0  # standard errors by which one does by chance, in one case of forty


class TriedMixes(msgspec.Struct, frozen=True):
    """A number of mixes, how many of them took what was predicted within `NEAR`, and their mean error."""

    number: int
    held: int
    error: float

    @property
    def share(self) -> float:
        """Of the mixes that held."""
        return self.held / self.number if self.number else 0.0


class Promised(Enum):
    """What a level of confidence promises of mixes: they take what is predicted, or what ports allow."""

    MIXES = "mixes"
    PORTS = "ports"


class Promise(msgspec.Struct, frozen=True):
    """A promise of a level, that the share `said` of its mixes takes `what` it promises, and how those
    `tried` did."""

    level: str
    what: Promised
    tried: TriedMixes
    said: float

    @property
    def is_broken(self) -> bool:
        """Whether clearly less of the mixes held."""
        if self.tried.number < ENOUGH:
            return False
        chance = _CHANCE * math.sqrt(self.said * (1 - self.said) / self.tried.number)
        return self.tried.share < self.said - max(TOLERATED, chance)


class ClaimCalibration(msgspec.Struct, frozen=True, omit_defaults=True):
    """How often port usages hold, by the confidence of a mix's least sure form.

    The mixes were drawn after everything that they test had been settled. `mixes` are those that take the
    same however the core deals out ports; `dealt` are the others, of which no level promises what they take.
    `orders` is by how much the same instructions in another order differ, relative: half of the mixes by less
    than the first number, 95 of 100 by less than the second. Of all port usages (`claims`), `covered` were in
    a mix; `refuted` of them were wrong in fresh mixes and have low confidence now, and `doubted` have lost
    some, as mixes with other forms of their kind hold too seldom. Of all mixes that were `measured` those
    that other programs `disturbed` judge nothing.
    """

    mixes: Mapping[str, TriedMixes] = {}
    ports: Mapping[str, TriedMixes] = {}
    orders: tuple[float, float] = (0.0, 0.0)
    claims: int = 0
    covered: int = 0
    refuted: int = 0
    doubted: int = 0
    dealt: TriedMixes = TriedMixes(0, 0, 0.0)
    disturbed: int = 0
    measured: int = 0

    @property
    def lacks_mixes(self) -> bool:
        """Whether so many mixes were disturbed that they might have said something else."""
        return self.disturbed > TOLERATED * self.measured

    @property
    def broken(self) -> list[Promise]:
        """What levels of confidence say and mixes do not show, by more than what is tolerated and chance."""
        kinds = ((Promised.MIXES, self.mixes, PREDICTED), (Promised.PORTS, self.ports, ALLOWED))
        some = [Promise(level, what, tried[level], said[level])
                for what, tried, said in kinds for level in said if level in tried]  # fmt: skip
        return [promise for promise in some if promise.is_broken]
