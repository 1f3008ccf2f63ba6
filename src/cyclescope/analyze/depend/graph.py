"""The dependency graph of a block: values, what leads to them, and what comes from earlier iterations.

A node is a value that an instruction makes: a register, flags that are ready together, data in memory. An
edge leads from a value, or from the value of an earlier iteration, to one that is made of it, with the
latency of the operand pair.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from cyclescope.analyze.cost.cores import STACK_SYNC, STORES_IN_FLIGHT
from cyclescope.analyze.cost.shape import FIRST, LEAST_PROVED, SECOND, CostVariant, PlacedCost, PlacedCosts
from cyclescope.analyze.decode.block import BlockInstruction
from cyclescope.analyze.decode.locations import (
    STACK_POINTER,
    Location,
    location_of,
    place_of,
    reads_one_register,
)
from cyclescope.analyze.depend.memory import LocatedInstruction, Memory, Passage, through_memory
from cyclescope.isa.dataflow import Node
from cyclescope.isa.form import InstructionForm
from cyclescope.model.behaviour.passing import StoredLoad
from cyclescope.model.behaviour.published import CoreBehaviour
from cyclescope.model.facts import MemoryWay

_PLAIN = CostVariant()
_DEAD = -1  # a location that holds nothing of use
_WHOLE = 32  # bits of a load that can be renamed, at least


class Carried(msgspec.Struct, frozen=True):
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


class Places(NamedTuple):
    """Locations of the sources and targets of an instruction, None for memory and for nothing."""

    sources: tuple[Location | None, ...]
    targets: tuple[Location | None, ...]


class Graph(msgspec.Struct, frozen=True):
    """Nodes are numbered in program order; `owner` has the instruction of each, `first` the reverse.

    `base` is when a node is there if everything from outside the iteration is at hand at once. `shapes`
    and `places` are per instruction. `through` is what it does to memory.
    """

    instructions: tuple[BlockInstruction, ...]
    shapes: tuple[PlacedCost, ...]
    places: tuple[Places, ...]
    first: tuple[int, ...]
    owner: tuple[int, ...]
    inputs: tuple[tuple[Input, ...], ...]
    base: tuple[float, ...]
    carried: tuple[Carried, ...]
    through: Memory

    @property
    def memory(self) -> tuple[Passage, ...]:
        """The ways through memory."""
        return self.through.passages

    def origin(self, node: int) -> Carried:
        """The node and the distance that an input's number stands for."""
        return Carried(node, 0) if node >= 0 else self.carried[-1 - node]

    def name(self, node: int) -> str:
        """What a node holds: `op1`, `flags.CF`, `[RSP].data`."""
        number = self.owner[node]
        shape = self.shapes[number]
        column = node - self.first[number]
        return next(t.name for t, c in zip(shape.targets, shape.column_of, strict=True) if c == column)


def build(
    instructions: Sequence[BlockInstruction], shapes: PlacedCosts, memory: Memory | None = None
) -> Graph:
    """The graph of a block, all of whose instructions the machine knows.

    `memory` are the ways through memory, where another graph of the block has them.
    """
    return _Builder(tuple(instructions), shapes, memory).graph()


def fused_pairs(instructions: Sequence[BlockInstruction], family: CoreBehaviour) -> set[int]:
    """Positions of the first instructions of pairs that the front end makes one micro-operation."""
    found: set[int] = set()
    for number, (one, branch) in enumerate(pairwise(instructions)):
        first, second = one.form, branch.form
        if first is None or second is None or not _is_plain_branch(second):
            continue
        if family.fuses(first.mnemonic, second.mnemonic) and _fusible(one, first):
            found.add(number)
    return found


def joined_moves(instructions: Sequence[BlockInstruction], family: CoreBehaviour) -> set[int]:
    """Positions of moves that share a slot with the operation behind them, which works on their copy.

    In loops: so it was found there, and not where code is decoded anew.
    """
    found: set[int] = set()
    last = instructions[-1].form
    if last is None or last.attributes.isdisjoint(("branch", "conditional_branch")):
        return found
    for number, (move, other) in enumerate(pairwise(instructions)):
        first, second = move.form, other.form
        if first is None or second is None or "conditional_branch" in second.attributes:
            continue
        plain = not any(op.is_memory for form in (first, second) for op in form.operands)
        written, changed = (_written(one) for one in (move, other))
        if plain and written and written == changed and family.fuses(first.mnemonic, second.mnemonic):
            found.add(number)
    return found - {number + 1 for number in found}


def _written(instruction: BlockInstruction) -> tuple[str, int] | None:
    """The register, with its class, that an instruction's first operand is, if it writes it."""
    form = instruction.form
    known = form is not None and form.operands and form.operands[0].write
    return instruction.registers[0] if known else None


def _is_plain_branch(form: InstructionForm) -> bool:
    """A branch by flags, not LOOP or JRCXZ."""
    conditional = "conditional_branch" in form.attributes
    return conditional and form.flags_read != 0 and not form.mnemonic.startswith("LOOP")


def _fusible(instruction: BlockInstruction, form: InstructionForm) -> bool:
    """Not what stores, nor what has memory and an immediate or an address relative to RIP."""
    if any(op.is_memory and op.write for op in form.operands):
        return False
    memory = [address for address in instruction.memory if address is not None]
    if not memory:
        return True
    return not any(op.kind == "immediate" for op in form.operands) and not memory[0].rip_relative


class _Builder:
    def __init__(
        self, instructions: tuple[BlockInstruction, ...], shapes: PlacedCosts, memory: Memory | None
    ) -> None:
        self.instructions = instructions
        self.shapes = shapes
        self.family = shapes.family
        self.places = tuple(self._places())
        found = self._through_memory() if memory is None else memory
        self.through, self.memory = found, found.passages

    def graph(self) -> Graph:
        """Everything together."""
        chosen = self._chosen()
        first: list[int] = []
        owner: list[int] = []
        for number, shape in enumerate(chosen):
            first.append(len(owner))
            owner += [number] * len(shape.columns)
        through = self._from_memory(chosen, first)
        nodes = _Nodes(chosen, self.places, first, through, self.family.early)
        inputs = tuple(tuple(row) for row in nodes.inputs())
        return Graph(
            self.instructions, tuple(chosen), self.places, tuple(first), tuple(owner), inputs,
            tuple(nodes.base), tuple(nodes.carried), self.through,
        )  # fmt: skip

    def _plain(self, form: InstructionForm | None) -> PlacedCost:
        assert form is not None
        return self.shapes.get(form, _PLAIN)

    def _places(self) -> Iterator[Places]:
        top = 0
        for one in self.instructions:
            shape = self._plain(one.form)
            pops = shape.form.x87_pops
            pushed = (top + min(pops, 0)) & 7  # a push names its target after the fact
            yield Places(
                tuple(place_of(one, node, top) for node in shape.sources),
                tuple(place_of(one, node, pushed) for node in shape.targets),
            )
            top = (top + pops) & 7

    def _through_memory(self) -> Memory:
        loads = self.family.banks or self.family.crossing
        if not loads and not any(_stores(one) for one in self.instructions):
            return Memory()
        lines = [
            LocatedInstruction(
                one,
                tuple(place for place in places.sources if place is not None),
                tuple(
                    (node.operand, place)
                    for node, place in zip(self._plain(one.form).targets, places.targets, strict=True)
                    if place is not None
                ),
            )
            for one, places in zip(self.instructions, self.places, strict=True)
        ]
        in_flight = self.shapes.machine.core.store_buffer or STORES_IN_FLIGHT
        return through_memory(lines, in_flight, self.family, self.shapes.machine.isa)

    # --- variants --------------------------------------------------------------------------------

    def _chosen(self) -> list[PlacedCost]:
        """The shape of every instruction in its surroundings."""
        fused = fused_pairs(self.instructions, self.family)
        joined = joined_moves(self.instructions, self.family)
        renamed = self._renamed()
        passing, passes = self._passing()
        chosen = []
        for number, one in enumerate(self.instructions):
            shape = self._plain(one.form)
            said = one.latency is not None
            idiom = shape.cost.idiom if shape.cost.idiom and reads_one_register(one) and not said else ""
            role = FIRST if number in fused else SECOND if number - 1 in fused or number in joined else ""
            indexed = bool(self.shapes.plain_store) and _stores_by_index(one)
            through = number in renamed or number in passing or number in passes
            if idiom or role or through or indexed or said:
                variant = CostVariant(
                    idiom,
                    role,
                    number in renamed,
                    indexed,
                    one.latency,
                    passing.get(number),
                    number in passes,
                )
                shape = self.shapes.get(shape.form, variant)
            chosen.append(shape)
        return chosen

    def _passing(self) -> tuple[dict[int, float], set[int]]:
        """Cycles from memory by instructions that load what was stored, and the instructions that store it.

        Nothing where no probe found out how long that takes, or with the least that is proved.
        """
        if not self.family.passing or self.shapes.ends == LEAST_PROVED:
            return {}, set()
        known = {
            p: self.family.passing.cycles(one) for p in self.memory
            if (one := self._stored_load(p)) and not (self._is_chained(p) and self._is_plain(one))
        }  # fmt: skip
        open_ones = {p.store for p, cycles in known.items() if cycles is None}
        told = {p: c for p, c in known.items() if c is not None and p.store not in open_ones}
        loads: dict[int, float] = {}
        for passage, cycles in told.items():
            loads[passage.load[0]] = max(cycles, loads.get(passage.load[0], 0.0))
        return loads, {passage.store[0] for passage in told}

    def _is_plain(self, one: StoredLoad) -> bool:
        """Whether a way takes no longer than that by which latencies of instructions are measured."""
        plain = one._replace(way=MemoryWay.BASE, between=0)
        return self.family.passing.cycles(one) == self.family.passing.cycles(plain)

    def _is_chained(self, passage: Passage) -> bool:
        """Whether an instruction loads what it stored itself, and its latency was measured as such."""
        if passage.load[0] != passage.store[0]:
            return False
        shape = self._plain(self.instructions[passage.load[0]].form)
        name = next(n.name for n in shape.sources if n.part == "data" and n.operand == passage.load[1])
        return f"{name}->{name}" in shape.cost.latencies

    def _stored_load(self, passage: Passage) -> StoredLoad:
        reader, writer = self.instructions[passage.load[0]], self.instructions[passage.store[0]]
        assert reader.form is not None
        assert writer.form is not None
        loaded, stored = reader.form.operands[passage.load[1]], writer.form.operands[passage.store[1]]
        vector = bool(reader.form.vector_width or writer.form.vector_width)
        return StoredLoad(
            stored.width, loaded.width, passage.offset, self._way(passage), vector, passage.between
        )

    def _way(self, passage: Passage) -> MemoryWay:
        """By what registers the two addresses are made."""
        source = self.instructions[passage.load[0]].memory[passage.load[1]]
        target = self.instructions[passage.store[0]].memory[passage.store[1]]
        if source is None or target is None or source.index or target.index:
            return MemoryWay.INDEXED
        base = location_of(source.base)
        if base != location_of(target.base):
            return MemoryWay.OTHER
        if base == STACK_POINTER:
            return MemoryWay.STACK
        return MemoryWay.REWRITTEN if self._is_written_between(passage, base) else MemoryWay.BASE

    def _is_written_between(self, passage: Passage, base: Location | None) -> bool:
        load, store = passage.load[0], passage.store[0]
        if passage.distance == 0:
            between = self.places[store:load]
        else:
            between = (*self.places[store:], *self.places[:load], *self.places * (passage.distance > 1))
        return any(base in places.targets for places in between)

    def _renamed(self) -> set[int]:
        """Loads and stores whose data do not go through memory."""
        if self.shapes.ends == LEAST_PROVED:
            return {number for p in self.memory for number in (p.load[0], p.store[0])}
        if not self.family.renamed:
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
        plain = form.mnemonic in ("MOV", "POP") or form.operands[load[1]].write
        width = form.operands[load[1]].width
        whole = _WHOLE <= width <= other.operands[store[1]].width and form.vector_width == 0
        wanted = self.family.renamed == "any" or base == STACK_POINTER
        return same and plain and whole and wanted and other.vector_width == 0

    def _from_memory(
        self, chosen: Sequence[PlacedCost], first: Sequence[int]
    ) -> dict[tuple[int, int], tuple[int, int, float]]:
        """By (instruction, operand) that loads: the stored node, its distance, cycles besides the load's."""
        extra = self.shapes.forward - self.shapes.load
        found = {}
        for passage in self.memory:
            number, position = passage.store
            shape = chosen[number]
            column = _stored_column(shape, position)
            passed = chosen[passage.load[0]].variant.passing is not None
            late = extra if column in shape.stored and not passed else 0.0
            found[passage.load] = (first[number] + column, passage.distance, late)
        return found


def _stored_column(shape: PlacedCost, position: int) -> int:
    nodes = zip(shape.targets, shape.column_of, strict=True)
    return next(column for node, column in nodes if node.part == "data" and node.operand == position)


def _stores(instruction: BlockInstruction) -> bool:
    form = instruction.form
    return form is not None and any(op.is_memory and op.write for op in form.operands)


def _stores_by_index(instruction: BlockInstruction) -> bool:
    operands = instruction.form.operands if instruction.form is not None else ()
    pairs = zip(operands, instruction.memory, strict=False)
    return any(op.is_memory and op.write and address and address.index for op, address in pairs)


class _Nodes:
    """The nodes' inputs: who wrote what is read, in this iteration or an earlier one."""

    def __init__(
        self,
        shapes: Sequence[PlacedCost],
        places: Sequence[Places],
        first: Sequence[int],
        memory: dict[tuple[int, int], tuple[int, int, float]],
        early: Mapping[str, float],
    ) -> None:
        self._shapes, self._places, self._first, self._memory = shapes, places, first, memory
        self._early = early
        self.carried: list[Carried] = []
        self.base: list[float] = []
        self._numbers: dict[tuple[int, int], int] = {}

    def inputs(self) -> Iterator[list[Input]]:
        """Per node what it waits for; `base` and `carried` are filled on the way."""
        final: dict[Location, int] = {}
        for number in range(len(self._shapes)):
            self._write(number, final)
        last: dict[Location, int] = {}
        for number, shape in enumerate(self._shapes):
            read = [self._read(number, k, last, final) for k in range(len(shape.sources))]
            for column, base in zip(shape.columns, shape.base, strict=True):
                row = []
                for k, cycles in column:
                    node, late = read[k]
                    if node is None or node < 0:
                        base = max(base, cycles)  # noqa: PLW2901
                    if node is not None:
                        row.append(Input(node, cycles + late, k))
                self.base.append(base)
                yield row
            self._write(number, last)

    def _write(self, number: int, writers: dict[Location, int]) -> None:
        shape = self._shapes[number]
        for name in shape.killed:
            writers["flag", name] = _DEAD
        for place, column in zip(self._places[number].targets, shape.column_of, strict=True):
            if place is not None:
                writers[place] = self._first[number] + column

    def _read(
        self, number: int, k: int, last: dict[Location, int], final: dict[Location, int]
    ) -> tuple[int | None, float]:
        """The node read, as in `Input`, None for one from outside, and how much later it is."""
        node = self._shapes[number].sources[k]
        if node.part == "data":
            return self._load(number, node.operand)
        place = self._places[number].sources[k]
        if place is None:
            return None, 0.0
        writer = last.get(place)
        earlier = 0 if writer is not None else 1
        if writer is None:
            writer = final.get(place, _DEAD)
        if writer == _DEAD:
            return None, 0.0
        late = STACK_SYNC if place == STACK_POINTER and self._is_out_of_date(number, node, writer) else 0.0
        if self._early:
            late += self._later(number, writer)
        return (self._earlier(writer, earlier) if earlier else writer), late

    def _later(self, number: int, writer: int) -> float:
        """How much later a result comes to an operation of another kind than those that get it early."""
        wrote = self._shapes[bisect_right(self._first, writer) - 1].form.mnemonic
        reader = self._shapes[number]
        if wrote not in self._early or reader.form.mnemonic in self._early or reader.cost.eliminated:
            return 0.0
        return self._early[wrote]

    def _is_out_of_date(self, number: int, node: Node, writer: int) -> bool:
        """Whether the stack pointer is computed with after pushes or pops: they only count."""
        if node.part != "register" or "stack" in self._shapes[number].form.attributes:
            return False
        wrote = self._shapes[bisect_right(self._first, writer) - 1]
        return "stack" in wrote.form.attributes

    def _load(self, number: int, position: int) -> tuple[int | None, float]:
        found = self._memory.get((number, position))
        if found is None:
            return None, 0.0
        node, distance, late = found
        return (self._earlier(node, distance) if distance else node), late

    def _earlier(self, node: int, distance: int) -> int:
        number = self._numbers.setdefault((node, distance), len(self.carried))
        if number == len(self.carried):
            self.carried.append(Carried(node, distance))
        return -1 - number
