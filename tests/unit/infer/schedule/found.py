"""What ways of scheduling predict, and the way that is found."""

from cyclescope.infer.scheduler import Predictions, Scheduling, scheduling_of
from cyclescope.model.facts import SCHEDULER, CoreAnswer, Fact
from cyclescope.model.machine import Wakeup
from cyclescope.probe.core.scheduler import scheduler_cases


def predicted(machine, table, way, cases=scheduler_cases):
    """Cycles of the probe's kernels by subject."""
    made = Predictions(machine, table, cases)
    made.add(way, made.kernels)
    return made.of(way)


def binding_of(machine, facts, table):
    """The policy alone."""
    return scheduling_of(machine, facts, table).binding


def read(machine, table, policy, error=0.01, wakeup=None, single=()):
    """Facts as a core with a policy would give them."""
    cycles = predicted(machine, table, Scheduling(policy, wakeup, single))
    return [Fact(SCHEDULER, name, CoreAnswer.VALUE, value, error) for name, value in cycles.items()]


def with_wakeup(machine, clusters=()):
    """How additions' ports of a machine are scheduled where they announce results."""
    (operation,) = machine.forms["ADD_01 (R64, R64)"].operations
    return Wakeup(operation.ports, clusters)
