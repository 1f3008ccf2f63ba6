"""Are ports dealt out in turn? What fresh mixes of the run show.

A core that gives the operations of a class one port after the other, however long each keeps its port, is
slower in some orders than their number says: of two loads of vectors, of which one takes two cycles, on two
ports, the same port gets the longer one in every trip.
"""

from __future__ import annotations

from collections.abc import Iterator

from cyclescope.infer.refute.calibration import Judge
from cyclescope.infer.refute.kinds import HELD_AT_WORST
from cyclescope.infer.refute.mixes import MixModel
from cyclescope.model.calibration import ENOUGH, NEAR
from cyclescope.model.facts import MEDIUM
from cyclescope.model.ports import turn_throughput

Ports = tuple[int, ...]


def dealt_in_turn(model: MixModel, judge: Judge) -> tuple[str, ...]:
    """Classes whose ports are dealt out in turn: mixes in the order of their forms take what that makes them.

    Only mixes tell it that would take clearly less otherwise, and as many of them have to be predicted by it
    as of `medium` forms at worst.
    """
    classes = {tuple(sorted(some)): name for name, some in sorted(model.facts.structure.sets.items())}
    found = []
    for ports, name in classes.items():
        told = list(_told(model, judge, ports)) if len(ports) > 1 else []
        if len(told) >= ENOUGH and sum(told) >= HELD_AT_WORST[MEDIUM] * len(told):
            found.append(name)
    return tuple(found)


def _told(model: MixModel, judge: Judge, ports: Ports) -> Iterator[bool]:
    """Of each mix that tells it, whether it takes what ports that are dealt out in turn make it take.

    None does where all operations for these ports keep them for as long.
    """
    every = ((form, model.usages[form].operations or ()) for form in judge.covered)
    busy = {form: some for form, ops in every if (some := [op for op in ops if op.ports == ports])}
    for trial in judge.trials:
        some = [op for form in trial.forms if form in busy for op in busy[form]]
        if not trial.plain or len({op.cycles for op in some}) < 2:
            continue
        cycles = turn_throughput(some, ports)
        if cycles > judge.predicted(trial) * (1 + NEAR):
            yield abs(trial.plain / cycles - 1) <= NEAR
