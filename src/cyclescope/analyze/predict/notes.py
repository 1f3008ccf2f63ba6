"""What was assumed of a block, what was left out, and what the model does not know."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from cyclescope.analyze.cost.instruction import PlacedCost, PlacedCosts
from cyclescope.analyze.cost.known import is_locked
from cyclescope.analyze.decode.block import Address, BlockInstruction
from cyclescope.analyze.decode.locations import Location, location_of
from cyclescope.analyze.decode.system_registers import STICKY
from cyclescope.analyze.depend.graph import Graph
from cyclescope.analyze.depend.pairs import only_compares
from cyclescope.analyze.predict.prediction import Unknown
from cyclescope.isa.operand import Operand
from cyclescope.isa.registry import instruction_set, mnemonics, streams_out, unfit
from cyclescope.isa.table import load_table
from cyclescope.isa.variants import VectorTypes
from cyclescope.model.behaviour.sizes import LEAST_CODE
from cyclescope.model.extensions import but, lacked
from cyclescope.model.machine import EXTRACTED, MachineModel
from cyclescope.remarks.prediction import Assumed
from cyclescope.remarks.remark import LISTED, Remark
from cyclescope.simulate.cost import Ends

_REPEATS = frozenset(("rep", "repne"))
_COUNTED = "conditional_flags"  # an attribute of forms


def notes(graph: Graph, costs: PlacedCosts, unknown: Mapping[int, Unknown]) -> Iterator[Remark]:
    """Remarks on a prediction, the gravest first."""
    if unknown:
        yield Assumed.LEFT_OUT.of(_places(unknown.values()))
    yield from _about_extensions(graph.instructions, costs.machine)
    yield from _about_what_is_elsewhere(graph.instructions, costs.behaviour.held)
    if repeated := [one for one in graph.instructions if one.form and _REPEATS & one.form.attributes]:
        yield Assumed.REPEATED.of(_places(repeated))
    yield from _about_latencies(graph, costs)
    stack = [one for one in graph.instructions if one.form and costs.is_slower_x87(one.form)]
    if stack:
        yield Assumed.SLOWER_X87.of(costs.behaviour.x87_most, _places(stack))
    yield from _about_memory(graph, costs)
    borrowed = sorted({s.form.id for s in graph.costs if costs.is_borrowed(s.form)})
    if borrowed and costs.stand_in:
        source, core, names = costs.stand_in.provenance.source, costs.stand_in.borrowed, ", ".join(borrowed)
        yield Assumed.BORROWED_OF.of(source, core.core, names) if core else Assumed.BORROWED.of(source, names)
        yield from _about_what_is_missing(graph.instructions, costs)
    ports = sum(placed.unknown_ports for placed in graph.costs)
    if ports:
        yield (Assumed.PORT_UNKNOWN if ports == 1 else Assumed.PORTS_UNKNOWN).of(ports)
    slots = [one for one, cost in zip(graph.instructions, graph.costs, strict=True) if _has_no_slots(cost)]
    if slots:
        yield Assumed.SLOTS_UNKNOWN.of(_places(slots))
    if locked := [placed for placed in graph.costs if is_locked(placed.form)]:
        plain = any(not placed.unknown_ports for placed in locked)
        yield (Assumed.LOCKED_AS_PLAIN if plain else Assumed.LOCKED).of()
    yield from _about_state(graph)
    if counted := [one for n, one in enumerate(graph.instructions) if _passes_flags(graph.instructions, n)]:
        yield Assumed.KEPT_FLAGS.of(_places(counted))
    yield from _about_upper_halves(graph.instructions)
    if (types := instruction_set(costs.machine.isa).vector_types) is not None:
        yield from _about_vectors(graph.instructions, costs, types)


def _about_extensions(instructions: Sequence[BlockInstruction], machine: MachineModel) -> Iterator[Remark]:
    """Instructions that the core does not execute: whoever asks about them may mean another one."""
    if machine.provenance.kind != EXTRACTED:
        return
    lacking = [lacked(machine.name, one.form.features) if one.form else () for one in instructions]
    found = [one for one, names in zip(instructions, lacking, strict=True) if names]
    if found:
        names, other = ", ".join(dict.fromkeys(chain.from_iterable(lacking))), but(machine.name)
        whose = Assumed.LACKED_BUT.of(other, names, _places(found)) if other else None
        yield whose or Assumed.LACKED.of(machine.name, names, _places(found))


def _about_what_is_missing(instructions: Sequence[BlockInstruction], costs: PlacedCosts) -> Iterator[Remark]:
    """Borrowed instructions of extensions of which a run that asked for ports measured no form."""
    machine = costs.machine
    if not machine.ports:
        return
    known = {name for one in load_table(machine.isa) if one.id in machine.forms for name in one.features}
    missing: dict[str, list[BlockInstruction]] = {}
    for one in instructions:
        for name in one.form.features if one.form and costs.is_borrowed(one.form) else ():
            if name not in known:
                missing.setdefault(name, []).append(one)
    for name, found in missing.items():
        yield Assumed.NONE_MEASURED.of(name, _places(found))


def _about_what_is_elsewhere(
    instructions: Sequence[BlockInstruction], held: Container[str]
) -> Iterator[Remark]:
    """What is not counted: code that is called, what the system does, barriers but those `held`."""
    if called := [one for one in instructions if _calls(one)]:
        yield Assumed.CALLED.of(_places(called))
    guessed: dict[str, list[BlockInstruction]] = {}
    for one in instructions:
        if one.form and (why := unfit(one.form)):
            guessed.setdefault(why, []).append(one)
    for why, found in guessed.items():
        yield Assumed.GUESSED.of(why, _places(found))
    ordered = [one for one in instructions if one.form and one.form.mnemonic in mnemonics("ordered")]
    ordered = [one for one in ordered if one.form and one.form.mnemonic not in held]
    if ordered and len(instructions) > len(ordered):
        yield Assumed.ORDERED.of(_places(ordered))
    modes = [one for one in instructions if one.form and one.form.mnemonic in mnemonics("modes")]
    if modes and len(instructions) > 1:  # one alone sets the same again and again
        yield Assumed.MODES.of(_places(modes))


def _calls(instruction: BlockInstruction) -> bool:
    """Whether it calls something: its form says so, or the register that a jump keeps the way back in."""
    attributes = instruction.form.attributes if instruction.form is not None else frozenset()
    if "branch" in attributes:
        return "conditional_branch" not in attributes and not only_compares(instruction)
    return "call" in attributes


def _has_no_slots(placed: PlacedCost) -> bool:
    """Whether the model says nothing of front-end slots, of what takes some of its own."""
    cost, variant = placed.cost, placed.variant
    said = cost.slots is not None or cost.slot_range is not None or bool(cost.operations)
    return not (said or cost.eliminated or variant.idiom or variant.fused)


def _about_latencies(graph: Graph, costs: PlacedCosts) -> Iterator[Remark]:
    guessed = _guessed(graph)
    if guessed:
        yield (Assumed.LATENCY if guessed == 1 else Assumed.LATENCIES).of(guessed)


def _guessed(graph: Graph) -> int:
    """Dependencies between instructions of the block whose latency the model does not have."""
    found = set()
    for node, row in enumerate(graph.inputs):
        number = graph.owner[node]
        guessed, column = graph.costs[number].guessed, node - graph.first[number]
        found |= {(number, one.source) for one in row if (one.source, column) in guessed}
    return len(found)


def _about_memory(graph: Graph, costs: PlacedCosts) -> Iterator[Remark]:
    if (many := len(graph.instructions)) >= LEAST_CODE:
        yield Assumed.LONG_CODE.of(many)
    loads = [one for one in graph.instructions if one.form and any(map(_is_load, one.form.operands))]
    if loads and not costs.load:
        yield Assumed.NO_LOAD.of(_places(loads))
    if met := _at_loaded_places(graph):
        yield Assumed.MEETING.of(_places(met))
    if streamed := [one for one in graph.instructions if one.form and streams_out(one.form)]:
        yield Assumed.STREAMING.of(_places(streamed))
    if graph.memory and not costs.machine.core.forward_latency:
        if more := costs.forward - costs.load:
            yield Assumed.FORWARDING.of(costs.forward, costs.load, more)
        else:
            yield Assumed.FORWARDING_AS_LOAD.of(costs.forward)


def _is_load(operand: Operand) -> bool:
    return operand.is_memory and operand.read


def _at_loaded_places(graph: Graph) -> list[BlockInstruction]:
    """Stores to where the iteration has loaded, at an address that it has loaded as well: a histogram's.

    Nobody knows whether the next iteration's place is the same one.
    """
    found: list[BlockInstruction] = []
    loaded: set[Location] = set()  # what is made of data that the iteration loads
    seen: dict[Address, set[Location | None]] = {}  # places with data that were loaded, and their registers
    for one, places in zip(graph.instructions, graph.places, strict=True):
        operands = one.form.operands if one.form is not None else ()
        pairs = zip(operands, one.memory, strict=False)
        used = [(op, at) for op, at in pairs if at is not None and op.is_memory]
        for op, at in used:
            by = {location_of(at.base), location_of(at.index)}
            if op.read and by & loaded:
                seen[at] = by
            if op.write and at in seen:
                found.append(one)
        made = {location for _, location in places.written}
        seen = {at: by for at, by in seen.items() if not by & made}
        bases = {location_of(at.base) for _, at in used}  # a pointer that is moved on, or the next of a list
        if any(op.read for op, _ in used) or loaded.intersection(places.read):
            loaded |= made - bases
        else:
            loaded -= made
    return found


def _about_state(graph: Graph) -> Iterator[Remark]:
    """Flags that floating-point and saturating arithmetic adds to are read as if they were at hand."""
    read = [
        (one, op.fixed)
        for one in graph.instructions
        for op in (one.form.operands if one.form else ())
        if op.read and op.fixed in STICKY
    ]
    if read:
        names = "/".join(dict.fromkeys(name for _, name in read))
        yield Assumed.STICKY.of(names, _places(one for one, _ in read))


def _passes_flags(instructions: Sequence[BlockInstruction], number: int) -> bool:
    """Whether flags are read behind an instruction that leaves them as they are where its count is 0."""
    form = instructions[number].form
    left = form.flags_written if form and _COUNTED in form.attributes else 0
    for one in chain(instructions[number + 1 :], instructions[:number]):
        if not left or one.form is None:
            return False
        if left & one.form.flags_read and _COUNTED not in one.form.attributes:
            return True
        left &= ~one.form.flags_written
    return False


def _about_upper_halves(instructions: Sequence[BlockInstruction]) -> Iterator[Remark]:
    """Old instructions keep what they do not write of a vector that newer ones set."""
    forms = [(one, one.form) for one in instructions if one.form and one.form.vector_width]
    if any(Ends(form).is_for_each for _, form in forms):
        return
    written = [
        (one, "legacy" in form.attributes, op.width)
        for one, form in forms
        if "mmx" not in form.attributes
        for op in form.operands
        if op.write and op.is_register and op.width == form.vector_width
    ]
    widest = max((width for _, is_old, width in written if not is_old), default=0)
    old = [one for one, is_old, width in written if is_old and width < widest]
    if old:
        yield Assumed.UPPER_HALVES.of(_places(old))


def _about_vectors(
    instructions: Sequence[BlockInstruction], costs: PlacedCosts, types: VectorTypes
) -> Iterator[Remark]:
    vectors = [one for one in instructions if one.form is not None and types.needs_type(one.form)]
    untyped = [one for one in vectors if one.form is not None and one.form.configuration is None]
    if untyped:
        yield Assumed.NO_TYPE.of(_places(untyped))
    forms = costs.machine.forms
    largest = [one for one in vectors if one.form is not None and not types.has_own_cost(one.form, forms)]
    if largest:
        yield Assumed.NO_MULTIPLIER.of(_places(largest))


def _text(one: BlockInstruction | Unknown) -> Remark:
    """An instruction that is of no line, with the name of what it goes to if it shows a number."""
    target = one.target if isinstance(one, BlockInstruction) else ""
    named = target and target not in one.text
    return Assumed.NAMED.of(one.text, target) if named else Assumed.TEXT.of(one.text)


def _places(found: Iterable[BlockInstruction | Unknown]) -> Remark:
    """`line 3, line 5 and 2 more`; the text where there is no line."""
    places = [Assumed.LINE.of(one.line) if one.line else _text(one) for one in found]
    names = list(dict.fromkeys(one.text for one in places))
    shown = ", ".join(names[:LISTED])
    if len(names) > LISTED:
        return Assumed.AND_MORE.of(shown, len(names) - LISTED)
    return Assumed.TEXT.of(shown)
