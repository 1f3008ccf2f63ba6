"""How late does a core know which half of its ports the last access got?

Sequences of accesses alone tell, whose cycles of dispatch are full of them. Mixes do not: few are limited by
their accesses, and a share that goes astray explains these nearly as well.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence

import msgspec

from cyclescope.infer.refute.drawer import TRIES
from cyclescope.infer.refute.kinds import FEWEST_FORMS, MOST_FORMS, PROVED
from cyclescope.infer.refute.mixes import MixModel
from cyclescope.infer.refute.planner import Forms, MixPlanner
from cyclescope.model.calibration import ENOUGH, NEAR
from cyclescope.model.limits import PATIENCE


def known_late(model: MixModel, measured: Sequence[tuple[tuple[str, ...], float]]) -> MixModel:
    """The same model where it is known as late as sequences with their cycles show, at once if none do."""
    if model.halves is None or not measured:
        return model

    def missed(way: MixModel) -> float:
        return sum(abs(cycles / (way.cycles(forms) or math.inf) - 1) for forms, cycles in measured)

    late = range(int(PATIENCE.most) + 1)
    return min((model.with_halves(msgspec.structs.replace(model.halves, late=n)) for n in late), key=missed)


def accesses_in_order(model: MixModel, planner: MixPlanner, draw: random.Random) -> Iterator[Forms]:
    """Sequences of a form for both halves, one for the first, and one for the second, in any order.

    Each has other forms: one that is not what it seems to be would spoil all.
    """
    if model.halves is None:
        return
    both = model.halves.both
    sides = (_only_for(model, ports, both) for ports in (both, model.halves.first, model.halves.second))
    kinds = [names for names in sides if names]
    for _ in range(PROVED * ENOUGH if len(kinds) > 1 else 0):
        tries = ([model.facts.table[draw.choice(names)] for names in kinds] for _ in range(TRIES))
        forms = next((some for some in tries if planner.parts(some) is not None), [])
        if forms:
            yield tuple(draw.choices(forms, k=draw.randint(FEWEST_FORMS, MOST_FORMS)))


def _only_for(model: MixModel, ports: tuple[int, ...], both: tuple[int, ...]) -> list[str]:
    """Sure forms with one access, on these ports, as often as these take it, as little else as any."""
    found: dict[tuple[float, int], list[str]] = {}
    for name in filter(model.tells_halves, model.claimed):
        usage, cycles = model.usages[name], model.facts.front_end.throughputs.get(name, math.inf)
        operations = usage.operations or ()
        here = [(op.ports, op.count, op.cycles) for op in operations if {*both}.issuperset(op.ports)]
        if here == [(ports, 1.0, 1.0)] and cycles * len(ports) <= 1 + NEAR:
            found.setdefault((usage.slots or math.inf, len(operations)), []).append(name)
    return found[min(found)] if found else []
