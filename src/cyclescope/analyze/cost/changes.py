"""Costs of forms in their place: with a pair that fused, an index, a register that is written in part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, inf

import msgspec

from cyclescope.analyze.cost.latencies import FIRST, SECOND, CostVariant
from cyclescope.analyze.cost.traits import is_division
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.register import domain
from cyclescope.isa.registry import instruction_set
from cyclescope.model.behaviour.published import MoreWork
from cyclescope.model.machine import Core, FormCost, Operation
from cyclescope.model.ports import issue_throughput
from cyclescope.simulate.cost import USUAL_LATENCY
from cyclescope.simulate.units import Units

# Times what ports and slots allow. A loop of one form alone is up to an eighth slower for how it is fetched,
# which the form is not among others: so comparisons of memory with an immediate on a Zen 5.
EXPLAINED = 1.15
LEAST_PROVED, MOST_PROVED = "least", "most"  # of what is proved


def merging(form: InstructionForm, cost: FormCost) -> FormCost:
    """The cost where writes of a part of a register wait for the rest of it."""
    whole = instruction_set(form.isa).registers.whole
    kept = (op.name for op in form.operands if op.read and op.write and _is_narrow(op, whole))
    pairs = {f"{name}->{name}": USUAL_LATENCY for name in kept}
    if not pairs:
        return cost
    return msgspec.structs.replace(cost, latencies={**pairs, **cost.latencies})


def clearing(form: InstructionForm, cost: FormCost) -> FormCost:
    """The cost of what clears a part of each vector register where that takes chains no time.

    No operation is done in no time: the renamer does it, and no port.
    """
    pairs = {f"{op.name}->{op.name}": 0.0 for op in form.operands}
    return msgspec.structs.replace(cost, latencies=pairs, operations=(), resources={})


def _is_narrow(op: Operand, whole: int) -> bool:
    """Whether an operand is a part of a general register that leaves the rest as it is."""
    return op.is_register and op.width < whole and (op.file or domain(op.cls)) == "r"


def settled(cost: FormCost, ends: str) -> FormCost:
    """The cost with one value for every pair that has a range."""
    if not cost.ranges:
        return cost
    found = {pair: low if ends == LEAST_PROVED else high for pair, (low, high) in cost.ranges.items()}
    latencies = {**cost.latencies, **found} if ends else {**found, **cost.latencies}
    return msgspec.structs.replace(cost, latencies=latencies)


def with_more(
    cost: FormCost, more: MoreWork, addition: Sequence[Operation], storing: Sequence[Operation]
) -> FormCost:
    """The cost with more slots, and more operations as additions are.

    A constant that is stored is a store of a register and these, whatever the model has of the form.
    """
    operations = (tuple(storing) or cost.operations) if more.stored else cost.operations
    if operations is not None:
        operations += more.additions * tuple(addition)
    return msgspec.structs.replace(cost, slots=slots_of(cost) + more.slots, operations=operations)


def unexplained(cost: FormCost, core: Core) -> float:
    """The measured throughput of a form that a unit besides the ports bounds, else 0.

    One whose error reaches down to what ports and slots allow shows no unit.
    """
    explained = issue_throughput(cost, core)
    slowest = cost.throughput if cost.throughput is not None else cost.throughput_most
    if slowest is None or (explained and slowest - cost.throughput_error <= explained[0] * EXPLAINED):
        return 0.0
    return slowest


def slow_alone(form: InstructionForm, cost: FormCost, core: Core, operations: tuple[Operation, ...]) -> float:
    """The same, 0 where nothing but its own result is seen to bound a form whose operations are known.

    Such are the sums of x87 on top of its stack. What divides keeps its unit busy besides. `operations` are
    those that it has at least: a throughput that is known at most by them is not seen to need more.
    """
    most = cost.throughput_most
    if cost.throughput is None and most is not None and cost.operations and not is_division(form):
        for pair, cycles in cost.latencies.items():
            source, _, target = pair.partition("->")
            if source == target and most <= EXPLAINED * cycles:
                return 0.0
    if cost.throughput is None and cost.operations is None:
        cost = msgspec.structs.replace(cost, operations=operations)
    return unexplained(cost, core)


def varied(form: InstructionForm, cost: FormCost, variant: CostVariant, units: Units) -> FormCost:
    """The cost with what fusion takes away, where the branch does the work of both, and on one register."""
    if variant.again:
        cost = on_one_register(cost, variant.again)
    if variant.fused == SECOND:
        return msgspec.structs.replace(cost, slots=0.0)
    if variant.fused == FIRST and cost.operations is not None:
        loads = any(op.is_memory and op.read for op in form.operands)
        kept = tuple(op for op in cost.operations if loads and op.ports in units.loads)
        return msgspec.structs.replace(cost, operations=kept)
    return cost


def on_one_register(cost: FormCost, pairs: Iterable[str]) -> FormCost:
    """The cost where the targets of some pairs are updated, and are the sources of these pairs as well.

    What a chain takes more while it fills the scheduler grows with the registers that an instruction waits
    for. Pairs are measured with two of them, but from what is updated to itself with one.
    """
    latencies = dict(cost.latencies)
    for pair in pairs:
        target = pair.partition("->")[2]
        itself = f"{target}->{target}"
        more = latencies[itself] - cost.with_room[itself]
        latencies[pair] = min(latencies[pair], cost.with_room[pair] + max(more, 0.0))
    return msgspec.structs.replace(cost, latencies=latencies)


def where_branches_are(
    form: InstructionForm,
    cost: FormCost,
    addition: Sequence[Operation],
    others: Iterable[Sequence[Operation]],
) -> FormCost:
    """The cost of a branch, or of what branches, too: on the ports that all `others` have.

    Of what branches, too, that is what would be on the ports of additions.
    """
    known = [{*operations[0].ports} for operations in others if operations]
    ports = tuple(sorted(set.intersection(*known))) if known else ()
    added = {op.ports for op in addition}
    if not ports or (cost.operations is None and "conditional_branch" not in form.attributes):
        return cost
    operations = (Operation(ports),) if cost.operations is None else cost.operations
    operations = tuple(
        msgspec.structs.replace(op, ports=ports) if op.ports in added else op for op in operations
    )
    return msgspec.structs.replace(cost, operations=operations)


def without(cost: FormCost, plain: frozenset[int]) -> FormCost:
    """The cost of a store to an address with an index: ports for plain addresses do not make it."""
    if cost.operations is None:
        return cost
    kept = tuple(
        msgspec.structs.replace(op, ports=tuple(p for p in op.ports if p not in plain) or op.ports)
        for op in cost.operations
    )
    return msgspec.structs.replace(cost, operations=kept)


def slots_of(cost: FormCost, width: float = inf) -> float:
    """Front-end slots: known, at least, or as many as there are micro-operations.

    At least are no more than a front end of such a `width` has while the form runs alone.
    """
    if cost.slots is not None:
        return cost.slots
    if cost.slot_range is not None:
        alone = inf if cost.throughput is None else max(width * cost.throughput, 1.0)
        return min(cost.slot_range[0], alone)
    return float(max(sum(ceil(op.count) for op in cost.operations or ()), 1))


def within_stack(pair: str, form: InstructionForm) -> bool:
    """Whether a pair leads from a register of the x87 stack to another."""
    stack = {op.name for op in form.operands if op.cls == "ST"}
    source, _, target = pair.partition("->")
    return source in stack and target in stack
