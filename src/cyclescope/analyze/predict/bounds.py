"""What the resources of a core allow: ports, front end, other units, one iteration at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from cyclescope.analyze.cost.instruction import PlacedCost
from cyclescope.analyze.cost.traits import unit_of
from cyclescope.analyze.decode.block import Block, BlockInstruction
from cyclescope.model.behaviour.lines import CodeLines
from cyclescope.model.binding import Loads, members_of
from cyclescope.model.dispatch_cycles import dispatch_cycles, narrow_cycles
from cyclescope.model.facts import LOW
from cyclescope.model.machine import Core, FormCost, MachineModel, Operation
from cyclescope.model.ports import (
    Dealt,
    counted,
    halves_throughput,
    late_throughput,
    port_set,
    resource_ports,
)


def port_loads(costs: Iterable[PlacedCost]) -> Loads:
    """Cycles of one iteration that some port of each set has to be busy."""
    loads: Loads = {}
    for placed in costs:
        for ports, cycles in placed.work:
            loads[ports] = loads.get(ports, 0.0) + cycles
    return loads


def evenly(loads: Mapping[int, float], ports: int) -> list[float]:
    """Cycles per port where every set is split evenly over its ports, as OSACA's fixed binding does."""
    busy = [0.0] * ports
    for members, cycles in loads.items():
        for port in members_of(members):
            busy[port] += cycles / members.bit_count()
    return busy


def front_end(costs: Sequence[PlacedCost], core: Core) -> float:
    """Cycles that the slots of one iteration take, each instruction in one cycle where the core does so."""
    slots, spare = [placed.slots for placed in costs], [placed.cost.spare for placed in costs]
    cycles = dispatch_cycles(slots, core.width, core.whole, spare)
    return max(cycles, narrow_cycles(((one.form, one.slots) for one in costs), core.narrow))


def fetched(instructions: Iterable[BlockInstruction], core: Core) -> float:
    """Cycles in which the code of one iteration arrives, 0 where no limit by bytes is known."""
    return sum(len(one.code) for one in instructions) / core.fetch if core.fetch else 0.0


def sure_slots(placed: PlacedCost) -> float:
    """The slots of an instruction that are known where its costs are LLVM's, which counts micro-operations.

    It has one, unless it has none there, or is a conditional branch, which a core may fuse with what is in
    front of it.
    """
    return 0.0 if placed.may_fuse else min(placed.slots, 1.0)


def branches(costs: Sequence[PlacedCost], loop: bool) -> float:
    """Cycles for branches that are taken, one each: the unconditional ones, and the last one of a loop."""
    taken = sum([placed.jumps for placed in costs[:-1]])
    last = bool(costs) and not costs[-1].form.attributes.isdisjoint(("branch", "conditional_branch"))
    return float(taken + (loop and last))


def code_lines(block: Block, costs: Sequence[PlacedCost], lines: CodeLines | None, later: int = 0) -> float:
    """Cycles in which a loop gets the lines that its code lies in, 0 where they are not known to limit it.

    Lines hold instructions, whatever slots the renamer or microcode adds to one. The code is so many bytes
    `later` than its addresses say.
    """
    if lines is None or not block.loop or len(block) != len(costs):
        return 0.0
    slots = [(len(one.code), min(placed.slots, 1.0)) for one, placed in zip(block, costs, strict=True)]
    constants = [one.constants for one in block] if lines.room is not None else ()
    return lines.cycles(block.instructions[0].address + later, slots, constants)


def placings(block: Block, costs: Sequence[PlacedCost], lines: CodeLines | None) -> tuple[float, float]:
    """The least and the most of these cycles, by where a linker puts the code.

    Nothing is said of text that asks for no alignment: it is as if at its address.
    """
    step = block.alignment if lines is not None and block.alignment > 1 else 0
    places = range(0, lines.size, step) if lines is not None and step else (0,)
    found = [code_lines(block, costs, lines, later) for later in places]
    return min(found), max(found)


def resources(costs: Sequence[PlacedCost], machine: MachineModel) -> dict[str, float]:
    """Cycles per shared resource of the machine's resource view."""
    used: dict[str, float] = {}
    for placed in costs:
        for name, cycles in placed.uses:
            used[name] = used.get(name, 0.0) + cycles
    return counted(used, machine.ports, (op for placed in costs for op in placed.operations))


def units(costs: Iterable[PlacedCost], sure: bool = False) -> dict[str, float]:
    """Cycles by the measured throughput of forms where no port explains it: units that are no ports.

    What makes one of them slower than its operations is taken to make others of the same operations so, and
    what divides or locks for one form to do so for others, unless that has to be `sure`.
    """
    used: dict[str, float] = {}
    names: dict[object, str] = {}
    for placed in costs:
        if placed.alone:
            known = () if sure else unit_of(placed.form) or placed.cost.operations
            name = names.setdefault(known, placed.form.id) if known else placed.form.id
            used[name] = used.get(name, 0.0) + placed.alone
    return used


def microcode(costs: Iterable[PlacedCost], core: Core) -> float:
    """Cycles in which instructions come from microcode, each for itself: those of its slots, and one to begin
    or to end. Slots of others may come in that cycle, another instruction from microcode does not.
    """
    alone = [one for one in costs if one.cost.microcoded and round(one.alone) > 1]
    return sum([min(one.alone, math.ceil(one.slots / core.width) + 1.0) for one in alone])


def one_unit(costs: Iterable[PlacedCost]) -> float:
    """Cycles if all that no port explains keeps the same unit busy, as divisions and square roots may."""
    return sum([placed.alone for placed in costs if not placed.locked])


def locked(costs: Iterable[PlacedCost], through_memory: float) -> float:
    """Cycles for locked instructions: each waits until the one before is in memory."""
    return sum([placed.locked for placed in costs]) * through_memory


def halves(costs: Sequence[PlacedCost], machine: MachineModel, together: Mapping[int, float]) -> float:
    """Cycles of the fuller of two sets of ports between which operations go to and fro, in this order.

    0 where there are none, or where it is not sure what one takes of these ports, nor then which half the
    next one gets. `together` has the cycles of a store behind so many loads that need the second set, where
    that was measured: how often it goes astray there counts for all like it.
    """
    if (found := machine.core.halves) is None:
        return 0.0
    both, loop = {*found.both}, []
    for one in costs:
        operations = [op for op in one.cost.operations or () if both.issuperset(op.ports)]
        unsure = operations and one.cost.confidence == LOW
        if unsure and not _all_take(one.cost, operations, both, machine.ports):
            return 0.0
        loop.append(Dealt(one.slots, one.cost.spare, operations))
    if found.late:
        return late_throughput(loop, found, machine.core)
    some = [op for one in loop for op in one.operations]
    if not some:
        return 0.0
    ports = len(found.second)
    astray = {n % ports == 0: min(max(cycles * ports - n, 0.0), 0.5) for n, cycles in together.items()}
    found = msgspec.structs.replace(found, astray=astray.get(False, found.astray))
    return halves_throughput(some, found, astray.get(True))


def _all_take(cost: FormCost, operations: Iterable[Operation], both: set[int], names: Sequence[str]) -> bool:
    """Whether all usages that experiments do not rule out have the same operations on these ports."""
    taken = sorted(f"{op.count:g}*{port_set(op.ports, names)}" for op in operations)
    for usage in cost.alternatives:
        ports = {part: {*resource_ports(part.partition("*")[2], names)} for part in usage.split("+")}
        if sorted(part for part, some in ports.items() if some and some <= both) != taken:
            return False
    return True
