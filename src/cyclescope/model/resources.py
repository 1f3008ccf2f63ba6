"""Throughput of a mix of independent instructions on a machine.

In the resource view every form takes so many cycles of each resource, and a resource offers so many per
cycle. Resources are sets of ports that some form is confined to, the front end, units that no port
explains, and whatever keeps a form from running faster than it does alone. A mix cannot run faster than
its fullest resource lets it. To the front end belongs that some ports get one operation in a cycle at most
(`Core.single`). On a core that deals out ports before it knows which will be free it takes
longer, by some part of what an even use of the ports would take more (`Core.evenness`), or as long as the
fullest port of a set whose ports operations get in turn, however long they keep them (`Core.in_turn`), or as
the fuller of two sets between which they go to and fro (`Core.halves`). Where readers of a result are woken
up before it is sure (`Core.wakeup`), those of flags take a port in vain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from cyclescope.isa.table import load_table
from cyclescope.model.dispatch_cycles import (
    Dispatched,
    Ports,
    dispatch_cycles,
    narrow_cycles,
    single_cycles,
)
from cyclescope.model.machine import FormCost, MachineModel, Operation
from cyclescope.model.ports import (
    counted,
    even_throughput,
    halves_throughput,
    port_set,
    port_throughput,
    turn_throughput,
)

SLOTS_OF_ALL = "front end"
_FLAGS = "flags."  # with these names of operands begin


def resource_bounds(model: MachineModel, mix: Mapping[str, float]) -> dict[str, float] | None:
    """Cycles for which a mix keeps each resource busy, the most first; None where a form is not known.

    `mix` has the instances of each form by its id, in the order in which they follow each other. A form's
    own reciprocal throughput stands under its id: instances of one form are never faster together than
    alone.
    """
    bounds = _bounds(model, mix)
    if bounds is None:
        return None
    for name, cycles in _in_turn(model, mix).items():
        bounds[name] = max(bounds.get(name, 0.0), cycles)
    return dict(sorted(bounds.items(), key=lambda bound: -bound[1]))


def _bounds(model: MachineModel, mix: Mapping[str, float]) -> dict[str, float] | None:
    """The same in any order where no ports are dealt out in turn."""
    dispatched = _dispatched(model, mix)
    if dispatched is None:
        return None
    bounds = {SLOTS_OF_ALL: dispatched, **busy_resources(model, mix)}
    if (wakeup := model.core.wakeup) and (name := port_set(wakeup.ports, model.ports)) in bounds:
        bounds[name] += _in_vain([(model.forms[form], n) for form, n in mix.items()], wakeup.ports)
    return bounds


def _in_vain(mix: Sequence[tuple[FormCost, float]], ports: Ports) -> float:
    """Cycles of ports that operations take before the flags are there that others of the mix write.

    Where ports are full, each that a flag of the cycle before wakes up is taken to come too early, once.
    """
    there = [(cost, n) for cost, n in mix if any({*op.ports} <= {*ports} for op in cost.operations or ())]
    written = {flag for cost, _ in there for flag in _flags_at_once(cost)}
    early = sum(n for cost, n in there if any(pair.partition("->")[0] in written for pair in cost.latencies))
    return early / len(ports)


def _flags_at_once(cost: FormCost) -> set[str]:
    """The flags that are there after a cycle, from the source that they wait for least."""
    targets = ((pair.partition("->")[2], cycles) for pair, cycles in cost.latencies.items())
    return {name for name, cycles in targets if name.startswith(_FLAGS) and round(cycles) <= 1}


def _in_turn(model: MachineModel, mix: Mapping[str, float]) -> dict[str, float]:
    """Cycles of the fullest port of each set that is dealt out in turn, and of the fuller of two halves."""
    core, operations = model.core, _operations(model, mix) or ()
    found = {port_set(some, model.ports): turn_throughput(operations, some) for some in core.in_turn}
    if core.halves:
        found[port_set(core.halves.both, model.ports)] = halves_throughput(operations, core.halves)
    return found


def busy_resources(model: MachineModel, mix: Mapping[str, float]) -> dict[str, float]:
    """The same of known forms without the front end, in any order.

    Loads of the widest vectors are in the way of narrower ones alone: what they cost counts beside these.
    """
    bounds: dict[str, float] = {}
    for form, count in mix.items():
        cost = model.forms[form]
        if cost.throughput is not None:
            bounds[form] = count * cost.throughput
        for name, cycles in cost.resources.items():
            bounds[name] = bounds.get(name, 0.0) + count * cycles / model.resources[name]
    return counted(bounds, model.ports, (op for form in mix for op in model.forms[form].operations or ()))


def resource_throughput(model: MachineModel, mix: Mapping[str, float]) -> tuple[float, str] | None:
    """Cycles that a mix takes by its fullest resource, and which it is; None where a form is not known.

    Several forms together take longer by what an even use of the ports adds; of one alone that was measured,
    and of ports of which each gets one operation in a cycle, and of halves, it is known how they are used.
    """
    bounds = _bounds(model, mix)
    if bounds is None:
        return None
    name = max(bounds, key=bounds.__getitem__)
    cycles, turns = bounds[name], _in_turn(model, mix)
    if model.core.evenness and len(mix) > 1:
        known = ({*model.core.single}, {*(model.core.halves.both if model.core.halves else ())})
        every = _operations(model, mix) or ()
        even = even_throughput(op for op in every if not any(some.issuperset(op.ports) for some in known))
        cycles = more_evenly(cycles, even, model.core.evenness)
    turn = max(turns, key=turns.__getitem__, default=name)
    return (turns[turn], turn) if turns.get(turn, 0.0) > cycles else (cycles, name)


def more_evenly(least: float, even: float, evenness: float) -> float:
    """Cycles of a mix so far on the way from the best use of its ports to an even one."""
    return least + evenness * max(0.0, even - least)


def mix_throughput(model: MachineModel, mix: Mapping[str, float]) -> float | None:
    """Cycles that a mix takes by its ports and the front end; None where a port usage is not known."""
    dispatched, operations = _dispatched(model, mix), _operations(model, mix)
    if dispatched is None or operations is None:
        return None
    return max(port_throughput(operations), dispatched)


def _operations(model: MachineModel, mix: Mapping[str, float]) -> list[Operation] | None:
    """The micro-operations of a mix, None where a port usage is not known."""
    found: list[Operation] = []
    for form, count in mix.items():
        cost = model.forms.get(form)
        if cost is None or cost.operations is None:
            return None
        found += [Operation(op.ports, op.count * count, op.cycles) for op in cost.operations]
    return found


def _dispatched(model: MachineModel, mix: Mapping[str, float]) -> float | None:
    """Cycles of the front end for a mix, None where the slots of a form are not known."""
    found: list[Dispatched] = []
    rows: list[tuple[str, float]] = []
    for form, count in mix.items():
        cost = model.forms.get(form)
        if cost is None or cost.slots is None:
            return None
        rows += [(form, cost.slots)] * math.floor(count)
        one = Dispatched(cost.slots, _single(cost, model.core.single), cost.spare)
        found += [one] * math.floor(count)
        if count % 1:
            found.append(Dispatched(cost.slots * (count % 1)))
            rows.append((form, found[-1].slots))
    width, whole = model.core.width, model.core.whole
    slots, _, spare = zip(*found, strict=True) if found else ((), (), ())
    least = max(dispatch_cycles(slots, width, whole, spare), single_cycles(found, width))
    return max(least, narrow_throughput(model, rows))


def narrow_throughput(model: MachineModel, rows: Iterable[tuple[str, float]]) -> float:
    """Cycles for instructions of which a cycle takes fewer, by forms with their slots; 0 where none is so."""
    if model.core.narrow is None:
        return 0.0
    table = load_table(model.isa)
    return narrow_cycles(((table[form], slots) for form, slots in rows if form in table), model.core.narrow)


def _single(cost: FormCost, single: Ports) -> tuple[Ports, ...]:
    """The single ports that each operation of a form may get when it is dispatched.

    What a form has more of than slots comes with others, or from other units, and is dealt no port.
    """
    every = [op.ports for op in cost.operations or () for _ in range(round(op.count))]
    some = [ports for ports in every if {*ports} <= {*single}]
    more = max(0, len(every) - math.ceil(cost.slots or 0))
    return tuple(some[: max(1, len(some) - more)])
