"""Do operations go to and fro between two halves of their ports? What fresh mixes of the run show.

A core that deals out accesses before it knows which port will be free may give one half of its address units
to one access, and the other half to the next. Vectors that only one half can load wait for it then, where two
other accesses stand side by side, and are not held up where they stand alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from cyclescope.infer.refute.kinds import HELD_AT_WORST, MOSTLY
from cyclescope.infer.refute.planner import ORDERS
from cyclescope.model.calibration import ENOUGH, NEAR
from cyclescope.model.facts import MEDIUM
from cyclescope.model.machine import Core, FormCost, Halves, Operation
from cyclescope.model.ports import Dealt, halves_throughput, late_throughput

EIGHTHS = 8  # steps in which what mixes show of shares is tried, from none to all


class DealtMix(msgspec.Struct, frozen=True):
    """A mix: the operations of each of its forms, its cycles, and those it takes in any order."""

    operations: tuple[tuple[Operation, ...], ...]
    cycles: float
    least: float


class ClassHalves(msgspec.Struct, frozen=True, array_like=True):
    """Halves by the names of their classes, whatever the ports are called."""

    first: str
    second: str
    astray: float
    late: int = 0


class HalvesTold(msgspec.Struct, frozen=True):
    """Halves, how many mixes tell of them, and how many of these take what they make them."""

    halves: Halves
    told: int
    right: int

    @property
    def hold(self) -> bool:
        """Whether mixes of these forms are predicted as those of `medium` forms at worst."""
        return self.right >= HELD_AT_WORST[MEDIUM] * self.told


def dealt_by_turns(mixes: Sequence[DealtMix], sets: Iterable[Collection[int]]) -> Halves | None:
    """The halves that most mixes prove; None where too few mixes tell, or these take something else.

    `sets` are the ports of the classes.
    """
    proved = [one for one in _tried(mixes, sets) if one.told >= ENOUGH and one.hold]
    return max(proved, key=lambda one: one.right).halves if proved else None


def undecided_halves(mixes: Sequence[DealtMix], sets: Iterable[Collection[int]]) -> list[Halves]:
    """Those of which too few mixes tell, and nothing that these say speaks against."""
    return [one.halves for one in _tried(mixes, sets) if one.told < ENOUGH and one.hold]


def _tried(mixes: Sequence[DealtMix], sets: Iterable[Collection[int]]) -> Iterator[HalvesTold]:
    """All halves that classes may have, with the share astray that explains most mixes."""
    for plain in _possible({tuple(sorted(some)) for some in sets}):
        some = [mix for mix in mixes if any(op.ports == plain.both for ops in mix.operations for op in ops)]
        found = _told(some, plain)
        if found.right > MOSTLY * found.told or found.told < ENOUGH:  # more are, as far as some go astray
            half = EIGHTHS // 2  # astray: dealt by chance
            parts = (msgspec.structs.replace(plain, astray=n / EIGHTHS) for n in range(half + 1))
            found = _told(some, max(parts, key=lambda one: _right(some, one)))
        yield found


def _told(mixes: Sequence[DealtMix], halves: Halves) -> HalvesTold:
    """Only those mixes tell that would take clearly less otherwise."""
    told = [mix for mix in mixes if by_halves(mix.operations, halves) > mix.least * (1 + NEAR)]
    return HalvesTold(halves, len(told), _right(told, halves))


def by_halves(forms: Sequence[Sequence[Operation]], halves: Halves) -> float:
    """Cycles of the fuller half for a mix, in the better of the orders in which it is measured."""
    plain = [op for ops in forms for op in ops]
    twice = [op for ops in forms for _ in range(ORDERS) for op in ops]
    return min(halves_throughput(plain, halves), halves_throughput(twice, halves) / ORDERS)


def late_by_halves(costs: Iterable[FormCost], halves: Halves, core: Core) -> float:
    """The same where the first of a cycle of dispatch goes on from earlier cycles."""
    plain = [Dealt(cost.slots or 0.0, cost.spare, cost.operations or ()) for cost in costs]
    twice = [one for one in plain for _ in range(ORDERS)]
    return min(late_throughput(plain, halves, core), late_throughput(twice, halves, core) / ORDERS)


def _possible(sets: Collection[tuple[int, ...]]) -> Iterator[Halves]:
    """Classes of as many ports whose ports together are those of a class."""
    for first in sorted(sets):
        for second in sorted(sets):
            both = tuple(sorted({*first, *second}))
            if len(first) == len(second) and len(both) == 2 * len(first) and both in sets:
                yield Halves(first, second)


def _right(mixes: Iterable[DealtMix], halves: Halves) -> int:
    """How many mixes are predicted with these halves."""
    made = ((mix.cycles, max(mix.least, by_halves(mix.operations, halves))) for mix in mixes)
    return sum(abs(cycles / predicted - 1) <= NEAR for cycles, predicted in made)
