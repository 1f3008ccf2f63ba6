"""What is known of an instruction by its form and its registers, wherever in a block it stands.

Programs have few registers and use them again and again: it is found out once for all instructions that are
alike but for their constants.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from cyclescope.analyze.cost.cores import STORES_IN_FLIGHT
from cyclescope.analyze.cost.instruction import PlacedCost, PlacedCosts
from cyclescope.analyze.cost.latencies import CostVariant
from cyclescope.analyze.decode.block import BlockInstruction
from cyclescope.analyze.decode.kept import Kept
from cyclescope.analyze.decode.known_values import comes_back
from cyclescope.analyze.decode.locations import (
    STACK_POINTER,
    Location,
    Places,
    flag_place,
    location_of,
    place_of,
    reads_one_register,
)
from cyclescope.analyze.depend.addressed import (
    computes_with_stack_pointer,
    has_index,
    later_by_address,
    more_work,
    stores_by_index,
)
from cyclescope.analyze.depend.compiled.numbers import location_words
from cyclescope.analyze.depend.compiled.passages import CompiledMemory
from cyclescope.analyze.depend.followed import LocatedInstruction
from cyclescope.analyze.depend.memory import BLOCK_TURNS, MOST_TERMS, Memory, memory_of, through_memory
from cyclescope.isa.form import MemoryOperand
from cyclescope.isa.registry import instruction_set
from cyclescope.model.behaviour.published import MoreWork
from cyclescope.simulate.cost import Ends

_NO_MORE = MoreWork()
_PLAIN = CostVariant()


class Standing(msgspec.Struct, gc=False):
    """An instruction by its form and its registers.

    `plain` is its cost in no special surroundings, `own` that in the variant that its registers make of it.
    `accesses` are its operands in memory whose addresses are known, `addressed` where the registers of all
    its addresses are, `changed` what it writes, `loads` how many it has. `words` are these for compiled code,
    made when needed.
    """

    plain: PlacedCost
    variant: CostVariant
    own: PlacedCost
    places: Places
    accesses: tuple[MemoryOperand, ...]
    addressed: tuple[Location, ...]
    changed: frozenset[Location]
    loads: int
    words: bytes = b""


class Standings:
    """The instructions of blocks on one machine, whose costs are known."""

    def __init__(self, costs: PlacedCosts) -> None:
        self.costs, self.behaviour = costs, costs.behaviour
        machine = costs.machine
        self.in_flight = machine.core.store_buffer or STORES_IN_FLIGHT
        self.results = instruction_set(machine.isa).arithmetic.results
        self.compiled = CompiledMemory(costs.behaviour, self.in_flight, self.results, BLOCK_TURNS, MOST_TERMS)
        self._known = Kept[tuple[object, ...], Standing]()
        self._by_code = Kept[bytes, tuple[object, object, object, Standing]]()

    def of(self, instructions: Iterable[BlockInstruction]) -> list[Standing]:
        """Those of a block, in order."""
        found, known, by_code, top = [], self._known, self._by_code, 0
        for one in instructions:
            form = one.form
            assert form is not None
            same = by_code.get(one.code)
            if (
                same is not None and same[0] is one.memory and same[1] is one.registers and same[2] is form
                and not top and not form.x87_pops
            ):  # fmt: skip
                found.append(same[3])
                continue
            addresses = [at and (at.base, at.index, at.scale, at.is_moved) for at in one.memory]
            key = form.id, top, one.registers, *addresses
            standing = known.get(key)
            if standing is None:
                standing = known.keep(key, self._made(one, top))
            found.append(standing)
            if not top:
                by_code.keep(one.code, (one.memory, one.registers, form, standing))
            if form.x87_pops:
                top = (top + form.x87_pops) & 7
        return found

    def memory(self, instructions: Sequence[BlockInstruction], standings: Sequence[Standing]) -> Memory:
        """What a block does to memory."""
        if self.compiled.is_there:
            pairs = zip(instructions, standings, strict=True)
            words = [standing.words or self._worded(one, standing) for one, standing in pairs]
            found = self.compiled.found(instructions, words, sum([standing.loads for standing in standings]))
            if found is not None:
                return memory_of(found)
        lines = [
            LocatedInstruction(one, s.places.read, s.places.written, s.accesses, s.addressed, s.changed)
            for one, s in zip(instructions, standings, strict=True)
        ]
        return through_memory(lines, self.in_flight, self.behaviour, isa=self.costs.machine.isa)

    def _worded(self, one: BlockInstruction, standing: Standing) -> bytes:
        standing.words = self.compiled.form_words(one, standing.places)
        return standing.words

    def _made(self, one: BlockInstruction, top: int) -> Standing:
        """An instruction; `top` is where the x87 stack begins."""
        assert one.form is not None
        plain = self.costs.plain(one.form)
        variant = self._variant(one, plain)
        own = plain if variant == _PLAIN else self.costs.get(one.form, variant)
        places = _places(one, plain, top)
        if self.behaviour.clears_at_once and Ends(one.form).is_for_each:
            places = _nowhere(places)  # chains go on as if it were not there
        registers = [r for address in one.memory if address for r in (address.base, address.index)]
        return Standing(
            plain, variant, own, places,
            tuple([access for access in one.form.accesses if one.memory[access.position] is not None]),
            tuple([location for r in registers if (location := location_of(r)) is not None]),
            frozenset([location for _, location in places.written]),
            sum([access.read for access in one.form.accesses]),
        )  # fmt: skip

    def _variant(self, one: BlockInstruction, plain: PlacedCost) -> CostVariant:
        """What an instruction's own registers make of it."""
        costs, behaviour, cost = self.costs, self.costs.behaviour, plain.cost
        pointed = computes_with_stack_pointer(one)
        if not (pointed or cost.idiom or cost.eliminated or cost.with_room or any(one.memory)):
            return _PLAIN
        idiom = cost.idiom if cost.idiom and reads_one_register(one) else ""
        indexed = bool(costs.plain_store) and stores_by_index(one)
        executed = behaviour.stack_moves and cost.eliminated and _reads_stack_pointer(one)
        addressing = behaviour.addressing
        more = more_work(one, plain, addressing, costs.loading) if addressing else _NO_MORE
        later = later_by_address(one, addressing) if addressing.later else (0, 0)
        slower = cost.indexed_throughput is not None and has_index(one)
        pointed = behaviour.stack_reads > 0 and pointed
        return CostVariant(
            idiom, indexed=indexed, executed=executed, more=more, slower=slower, pointed=pointed,
            addressed=later, again=_read_again(one, plain) if cost.with_room else (),
        )  # fmt: skip


def _places(instruction: BlockInstruction, placed: PlacedCost, top: int) -> Places:
    """Where sources and targets are; a push names its target after the fact.

    What comes back, as calls do, leaves the stack pointer as it was.
    """
    pushed = (top + min(placed.form.x87_pops, 0)) & 7
    read = tuple([flag_place(n.flag) if n.flag else place_of(instruction, n, top) for n in placed.sources])
    targets = [
        (n.operand, flag_place(n.flag) if n.flag else place_of(instruction, n, pushed))
        for n in placed.targets
    ]
    if comes_back(placed.form):
        targets = [(operand, None if place == STACK_POINTER else place) for operand, place in targets]
    written = tuple([place for _, place in targets])
    return Places(
        read, written,
        tuple([place for place in read if place is not None]),
        tuple([(operand, place) for operand, place in targets if place is not None]),
        location_words((*read, *written)),
    )  # fmt: skip


def _nowhere(places: Places) -> Places:
    """Of what neither waits for anything nor has anything wait for it."""
    sources, targets = (None,) * len(places.sources), (None,) * len(places.targets)
    return Places(sources, targets, (), (), location_words((*sources, *targets)))


def _read_again(one: BlockInstruction, plain: PlacedCost) -> tuple[str, ...]:
    """Pairs from a source to a target that is updated, and the same register, with cycles for both."""
    at = {node: location_of(one.registers[node.operand]) for node in plain.sources if node.part == "register"}
    known = plain.cost.with_room.keys() & plain.cost.latencies.keys()
    pairs = [(source, target) for target in plain.targets if target in at for source in at]
    return tuple(
        f"{source.name}->{target.name}"
        for source, target in pairs
        if source != target and at[source] == at[target]
        and {f"{source.name}->{target.name}", f"{target.name}->{target.name}"} <= known
    )  # fmt: skip


def _reads_stack_pointer(instruction: BlockInstruction) -> bool:
    operands = instruction.form.operands if instruction.form is not None else ()
    registers = zip((op for op in operands if op.is_register), instruction.registers, strict=False)
    return any(op.read and location_of(register) == STACK_POINTER for op, register in registers)
