"""What of a machine's shared resources forms keep busy."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from cyclescope.analyze.cost.changes import EXPLAINED, unexplained
from cyclescope.model.machine import FormCost, MachineModel, Operation
from cyclescope.model.ports import ONLY_BESIDE, resource_ports
from cyclescope.once import once


class SharedResources:
    """The resources of a machine that have a capacity, some of which are units without a port."""

    def __init__(self, machine: MachineModel) -> None:
        self._machine = machine
        self._capacities = {name: most for name, most in machine.resources.items() if most > 0}
        ports = {name: frozenset(resource_ports(name, machine.ports)) for name in self._capacities}
        self._sets = {name: members for name, members in ports.items() if members}
        self._units = {name for name in ports.keys() - self._sets.keys() if not name.startswith(ONLY_BESIDE)}
        self._by_operations: dict[tuple[Operation, ...], set[str]] = {}

    def uses(self, cost: FormCost, alone: float) -> Iterator[tuple[str, float]]:
        """Cycles by shared resource; what is slower alone than its ports explain has its unit for as long."""
        unit = self._unit(cost, alone) if alone and self._units else ""
        for name, cycles in cost.resources.items():
            if name in self._capacities and name != unit:
                yield name, cycles / self._capacities[name]
        if unit:
            yield unit, max(cost.resources.get(unit, 0.0) / self._capacities[unit], alone)

    def counted(self, cost: FormCost) -> FormCost:
        """A cost whose operations are others than its form's: what they keep busy of the sets of ports."""
        if cost.operations is None:
            return cost
        used = {name: cycles for name, cycles in cost.resources.items() if name not in self._sets}
        for name, ports in self._sets.items():
            cycles = sum(op.count * op.cycles for op in cost.operations if ports.issuperset(op.ports))
            if cycles:
                used[name] = cycles
        return msgspec.structs.replace(cost, resources=used)

    def _unit(self, cost: FormCost, alone: float) -> str:
        """The unit without a port that a slow form is known to keep busy, or forms of its operations are."""
        if not cost.operations:
            return ""
        names = self._units & cost.resources.keys() or self._units_of(cost.operations)
        return next((name for name in names if len(names) == 1 and self._explains(name, cost, alone)), "")

    def _explains(self, unit: str, cost: FormCost, alone: float) -> bool:
        """Whether a unit is what a form waits for: it is not known to keep much less of it busy."""
        known = cost.resources.get(unit)
        return known is None or alone <= EXPLAINED * known / self._capacities[unit]

    def _units_of(self, operations: tuple[Operation, ...]) -> set[str]:
        """Units that forms of these operations keep busy and are slower for than their ports explain."""
        known = self._by_operations.get(operations)
        if known is None:
            alike = [cost for cost in self._limited if cost.operations == operations]
            slow = [cost for cost in alike if unexplained(cost, self._machine.core)]
            known = {name for cost in slow for name in self._units & cost.resources.keys()}
            self._by_operations[operations] = known
        return known

    @once
    def _limited(self) -> list[FormCost]:
        """The costs of forms that keep units without a port busy."""
        every = self._machine.forms.values()
        return [cost for cost in every if not self._units.isdisjoint(cost.resources)]
