"""What an instruction costs on a machine, in the form that the analysis uses, once per form and variant."""

from __future__ import annotations

import re
from copy import copy

import msgspec

from cyclescope.analyze.cost import traits
from cyclescope.analyze.cost.changes import (
    LEAST_PROVED,
    clearing,
    merging,
    settled,
    slots_of,
    slow_alone,
    varied,
    where_branches_are,
    with_more,
    within_stack,
    without,
)
from cyclescope.analyze.cost.cores import forward_latency, load_latency, vector_load_latency
from cyclescope.analyze.cost.known import borrowed_cost, is_locked, known_cost, not_before_loads
from cyclescope.analyze.cost.latencies import EXECUTED, FIRSTS, AllEnds, Column, CostVariant, PlacedLatencies
from cyclescope.analyze.cost.resources import SharedResources
from cyclescope.isa.dataflow import OLD, Node, sources
from cyclescope.isa.form import FLAGS, InstructionForm
from cyclescope.isa.registry import instruction_set
from cyclescope.model.behaviour.found import behaviour_of
from cyclescope.model.machine import EXTRACTED, FormCost, MachineModel, Operation
from cyclescope.once import once
from cyclescope.simulate.cost import USUAL_LATENCY, ZERO, Ends
from cyclescope.simulate.units import Units

_X87_ARITHMETIC = re.compile(r"F(ADD|SUBR?|MUL)P?")
_PLAIN = CostVariant()


class CostWays(msgspec.Struct, frozen=True):
    """The ways through a form.

    Targets with equal latencies from all sources are one column, a value of its own: `column_of` has the
    column of each target, `columns` the (source, cycles) that lead to it, `base` the cycles that it takes
    where nothing has to arrive. `killed` are flags that hold nothing of use behind the instruction.
    `stored` has the columns that go to memory without a latency in the model, `guessed` the (source,
    column) of other pairs without one. What updates memory is `computing` for so many cycles.
    """

    sources: tuple[Node, ...]
    targets: tuple[Node, ...]
    column_of: tuple[int, ...]
    columns: tuple[Column, ...]
    base: tuple[float, ...]
    killed: tuple[str, ...]
    stored: frozenset[int]
    guessed: frozenset[tuple[int, int]]
    computing: float


class PlacedCost(CostWays, frozen=True, dict=True):
    """A form's cost as rows of a graph.

    `alone` is the measured throughput where neither ports nor slots explain it, else 0. `uses` are cycles by
    shared resource, among them those of the one unit without a port that the form, or forms of the same
    operations, are known to keep busy.
    """

    form: InstructionForm
    cost: FormCost
    variant: CostVariant
    slots: float
    operations: tuple[Operation, ...]
    alone: float
    uses: tuple[tuple[str, float], ...] = ()

    @once
    def work(self) -> tuple[tuple[int, float], ...]:
        """Cycles by set of ports, the sets as bits."""
        sums: dict[int, float] = {}
        for op in self.operations:
            if op.ports:
                ports = sum(1 << p for p in set(op.ports))
                sums[ports] = sums.get(ports, 0.0) + op.count * op.cycles
        return tuple(sums.items())

    @once
    def traits(self) -> frozenset[str]:
        """What it is, has or does, of `cost.traits`."""
        own = {
            traits.KEEPS_BUSY: bool(self.uses),
            traits.IS_SLOW_ALONE: bool(self.alone),
            traits.IS_RENAMED: self.variant.renamed,
            traits.POINTED: self.variant.pointed,
            traits.STORES_CONSTANTS: bool(self.variant.more.alone),
        }
        return traits.form_traits(self.form) | traits.having(own)

    def loads(self, source: int) -> bool:
        """Whether a source is data in memory."""
        return self.sources[source].part == "data"

    @once
    def loads_general(self) -> bool:
        """Whether it loads, and has nothing to do with vectors."""
        return any(one.read for one in self.form.accesses) and not self.form.vector_width

    @once
    def only_loads(self) -> bool:
        """Whether the form passes on what it loads."""
        return AllEnds(self.form).only_loads

    @once
    def stores(self) -> bool:
        """Whether the form writes memory."""
        return any(one.write for one in self.form.accesses)

    @once
    def jumps(self) -> bool:
        """Whether it always goes elsewhere."""
        attributes = self.form.attributes
        goes = not attributes.isdisjoint(("branch", "call", "return"))
        return goes and not self.may_fuse

    @once
    def may_fuse(self) -> bool:
        """Whether it is a conditional branch, with which others fuse."""
        return "conditional_branch" in self.form.attributes

    @once
    def locked(self) -> bool:
        """Whether the form has a LOCK prefix."""
        return is_locked(self.form)

    @property
    def between_registers(self) -> dict[tuple[str, str], float]:
        """Cycles of the pairs none of which is in memory."""
        return {
            (self.sources[k].name, target.name): cycles
            for target, column in zip(self.targets, self.column_of, strict=True)
            for k, cycles in self.columns[column]
            if target.part != "data" and not self.loads(k)
        }

    @once
    def loaded(self) -> frozenset[int]:
        """The sources that reach the results through a load."""
        ends = AllEnds(self.form)
        return frozenset(k for k, node in enumerate(self.sources) if ends.is_loaded(node))

    @once
    def largest(self) -> tuple[float, float]:
        """The largest latencies, of sources that are at hand and of those that are loaded."""
        every = [(k in self.loaded, cycles) for column in self.columns for k, cycles in column]
        direct, through = (max((c for by, c in every if by == way), default=0.0) for way in (False, True))
        return direct, through

    @once
    def engine_sources(self) -> tuple[int, ...]:
        """The sources that the simulated core knows, in its order."""
        waited = {k for column in self.columns for k, _ in column}
        old = (k for k, node in enumerate(self.sources) if node.part == OLD and k in waited)
        return (*map(self.sources.index, sources(self.form)), *old)

    def explicit_cost(self, extra: float) -> FormCost:
        """The cost with all operations and latencies; `extra` cycles are added to ways into memory.

        Pairs of no cycles, which are no dependencies, stay: else they were gaps to be filled.
        """
        latencies = {pair: cycles for pair, cycles in self.cost.latencies.items() if cycles == 0}
        for target, column in zip(self.targets, self.column_of, strict=True):
            late = extra if column in self.stored else 0.0
            for k, cycles in self.columns[column]:
                latencies[f"{self.sources[k].name}->{target.name}"] = cycles + late
        return msgspec.structs.replace(self.cost, latencies=latencies, operations=self.operations)

    @property
    def unknown_ports(self) -> bool:
        """Whether the model does not know the port usage; that of a fused pair is told of its first."""
        return self.cost.operations is None and not self.variant.is_second


class PlacedCosts:
    """What instructions cost on one machine, wherever they stand.

    `ends` is which end counts of the ranges that a model has for latencies: with LEAST the least that is
    proved, and memory takes no time; with MOST the most; else the value, and the most of a pair without one.
    `stand_in` is a model of the same core that knows more forms: its slots, latencies and throughput count
    where the machine has no cost.
    """

    def __init__(self, machine: MachineModel, ends: str = "", stand_in: MachineModel | None = None) -> None:
        self.machine, self.ends, self.stand_in = machine, ends, stand_in
        self.units = Units.of(machine)
        self.load, self.forward = load_latency(machine), forward_latency(machine)
        self.vector_load = vector_load_latency(machine)
        self.core = msgspec.structs.replace(machine.core, load_latency=self.load, forward_latency=self.load)
        self.behaviour = behaviour_of(machine)
        self.moves = instruction_set(machine.isa).roles.moves
        self.plain_store = frozenset(
            map(machine.ports.index, set(self.behaviour.plain_store) & set(machine.ports))
        )
        self._plain: dict[str, PlacedCost] = {}
        self._variants: dict[tuple[str, CostVariant], PlacedCost] = {}
        self._ends: dict[tuple[str, tuple[Node, ...]], AllEnds] = {}
        self._costs: dict[str, FormCost | None] = {}
        self._borrowed: dict[str, bool] = {}
        self._shared = SharedResources(machine)

    def with_ends(self, ends: str) -> PlacedCosts:
        """The same with another end of ranges; what does not depend on that is looked up once for both."""
        other = copy(self)
        other.ends, other._plain, other._variants = ends, {}, {}
        return other

    def like(self, placed: PlacedCost) -> PlacedCost:
        """The cost of the same form in the same surroundings, itself where these ends make no difference."""
        if not self._may_change(placed):
            return placed
        key = placed.form.id, placed.variant
        found = self._variants.get(key)
        if found is None:  # latencies alone are others
            cost = self._changed(placed.form, placed.variant)
            ways = self._ways(placed.form, cost, placed.variant)
            changed = msgspec.structs.asdict(ways)
            found = self._variants[key] = msgspec.structs.replace(placed, cost=cost, **changed)
        return found

    def _may_change(self, placed: PlacedCost) -> bool:
        """Whether latencies of a cost are ranges, or pairs of which nobody knows that they depend."""
        if placed.cost.ranges:
            return True
        return self._proves and bool(placed.guessed or placed.variant.idiom)

    @property
    def _proves(self) -> bool:
        """Whether pairs without a latency count for nothing: extracted models have no single pairs."""
        return self.ends == LEAST_PROVED and self.machine.provenance.kind != EXTRACTED

    def cost(self, form: InstructionForm) -> FormCost | None:
        """What the machine, or the stand-in, knows of a form, by its id or LLVM's name of it.

        LLVM has no costs of locked instructions: they have those of the plain ones.
        """
        if form.id not in self._costs:
            self._costs[form.id] = self._cost(form)
        return self._costs[form.id]

    def _cost(self, form: InstructionForm) -> FormCost | None:
        found = self._own(form)
        other = known_cost(form, self.stand_in) if self.stand_in is not None else None
        if other is None or self.stand_in is None or not self.is_borrowed(form):
            return found
        if found is None:
            return borrowed_cost(form, other, self.stand_in.core, self.machine)
        latencies = not_before_loads(form, other.latencies, self.load)
        return msgspec.structs.replace(found, latencies=latencies)

    def _own(self, form: InstructionForm) -> FormCost | None:
        found = known_cost(form, self.machine)
        if found is not None and self.behaviour.merges:
            found = merging(form, found)
        if found is not None and self.behaviour.clears_at_once and Ends(form).is_for_each:
            found = clearing(form, found)
        if found is None or not self.is_slower_x87(form):
            return found
        most = self.behaviour.x87_most
        stack = {p: (cycles, most) for p, cycles in found.latencies.items() if within_stack(p, form)}
        return msgspec.structs.replace(found, ranges=stack)

    def is_slower_x87(self, form: InstructionForm) -> bool:
        """Whether a model's latency of x87 arithmetic may be less than the core's."""
        extracted = self.machine.provenance.kind == EXTRACTED and self.behaviour.x87_most > 0
        return extracted and "x87" in form.attributes and _X87_ARITHMETIC.fullmatch(form.mnemonic) is not None

    def is_borrowed(self, form: InstructionForm) -> bool:
        """Whether the cost of a form, or its latencies, are those of the stand-in."""
        if self.stand_in is None:
            return False
        if form.id not in self._borrowed:
            self._borrowed[form.id] = self._is_borrowed(form, self.stand_in)
        return self._borrowed[form.id]

    def _is_borrowed(self, form: InstructionForm, stand_in: MachineModel) -> bool:
        found, other = known_cost(form, self.machine), known_cost(form, stand_in)
        if found is None:
            return True
        measured = found.latencies or found.ranges or found.eliminated
        return other is not None and bool(other.latencies) and not measured

    def plain(self, form: InstructionForm) -> PlacedCost:
        """The cost of a form that the machine knows, in no special surroundings."""
        placed = self._plain.get(form.id)
        if placed is None:
            placed = self._plain[form.id] = self._make(form, _PLAIN)
        return placed

    def get(self, form: InstructionForm, variant: CostVariant) -> PlacedCost:
        """The cost of a form that the machine knows, in its surroundings."""
        key = form.id, variant
        placed = self._variants.get(key)
        if placed is None:
            placed = self._variants[key] = self._make(form, variant)
        return placed

    def _changed(self, form: InstructionForm, variant: CostVariant) -> FormCost:
        """The cost in its surroundings."""
        cost = self.cost(form)
        assert cost is not None
        plain = settled(cost, self.ends)
        cost = varied(form, plain, variant, self.units)
        if variant.indexed:
            cost = without(cost, self.plain_store)
        if variant.slower:
            cost = msgspec.structs.replace(cost, throughput=cost.indexed_throughput)
        if variant.executed:
            cost = self._executed(cost)
        if any(variant.more):
            cost = with_more(cost, variant.more, self._addition, self._storing)
        plain_branch = variant == _PLAIN and "conditional_branch" in form.attributes
        if self.behaviour.counted_as and (plain_branch or variant.fused == EXECUTED):
            others = map(self._plainly, self.behaviour.counted_as)
            cost = where_branches_are(form, cost, self._addition, others)
        if variant.latency is not None or variant.fused in FIRSTS:
            cost = msgspec.structs.replace(cost, eliminated=False)
        return cost if cost.operations is plain.operations else self._shared.counted(cost)

    @once
    def loading(self) -> frozenset[tuple[int, ...]]:
        """The ports, each a set, of what a plain load needs."""
        return frozenset(op.ports for op in self._plainly(instruction_set(self.machine.isa).roles.load))

    @once
    def _storing(self) -> tuple[Operation, ...]:
        return self._plainly(instruction_set(self.machine.isa).roles.store)

    @once
    def _addition(self) -> tuple[Operation, ...]:
        return self._plainly(instruction_set(self.machine.isa).roles.plain["addition"][0])

    def _plainly(self, form: str) -> tuple[Operation, ...]:
        """The operations of a form by its name, as far as they are known."""
        cost = self.machine.forms.get(form)
        return (cost.operations if cost is not None else None) or ()

    def _executed(self, move: FormCost) -> FormCost:
        """A move that is executed: as an addition, of one source."""
        latencies = dict.fromkeys(move.latencies, USUAL_LATENCY)
        operations = self._addition or None
        return msgspec.structs.replace(move, eliminated=False, operations=operations, latencies=latencies)

    def _make(self, form: InstructionForm, variant: CostVariant) -> PlacedCost:
        cost = self._changed(form, variant)
        idle = cost.eliminated or variant.idiom == ZERO
        operations = () if idle else self._operations(form, cost)
        alone = 0.0 if idle or variant.fused else slow_alone(form, cost, self.machine.core, operations)
        return PlacedCost(
            **msgspec.structs.asdict(self._ways(form, cost, variant)), form=form, cost=cost, variant=variant,
            slots=slots_of(cost, self.machine.width.slots), alone=alone, operations=operations,
            uses=() if variant.idiom else tuple(self._shared.uses(cost, alone)),
        )  # fmt: skip

    def _ways(self, form: InstructionForm, cost: FormCost, variant: CostVariant) -> CostWays:
        """What a cost says of the ways from sources to targets."""
        ends = AllEnds.of(form, cost.latencies)
        ends = self._ends.setdefault((form.id, ends.old), ends)
        table = PlacedLatencies(
            ends, cost, self.core, variant, self.machine.provenance.kind == EXTRACTED,
            form.mnemonic.startswith(self.moves) if self.moves else False, self._proves,
            self.vector_load if form.vector_width else self.load,
        )  # fmt: skip
        column_of, columns = table.columns()
        updates = any(op.is_memory and op.read and op.write for op in form.operands)
        return CostWays(
            tuple(ends.sources), tuple(ends.targets), column_of, columns,
            tuple([table.base_of(column) for column in columns]), _killed(form),
            frozenset([c for c, t in zip(column_of, ends.targets, strict=True) if table.is_open_store(t)]),
            table.guessed(column_of), table.computing if updates else 0.0,
        )  # fmt: skip

    def _operations(self, form: InstructionForm, cost: FormCost) -> tuple[Operation, ...]:
        """The micro-operations; of those that were not found out, what any access to memory needs."""
        if cost.operations is not None:
            return cost.operations
        roles = instruction_set(self.machine.isa).roles
        accesses = [op for op in form.operands if op.is_memory]
        plain = [roles.load] * sum(op.read for op in accesses)
        plain += [roles.store] * sum(op.write for op in accesses)
        known = (self.machine.forms.get(one) for one in plain)
        return tuple(op for one in known if one is not None for op in one.operations or ())


def _killed(form: InstructionForm) -> tuple[str, ...]:
    dead = form.flags_undefined & ~form.flags_written
    return tuple([name for bit, name in enumerate(FLAGS) if dead >> bit & 1]) if dead else ()
