"""The dependency graph of a block: values, what leads to them, and what comes from earlier iterations.

A node is a value that an instruction computes: a register, flags that are ready together, data in memory.
An edge leads from a value, perhaps of an earlier iteration, to one that is computed from it, with the
latency of the operand pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import NamedTuple

import msgspec

from cyclescope.analyze.cost.changes import LEAST_PROVED
from cyclescope.analyze.cost.instruction import PlacedCost, PlacedCosts
from cyclescope.analyze.cost.latencies import EXECUTED, FIRST, SECOND, CostVariant
from cyclescope.analyze.cost.traits import GOES_SOMETIMES, LOADS, STORES, THROUGH_MEMORY
from cyclescope.analyze.decode.block import BlockInstruction
from cyclescope.analyze.decode.locations import (
    STACK_POINTER,
    Location,
    Places,
    location_of,
)
from cyclescope.analyze.depend.compiled.chains import Chains, Passed, chains
from cyclescope.analyze.depend.memory import Memory, Passage
from cyclescope.analyze.depend.pairs import fused_pairs, joined_moves, only_compares, trailing_nops
from cyclescope.analyze.depend.standing import Standings
from cyclescope.analyze.depend.ways import KnownWays
from cyclescope.isa.registry import instruction_set, mnemonics
from cyclescope.model.behaviour.published import CoreBehaviour
from cyclescope.once import once

_OUTSIDE = (None, 0.0)  # a source from outside the loop
_ABSENT = (None, -inf)  # the index of an address that has none


class Carried(msgspec.Struct, frozen=True, gc=False):
    """The value of a node, `distance` iterations before."""

    node: int
    distance: int = 1


class Input(NamedTuple):
    """What a node waits for: `node`, or entry -1 - `node` of the graph's `carried`, for `cycles`.

    `source` is the position among the sources of the node's instruction.
    """

    node: int
    cycles: float
    source: int


class Nodes(msgspec.Struct, frozen=True):
    """Nodes are numbered in program order; `owner` has the instruction of each, `first` the reverse.

    `base` is when a node is there if everything from outside the iteration is at hand at once.
    """

    first: tuple[int, ...]
    owner: tuple[int, ...]
    inputs: tuple[tuple[Input, ...], ...]
    base: tuple[float, ...]
    carried: tuple[Carried, ...]


class Graph(msgspec.Struct, frozen=True, dict=True):
    """A block with its dependencies, which are looked at when they are asked for.

    `costs` and `places` are per instruction. `through` is what it does to memory, `forwarded` the cycles by
    which a load from a store in flight is later than one from the cache.
    """

    instructions: tuple[BlockInstruction, ...]
    costs: tuple[PlacedCost, ...]
    places: tuple[Places, ...]
    through: Memory
    behaviour: CoreBehaviour
    forwarded: float

    @once
    def nodes(self) -> Nodes:
        """All values, and what leads to them."""
        return _WaitingNodes(self).nodes()

    @property
    def first(self) -> tuple[int, ...]:
        """The first node of each instruction."""
        return self.nodes.first

    @property
    def owner(self) -> tuple[int, ...]:
        """The instruction of each node."""
        return self.nodes.owner

    @property
    def inputs(self) -> tuple[tuple[Input, ...], ...]:
        """What each node waits for."""
        return self.nodes.inputs

    @property
    def base(self) -> tuple[float, ...]:
        """When each node is there at the earliest."""
        return self.nodes.base

    @property
    def carried(self) -> tuple[Carried, ...]:
        """The values of earlier iterations."""
        return self.nodes.carried

    @property
    def memory(self) -> tuple[Passage, ...]:
        """The ways through memory."""
        return self.through.passages

    @property
    def traits(self) -> set[str]:
        """What is out of the ordinary about it, of `cost.traits`."""
        found = {THROUGH_MEMORY} if self.memory else set()
        return found.union(*[placed.traits for placed in self.costs])

    @property
    def may_come_later(self) -> bool:
        """Whether some result in a register comes later to some operations than to others."""
        early, counts = self.behaviour.early, self.behaviour.stack_update
        forms = [placed.form for placed in self.costs]
        return any(one.mnemonic in early or (counts and "stack" in one.attributes) for one in forms)

    @once
    def chains(self) -> Chains | None:
        """What compiled code says of the graph, None where Python has to look."""
        early = self.behaviour.early
        late = [early.get(p.form.mnemonic, 0.0) for p in self.costs] if early else []
        both = zip(late, self.costs, strict=True)
        waits = [(cycles, self.is_early(p)) for cycles, p in both] if any(late) else ()
        return chains(self.costs, self.places, self.passed(), waits, self.behaviour.stack_update)

    def is_early(self, placed: PlacedCost) -> bool:
        """Whether an instruction gets early results as early as they are."""
        return placed.form.mnemonic in self.behaviour.early or placed.cost.eliminated

    def passed(self) -> list[Passed]:
        """Loads of what was stored, with the column of what is stored and cycles besides the load's."""
        found = []
        for passage in self.memory:
            number, position = passage.store
            placed = self.costs[number]
            column = _stored_column(placed, position)
            is_known = self.costs[passage.load[0]].variant.passing is not None
            late = self.forwarded if column in placed.stored and not is_known else 0.0
            found.append(Passed(*passage.load, number, column, passage.distance, late))
        return found

    def origin(self, node: int) -> Carried:
        """The node and the distance that an input's number stands for."""
        return Carried(node, 0) if node >= 0 else self.carried[-1 - node]

    def name(self, node: int) -> str:
        """What a node holds: `op1`, `flags.CF`, `[RSP].data`."""
        number = self.owner[node]
        placed = self.costs[number]
        column = node - self.first[number]
        return next(t.name for t, c in zip(placed.targets, placed.column_of, strict=True) if c == column)


def build(instructions: Sequence[BlockInstruction], standings: Standings) -> Graph:
    """The graph of a block, all of whose instructions the machine knows."""
    return _Builder(tuple(instructions), standings).graph()


def rebuilt(graph: Graph, costs: PlacedCosts) -> Graph:
    """The graph of the same block with other costs of the same machine."""
    found = [costs.like(placed) for placed in graph.costs]
    if costs.ends == LEAST_PROVED:  # memory takes no time then
        for number in {number for p in graph.memory for number in (p.load[0], p.store[0])}:
            placed = graph.costs[number]
            renamed = msgspec.structs.replace(placed.variant, renamed=True, passing=None, passes=False)
            found[number] = costs.get(placed.form, renamed)
    return msgspec.structs.replace(graph, costs=tuple(found))


class _Builder:
    def __init__(self, instructions: tuple[BlockInstruction, ...], standings: Standings) -> None:
        self.instructions = instructions
        self.costs = standings.costs
        self.behaviour = self.costs.behaviour
        self._standings = standings
        self.standing = standings.of(instructions)
        self.places = tuple([one.places for one in self.standing])
        self.traits = set[str]().union(*[one.plain.traits for one in self.standing])
        self.through = self._through_memory()
        self.memory = self.through.passages

    def graph(self) -> Graph:
        """Everything together."""
        late = self.costs.forward - self.costs.load
        return Graph(
            self.instructions, tuple(self._chosen()), self.places, self.through, self.behaviour, late
        )  # fmt: skip

    def _through_memory(self) -> Memory:
        loads_matter = self.behaviour.banks or self.behaviour.crossing
        if STORES not in self.traits and not (loads_matter and LOADS in self.traits):
            return Memory()
        return self._standings.memory(self.instructions, self.standing)

    # --- variants --------------------------------------------------------------------------------

    def _chosen(self) -> list[PlacedCost]:
        """The cost of every instruction in its surroundings."""
        pairs = GOES_SOMETIMES in self.traits
        fused = fused_pairs(self.instructions, self.behaviour) if pairs else set()
        joined = joined_moves(self.instructions, self.behaviour)
        joined |= trailing_nops(self.instructions, self.behaviour)
        renamed = self._renamed()
        passing, passes = self._known_ways()
        if not (fused or joined or renamed or passing or passes or self._is_commented()):
            return [standing.own for standing in self.standing]
        beside = fused | {number + 1 for number in fused} | joined | renamed | passing.keys() | passes
        chosen = []
        for number, (one, standing) in enumerate(zip(self.instructions, self.standing, strict=True)):
            said = one.latency is not None
            if not (said or one.later or number in beside):
                chosen.append(standing.own)
                continue
            role = SECOND if number - 1 in fused or number in joined else ""
            if number in fused:
                apart = self.behaviour.branches_apart and only_compares(one)
                branch = self.costs.cost(self.standing[number + 1].plain.form)
                role = FIRST if apart or (branch is not None and branch.operations) else EXECUTED
            own = standing.variant
            variant = CostVariant(
                "" if said else own.idiom, role, number in renamed, own.indexed, one.latency,
                passing.get(number), number in passes, one.later, own.executed, own.more, own.slower,
                own.pointed, own.addressed, own.again,
            )  # fmt: skip
            chosen.append(self.costs.get(standing.plain.form, variant))
        return chosen

    def _is_commented(self) -> bool:
        """Whether somebody says what the model does not know of an instruction."""
        return any([one.latency is not None or one.later for one in self.instructions])  # noqa: C419 - quicker

    def _known_ways(self) -> tuple[dict[int, float], set[int]]:
        if not self.memory or not self.behaviour.passing:
            return {}, set()
        sooner = self.costs.vector_load - self.costs.load
        ways = KnownWays(
            self.instructions,
            [one.plain for one in self.standing],
            self.places,
            self.memory,
            self.behaviour.passing,
            sooner,
        )
        return ways.told()

    def _renamed(self) -> set[int]:
        """Loads and stores whose data do not go through memory."""
        if not self.behaviour.renamed:
            return set()
        pairs = [(p.load, p.store) for p in self.memory]
        good = {load for load, store in pairs if self._is_renamed(load, store)}
        spoilt = {store for load, store in pairs if load not in good}  # memory has it anyway
        return {number for load, store in pairs if store not in spoilt for number in (load[0], store[0])}

    def _is_renamed(self, load: tuple[int, int], store: tuple[int, int]) -> bool:
        """Whole registers, stored and loaded by the same address of a base alone."""
        reader, writer = self.instructions[load[0]], self.instructions[store[0]]
        source, target = reader.memory[load[1]], writer.memory[store[1]]
        form, other = reader.form, writer.form
        if source is None or target is None or form is None or other is None:
            return False
        base = location_of(source.base)
        same = base == location_of(target.base) and source.index is None and target.index is None
        plain = form.mnemonic in mnemonics("reloads") or form.operands[load[1]].write
        width = form.operands[load[1]].width
        least = instruction_set(form.isa).registers.whole
        whole = least <= width <= other.operands[store[1]].width and form.vector_width == 0
        wanted = self.behaviour.renamed == "any" or base == STACK_POINTER
        general = other.vector_width == 0 and not (form.on_masks_or_x87 or other.on_masks_or_x87)
        return same and plain and whole and wanted and general


def _stored_column(placed: PlacedCost, position: int) -> int:
    nodes = zip(placed.targets, placed.column_of, strict=True)
    return next(column for node, column in nodes if node.part == "data" and node.operand == position)


class _WaitingNodes:
    """The nodes' inputs: who wrote what is read, in this iteration or an earlier one."""

    def __init__(self, graph: Graph) -> None:
        self._graph, self._costs, self._places = graph, graph.costs, graph.places
        self._early, self._stack_update = graph.behaviour.early, graph.behaviour.stack_update
        self._first: list[int] = []
        self._owner: list[int] = []
        for number, placed in enumerate(self._costs):
            self._first.append(len(self._owner))
            self._owner += [number] * len(placed.columns)
        self._memory = {
            (load, operand): (self._first[store] + column, distance, late)
            for load, operand, store, column, distance, late in graph.passed()
        }
        self._carried: list[Carried] = []
        self._base: list[float] = []
        self._numbers: dict[tuple[int, int], int] = {}

    def nodes(self) -> Nodes:
        """Everything together."""
        inputs = tuple(self._inputs())
        return Nodes(tuple(self._first), tuple(self._owner), inputs, tuple(self._base), tuple(self._carried))

    def _inputs(self) -> Iterator[tuple[Input, ...]]:
        """Per node what it waits for; bases and carried values are found on the way."""
        writes = [self._writes(number) for number in range(len(self._costs))]
        final: dict[Location, int | None] = {}
        for written in writes:
            final.update(written)
        last: dict[Location, int | None] = {}
        for number, placed in enumerate(self._costs):
            read = self._reads(number, last, final)
            for column, base in zip(placed.columns, placed.base, strict=True):
                row = []
                for k, cycles in column:
                    node, late = read[k]
                    if node is None or node < 0:
                        base = max(base, cycles + (late if node is None else 0.0))  # noqa: PLW2901
                    if node is not None:
                        row.append(Input(node, cycles + late, k))
                self._base.append(base)
                yield tuple(row)
            last.update(writes[number])

    def _writes(self, number: int) -> list[tuple[Location, int | None]]:
        """What an instruction writes, and the nodes that are there afterwards, None for nothing of use."""
        placed, first = self._costs[number], self._first[number]
        both = zip(self._places[number].targets, placed.column_of, strict=True)
        written: list[tuple[Location, int | None]] = [
            (place, first + column) for place, column in both if place is not None
        ]
        return [*[(("flag", name), None) for name in placed.killed], *written] if placed.killed else written

    def _reads(
        self, number: int, last: dict[Location, int | None], final: dict[Location, int | None]
    ) -> list[tuple[int | None, float]]:
        """By source the node read, as in `Input`, None for one from outside, and how much later it is."""
        found: list[tuple[int | None, float]] = []
        for k, place in enumerate(self._places[number].sources):
            if place is None:
                found.append(self._from_no_register(number, k))
                continue
            earlier = place not in last
            writer = final.get(place) if earlier else last[place]
            if writer is None:
                found.append(_OUTSIDE)
                continue
            late = self._later(number, writer) if self._early else 0.0
            if place == STACK_POINTER and self._is_out_of_date(number, k, writer):
                late += self._stack_update
            found.append((self._earlier(writer, 1) if earlier else writer, late))
        return found

    def _from_no_register(self, number: int, k: int) -> tuple[int | None, float]:
        node = self._costs[number].sources[k]
        if node.part == "data":
            return self._load(number, node.operand)
        return _ABSENT if node.part == "index" else _OUTSIDE

    def _later(self, number: int, writer: int) -> float:
        """How much later a result comes to an operation of another kind than those that get it early."""
        waits = not self._graph.is_early(self._costs[number])
        return self._early.get(self._costs[self._owner[writer]].form.mnemonic, 0.0) if waits else 0.0

    def _is_out_of_date(self, number: int, k: int, writer: int) -> bool:
        """Whether the stack pointer is computed with after pushes or pops: they only count.

        A move of it that is executed adds what they counted.
        """
        node, reader = self._costs[number].sources[k], self._costs[number]
        if node.part != "register" or "stack" in reader.form.attributes or reader.variant.executed:
            return False
        return "stack" in self._costs[self._owner[writer]].form.attributes

    def _load(self, number: int, position: int) -> tuple[int | None, float]:
        found = self._memory.get((number, position))
        if found is None:
            return _OUTSIDE
        node, distance, late = found
        return (self._earlier(node, distance) if distance else node), late

    def _earlier(self, node: int, distance: int) -> int:
        number = self._numbers.setdefault((node, distance), len(self._carried))
        if number == len(self._carried):
            self._carried.append(Carried(node, distance))
        return -1 - number
