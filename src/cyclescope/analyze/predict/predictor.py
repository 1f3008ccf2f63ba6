"""From a block and a machine model to a prediction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from cyclescope.analyze.cost.shape import LEAST_PROVED, MOST_PROVED, PlacedCost, PlacedCosts
from cyclescope.analyze.decode.block import LISTED, Block, BlockInstruction
from cyclescope.analyze.depend.critical_path import critical_path, whole_path
from cyclescope.analyze.depend.graph import Graph, build
from cyclescope.analyze.depend.loop_carried import CarriedChain, loop_carried
from cyclescope.analyze.predict import bounds, effects
from cyclescope.analyze.predict.effects import EFFECTS, Situation, effect_named
from cyclescope.analyze.predict.notes import notes
from cyclescope.analyze.predict.prediction import (
    CRITICAL_PATH,
    CRITICAL_PATH_FIXED,
    FRONT_END,
    IN_ORDER,
    LOOP_CARRIED,
    NO_BOUNDS,
    PORTS,
    PORTS_FIXED,
    CriticalPath,
    Dependency,
    InstructionCost,
    LoopCarried,
    Prediction,
    Unknown,
    left_out,
)
from cyclescope.analyze.predict.remarks import Remarks, steps
from cyclescope.analyze.predict.simulated import Simulation
from cyclescope.analyze.predict.uncertainty import interval
from cyclescope.errors import CyclescopeError, UnsupportedInstruction, UsageError
from cyclescope.model.binding import balanced, port_bound, total
from cyclescope.model.machine import ASSUMED, COSTS, EXTRACTED, Borrowed, MachineModel
from cyclescope.simulate.engine import IDEAL, STATIC

MOST_SIMULATED = 2_000  # instructions of a block


class UnknownInstructions(UnsupportedInstruction):
    """Instructions whose cost nothing says: without them no total is right."""

    def __init__(self, machine: str, unknown: Sequence[Unknown], count: int) -> None:
        places = "; ".join(_listed(one) for one in unknown[:LISTED])
        more = f"; and {len(unknown) - LISTED} more" if len(unknown) > LISTED else ""
        super().__init__(
            f"{len(unknown)} of {count} instructions have no known cost on {machine}: {places}{more}",
            "{ignore_unknown} leaves them out",
        )
        self.unknown = tuple(unknown)


def _listed(one: Unknown) -> str:
    where = f"line {one.line}: " if one.line else f"{one.address:#x}: " if one.address else ""
    return f"{where}{one.reason}"


class Predictor:
    """Analyses blocks on one machine; one predictor takes many blocks.

    `stand_in` is a model of the same core that is asked for forms which the machine does not know.
    """

    def __init__(self, machine: MachineModel, stand_in: MachineModel | None = None) -> None:
        self.machine = machine
        self.shapes = PlacedCosts(machine, stand_in=stand_in)

    @cached_property
    def _least(self) -> PlacedCosts:
        return PlacedCosts(self.machine, LEAST_PROVED, self.shapes.stand_in)

    @cached_property
    def _most(self) -> PlacedCosts:
        return PlacedCosts(self.machine, MOST_PROVED, self.shapes.stand_in)

    @cached_property
    def _late(self) -> Simulation:
        """The core with ports chosen at dispatch."""
        return Simulation(self.shapes, STATIC)

    @cached_property
    def _ideal(self) -> Simulation:
        return Simulation(self.shapes, IDEAL)

    def predict(
        self,
        block: Block,
        *,
        fixed: bool = False,
        ignore_unknown: bool = False,
        unroll_factor: float = 0,
        simulate: bool = True,
    ) -> Prediction:
        """The prediction of a block.

        `fixed` splits operations evenly over their ports in place of the best binding; `ignore_unknown`
        leaves out instructions without a cost; without `simulate` there is no `upper`, and no simulated
        value for cores that execute in order. Raises UnknownInstructions and UsageError.
        """
        if block.isa != self.machine.isa:
            raise UsageError(
                f"the code is {block.isa}, {self.machine.name} executes {self.machine.isa}",
                "{arch} names another machine",
            )
        unknown = self._unknown(block.instructions)
        if unknown and not ignore_unknown:
            raise UnknownInstructions(self.machine.name, list(unknown.values()), len(block))
        known = [n for n in range(len(block)) if n not in unknown]
        if not known:
            raise UsageError("there is no instruction to analyse", "the code is empty or left out")
        analysis = _Analysis(self, block, known, fixed, simulate)
        return analysis.prediction(unknown, unroll_factor)

    def _unknown(self, instructions: Sequence[BlockInstruction]) -> dict[int, Unknown]:
        found = {}
        for number, one in enumerate(instructions):
            if one.form is None:
                found[number] = Unknown(one.line, one.text, one.problem, one.machine_address)
            elif self.shapes.cost(one.form) is None:
                found[number] = Unknown(
                    one.line,
                    one.text,
                    f"{one.text!r}, {one.form.id}, is not in the model",
                    one.machine_address,
                )
        return found

    def graph(self, instructions: Sequence[BlockInstruction]) -> Graph:
        """The dependency graph."""
        return build(instructions, self.shapes)

    def with_ends(self, graph: Graph, ends: str) -> Graph:
        """The same graph with the least or the most latencies that are proved."""
        shapes = self._least if ends == LEAST_PROVED else self._most
        return build(graph.instructions, shapes, graph.through)

    def simulated(self, graph: Graph, ideal: bool) -> float | None:
        """Cycles per iteration on the simulated core, None where it cannot be simulated."""
        if len(graph.instructions) > MOST_SIMULATED:
            return None
        try:
            return (self._ideal if ideal else self._late).run(graph).cycles
        except CyclescopeError:
            return None


class _Analysis:
    """One block on one machine."""

    def __init__(
        self, predictor: Predictor, block: Block, known: Sequence[int], fixed: bool, simulate: bool
    ) -> None:
        self.predictor, self.block, self.known, self.fixed = predictor, block, known, fixed
        self.simulate = simulate
        self.machine = predictor.machine
        self.instructions = [block.instructions[n] for n in known]
        self.graph = predictor.graph(self.instructions)
        self.shapes = self.graph.shapes
        self.loads = bounds.port_loads(self.shapes)
        self.chains = loop_carried(self.graph)
        self.paths = critical_path(self.graph), whole_path(self.graph)
        self.path = self.paths[fixed]

    def prediction(self, unknown: dict[int, Unknown], unroll_factor: float) -> Prediction:
        """Everything together."""
        found = self._bounds()
        ranked = {n: c for n, c in found.items() if self._counts(n)}
        bottleneck = max(ranked, key=ranked.__getitem__)
        cycles = ranked[bottleneck]
        upper = self.predictor.simulated(self.graph, ideal=False) if self.simulate else None
        even = self._by_port(bounds.evenly(self.loads, len(self.machine.ports)))
        split = balanced(self.loads, len(self.machine.ports))
        unroll = self.block.unroll
        lower = min(self._lower(found), cycles)
        return Prediction(
            machine=self.machine.name, isa=self.machine.isa, provenance=self.machine.provenance,
            width=self.machine.width, borrowed=tuple(self._borrowed()),
            cycles=cycles, lower=lower, upper=None if upper is None else max(upper, cycles),
            interval=self._interval(found, lower, max(upper or 0.0, cycles)),
            bottleneck=bottleneck, full=self._full(bottleneck), bounds=found,
            ports=self._by_port(total(split, len(self.machine.ports))), ports_fixed=even,
            resources=bounds.resources(self.shapes, self.machine),
            slots=sum(shape.slots for shape in self.shapes),
            instructions=self._costs(split, unknown),
            loop_carried=tuple(map(self._listed, self.chains)),
            critical_path=CriticalPath(self.path.cycles, *self._places(self.path.nodes)),
            dependencies=tuple(self._dependencies()), unknown=tuple(unknown.values()),
            notes=(*self.block.notes, *notes(self.graph, self.predictor.shapes, unknown)), fixed=self.fixed,
            unroll_factor=unroll_factor, source=self.block.source, name=self.block.name,
            found=self.block.found, loop=self.block.loop,
            pointer_increment=unroll.stride if unroll else None,
            elements=unroll.elements if unroll else None,
        )  # fmt: skip

    # --- bounds ----------------------------------------------------------------------------------

    @cached_property
    def _situation(self) -> Situation:
        return Situation(self.block, self.graph, self.shapes, self.machine, self.predictor.shapes.forward)

    def _counts(self, name: str) -> bool:
        """Whether a bound of this name decides."""
        return name not in NO_BOUNDS or (name == PORTS_FIXED and self.fixed)

    def _bounds(self) -> dict[str, float]:
        machine, shapes = self.machine, self.shapes
        even = bounds.evenly(self.loads, len(machine.ports))
        found = {
            PORTS: port_bound(self.loads)[0],
            PORTS_FIXED: max(even, default=0.0),
            FRONT_END: max(bounds.front_end(shapes, machine.core.width), self._fetched),
            LOOP_CARRIED: self.chains[0].cycles if self.chains else 0.0,
            CRITICAL_PATH: self.paths[0].cycles,
            CRITICAL_PATH_FIXED: self.paths[1].cycles,
        }
        more = {effect.name: effect.of(self._situation) for effect in EFFECTS}
        if machine.core.in_order and self.simulate:
            more[IN_ORDER] = self.predictor.simulated(self.graph, ideal=True) or 0.0
        return found | {name: cycles for name, cycles in more.items() if cycles}

    def _lower(self, found: dict[str, float]) -> float:
        """The greatest bound without what is assumed.

        That is time in memory, latencies that are ranges, a width that nobody claims, and the throughput of
        forms that the machine's own model does not know.
        """
        left_out = (*NO_BOUNDS, FRONT_END, LOOP_CARRIED, IN_ORDER, *effects.ASSUMED)
        sure = [c for n, c in found.items() if n not in left_out]
        own = (shape for shape in self.shapes if not self.predictor.shapes.is_borrowed(shape.form))
        return max(*sure, self._front_end, max(bounds.units(own).values(), default=0.0), self._proved[0])

    @cached_property
    def _front_end(self) -> float:
        """Cycles of the front end that are known to be needed: none of a width that is only assumed."""
        width = self.machine.width
        if width.kind == ASSUMED:
            return self._fetched
        extracted, shapes = self.machine.provenance.kind == EXTRACTED, self.predictor.shapes
        unsure = (extracted or shapes.is_borrowed(shape.form) for shape in self.shapes)
        slots = (bounds.sure_slots(s) if u else s.slots for s, u in zip(self.shapes, unsure, strict=True))
        return max(sum(slots) / width.slots, self._fetched)

    @cached_property
    def _fetched(self) -> float:
        """Cycles in which the code arrives, as far as the machine is known to be limited by its bytes."""
        return bounds.fetched(self.block.instructions, self.machine.core)

    @cached_property
    def _proved(self) -> tuple[float, float]:
        """The slowest chain with the least and with the most latencies that are proved."""
        ranges = any(shape.cost.ranges for shape in self.shapes)
        least, most = self.chains, self.chains
        if self.chains and (self.graph.memory or ranges):
            least = loop_carried(self.predictor.with_ends(self.graph, LEAST_PROVED))
        if self.chains and ranges:
            most = loop_carried(self.predictor.with_ends(self.graph, MOST_PROVED))
        return least[0].cycles if least else 0.0, most[0].cycles if most else 0.0

    def _interval(self, found: dict[str, float], lower: float, upper: float) -> tuple[float, float]:
        sure = {LOOP_CARRIED: self._proved, FRONT_END: (self._front_end, found[FRONT_END])}
        return interval(self.machine.provenance.kind, found, sure, lower, upper)

    def _full(self, bottleneck: str) -> tuple[str, ...]:
        """What the bottleneck fills."""
        if bottleneck == PORTS:
            full = port_bound(self.loads)[1]
            return tuple(name for port, name in enumerate(self.machine.ports) if full >> port & 1)
        if bottleneck == PORTS_FIXED:
            even = self._by_port(bounds.evenly(self.loads, len(self.machine.ports)))
            return tuple(name for name, cycles in even.items() if cycles == max(even.values()))
        effect = effect_named(bottleneck)
        used = effect.filled(self._situation) if effect else {}
        return (max(used, key=used.__getitem__),) if used else ()

    def _by_port(self, cycles: Sequence[float]) -> dict[str, float]:
        return dict(zip(self.machine.ports, cycles, strict=True))

    # --- rows ------------------------------------------------------------------------------------

    def _costs(
        self, split: dict[int, list[float]], unknown: dict[int, Unknown]
    ) -> tuple[InstructionCost, ...]:
        paths = steps(self.graph, self.path), steps(self.graph, self.chains[0] if self.chains else None)
        remarks = Remarks(self.graph)
        places = {number: place for place, number in enumerate(self.known)}
        rows = []
        for number, one in enumerate(self.block.instructions):
            if number in unknown:
                rows.append(left_out(one))
                continue
            place = places[number]
            shape = self.shapes[place]
            rows.append(
                InstructionCost(
                    one.line, one.text, shape.form.id, shape.slots, self._used(shape, split),
                    self._even(shape), paths[0].get(place), paths[1].get(place), remarks.of(place),
                    address=one.machine_address, place=one.place,
                )
            )  # fmt: skip
        return tuple(rows)

    def _used(self, shape: PlacedCost, split: dict[int, list[float]]) -> dict[str, float]:
        """Cycles by port in the even binding: the instruction's part of every set of ports."""
        found: dict[str, float] = {}
        for ports, cycles in shape.work:
            for port, share in enumerate(split[ports]):
                if share:
                    name = self.machine.ports[port]
                    found[name] = found.get(name, 0.0) + share * cycles / self.loads[ports]
        return found

    def _even(self, shape: PlacedCost) -> dict[str, float]:
        busy = bounds.evenly(dict(shape.work), len(self.machine.ports))
        return {name: cycles for name, cycles in self._by_port(busy).items() if cycles}

    def _places(self, nodes: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Lines and positions of the instructions of nodes, repetitions next to each other left out."""
        owners = [self.known[self.graph.owner[node]] for node in nodes]
        numbers = [n for k, n in enumerate(owners) if not k or n != owners[k - 1]]
        return tuple(self.block.instructions[n].line for n in numbers), tuple(numbers)

    def _listed(self, chain: CarriedChain) -> LoopCarried:
        return LoopCarried(chain.cycles, chain.iterations, *self._places(chain.nodes))

    def _dependencies(self) -> list[Dependency]:
        graph = self.graph
        found: dict[tuple[int, int, int, str], Dependency] = {}
        for node, inputs in enumerate(graph.inputs):
            number = graph.owner[node]
            for origin, cycles, k in inputs:
                value = graph.origin(origin)
                source, target = self.known[graph.owner[value.node]], self.known[number]
                by = graph.shapes[number].sources[k].name
                key = source, target, value.distance, by
                if key not in found or cycles > found[key].cycles:
                    found[key] = Dependency(source, target, value.distance, cycles, by)
        return list(found.values())

    @cached_property
    def _not_measured(self) -> tuple[str, ...]:
        """Forms with costs of the stand-in."""
        shapes = self.predictor.shapes
        return tuple(sorted({s.form.id for s in self.shapes if shapes.is_borrowed(s.form)}))

    def _borrowed(self) -> Iterator[Borrowed]:
        """What is another core's: all of it, or the forms that were not measured."""
        if self.machine.borrowed:
            yield self.machine.borrowed
        stand_in = self.predictor.shapes.stand_in
        if self._not_measured and stand_in and stand_in.borrowed:
            other = stand_in.borrowed
            yield Borrowed(other.core, other.source, (COSTS,), self._not_measured)
