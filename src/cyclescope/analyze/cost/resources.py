"""What of a machine's shared resources forms keep busy."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import msgspec

from cyclescope.analyze.cost.changes import unexplained
from cyclescope.model.machine import FormCost, MachineModel, Operation
from cyclescope.model.ports import resource_ports


class SharedResources:
    """The resources of a machine that have a capacity, some of which are units without a port."""

    def __init__(self, machine: MachineModel) -> None:
        self._machine = machine
        self._capacities = {name: most for name, most in machine.resources.items() if most > 0}
        ports = {name: frozenset(resource_ports(name, machine.ports)) for name in self._capacities}
        self._sets = {name: members for name, members in ports.items() if members}
        self._units = ports.keys() - self._sets.keys()

    def uses(self, cost: FormCost, alone: float) -> Iterator[tuple[str, float]]:
        """Cycles by shared resource; what is slower alone than its ports explain has its unit for as long."""
        unit = self._unit(cost) if alone and self._units else ""
        for name, cycles in cost.resources.items():
            if name in self._capacities and name != unit:
                yield name, cycles / self._capacities[name]
        if unit:
            yield unit, max(cost.resources.get(unit, 0.0) / self._capacities[unit], alone)

    def counted(self, cost: FormCost) -> FormCost:
        """A cost whose operations are others than its form's: what they keep busy of the sets of ports."""
        if cost.operations is None:
            return cost
        used = {name: cycles for name, cycles in cost.resources.items() if name in self._units}
        for name, ports in self._sets.items():
            cycles = sum(op.count * op.cycles for op in cost.operations if ports.issuperset(op.ports))
            if cycles:
                used[name] = cycles
        return msgspec.structs.replace(cost, resources=used)

    def _unit(self, cost: FormCost) -> str:
        """The unit without a port that a slow form is known to keep busy, or forms of its operations are."""
        names = self._units & cost.resources.keys() or self._units_of.get(cost.operations or (), set())
        return min(names) if len(names) == 1 and cost.operations else ""

    @cached_property
    def _units_of(self) -> dict[tuple[Operation, ...], set[str]]:
        """Units by the operations of forms that keep them busy and are slower than their ports explain."""
        found: dict[tuple[Operation, ...], set[str]] = {}
        for cost in self._machine.forms.values():
            if not self._units.isdisjoint(cost.resources) and unexplained(cost, self._machine.core):
                own = self._units & cost.resources.keys()
                found.setdefault(cost.operations or (), set()).update(own)
        return found
