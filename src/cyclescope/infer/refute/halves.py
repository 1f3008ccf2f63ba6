"""Do operations go to and fro between two halves of their ports? What fresh mixes of the run show.

A core that deals out accesses before it knows which port will be free may give one half of its address units
to one access, and the other half to the next. Vectors that only one half can load wait for it then, where two
other accesses stand side by side, and are not held up where they stand alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from cyclescope.infer.refute.kinds import EIGHTHS, HELD_AT_WORST, MOSTLY
from cyclescope.infer.refute.planner import ORDERS
from cyclescope.model.calibration import ENOUGH, NEAR
from cyclescope.model.facts import MEDIUM
from cyclescope.model.machine import Core, FormCost, Halves
from cyclescope.model.ports import Dealt, by_halves


class DealtMix(msgspec.Struct, frozen=True):
    """A mix: what is dispatched for each of its forms, its cycles, and those it takes in any order."""

    forms: tuple[FormCost, ...]
    cycles: float
    least: float

    def has(self, ports: tuple[int, ...]) -> bool:
        """Whether an operation has just these ports."""
        return any(op.ports == ports for one in self.forms for op in one.operations or ())


class Dealing(NamedTuple):
    """Mixes, the ports of each class, and the core, whose width counts."""

    mixes: Sequence[DealtMix]
    sets: Sequence[Collection[int]]
    core: Core


class HalvesTold(msgspec.Struct, frozen=True):
    """Halves, how many mixes tell of them, how many of these take what they make them, and what all miss."""

    halves: Halves
    told: int
    right: int
    missed: float

    @property
    def hold(self) -> bool:
        """Whether mixes of these forms are predicted as those of `medium` forms at worst."""
        return self.right >= HELD_AT_WORST[MEDIUM] * self.told

    @property
    def is_proved(self) -> bool:
        """Whether enough mixes tell, too."""
        return self.told >= ENOUGH and self.hold


def dealt_by_turns(some: Dealing) -> Halves | None:
    """The halves that most mixes prove; None where too few mixes tell, or these take something else."""
    proved = ([one for one in tried if one.is_proved] for tried in _tried(*some))
    best = [min(ways, key=lambda one: one.missed) for ways in proved if ways]
    return max(best, key=lambda one: one.right).halves if best else None


def undecided_halves(some: Dealing) -> list[Halves]:
    """Those of which too few mixes tell, and nothing that these say speaks against."""
    best = (min(tried, key=lambda one: (not (one.told and one.hold), one.missed)) for tried in _tried(*some))
    return [one.halves for one in best if one.told < ENOUGH and one.hold]


def _tried(
    mixes: Sequence[DealtMix], sets: Iterable[Collection[int]], core: Core
) -> Iterator[list[HalvesTold]]:
    """Of all halves that classes may have the ways to go to and fro between them."""
    for plain in _possible({tuple(sorted(some)) for some in sets}):
        some = [mix for mix in mixes if mix.has(plain.both)]
        found = _told(some, plain, core)
        more = found.right > MOSTLY * found.told or found.told < ENOUGH  # are, as far as some go astray
        yield [_told(some, one, core) for one in _ways(plain)] if more else [found]


def _ways(plain: Halves) -> Iterator[Halves]:
    """With any share astray, up to dealt by chance, or with late knowledge of the last one."""
    yield from (msgspec.structs.replace(plain, astray=n / EIGHTHS) for n in range(EIGHTHS // 2 + 1))
    yield from (msgspec.structs.replace(plain, late=cycles) for cycles in (1, 2))


def _told(mixes: Sequence[DealtMix], halves: Halves, core: Core) -> HalvesTold:
    """Only those mixes tell that would take clearly less otherwise."""
    told, right, missed = 0, 0, 0.0
    for mix in mixes:
        taken = mix_by_halves(mix.forms, halves, core)
        miss = abs(mix.cycles / max(mix.least, taken) - 1)
        missed += miss
        if taken > mix.least * (1 + NEAR):
            told, right = told + 1, right + (miss <= NEAR)
    return HalvesTold(halves, told, right, missed)


def mix_by_halves(forms: Iterable[FormCost], halves: Halves, core: Core) -> float:
    """Cycles of the fuller half for a mix, in the better of the orders in which it is measured."""
    once = [Dealt.of(one) for one in forms]
    twice = [one for one in once for _ in range(ORDERS)]
    return min(by_halves(once, halves, core), by_halves(twice, halves, core) / ORDERS)


def _possible(sets: Collection[tuple[int, ...]]) -> Iterator[Halves]:
    """Classes of as many ports whose ports together are those of a class."""
    for first in sorted(sets):
        for second in sorted(sets):
            both = tuple(sorted({*first, *second}))
            if len(first) == len(second) and len(both) == 2 * len(first) and both in sets:
                yield Halves(first, second)
