"""A block on the simulated core: what finite buffers and real port binding make of the bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from cyclescope.analyze.cost.instruction import PlacedCost, PlacedCosts
from cyclescope.analyze.cost.latencies import CostVariant
from cyclescope.analyze.cost.traits import unit_of
from cyclescope.analyze.decode.locations import Location
from cyclescope.analyze.depend.graph import Graph
from cyclescope.analyze.predict.watched import AVERAGING, MOST_RUN, LoopOnCore
from cyclescope.errors import UsageError
from cyclescope.isa.dataflow import Node
from cyclescope.model.machine import EXTRACTED
from cyclescope.model.ports import holding, resource_ports
from cyclescope.simulate.cost import template
from cyclescope.simulate.engine import (
    MOST_PORTS,
    MOST_TARGETS,
    Body,
    Engine,
    Steady,
    Template,
    Work,
    layout_of,
)
from cyclescope.simulate.step import FIRST_REGISTER, NOWHERE, UNREAD

_MOST_CYCLES = 1e8  # of a simulation; the slowest vectors of in-order cores, 4000 times, take 2e7


class Simulation:
    """The core of a machine, and what instructions cost on it.

    `policy` says how operations are bound to ports (`simulate.engine`). Raises UsageError where the engine
    cannot be such a machine, BackendUnavailable where it was not built.
    """

    def __init__(self, costs: PlacedCosts, policy: str) -> None:
        machine = costs.machine
        self._costs = costs
        core = msgspec.structs.replace(machine.core, load_latency=costs.load, forward_latency=costs.forward)
        self._core = core
        self._layout = layout_of(core, len(machine.ports), policy)
        self._engine = Engine(self._layout)
        self._templates: dict[tuple[str, CostVariant, tuple[float, ...]], int] = {}

    def run(self, graph: Graph, limit: int = MOST_RUN) -> Steady:
        """The steady state of the block, looked for in at most about `limit` instructions.

        Raises UsageError for one that would take too long.
        """
        repetitions = max(limit / len(graph.costs), 1)
        if repetitions * sum(map(self._longest, graph.costs)) > _MOST_CYCLES:
            raise UsageError("instructions of so many cycles are not simulated", "look at the bounds")
        return self._engine.run(self.body(graph), limit)

    def _longest(self, placed: PlacedCost) -> float:
        """Cycles that an instruction takes if it overlaps with nothing, not even with itself."""
        busy = sum(cycles for _, cycles in placed.work)
        return placed.slots / self._core.width + busy + max(*placed.largest, *placed.base)

    def body(self, graph: Graph) -> Body:
        """The block as the engine takes it.

        Every stored value has a location of its own, which the loads that get it read. A value of an
        iteration further back than the last, or of the last although this one has written a new one, is
        taken to be at hand.
        """
        words: list[int] = []
        is_later = graph.may_come_later
        for number, (sources, targets) in enumerate(_locations(graph)):
            later = _later(graph, number) if is_later else ()
            words += [self._numbered(graph.costs[number], later), *sources, *targets]
        return Body(words)

    def loop(self, graph: Graph) -> LoopOnCore:
        """The block with the templates of its instructions, to be looked at or changed."""
        sources, targets = zip(*_locations(graph), strict=True)
        made = (self._template(placed, _later(graph, n)) for n, placed in enumerate(graph.costs))
        busy = _units_of(graph.costs, self._costs.machine.ports)
        names = tuple(dict.fromkeys(name for used in busy for name in used))
        count = self._layout.ports + len(names)
        if not names or count > MOST_PORTS:
            return LoopOnCore(self._layout, tuple(made), sources, targets)
        first = self._layout.ports
        kept = (
            _keeping_busy(template, {first + names.index(name): cycles for name, cycles in used.items()})
            for template, used in zip(made, busy, strict=True)
        )
        layout = msgspec.structs.replace(self._layout, ports=count)
        return LoopOnCore(layout, tuple(kept), sources, targets, names)

    def _numbered(self, placed: PlacedCost, later: tuple[float, ...]) -> int:
        key = placed.form.id, placed.variant, later
        known = self._templates.get(key)
        if known is None:
            known = self._templates[key] = self._engine.add(self._template(placed, later))
        return known

    def _template(self, placed: PlacedCost, later: tuple[float, ...]) -> Template:
        passes = placed.variant.passes  # to a load whose latency has all of the way through memory
        cost = placed.explicit_cost(0.0 if passes else self._costs.forward - self._costs.load)
        if placed.unknown_ports and not cost.operations:
            held = holding(placed.cost.resources, self._costs.machine.ports)
            cost = msgspec.structs.replace(cost, operations=held)
        found = template(
            placed.form, cost, self._core, self._costs.units, placed.variant.idiom,
            self._costs.machine.provenance.kind == EXTRACTED, passes,
        )  # fmt: skip
        if later:
            found = found.waiting(later)
        if placed.variant.fused:
            found = msgspec.structs.replace(found, entries=max(int(placed.slots), 1))
        return found


def _units_of(costs: Sequence[PlacedCost], ports: Sequence[str]) -> list[dict[str, float]]:
    """Per instruction the cycles of units that are no ports, as the bounds have them."""
    found: list[dict[str, float]] = []
    names: dict[object, str] = {}
    for placed in costs:
        used = {name: cycles for name, cycles in placed.uses if not resource_ports(name, ports)}
        if placed.alone * (1 - AVERAGING) > max(used.values(), default=0.0):
            known = unit_of(placed.form) or placed.cost.operations or placed.form.id
            used[f"unit of {names.setdefault(known, placed.form.id)}"] = placed.alone
        found.append(used)
    return found


def _keeping_busy(template: Template, used: Mapping[int, float]) -> Template:
    """An instruction that keeps units busy, too: each is a port, and waits as its last operation does."""
    idle = Work(0, 0, 0, (None,) * len(template.latencies))
    last = next((op for op in reversed(template.work) if not op.early), idle)
    more = (
        msgspec.structs.replace(last, ports=1 << port, cycles=cycles, slack=0, result=0)
        for port, cycles in used.items()
    )
    return msgspec.structs.replace(template, work=(*template.work, *more))


def _later(graph: Graph, number: int) -> tuple[float, ...]:
    """By how much every source comes later to this instruction than to others, in the engine's order.

    Nothing where none does.
    """
    placed, first = graph.costs[number], graph.first[number]
    more: dict[int, float] = {}
    for place, column in enumerate(placed.columns):
        cycles = dict(column)
        for one in graph.inputs[first + place]:
            if not placed.loads(one.source):
                more[one.source] = max(more.get(one.source, 0.0), one.cycles - cycles[one.source])
    return tuple(more.get(k, 0.0) for k in placed.engine_sources) if any(more.values()) else ()


def _locations(graph: Graph) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Per instruction the locations that it reads and those that it writes, in the engine's order."""
    numbers: dict[object, int] = {}
    stored = {p.load: p.store for p in graph.memory if _is_last(p.load, p.store, p.distance)}
    for number, placed in enumerate(graph.costs):
        places = graph.places[number]
        sources = []
        for k in placed.engine_sources:
            node = placed.sources[k]
            read = _key(places.sources[k], stored.get((number, node.operand)), node)
            sources.append(_location(numbers, read, NOWHERE))
        pairs = zip(placed.targets[:MOST_TARGETS], places.targets, strict=False)
        keys = (_key(place, (number, node.operand), node) for node, place in pairs)
        targets = [_location(numbers, key, UNREAD) for key in keys]
        yield tuple(sources), tuple(targets)


def _is_last(load: tuple[int, int], store: tuple[int, int], distance: int) -> bool:
    """Whether the load reads what the engine finds at the store's location."""
    return distance == (store[0] >= load[0])


def _key(place: Location | None, stored: tuple[int, int] | None, node: Node) -> object:
    return stored if node.part == "data" else place


def _location(numbers: dict[object, int], key: object, nowhere: int) -> int:
    return nowhere if key is None else FIRST_REGISTER + numbers.setdefault(key, len(numbers))
