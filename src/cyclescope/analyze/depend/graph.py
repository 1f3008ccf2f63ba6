"""The dependency graph of a block: values, what leads to them, and what comes from earlier iterations.

A node is a value that an instruction makes: a register, flags that are ready together, data in memory. An
edge leads from a value, or from the value of an earlier iteration, to one that is made of it, with the
latency of the operand pair.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from cyclescope.analyze.cost.cores import STACK_SYNC, STORES_IN_FLIGHT, CoreBehaviour
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
    and `places` are per instruction. `memory` are the ways through memory, `chunks` how often stores go on
    to another chunk of memory, where that is known to matter.
    """

    instructions: tuple[BlockInstruction, ...]
    shapes: tuple[PlacedCost, ...]
    places: tuple[Places, ...]
    first: tuple[int, ...]
    owner: tuple[int, ...]
    inputs: tuple[tuple[Input, ...], ...]
    base: tuple[float, ...]
    carried: tuple[Carried, ...]
    memory: tuple[Passage, ...]
    chunks: float

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
        self.memory, self.chunks = found.passages, found.chunks

    def graph(self) -> Graph:
        """Everything together."""
        chosen = self._chosen()
        first: list[int] = []
        owner: list[int] = []
        for number, shape in enumerate(chosen):
            first.append(len(owner))
            owner += [number] * len(shape.columns)
        nodes = _Nodes(chosen, self.places, first, self._from_memory(chosen, first))
        inputs = tuple(tuple(row) for row in nodes.inputs())
        return Graph(
            self.instructions, tuple(chosen), self.places, tuple(first), tuple(owner), inputs,
            tuple(nodes.base), tuple(nodes.carried), self.memory, self.chunks,
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
        if not any(_stores(one) for one in self.instructions):
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
        return through_memory(lines, in_flight, self.family.store_chunk)

    # --- variants --------------------------------------------------------------------------------

    def _chosen(self) -> list[PlacedCost]:
        """The shape of every instruction in its surroundings."""
        fused = fused_pairs(self.instructions, self.family)
        renamed = self._renamed()
        chosen = []
        for number, one in enumerate(self.instructions):
            shape = self._plain(one.form)
            said = one.latency is not None
            idiom = shape.cost.idiom if shape.cost.idiom and reads_one_register(one) and not said else ""
            role = FIRST if number in fused else SECOND if number - 1 in fused else ""
            indexed = bool(self.shapes.plain_store) and _stores_by_index(one)
            if idiom or role or number in renamed or indexed or said:
                variant = CostVariant(idiom, role, number in renamed, indexed, one.latency)
                shape = self.shapes.get(shape.form, variant)
            chosen.append(shape)
        return chosen

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
            late = extra if column in shape.stored else 0.0
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
    ) -> None:
        self._shapes, self._places, self._first, self._memory = shapes, places, first, memory
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
        return (self._earlier(writer, earlier) if earlier else writer), late

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
