"""The resource view of a measured machine: what every form takes of what limits mixes.

Resources are the sets of ports of the classes and their unions, the classes that no set of ports
explains, and units that nothing but the throughput of some forms shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import msgspec

from cyclescope.infer.port_names import port_groups
from cyclescope.infer.ports import NOISE, PortBuilder
from cyclescope.model.machine import FormCost, Operation
from cyclescope.model.ports import notation, port_throughput

SLOWER = 1.15  # times what all known resources allow: something else limits a form
MOST_SETS = 8  # of a group of ports whose unions are resources

Ports = tuple[int, ...]


def with_resources(
    costs: Mapping[str, FormCost], ports: PortBuilder
) -> tuple[dict[str, FormCost], dict[str, float]]:
    """The costs with the resources that each form takes, and the capacity of every resource."""
    view = _View(ports)
    found = {form: view.weights(form, cost) for form, cost in costs.items()}
    hidden = dict(_hidden(costs, found, view.capacities, ports.facts.width))
    for form, unit in hidden.items():
        found[form][unit] = costs[form].throughput or 0.0
    used = {name for weights in found.values() for name in weights}
    capacities = view.capacities | dict.fromkeys(hidden.values(), 1.0)
    return (
        {form: msgspec.structs.replace(cost, resources=found[form]) for form, cost in costs.items()},
        {name: capacity for name, capacity in capacities.items() if name in used},
    )


class _View:
    """Weights of forms on sets of ports and on units."""

    def __init__(self, ports: PortBuilder) -> None:
        self.facts = ports.facts
        known = self.facts.structure.sets
        self.sets = {_set_name(some, ports.names): some for some in _unions(known)}
        self.names = {
            name: _set_name(known[name], ports.names) if name in known else f"unit of {name}"
            for name in self.facts.widths
        }
        self.capacities = {name: float(len(some)) for name, some in self.sets.items()} | {
            self.names[name]: float(width) for name, width in self.facts.widths.items()
        }
        self.memory = {self.names[name] for name in known if "m" in self.facts.files[name]}

    def weights(self, form: str, cost: FormCost) -> dict[str, float]:
        """Cycles of each resource that a form takes.

        Of a set of ports it takes what its micro-operations cannot do elsewhere. Where they are not
        known, for units, and for ports of memory, it takes what it cost among blocking instructions,
        but no more than its own throughput lets it take, nor on ports that are not known more
        micro-operations than it has slots, and one more for memory.
        """
        found = self._measured(form, cost)
        if cost.operations is None and cost.slots is not None:
            memory = any(op.is_memory for op in self.facts.table[form].operands)
            most = math.ceil(cost.slots) + memory
            found = {name: min(v, most) if name in self.sets else v for name, v in found.items()}
        if cost.operations is not None:
            found = {name: v for name, v in found.items() if name not in self.sets or name in self.memory}
            for name, cycles in self._counted(cost.operations):
                found[name] = max(cycles, found.get(name, 0.0))
        return {name: round(cycles, 2) for name, cycles in found.items() if cycles > NOISE}

    def _measured(self, form: str, cost: FormCost) -> dict[str, float]:
        found: dict[str, float] = {}
        for blocker, cycles in self.facts.confined.get(form, {}).items():
            name = self.names[blocker]
            most = cycles if cost.throughput is None else self.capacities[name] * cost.throughput
            found[name] = max(min(cycles, most), found.get(name, 0.0))
        return found

    def _counted(self, operations: Sequence[Operation]) -> Iterator[tuple[str, float]]:
        for name, ports in self.sets.items():
            yield name, sum(op.count * op.cycles for op in operations if set(op.ports) <= set(ports))


def _set_name(ports: Ports, names: Sequence[str]) -> str:
    """`p06`, as in the notation of port usage."""
    return notation((Operation(ports),), names).removeprefix("1*")


def _unions(sets: Mapping[str, Ports]) -> list[Ports]:
    """Sets of ports that classes have, and unions of those that share ports, smallest first."""
    found: set[frozenset[int]] = set()
    for group in port_groups(sets):
        some = sorted({frozenset(sets[name]) for name in group}, key=sorted)[:MOST_SETS]
        for count in range(1, len(some) + 1):
            found |= {frozenset().union(*few) for few in combinations(some, count)}
    return sorted((tuple(sorted(ports)) for ports in found), key=lambda ports: (len(ports), ports))


def _hidden(
    costs: Mapping[str, FormCost],
    weights: Mapping[str, Mapping[str, float]],
    capacities: Mapping[str, float],
    width: float,
) -> Iterator[tuple[str, str]]:
    """Forms that run slower than all their resources allow, with the unit that limits them.

    Forms that are equal in all that was measured are taken to share it.
    """
    units: dict[object, str] = {}
    for form, cost in costs.items():
        if cost.throughput is None or cost.slots is None or not cost.operations:
            continue
        allowed = [cycles / capacities[name] for name, cycles in weights[form].items()]
        allowed += [port_throughput(cost.operations), cost.slots / width]
        if cost.throughput > SLOWER * max(allowed):
            key = round(cost.throughput, 1), round(cost.slots), _in_order(cost.operations)
            yield form, units.setdefault(key, f"what limits {form}")


def _in_order(operations: Iterable[Operation]) -> tuple[Operation, ...]:
    return tuple(sorted(operations, key=lambda op: (op.ports, op.count, op.cycles)))
