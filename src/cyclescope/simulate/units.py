"""What the ports of a machine are for: those that load and store, and when the others write results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property

import msgspec

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.register import domain
from cyclescope.isa.registry import instruction_set
from cyclescope.model.machine import FormCost, MachineModel, Operation
from cyclescope.model.ports import port_set

Ports = tuple[int, ...]

BROUGHT = -1  # cycles to the result of an operation that writes what another unit made


class Forms:
    """What follows from what the forms of a machine cost, on whatever core."""

    def __init__(self, costs: Mapping[str, FormCost]) -> None:
        self.costs = costs

    @cached_property
    def usual_results(self) -> Mapping[Ports, int]:
        """See the function."""
        return usual_results(self.costs.values())

    @cached_property
    def roomy(self) -> Forms | None:
        """What they cost while a scheduler has room; None where that makes no difference."""
        others = {
            name: msgspec.structs.replace(cost, latencies={**cost.latencies, **cost.with_room}, with_room={})
            for name, cost in self.costs.items()
            if cost.with_room
        }
        return Forms({**self.costs, **others}) if others else None


class Units(msgspec.Struct, frozen=True):
    """Port sets of the operations that load and store, as the machine's plain moves have them.

    `results` has the cycles to the result of an operation by its ports, where it matters when it comes;
    `crossed` are the ports that write what vector units made without an operation that is dealt to them,
    `waking` those whose operations wake up the readers of their results early, by their name as a resource;
    `flags` says that flags alone are a result, too.
    """

    loads: frozenset[Ports]
    stores: frozenset[Ports]
    results: Mapping[Ports, int] = {}
    crossed: Ports = ()
    waking: tuple[Ports, str] = ((), "")
    flags: bool = False

    @classmethod
    def of(cls, machine: MachineModel, forms: Forms | None = None) -> Units:
        """Those of a machine; `forms` are its own, where they were looked at before."""
        roles = instruction_set(machine.isa).roles
        loads, stores = (roles.load, *roles.loads), (roles.store, *roles.stores)
        writeback, wakeup = machine.core.writeback, machine.core.wakeup
        flags = wakeup is not None and wakeup.one_result
        results = (forms or Forms(machine.forms)).usual_results if writeback or flags else {}
        crossed = writeback.ports if writeback and writeback.crossing else ()
        if wakeup is not None and wakeup.leading:
            crossed = wakeup.ports
        waking = (wakeup.ports, port_set(wakeup.ports, machine.ports)) if wakeup else ((), "")
        return cls(_port_sets(machine, loads), _port_sets(machine, stores), results, crossed, waking, flags)

    def in_a_row(self, cost: FormCost) -> tuple[Operation, ...]:
        """The operations of a form: several on ports that wake up early take as long as was measured.

        Those that read each other's results ask in vain as readers of other forms do.
        """
        ports, name = self.waking
        operations = cost.operations or ()
        several = sum(op.count for op in operations if {*op.ports} <= {*ports})
        more = cost.resources.get(name, 0.0) / several if several > 1 else 0.0
        if more <= 1:
            return operations
        return tuple(
            Operation(op.ports, op.count, op.cycles * more) if {*op.ports} <= {*ports} else op
            for op in operations
        )

    def brings(self, form: InstructionForm, operation: Operation, others: Iterable[Operation]) -> bool:
        """Whether an operation of a form writes into a general register what vector units made."""
        if not self.crossed or not set(operation.ports) <= set(self.crossed):
            return False
        files = [(domain(op.cls), op) for op in form.operands if op.is_register and not op.implicit]
        written = any(file == "r" and op.write for file, op in files)
        computed = any(file == "v" and op.read for file, op in files)
        return written and (computed or any(self._is_elsewhere(other) for other in others))

    def _is_elsewhere(self, operation: Operation) -> bool:
        memory = operation.ports in self.loads or operation.ports in self.stores
        return not memory and not set(operation.ports) & set(self.crossed)


def _port_sets(machine: MachineModel, forms: Iterable[str]) -> frozenset[Ports]:
    costs = [machine.forms[form] for form in forms if form in machine.forms]
    return frozenset(op.ports for cost in costs for op in cost.operations or ())


def usual_results(costs: Iterable[FormCost]) -> dict[Ports, int]:
    """Cycles after which most of the operations on the same ports make a result, of those that are alone."""
    found: dict[Ports, Counter[int]] = {}
    for cost in costs:
        if is_alone(cost.operations or ()) and (cycles := _shortest(cost)):
            for operation in cost.operations or ():
                found.setdefault(operation.ports, Counter())[cycles] += 1
    return {ports: counts.most_common(1)[0][0] for ports, counts in found.items()}


def result_of(operation: Operation, cost: FormCost, usual: Mapping[Ports, int]) -> int:
    """Cycles between the start of an operation of a form and its result, 0 where they are not known."""
    alone = is_alone(cost.operations or ()) and _shortest(cost)
    return alone or usual.get(operation.ports, 0)


def is_alone(operations: tuple[Operation, ...]) -> bool:
    """Whether there is one operation, so that a form's latencies are those of it."""
    return len(operations) == 1 and operations[0].count == 1


def _shortest(cost: FormCost) -> int:
    """Whole cycles to the first result, 0 where no latency is known."""
    return round(min((cycles for cycles in cost.latencies.values() if cycles >= 1), default=0))
