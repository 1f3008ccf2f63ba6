"""From a block and a machine model to a prediction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial

from cyclescope.analyze.cost.instruction import PlacedCost
from cyclescope.analyze.decode.block import Block, BlockInstruction
from cyclescope.analyze.depend.critical_path import critical_path, whole_path
from cyclescope.analyze.depend.graph import Graph
from cyclescope.analyze.depend.graphs import Graphs
from cyclescope.analyze.depend.loop_carried import CarriedChain, loop_carried
from cyclescope.analyze.predict import bounds
from cyclescope.analyze.predict.by_simulation import Simulation
from cyclescope.analyze.predict.effects import EFFECTS, RESOURCES, UNITS, effect_named
from cyclescope.analyze.predict.estimate import BlockBounds, BlockEstimate
from cyclescope.analyze.predict.notes import notes
from cyclescope.analyze.predict.observed import BlockSimulation, observed
from cyclescope.analyze.predict.prediction import (
    CRITICAL_PATH,
    CRITICAL_PATH_FIXED,
    FRONT_END,
    LOOP_CARRIED,
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
from cyclescope.analyze.predict.surroundings import Remarks, steps
from cyclescope.analyze.predict.watched import MOST_RUN, MOST_WATCHED
from cyclescope.errors import CyclescopeError, UnsupportedInstruction, UsageError, shortened
from cyclescope.model.binding import balanced, port_bound, total
from cyclescope.model.limits import WORK
from cyclescope.model.machine import COSTS, IDEAL, STATIC, Borrowed, MachineModel
from cyclescope.model.ports import resource_ports
from cyclescope.remarks.prediction import Assumed
from cyclescope.remarks.remark import LISTED, Remark


class UnknownInstructions(UnsupportedInstruction):
    """Instructions without a known cost: without them no total is right."""

    def __init__(self, machine: str, unknown: Sequence[Unknown], count: int) -> None:
        places = "; ".join(_listed(one) for one in unknown[:LISTED])
        more = f"; and {len(unknown) - LISTED} more" if len(unknown) > LISTED else ""
        super().__init__(
            f"{len(unknown)} of {count} instructions have no known cost on {machine}: {places}{more}",
            "{ignore_unknown} leaves them out",
        )
        self.unknown = tuple(unknown)


def _check_work(units: float) -> None:
    """Raise UsageError for units of work that one cannot compute with; 0 stands for none."""
    is_number = isinstance(units, int | float) and not isinstance(units, bool)
    if not is_number or (units != 0 and not WORK.has(units)):
        said = f"is no number from {WORK.least:g} to {WORK.most:g}"
        raise UsageError(f"the unroll factor {shortened(repr(units))} {said}")


def _listed(one: Unknown) -> str:
    where = f"line {one.line}: " if one.line else f"{one.address:#x}: " if one.address else ""
    return f"{where}{one.reason}"


class Predictor:
    """Analyses blocks on one machine; one predictor takes many blocks.

    `stand_in` is a model of the same core that gives the costs of forms which the machine lacks.
    """

    def __init__(self, machine: MachineModel, stand_in: MachineModel | None = None) -> None:
        self.machine = machine
        self._graphs = Graphs(machine, stand_in)
        self.costs = self._graphs.costs
        self._known: set[str] = set()  # ids of forms that have a cost

    @cached_property
    def _late(self) -> Simulation:
        """The core with ports chosen at dispatch by what waits for them: more may be so than was found."""
        return Simulation(self.costs, STATIC)

    @cached_property
    def _likeliest(self) -> Simulation:
        """The core as far as it is known: ports chosen when operations start where nobody knows."""
        return Simulation(self.costs, self.machine.core.binding or IDEAL)

    def predict(
        self,
        block: Block,
        *,
        fixed: bool = False,
        ignore_unknown: bool = False,
        unroll_factor: float = 0,
        simulate: bool = True,
        watch: bool = False,
    ) -> Prediction:
        """The prediction of a block.

        `fixed` splits operations evenly over their ports in place of the best binding; `ignore_unknown`
        leaves out instructions without a cost; `unroll_factor` is how many units of work an iteration does, 0
        where that is not told; without `simulate` there is no `upper`, and no simulated value for cores that
        execute in order; with `watch` there is a `simulation`. Raises UnknownInstructions and UsageError.
        """
        _check_work(unroll_factor)
        unknown, known = self._split(block, ignore_unknown)
        found = self._bounds(block, known, fixed, simulate)
        upper = self.simulated(found.graph, late=True) if simulate else None
        seen = self.watched(found, known) if watch else None
        return _Analysis(self, found, known, fixed).prediction(unknown, upper, unroll_factor, seen)

    def estimate(self, block: Block, *, ignore_unknown: bool = False) -> BlockEstimate:
        """The numbers of `predict` in less time: for many blocks.

        Nothing is simulated but blocks that are bound by ports of which the core is known to lose cycles.
        """
        return self.bounds(block, ignore_unknown=ignore_unknown, simulate=False).estimate()

    def bounds(self, block: Block, *, ignore_unknown: bool = False, simulate: bool = True) -> BlockBounds:
        """The bounds of a block; arguments and errors as for `predict`."""
        _, known = self._split(block, ignore_unknown)
        return self._bounds(block, known, False, simulate)

    def _bounds(self, block: Block, known: Sequence[int], fixed: bool, simulate: bool) -> BlockBounds:
        whole = len(known) == len(block)
        graph = self.graph(block.instructions if whole else [block.instructions[n] for n in known])
        core = self.machine.core
        in_order = self.simulated(graph) if simulate and core.in_order else None
        loses_ports = simulate if core.binding not in ("", IDEAL) else bool(core.wakeup or core.writeback)
        limit = MOST_RUN if simulate else MOST_WATCHED
        scheduled = partial(self.simulated, graph, limit=limit) if loses_ports and not fixed else None
        return BlockBounds(block, graph, self._graphs, in_order or 0.0, fixed, scheduled, not simulate)

    def _split(self, block: Block, ignore_unknown: bool) -> tuple[dict[int, Unknown], list[int]]:
        """Instructions of a block without a cost, and the positions of the others."""
        if block.isa != self.machine.isa:
            raise UsageError(
                f"the code is {block.isa}, {self.machine.name} executes {self.machine.isa}",
                "{arch} names another machine",
            )
        unknown = self._unknown(block.instructions)
        if unknown and not ignore_unknown:
            raise UnknownInstructions(self.machine.name, list(unknown.values()), len(block))
        known = [n for n in range(len(block)) if n not in unknown] if unknown else list(range(len(block)))
        if not known:
            raise UsageError("there is no instruction to analyse", "the code is empty or left out")
        return unknown, known

    def _unknown(self, instructions: Sequence[BlockInstruction]) -> dict[int, Unknown]:
        found = {}
        for number, one in enumerate(instructions):
            if one.form is not None and one.form.id in self._known:
                continue
            if one.form is None:
                found[number] = Unknown(one.line, one.text, one.problem, one.machine_address)
            elif self.costs.cost(one.form) is None:
                found[number] = Unknown(
                    one.line,
                    one.text,
                    Assumed.NO_COST.of(one.text, one.form.id).text,
                    one.machine_address,
                )
            else:
                self._known.add(one.form.id)
        return found

    def graph(self, instructions: Sequence[BlockInstruction]) -> Graph:
        """The dependency graph."""
        return self._graphs.of(instructions)

    def with_ends(self, graph: Graph, ends: str) -> Graph:
        """The same graph with the least or the most latencies that are proved."""
        return self._graphs.with_ends(graph, ends)

    def watched(self, found: BlockBounds, known: Sequence[int]) -> BlockSimulation:
        """What the simulated core does with a block. Raises UsageError for one that it cannot run."""
        graph = found.graph
        if len(graph.instructions) > MOST_WATCHED:
            raise UsageError(f"blocks of more than {MOST_WATCHED} instructions are not simulated")
        simulation = self._likeliest
        steady, loop = simulation.run(graph).cycles, simulation.loop(graph)
        floor = max(self._unsimulated(found, effect.name, bool(loop.units)) for effect in EFFECTS)
        chain = found.deciding[LOOP_CARRIED]
        if chain > steady:  # through earlier iterations than the last
            floor = max(floor, chain)
        ports = (*self.machine.ports, *loop.units)
        return observed(loop, graph, known, ports, self.machine.core, floor)

    def _unsimulated(self, found: BlockBounds, effect: str, has_units: bool) -> float:
        """Cycles of an effect that the simulated core has not: of shared resources, of the units alone."""
        if has_units and effect in (RESOURCES, UNITS):
            return 0.0
        if effect != RESOURCES:
            return found.deciding.get(effect, 0.0)
        used = bounds.resources(found.graph.costs, self.machine)
        return max(
            (c for name, c in used.items() if not resource_ports(name, self.machine.ports)), default=0.0
        )

    def simulated(self, graph: Graph, late: bool = False, limit: int = MOST_RUN) -> float | None:
        """Cycles per iteration on the simulated core, None where it cannot be simulated.

        `late` chooses ports at dispatch, in one way for all cores, whatever is known of this one.
        """
        if len(graph.instructions) > MOST_WATCHED:
            return None
        try:
            return (self._late if late else self._likeliest).run(graph, limit).cycles
        except CyclescopeError:
            return None


class _Analysis:
    """One block on one machine: what explains its bounds."""

    def __init__(self, predictor: Predictor, found: BlockBounds, known: Sequence[int], fixed: bool) -> None:
        self.predictor, self.found, self.known, self.fixed = predictor, found, known, fixed
        self.machine, self.block = predictor.machine, found.block
        self.graph, self.costs = found.graph, found.costs
        self.loads = found.loads
        self.chains = [chain for chain in loop_carried(found.graph) if chain.cycles > 0]
        self.paths = critical_path(self.graph), whole_path(self.graph)
        self.path = self.paths[fixed]

    def prediction(
        self,
        unknown: dict[int, Unknown],
        upper: float | None,
        unroll_factor: float,
        simulation: BlockSimulation | None = None,
    ) -> Prediction:
        """Everything together."""
        found, unroll = self.found, self.block.unroll
        split = balanced(self.loads, len(self.machine.ports))
        return Prediction(
            machine=self.machine.name, isa=self.machine.isa, provenance=self.machine.provenance,
            width=self.machine.width, borrowed=tuple(self._borrowed()),
            cycles=found.cycles, lower=found.lower,
            upper=None if upper is None else max(upper, found.cycles),
            interval=self._interval(upper),
            bottleneck=found.bottleneck, full=self._full(found.bottleneck), bounds=self._bounds(),
            ports=self._by_port(total(split, len(self.machine.ports))),
            ports_fixed=self._by_port(found.evenly),
            resources=bounds.resources(self.costs, self.machine),
            slots=sum(placed.slots for placed in self.costs),
            instructions=self._costs(split, unknown),
            loop_carried=tuple(map(self._listed, self.chains)),
            critical_path=CriticalPath(self.path.cycles, *self._places(self.path.nodes)),
            dependencies=tuple(self._dependencies()), unknown=tuple(unknown.values()),
            notes=(*self.block.notes, *map(str, self._notes(unknown))),
            fixed=self.fixed,
            unroll_factor=unroll_factor, source=self.block.source, name=self.block.name,
            found=self.block.found, loop=self.block.loop,
            pointer_increment=unroll.stride if unroll else None,
            elements=unroll.elements if unroll else None, simulation=simulation,
        )  # fmt: skip

    def _interval(self, upper: float | None) -> tuple[float, float]:
        """Least and most cycles, wherever a linker puts the code."""
        least, most = self.found.interval(upper)
        by_place = self.found.by_place
        return (
            (least, most) if by_place[0] == by_place[1] else (min(least, by_place[0]), max(most, by_place[1]))
        )

    def _notes(self, unknown: dict[int, Unknown]) -> Iterator[Remark]:
        yield from notes(self.graph, self.predictor.costs, unknown)
        least, most = self.found.by_place
        lines = self.found.situation.behaviour.lines
        if least != most and lines is not None:
            yield Assumed.LINKED.of(lines.size, least, most)

    def _bounds(self) -> dict[str, float]:
        """All bounds, with those that a loop may be faster than."""
        deciding = self.found.deciding
        return {
            PORTS: deciding[PORTS],
            PORTS_FIXED: max(self.found.evenly, default=0.0),
            FRONT_END: deciding[FRONT_END],
            LOOP_CARRIED: deciding[LOOP_CARRIED],
            CRITICAL_PATH: self.paths[0].cycles,
            CRITICAL_PATH_FIXED: self.paths[1].cycles,
        } | deciding

    def _full(self, bottleneck: str) -> tuple[str, ...]:
        """What the bottleneck fills."""
        if bottleneck == PORTS:
            full = port_bound(self.loads)[1]
            return tuple(name for port, name in enumerate(self.machine.ports) if full >> port & 1)
        if bottleneck == PORTS_FIXED:
            even = self._by_port(self.found.evenly)
            return tuple(name for name, cycles in even.items() if cycles == max(even.values()))
        effect = effect_named(bottleneck)
        used = effect.filled(self.found.situation) if effect else {}
        return (max(used, key=used.__getitem__),) if used else ()

    def _by_port(self, cycles: Sequence[float]) -> dict[str, float]:
        return dict(zip(self.machine.ports, cycles, strict=True))

    # --- rows ------------------------------------------------------------------------------------

    def _costs(
        self, split: dict[int, list[float]], unknown: dict[int, Unknown]
    ) -> tuple[InstructionCost, ...]:
        paths = steps(self.graph, self.path), steps(self.graph, self.chains[0] if self.chains else None)
        remarks = Remarks(self.graph, self.predictor.costs.load)
        places = {number: place for place, number in enumerate(self.known)}
        rows = []
        for number, one in enumerate(self.block.instructions):
            if number in unknown:
                rows.append(left_out(one))
                continue
            place = places[number]
            placed = self.costs[place]
            rows.append(
                InstructionCost(
                    one.line, one.text, placed.form.id, placed.slots, self._used(placed, split),
                    self._even(placed), paths[0].get(place), paths[1].get(place), remarks.of(place),
                    address=one.machine_address, place=one.place,
                )
            )  # fmt: skip
        return tuple(rows)

    def _used(self, placed: PlacedCost, split: dict[int, list[float]]) -> dict[str, float]:
        """Cycles by port in the even binding: the instruction's part of every set of ports."""
        found: dict[str, float] = {}
        for ports, cycles in placed.work:
            for port, share in enumerate(split[ports]):
                if share:
                    name = self.machine.ports[port]
                    found[name] = found.get(name, 0.0) + share * cycles / self.loads[ports]
        return found

    def _even(self, placed: PlacedCost) -> dict[str, float]:
        busy = bounds.evenly(dict(placed.work), len(self.machine.ports))
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
                by = graph.costs[number].sources[k].name
                key = source, target, value.distance, by
                if key not in found or cycles > found[key].cycles:
                    found[key] = Dependency(source, target, value.distance, cycles, by)
        return list(found.values())

    @cached_property
    def _not_measured(self) -> tuple[str, ...]:
        """Forms with costs of the stand-in."""
        costs = self.predictor.costs
        return tuple(sorted({s.form.id for s in self.costs if costs.is_borrowed(s.form)}))

    def _borrowed(self) -> Iterator[Borrowed]:
        """What is another core's: all of it, or the forms that were not measured."""
        if self.machine.borrowed:
            yield self.machine.borrowed
        stand_in = self.predictor.costs.stand_in
        if self._not_measured and stand_in and stand_in.borrowed:
            other = stand_in.borrowed
            yield Borrowed(other.core, other.source, (COSTS,), self._not_measured)
