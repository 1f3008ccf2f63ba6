"""The resource view of a measured machine: what every form takes of what limits mixes.

Resources are the sets of ports of the classes and their unions, the classes that no set of ports
explains, and units that nothing but the throughput of some forms shows.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import msgspec

from cyclescope.infer.copies import MadeAhead
from cyclescope.infer.likelihood.structure import port_sets
from cyclescope.infer.ports.builder import NOISE, PortBuilder, PortUsage
from cyclescope.infer.ports.candidates import domains
from cyclescope.infer.ports.evidence import PortFacts
from cyclescope.infer.ports.groups import WEIGHED_AT_ONCE, is_load
from cyclescope.infer.ports.naming import port_groups
from cyclescope.isa.form import InstructionForm
from cyclescope.model.machine import FormCost, Operation
from cyclescope.model.ports import ONLY_BESIDE, port_set, port_throughput

_SLOWER = 1.15  # times what all known resources allow: something else limits a form
_MOSTLY = 0.8  # of its own throughput for which a form holds what limits another one: it needs the same
SMALLEST_PART = (
    0.5  # of the other's throughput at least: smaller parts are not told from what else is in the way
)
_SURE = 0.7  # the same, where the form's own ports explain its throughput
STEALS = 2  # ports that a micro-operation of a form holds whose port usage is not known
HALFWAY = 0.5  # of what forms cost others beyond their operations, until mixes say how much of it counts
_AT_ONCE = 8 * WEIGHED_AT_ONCE  # forms whose usages are made at once: a twentieth of a second
MOST_SETS = 8  # of a group of ports whose unions are resources

Ports = tuple[int, ...]


class Shares(NamedTuple):
    """How much counts of what forms cost others beyond the micro-operations that must be on some ports.

    `uneven` of what accesses side by side cost others, who have fewer ports; `late` of the turns that results
    take which come late.
    """

    uneven: float = HALFWAY
    late: float = HALFWAY


UNTOLD = Shares()  # before mixes say how much of each counts


def with_resources(
    costs: Mapping[str, FormCost], ports: PortBuilder, late: Container[str] = (), shares: Shares = UNTOLD
) -> tuple[dict[str, FormCost], dict[str, float]]:
    """The costs with the resources that each form takes, and the capacity of every resource.

    `late` are the forms whose results take others a turn of their ports.
    """
    return ResourceView(ports, late).with_resources(costs, shares)


def port_resources(ports: PortBuilder) -> list[str]:
    """The resources that are sets of ports; all others are units."""
    view = ResourceView(ports)
    return [*view.sets, *(view.names[name] for name in ports.structure.sets if name in view.names)]


def make_ahead(ports: PortBuilder, forms: Iterable[str]) -> MadeAhead[tuple[str, float | None], PortUsage]:
    """Have usages of forms made by another CPU, if there is one: nobody needs the last of them soon."""
    cycles, table = ports.facts.front_end.throughputs, ports.facts.table
    keys = [(form, cycles.get(form)) for form in forms if form in ports.facts.confined]
    _ = ports.memory, ports.facts.evidence.sure  # what all usages rest on is solved before, with threads
    ports.ahead = MadeAhead(lambda key: ports.usage(table[key[0]], key[1]), keys, _AT_ONCE)
    return ports.ahead


def hidden_units(
    ports: PortBuilder, forms: Sequence[InstructionForm], usages: Mapping[str, PortUsage]
) -> Hidden:
    """What the facts tell of units that no port explains, for experiments that tell more.

    `usages` are known by other facts: what these make of them is needed after half of the others.
    """
    now = [form.id for form in forms if form.id not in usages]
    make_ahead(ports, [*(form for form in ports.facts.confined if form in usages), *now[len(now) // 2 :]])
    view, cycles_of = ResourceView(ports), ports.facts.front_end.throughputs
    costs = {
        form.id: _cost(usages.get(form.id) or ports.usage(form, cycles), cycles)
        for form in forms
        if (cycles := cycles_of.get(form.id)) is not None
    }
    return Hidden(costs, view.of(costs, UNTOLD), view.capacities, ports.facts)


def _cost(usage: PortUsage, throughput: float) -> FormCost:
    return FormCost(
        usage.slots, usage.operations, throughput=throughput, microcoded=usage.microcoded,
        confidence=usage.confidence, alternatives=usage.alternatives,
    )  # fmt: skip


class _Taken(NamedTuple):
    """What a form takes by its `cost`: `fixed` cycles of resources, and more that shares of others decide.

    Each has the name of its resource. Of `late` turns a share is added; `uneven` are cycles of which a share
    may be more than what is fixed, and the most that it may be.
    """

    cost: FormCost
    fixed: dict[str, float]
    late: list[tuple[str, float]]
    uneven: list[tuple[str, float, float]]


class ResourceView:
    """Weights of forms on sets of ports and on units.

    `late` are the forms whose results take others a turn of their ports.
    """

    def __init__(self, ports: PortBuilder, late: Container[str] = ()) -> None:
        self.facts = ports.facts
        self._late = late
        self._taken: dict[str, _Taken] = {}
        known = ports.structure.sets
        self.sets = {port_set(some, ports.names): some for some in _unions(known)}
        self.names = {
            name: port_set(known[name], ports.names) if name in known else f"unit of {name}"
            for name in self.facts.classes.widths
            if name not in self.facts.renamed
        }
        self.capacities = {name: float(len(some)) for name, some in self.sets.items()} | {
            label: float(self.facts.classes.widths[name]) for name, label in self.names.items()
        }
        self._more = ports.wide_loads.of
        self._wide = {head: ONLY_BESIDE + self.names[head] for head in ports.wide_loads.heads}
        self.capacities |= {name: self.capacities[self.names[head]] for head, name in self._wide.items()}
        self.memory = ports.memory
        self._heads: dict[str, list[str]] = {}
        for head, label in self.names.items():
            self._heads.setdefault(label, []).append(head)
        self._of_memory = {name for name, some in self.sets.items() if self.memory.issuperset(some)}
        self._counts: dict[tuple[Operation, ...], Mapping[str, float]] = {}

    def with_resources(
        self, costs: Mapping[str, FormCost], shares: Shares
    ) -> tuple[dict[str, FormCost], dict[str, float]]:
        """The costs with the resources that each form takes, and the capacity of every resource."""
        found = self.of(costs, shares)
        hidden = Hidden(costs, found, self.capacities, self.facts)
        for form, units in hidden.weights().items():
            found[form] = found[form] | units
        capacities = self.capacities | dict.fromkeys(hidden.names.values(), 1.0)
        used = {name for weights in found.values() for name in weights}
        return (
            {form: msgspec.structs.replace(cost, resources=found[form]) for form, cost in costs.items()},
            {name: capacity for name, capacity in capacities.items() if name in used},
        )

    def dealt_out(
        self, costs: Mapping[str, FormCost], shares: Shares
    ) -> tuple[dict[str, FormCost], dict[str, float]]:
        """Costs that have their resources with those on sets of ports anew, and the capacities of these."""
        found = {}
        for form, some in self.of(costs, shares).items():
            units = {name: cycles for name, cycles in costs[form].resources.items() if name not in self.sets}
            on_ports = {name: cycles for name, cycles in some.items() if name in self.sets}
            found[form] = msgspec.structs.replace(costs[form], resources=units | on_ports)
        return found, self.capacities

    def of(self, costs: Mapping[str, FormCost], shares: Shares) -> dict[str, dict[str, float]]:
        """The weights of every form."""
        return {form: self._weights(form, cost, shares) for form, cost in costs.items()}

    def _weights(self, form: str, cost: FormCost, shares: Shares) -> dict[str, float]:
        """Cycles of each resource that a form takes.

        Of a set of ports it takes what its micro-operations cannot do elsewhere. Where they are not
        known, for units, and for ports of memory, it takes what it cost among blocking instructions,
        but no more than its own throughput lets it take, nor on ports that are not known more
        micro-operations than it has slots, and one more for memory, or twice as many where it keeps
        others from their ports.
        """
        taken = self._taken.get(form)
        if taken is None or taken.cost is not cost:
            taken = self._taken[form] = self._take(form, cost)
        if not taken.late and not taken.uneven:
            return taken.fixed
        found = dict(taken.fixed)
        for name, turns in taken.late:
            found[name] += shares.late * turns
        for name, cycles, most in taken.uneven:
            found[name] = max(found[name], min(shares.uneven * cycles, most))
        return _told(found)

    def _take(self, form: str, cost: FormCost) -> _Taken:
        found = self._measured(form, cost)
        if cost.operations is not None:
            taken = self._used(form, cost, found)
            return taken if taken.late or taken.uneven else taken._replace(fixed=_told(taken.fixed))
        if cost.slots is not None:
            memory = any(op.is_memory for op in self.facts.table[form].operands)
            most = math.ceil(cost.slots) + memory
            most *= 1 if cost.microcoded else STEALS
            found = {name: min(v, most) if name in self.sets else v for name, v in found.items()}
        return _Taken(cost, _told(found), [], [])

    def _beside(self, form: str, operations: tuple[Operation, ...]) -> dict[str, float]:
        """What a load takes of others of these ports: what it was measured to, however fast it is alone, if
        it is as wide as those that cost others a turn, and what its micro-operations take if not.
        """
        if not self._wide or not is_load(one := self.facts.table[form]):
            return {}
        measured, counted = self.facts.confined.get(form, {}), self._counted(operations)
        wide = self._wide.keys() & self._more(one, self._wide).keys() & measured.keys()
        return {
            name: measured[head] if head in wide else counted.get(self.names[head], 0.0)
            for head, name in self._wide.items()
        }

    def _used(self, form: str, cost: FormCost, measured: Mapping[str, float]) -> _Taken:
        """What micro-operations take; more of it where memory is slower, or where results come late."""
        operations, turns, uneven = cost.operations or (), [], []
        late = form in self._late
        found = {name: cycles for name, cycles in measured.items() if name not in self.sets}
        accesses = sum(op.count * op.cycles for op in operations if self.memory.issuperset(op.ports))
        for name, count in self._counted(tuple(operations)).items():
            found[name], taken = count, measured.get(name, 0.0)
            if name in self._of_memory:
                found[name] = max(count, min(taken, accesses))
                if accesses and (cycles := self._in_the_way(form, cost, name)):
                    uneven.append((name, cycles, self._most(name, cost)))
            elif late and count and taken > count:
                turns.append((name, taken - count))
        return _Taken(cost, found | self._beside(form, tuple(operations)), turns, uneven)

    def _in_the_way(self, form: str, cost: FormCost, name: str) -> float:
        """What accesses may take of some ports with others left: ports are dealt out before any is free.

        How much of it depends on the order of a mix: none where the two kinds stand in turn, all in others.
        Even those that cannot have a port are in the way: stores are in that of loads of vectors.
        """
        some = set(self.sets[name])
        either = sum(
            op.count * op.cycles
            for op in cost.operations or ()
            if self.memory.issuperset(op.ports) and not some.issuperset(op.ports)
        )
        if not either:
            return 0.0
        known = self.facts.looks(form)
        looks = [
            look.value for head in self._heads.get(name, ()) for look in known.get(head, ()) if look.together
        ]
        return min(either, *looks) if looks else 0.0

    def _measured(self, form: str, cost: FormCost) -> dict[str, float]:
        found: dict[str, float] = {}
        for blocker, cycles in self.facts.confined.get(form, {}).items():
            if blocker not in self.names:
                continue
            name = self.names[blocker]
            found[name] = max(min(cycles, self._most(name, cost)), found.get(name, 0.0))
        return found

    def _most(self, name: str, cost: FormCost) -> float:
        """What a form may take of a resource and run as fast as it does."""
        slowest = cost.throughput_most if cost.throughput is None else cost.throughput
        return math.inf if slowest is None else self.capacities[name] * slowest

    def _counted(self, operations: tuple[Operation, ...]) -> Mapping[str, float]:
        """Cycles of micro-operations that have to be on each set of ports."""
        if operations not in self._counts:
            busy = [(frozenset(op.ports), op.count * op.cycles) for op in operations]
            self._counts[operations] = {
                name: sum(cycles for ports, cycles in busy if ports.issubset(some))
                for name, some in self.sets.items()
            }
        return self._counts[operations]


def _told(cycles: Mapping[str, float]) -> dict[str, float]:
    """What is more than noise."""
    return {name: round(float(some), 2) for name, some in cycles.items() if some > NOISE}


def _unions(sets: Mapping[str, Ports]) -> list[Ports]:
    """Sets of ports that classes have, what two share, and unions of those that do, smallest first."""
    found = {frozenset(ports) for ports in port_sets(sets)}
    for group in port_groups(sets):
        some = sorted({frozenset(sets[name]) for name in group}, key=sorted)[:MOST_SETS]
        for count in range(1, len(some) + 1):
            found |= {frozenset().union(*few) for few in combinations(some, count)}
    return sorted((tuple(sorted(ports)) for ports in found), key=lambda ports: (len(ports), ports))


class Hidden:
    """Units that nothing but the throughput of some forms shows.

    `slow` are the forms that run slower than all their resources allow, those of the same register files
    that are equal in all that was measured together, by the one that stands for them; `alike` all forms in
    the same way.
    """

    def __init__(
        self,
        costs: Mapping[str, FormCost],
        weights: Mapping[str, Mapping[str, float]],
        capacities: Mapping[str, float],
        facts: PortFacts,
    ) -> None:
        self._costs = costs
        self._waits = facts.waits
        self._classes = facts.classes.widths
        self.slow: dict[str, list[str]] = {}
        self.alike: dict[str, list[str]] = {}
        heads: dict[object, str] = {}
        for form, cost in costs.items():
            if cost.throughput is None or cost.slots is None or not cost.operations:
                continue
            files = domains(facts.table[form])
            key = round(cost.throughput, 1), round(cost.slots), _in_order(cost.operations), files
            heads.setdefault(key, form)
            if not cost.microcoded:  # its sequencer stalls all others
                self.alike.setdefault(heads[key], []).append(form)
            allowed = [cycles / capacities[name] for name, cycles in weights[form].items()]
            allowed += [port_throughput(cost.operations), cost.slots / facts.front_end.width]
            if cost.throughput > _SLOWER * max(allowed):
                self.slow.setdefault(heads[key], []).append(form)

    @cached_property
    def names(self) -> dict[str, str]:
        """The unit of each form that stands for slow ones: two that wait for each other share it."""
        units: dict[str, list[str]] = {}
        for head in self.slow:
            some = filter(self._is_unit, units) if self._is_unit(head) else ()
            first = next((h for h in some if any(self._share(head, other) for other in units[h])), head)
            units.setdefault(first, []).append(head)
        return {head: f"what limits {first}" for first, some in units.items() for head in some}

    def _is_unit(self, slow: str) -> bool:
        """Whether what limits a form was seen to be no port: blocking instructions do not hold it."""
        seen = [(width, self._waits.get(name, {}).get(slow)) for name, width in self._classes.items()]
        return any(some is not None for _, some in seen) and all(
            some is None or some < SMALLEST_PART / width for width, some in seen
        )

    def _share(self, one: str, other: str) -> bool:
        """Whether each of two forms holds what limits the other for as long as it runs alone."""
        both = ((one, other), (other, one))
        return all(self._waits.get(f, {}).get(unit, 0.0) > _MOSTLY * self._alone(f) for f, unit in both)

    def _alone(self, form: str) -> float:
        return self._costs[form].throughput or math.inf

    def weights(self) -> dict[str, dict[str, float]]:
        """Cycles for which forms hold each unit."""
        found: dict[str, dict[str, float]] = {}
        for head, forms in self.alike.items():
            some = self._held(head, forms)
            for form in forms:
                found[form] = dict(some)
        for head, forms in self.slow.items():
            for form in forms:
                found.setdefault(form, {})[self.names[head]] = self._alone(form)
        return found

    def _held(self, head: str, forms: Sequence[str]) -> dict[str, float]:
        """Cycles for which forms that are alike hold each unit: all that need it have to wait for them.

        One of these alone may wait for a port that it shares with them. What takes longer beside others than
        both take one after the other does something else to them.
        """
        alone, looks = self._alone(head), dict[str, list[float]]()
        for slow, cycles in next((self._waits[form] for form in forms if form in self._waits), {}).items():
            if slow in self.names and self._is_unit(slow):
                other = self._alone(slow)
                holds = max(_MOSTLY * alone, _SURE * other) < cycles < alone + other
                looks.setdefault(self.names[slow], []).append(cycles if holds else 0.0)
        held = {name: min(*some, alone) for name, some in looks.items()}
        return {name: round(cycles, 2) for name, cycles in held.items() if cycles}


def _in_order(operations: Iterable[Operation]) -> tuple[Operation, ...]:
    return tuple(sorted(operations, key=lambda op: (op.ports, op.count, op.cycles)))
