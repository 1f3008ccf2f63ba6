"""What an instruction costs on a machine, in the form that the analysis uses, once per form and variant."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from math import ceil

import msgspec

from cyclescope.analyze.cost.cores import forward_latency, load_latency
from cyclescope.analyze.cost.known import borrowed_cost, known_cost
from cyclescope.isa.dataflow import OLD, Node, sources
from cyclescope.isa.form import FLAGS, InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.register import domain
from cyclescope.isa.registry import instruction_set
from cyclescope.model.behaviour.found import behaviour_of
from cyclescope.model.machine import EXTRACTED, Core, FormCost, MachineModel, Operation
from cyclescope.model.ports import issue_throughput
from cyclescope.simulate.cost import USUAL_LATENCY, ZERO, Ends, Latencies, Units

_WHOLE = 32  # bits of a general register: writing so many leaves nothing of it
_EXPLAINED = 1.05  # times what ports and slots allow
_X87_ARITHMETIC = re.compile(r"F(ADD|SUBR?|MUL)P?")
FIRST, SECOND = "first", "second"  # of a fused pair
LEAST_PROVED, MOST_PROVED = "least", "most"  # of what is proved
Column = tuple[tuple[int, float], ...]  # (source, cycles)


class CostVariant(msgspec.Struct, frozen=True):
    """What the surroundings make of an instruction: idiom, part of a fused pair, renamed memory.

    `passing` are the cycles in which what it loads comes from a store, where that was found out, `passes`
    tells of a store to such a load: its latencies are those of computing alone. `indexed` tells of a store
    to an address with an index, where that makes a difference. `latency` are the cycles of every result that
    a comment in the source asks for.
    """

    idiom: str = ""
    fused: str = ""
    renamed: bool = False
    indexed: bool = False
    latency: float | None = None
    passing: float | None = None
    passes: bool = False


class AllEnds(Ends, frozen=True):
    """Sources and targets of a form, with the registers of every address, encodable or not."""

    @cached_property
    def sources(self) -> list[Node]:
        """Everything that the form reads, and old values of destinations that it waits for."""
        found = sources(self.form)
        known = {node.name for node in found}
        for position, op in enumerate(self.form.operands):
            if op.kind in ("memory", "address") and not op.implicit:
                parts = (("address", "r"), ("index", "v" if op.cls.startswith("VSIB_") else "r"))
                nodes = (Node(f"{op.name}.{part}", part, file, position) for part, file in parts)
                found += [node for node in nodes if node.name not in known]
        return [*found, *self.old]


class PlacedCost(msgspec.Struct, frozen=True, dict=True):
    """A form's cost as rows of a graph.

    Targets with equal latencies from all sources are one column, a value of its own: `column_of` has the
    column of each target, `columns` the (source, cycles) that lead to it, `base` the cycles that it takes
    where nothing has to arrive. `killed` are flags that hold nothing of use behind the instruction.
    `stored` has the columns that go to memory without a latency in the model, `guessed` the (source,
    column) of other pairs without one. `alone` is the measured throughput where neither ports nor slots
    explain it, else 0.
    """

    form: InstructionForm
    cost: FormCost
    variant: CostVariant
    sources: tuple[Node, ...]
    targets: tuple[Node, ...]
    column_of: tuple[int, ...]
    columns: tuple[Column, ...]
    base: tuple[float, ...]
    killed: tuple[str, ...]
    stored: frozenset[int]
    guessed: frozenset[tuple[int, int]]
    slots: float
    operations: tuple[Operation, ...]
    alone: float

    @cached_property
    def work(self) -> tuple[tuple[int, float], ...]:
        """Cycles by set of ports, the sets as bits."""
        sums: dict[int, float] = {}
        for op in self.operations:
            if op.ports:
                ports = sum(1 << p for p in set(op.ports))
                sums[ports] = sums.get(ports, 0.0) + op.count * op.cycles
        return tuple(sums.items())

    def loads(self, source: int) -> bool:
        """Whether a source is data in memory."""
        return self.sources[source].part == "data"

    @cached_property
    def loaded(self) -> frozenset[int]:
        """The sources that reach the results through a load."""
        ends = AllEnds(self.form)
        return frozenset(k for k, node in enumerate(self.sources) if ends.is_loaded(node))

    @cached_property
    def largest(self) -> tuple[float, float]:
        """The largest latencies, of sources that are at hand and of those that are loaded."""
        every = [(k in self.loaded, cycles) for column in self.columns for k, cycles in column]
        direct, through = (max((c for by, c in every if by == way), default=0.0) for way in (False, True))
        return direct, through

    @cached_property
    def engine_sources(self) -> tuple[int, ...]:
        """The sources that the simulated core knows, in its order."""
        waited = {k for column in self.columns for k, _ in column}
        old = (k for k, node in enumerate(self.sources) if node.part == OLD and k in waited)
        return (*map(self.sources.index, sources(self.form)), *old)

    def explicit_cost(self, extra: float) -> FormCost:
        """The cost with the latency of every pair; `extra` cycles are added to ways into memory."""
        latencies = {}
        for target, column in zip(self.targets, self.column_of, strict=True):
            late = extra if column in self.stored else 0.0
            for k, cycles in self.columns[column]:
                latencies[f"{self.sources[k].name}->{target.name}"] = cycles + late
        return msgspec.structs.replace(self.cost, latencies=latencies)

    @property
    def unknown_ports(self) -> bool:
        """Whether the model does not know the port usage."""
        return self.cost.operations is None


class PlacedCosts:
    """The shapes of one machine.

    `ends` is which end counts of the ranges that a model has for latencies: with LEAST the least that is
    proved, and memory takes no time; with MOST the most; else the value, and the most of a pair without one.
    `stand_in` is a model of the same core that knows more forms: its slots, latencies and throughput count
    where the machine has no cost.
    """

    def __init__(self, machine: MachineModel, ends: str = "", stand_in: MachineModel | None = None) -> None:
        self.machine, self.ends, self.stand_in = machine, ends, stand_in
        self.units = Units.of(machine)
        self.load, self.forward = load_latency(machine), forward_latency(machine)
        self.core = msgspec.structs.replace(machine.core, load_latency=self.load, forward_latency=self.load)
        self.family = behaviour_of(machine)
        self.moves = instruction_set(machine.isa).roles.moves
        self.plain_store = frozenset(
            map(machine.ports.index, set(self.family.plain_store) & set(machine.ports))
        )
        self._known: dict[tuple[str, CostVariant], PlacedCost] = {}

    def cost(self, form: InstructionForm) -> FormCost | None:
        """What the machine, or the stand-in, knows of a form, by its id or LLVM's name of it.

        LLVM has no costs of locked instructions: they have those of the plain ones.
        """
        found = self._own(form)
        other = known_cost(form, self.stand_in) if self.stand_in is not None else None
        if other is None or self.stand_in is None or not self.is_borrowed(form):
            return found
        if found is None:
            return borrowed_cost(form, other, self.stand_in.core, self.machine)
        return msgspec.structs.replace(found, latencies=other.latencies)

    def _own(self, form: InstructionForm) -> FormCost | None:
        found = known_cost(form, self.machine)
        if found is not None and self.family.merges:
            found = _merging(form, found)
        if found is None or not self.is_slower_x87(form):
            return found
        most = self.family.x87_most
        stack = {p: (cycles, most) for p, cycles in found.latencies.items() if _within_stack(p, form)}
        return msgspec.structs.replace(found, ranges=stack)

    def is_slower_x87(self, form: InstructionForm) -> bool:
        """Whether a model's latency of x87 arithmetic may be less than the core's."""
        extracted = self.machine.provenance.kind == EXTRACTED and self.family.x87_most > 0
        return extracted and "x87" in form.attributes and _X87_ARITHMETIC.fullmatch(form.mnemonic) is not None

    def is_borrowed(self, form: InstructionForm) -> bool:
        """Whether the cost of a form, or its latencies, are those of the stand-in."""
        if self.stand_in is None:
            return False
        found, other = known_cost(form, self.machine), known_cost(form, self.stand_in)
        if found is None:
            return True
        measured = found.latencies or found.ranges or found.eliminated
        return other is not None and bool(other.latencies) and not measured

    def get(self, form: InstructionForm, variant: CostVariant) -> PlacedCost:
        """The shape of a form that the machine knows."""
        key = form.id, variant
        shape = self._known.get(key)
        if shape is None:
            cost = self.cost(form)
            assert cost is not None
            cost = _varied(form, _settled(cost, self.ends), variant, self.units)
            if variant.indexed:
                cost = _without(cost, self.plain_store)
            if variant.latency is not None or variant.fused == FIRST:
                cost = msgspec.structs.replace(cost, eliminated=False)
            shape = self._known[key] = self._make(form, cost, variant)
        return shape

    def _make(self, form: InstructionForm, cost: FormCost, variant: CostVariant) -> PlacedCost:
        ends = AllEnds.of(form, cost.latencies)
        table = _Table(
            ends, cost, self.core, variant, self.machine.provenance.kind == EXTRACTED,
            form.mnemonic.startswith(self.moves) if self.moves else False,
        )  # fmt: skip
        column_of, columns = table.columns()
        idle = cost.eliminated or variant.idiom == ZERO
        return PlacedCost(
            form, cost, variant, tuple(ends.sources), tuple(ends.targets), column_of, columns,
            tuple(table.base_of(column) for column in columns), _killed(form),
            frozenset(c for c, t in zip(column_of, ends.targets, strict=True) if table.is_open_store(t)),
            table.guessed(column_of), _slots(cost), () if idle else self._operations(form, cost),
            0.0 if idle or variant.fused else _unexplained(cost, self.machine.core),
        )  # fmt: skip

    def _operations(self, form: InstructionForm, cost: FormCost) -> tuple[Operation, ...]:
        """The micro-operations; of those that were not found out, what any access to memory needs."""
        if cost.operations is not None:
            return cost.operations
        roles, accesses = (
            instruction_set(self.machine.isa).roles,
            [op for op in form.operands if op.is_memory],
        )
        plain = [roles.load] * sum(op.read for op in accesses)
        plain += [roles.store] * sum(op.write for op in accesses)
        known = (self.machine.forms.get(one) for one in plain)
        return tuple(op for one in known if one is not None for op in one.operations or ())


def _merging(form: InstructionForm, cost: FormCost) -> FormCost:
    """The cost where writes of a part of a register wait for the rest of it."""
    kept = (op.name for op in form.operands if op.read and op.write and _is_narrow(op))
    pairs = {f"{name}->{name}": USUAL_LATENCY for name in kept}
    if not pairs:
        return cost
    return msgspec.structs.replace(cost, latencies={**pairs, **cost.latencies})


def _is_narrow(op: Operand) -> bool:
    """Whether an operand is a part of a general register that leaves the rest as it is."""
    return op.is_register and op.width < _WHOLE and (op.file or domain(op.cls)) == "r"


def _within_stack(pair: str, form: InstructionForm) -> bool:
    """Whether a pair leads from a register of the x87 stack to another."""
    stack = {op.name for op in form.operands if op.cls == "ST"}
    source, _, target = pair.partition("->")
    return source in stack and target in stack


def _settled(cost: FormCost, ends: str) -> FormCost:
    """The cost with one value for every pair that has a range."""
    if not cost.ranges:
        return cost
    found = {pair: low if ends == LEAST_PROVED else high for pair, (low, high) in cost.ranges.items()}
    latencies = {**cost.latencies, **found} if ends else {**found, **cost.latencies}
    return msgspec.structs.replace(cost, latencies=latencies)


def _unexplained(cost: FormCost, core: Core) -> float:
    """The measured throughput of a form that a unit besides the ports bounds, else 0."""
    explained = issue_throughput(cost, core)
    slowest = cost.throughput if cost.throughput is not None else cost.throughput_most
    if slowest is None or (explained and slowest <= explained[0] * _EXPLAINED):
        return 0.0
    return slowest


def _varied(form: InstructionForm, cost: FormCost, variant: CostVariant, units: Units) -> FormCost:
    """The cost with what fusion takes away: the branch does the work of both."""
    if variant.fused == SECOND:
        return msgspec.structs.replace(cost, slots=0.0)
    if variant.fused == FIRST and cost.operations is not None:
        loads = any(op.is_memory and op.read for op in form.operands)
        kept = tuple(op for op in cost.operations if loads and op.ports in units.loads)
        return msgspec.structs.replace(cost, operations=kept)
    return cost


def _without(cost: FormCost, plain: frozenset[int]) -> FormCost:
    """The cost of a store to an address with an index: ports for plain addresses do not make it."""
    if cost.operations is None:
        return cost
    kept = tuple(
        msgspec.structs.replace(op, ports=tuple(p for p in op.ports if p not in plain) or op.ports)
        for op in cost.operations
    )
    return msgspec.structs.replace(cost, operations=kept)


def _slots(cost: FormCost) -> float:
    if cost.slots is not None:
        return cost.slots
    if cost.slot_range is not None:
        return cost.slot_range[0]
    return float(max(sum(ceil(op.count) for op in cost.operations or ()), 1))


def _killed(form: InstructionForm) -> tuple[str, ...]:
    dead = form.flags_undefined & ~form.flags_written
    return tuple(name for bit, name in enumerate(FLAGS) if dead >> bit & 1)


class _Table:
    """Latencies from every source to every target in a variant."""

    def __init__(
        self, ends: AllEnds, cost: FormCost, core: Core, variant: CostVariant, extracted: bool, moves: bool
    ) -> None:
        self.ends, self.cost, self.variant, self._is_move = ends, cost, variant, moves
        self._latencies = Latencies(ends, cost, core, extracted)
        self._load = core.load_latency

    def columns(self) -> tuple[tuple[int, ...], tuple[Column, ...]]:
        """Per target the number of its column, and the columns. Memory has columns of its own."""
        numbers: dict[tuple[str, Column], int] = {}
        found = []
        for target in self.ends.targets:
            key = target.name if target.part == "data" else "", self._column(target)
            found.append(numbers.setdefault(key, len(numbers)))
        return tuple(found), tuple(column for _, column in numbers)

    def _column(self, target: Node) -> Column:
        rows = ((k, self.between(source, target)) for k, source in enumerate(self.ends.sources))
        return tuple((k, cycles) for k, cycles in rows if cycles is not None)

    def between(self, source: Node, target: Node) -> float | None:
        """Cycles from a source to a target, None where it does not depend on it."""
        idiom = self.variant.idiom
        if self.ends.is_apart(source, target):
            return None
        if idiom and (idiom == ZERO or source.part in ("register", OLD)):
            return None
        if self.cost.eliminated:
            return None if source.part == OLD else 0.0
        cycles = self._latencies.between(source, target)
        if cycles is None:
            return None
        if self.variant.latency is not None and target.part != "data":
            return self.variant.latency
        return self._in_place(cycles, source, target)

    def _in_place(self, cycles: float, source: Node, target: Node) -> float:
        """Cycles of a pair in its surroundings."""
        variant = self.variant
        if variant.fused == FIRST and source.part == target.part == "register":
            return max(cycles, USUAL_LATENCY)  # what is fused with a branch is executed with it
        if source.part == "data" and variant.passing is not None:
            return variant.passing + self._computing
        if target.part == "data" and variant.passes:
            return self._computing
        if not variant.renamed:
            return cycles
        if target.part == "data" and not self.ends.computes:
            return 0.0
        return max(cycles - self._load, 0.0) if source.part == "data" else cycles

    @cached_property
    def _computing(self) -> float:
        """Cycles from loaded values to results in registers and flags, without the load."""
        if self._is_move or not self.ends.computes:
            return 0.0
        known = self.cost.latencies
        ways = [
            (self.ends.is_loaded(s), known[pair]) for s in self.ends.sources for t in self.ends.targets
            if s.part != OLD and t.part != "data" and (pair := f"{s.name}->{t.name}") in known
        ]  # fmt: skip
        direct = [cycles for loaded, cycles in ways if not loaded]
        if direct:
            return max(direct)
        return max(min((c for _, c in ways), default=0.0) - self._load, USUAL_LATENCY)

    def base_of(self, column: Column) -> float:
        """Cycles of a value from dispatch on; of one that waits for something, that decides."""
        read = any(self.ends.sources[k].part != OLD for k, _ in column)
        return 0.0 if read else self.base()

    def base(self) -> float:
        """Cycles of a target that waits for nothing."""
        if self.variant.latency is not None:
            return self.variant.latency
        idle = self.cost.eliminated or self.variant.idiom == ZERO or "nop" in self.ends.form.attributes
        return 0.0 if idle else self._latencies.own or USUAL_LATENCY

    def is_open_store(self, target: Node) -> bool:
        """Whether the model has no latency of the way to memory."""
        if target.part != "data" or self.variant.renamed or self.variant.passes:
            return False
        return not any(pair.endswith(f"->{target.name}") for pair in self.cost.latencies)

    def guessed(self, column_of: Sequence[int]) -> frozenset[tuple[int, int]]:
        """(source, column) of pairs that have the latency of another pair of the form, or 1."""
        if self.variant.idiom or self.cost.eliminated or self.variant.latency is not None:
            return frozenset()
        known: Mapping[str, float] = self.cost.latencies
        return frozenset(
            (k, column)
            for k, s in enumerate(self.ends.sources)
            for t, column in zip(self.ends.targets, column_of, strict=True)
            if s.part in ("register", "flag") and t.part != "data" and not self._is_pointer(s, t)
            if f"{s.name}->{t.name}" not in known
        )

    def _is_pointer(self, source: Node, target: Node) -> bool:
        return self.ends.is_pointer(target) or self.ends.is_address(source)
