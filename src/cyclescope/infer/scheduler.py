"""When does a core choose the ports of operations? The policy that makes its readings likeliest.

Every policy of the simulated core predicts the kernels of the probe `scheduler` with the model that was
measured; the likelihood of the readings chooses among them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from cyclescope.errors import BackendUnavailable, UnsupportedInstruction, UsageError
from cyclescope.isa.table import Table
from cyclescope.model.facts import SCHEDULER, Fact
from cyclescope.model.machine import BINDINGS, IDEAL, MachineModel
from cyclescope.probe.code import Assembler
from cyclescope.probe.core.scheduler import scheduler_cases

_PART = 0.1  # of the cycles by which a prediction may be off, as mixes of measured forms are
_FAR = 8.0  # nats: readings that no policy comes near tell of something else
_CLEAR = 3.0  # nats by which a policy has to be likelier than ports chosen at the start: odds of 20 : 1
_FEWEST = 4  # readings: fewer are explained by chance


def predicted(machine: MachineModel, table: Table, policy: str) -> dict[str, float]:
    """Cycles of the probe's kernels by subject, as far as the model knows their instructions."""
    from cyclescope.simulate.program import Simulator  # loads the engine

    simulator, assembler = Simulator(machine, policy), Assembler(table)
    found: dict[str, float] = {}
    for subject, point in scheduler_cases(table.isa):
        kernel = assembler.kernel(point.lines, point.flags)
        if all(simulator.knows(one.form) for one in kernel.body):
            found[subject] = simulator.run(kernel.body, kernel.state).cycles
    return found


def binding_of(machine: MachineModel, facts: Iterable[Fact], table: Table) -> str:
    """The policy that the readings of the probe speak for, "" where they speak for none.

    Where none is plainly likelier than ports that are chosen when operations start, nothing is said.
    """
    read = {f.subject: f for f in facts if f.probe == SCHEDULER and f.value is not None}
    if len(read) < _FEWEST or not machine.ports:
        return ""
    try:
        made = {policy: predicted(machine, table, policy) for policy in BINDINGS}
    except (BackendUnavailable, UnsupportedInstruction, UsageError):
        return ""
    nats = {policy: _nats(read, cycles) for policy, cycles in made.items()}
    likeliest = min(BINDINGS, key=nats.__getitem__)
    known = len(read.keys() & made[IDEAL].keys())
    return likeliest if known >= _FEWEST and nats[likeliest] + _CLEAR <= nats[IDEAL] else ""


def _nats(read: Mapping[str, Fact], made: Mapping[str, float]) -> float:
    """Nats against the readings where a policy takes so many cycles; one that is far off counts once."""
    return math.fsum(min(_against(fact, made[name]), _FAR) for name, fact in read.items() if name in made)


def _against(fact: Fact, cycles: float) -> float:
    value = fact.value or 0.0
    width = math.hypot(fact.error or 0.0, _PART * value)
    return 0.5 * ((cycles - value) / width) ** 2
