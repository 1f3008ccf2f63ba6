"""What was assumed of a block, what was left out, and what the model does not know, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from cyclescope.analyze.cost.instruction import PlacedCosts
from cyclescope.analyze.cost.known import is_locked
from cyclescope.analyze.decode.block import LISTED, BlockInstruction
from cyclescope.analyze.decode.system_registers import STICKY
from cyclescope.analyze.depend.graph import Graph
from cyclescope.analyze.predict.prediction import Unknown
from cyclescope.isa.operand import Operand
from cyclescope.isa.registry import instruction_set


def notes(graph: Graph, costs: PlacedCosts, unknown: Mapping[int, Unknown]) -> Iterator[str]:
    """Remarks on a prediction, the gravest first."""
    if unknown:
        yield f"left out as unknown, with all that they do: {_places(unknown.values())}"
    yield from _about_latencies(graph, costs)
    stack = [one for one in graph.instructions if one.form and costs.is_slower_x87(one.form)]
    if stack:
        most = f"up to {costs.behaviour.x87_most:g} are published"
        yield f"LLVM has SSE's latencies for x87 additions and multiplications here, {most}: {_places(stack)}"
    yield from _about_memory(graph, costs)
    borrowed = sorted({s.form.id for s in graph.costs if costs.is_borrowed(s.form)})
    if borrowed and costs.stand_in:
        core = costs.stand_in.borrowed
        of = f" of {core.core}" if core else ""
        yield f"not measured, as {costs.stand_in.provenance.source}{of} have them: {', '.join(borrowed)}"
    ports = sum(placed.unknown_ports for placed in graph.costs)
    if ports:
        yield f"the port usage of {ports} instruction{'s' * (ports > 1)} is not known"
    if any(is_locked(placed.form) for placed in graph.costs):
        yield "locked instructions count as their plain forms, one after the other through memory"
    yield from _about_state(graph)
    if instruction_set(costs.machine.isa).has_configurations:
        yield from _about_vectors(graph.instructions, costs)


def _about_latencies(graph: Graph, costs: PlacedCosts) -> Iterator[str]:
    guessed = _guessed(graph)
    if guessed:
        what = "dependency has" if guessed == 1 else "dependencies have"
        yield f"{guessed} {what} no latency in the model: the form's largest, else 1"


def _guessed(graph: Graph) -> int:
    """Dependencies between instructions of the block whose latency the model does not have."""
    found = set()
    for node, row in enumerate(graph.inputs):
        number = graph.owner[node]
        guessed, column = graph.costs[number].guessed, node - graph.first[number]
        found |= {(number, one.source) for one in row if (one.source, column) in guessed}
    return len(found)


def _about_memory(graph: Graph, costs: PlacedCosts) -> Iterator[str]:
    loads = [one for one in graph.instructions if one.form and any(map(_is_load, one.form.operands))]
    if loads and not costs.load:
        yield f"the model does not say how long a load takes: no time is counted for it: {_places(loads)}"
    if graph.memory and not costs.machine.core.forward_latency:
        more = costs.forward - costs.load
        rest = f"{costs.load:g} of a load and {more:g} more" if more else "as long as a load"
        yield f"the model has no forwarding latency: {costs.forward:g} cycles from store to load, {rest}"


def _is_load(operand: Operand) -> bool:
    return operand.is_memory and operand.read


def _about_state(graph: Graph) -> Iterator[str]:
    """Flags that floating-point and saturating arithmetic adds to are read as if they were at hand."""
    read = [
        (one, op.fixed)
        for one in graph.instructions
        for op in (one.form.operands if one.form else ())
        if op.read and op.fixed in STICKY
    ]
    if read:
        names = "/".join(dict.fromkeys(name for _, name in read))
        yield f"what arithmetic adds to {names} is not followed: {_places(one for one, _ in read)}"


def _about_vectors(instructions: Sequence[BlockInstruction], costs: PlacedCosts) -> Iterator[str]:
    from cyclescope.analyze.decode.vector_types import has_own_cost, needs_type  # RISC-V's alone

    vectors = [one for one in instructions if one.form is not None and needs_type(one.form)]
    untyped = [one for one in vectors if one.form is not None and one.form.configuration is None]
    if untyped:
        yield (
            f"SEW and LMUL are not known, no one vsetvli or vsetivli with a legal type is in front: "
            f"costs are the model's largest, operands one register: {_places(untyped)}"
        )
    forms = costs.machine.forms
    largest = [one for one in vectors if one.form is not None and not has_own_cost(one.form, forms)]
    if largest:
        yield f"the model has no cost by LMUL, the largest counts: {_places(largest)}"


def _places(found: Iterable[BlockInstruction | Unknown]) -> str:
    """`line 3, line 5 and 2 more`; the text where there is no line."""
    names = list(dict.fromkeys(f"line {one.line}" if one.line else one.text for one in found))
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
