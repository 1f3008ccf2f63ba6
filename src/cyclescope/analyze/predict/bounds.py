"""What the resources of a core allow: ports, front end, other units, one iteration at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cyclescope.analyze.cost.cores import TAKEN_BRANCHES
from cyclescope.analyze.cost.known import is_locked
from cyclescope.analyze.cost.shape import PlacedCost
from cyclescope.analyze.decode.block import Block, BlockInstruction
from cyclescope.model.behaviour.lines import CodeLines
from cyclescope.model.binding import Loads, members_of
from cyclescope.model.machine import Core, MachineModel


def port_loads(shapes: Iterable[PlacedCost]) -> Loads:
    """Cycles of one iteration that some port of each set has to be busy."""
    loads: Loads = {}
    for shape in shapes:
        for ports, cycles in shape.work:
            loads[ports] = loads.get(ports, 0.0) + cycles
    return loads


def evenly(loads: Mapping[int, float], ports: int) -> list[float]:
    """Cycles per port where every set is split evenly over its ports, as OSACA's fixed binding does."""
    busy = [0.0] * ports
    for members, cycles in loads.items():
        for port in members_of(members):
            busy[port] += cycles / members.bit_count()
    return busy


def front_end(shapes: Iterable[PlacedCost], width: float) -> float:
    """Cycles that the slots of one iteration take."""
    return sum(shape.slots for shape in shapes) / width


def fetched(instructions: Iterable[BlockInstruction], core: Core) -> float:
    """Cycles in which the code of one iteration arrives, 0 where no limit by bytes is known."""
    return sum(len(one.code) for one in instructions) / core.fetch if core.fetch else 0.0


def sure_slots(shape: PlacedCost) -> float:
    """The slots of an instruction that are known where its costs are LLVM's, which counts micro-operations.

    It has one, unless it has none there, or is a conditional branch, which a core may fuse with what is in
    front of it.
    """
    fuses = "conditional_branch" in shape.form.attributes
    return 0.0 if fuses else min(shape.slots, 1.0)


def branches(shapes: Sequence[PlacedCost], loop: bool) -> float:
    """Cycles for the branches that are taken: the unconditional ones, and the last one of a loop."""
    taken = sum(
        not shape.form.attributes.isdisjoint(("branch", "call", "return"))
        and "conditional_branch" not in shape.form.attributes
        for shape in shapes[:-1]
    )
    last = bool(shapes) and not shapes[-1].form.attributes.isdisjoint(("branch", "conditional_branch"))
    return (taken + (loop and last)) / TAKEN_BRANCHES


def code_lines(block: Block, shapes: Sequence[PlacedCost], lines: CodeLines | None) -> float:
    """Cycles in which a loop gets the lines that its code lies in, 0 where they are not known to limit it."""
    if lines is None or not block.loop or len(block) != len(shapes):
        return 0.0
    pieces = (len(one.code) for one in block), (shape.slots for shape in shapes)
    return lines.cycles(block.instructions[0].address, zip(*pieces, strict=True))


def resources(shapes: Iterable[PlacedCost], machine: MachineModel) -> dict[str, float]:
    """Cycles per shared resource of the machine's resource view."""
    used: dict[str, float] = {}
    for shape in shapes:
        for name, cycles in shape.cost.resources.items():
            if not shape.variant.idiom and name in machine.resources:
                used[name] = used.get(name, 0.0) + cycles / machine.resources[name]
    return used


def units(shapes: Iterable[PlacedCost]) -> dict[str, float]:
    """Cycles per form by its measured throughput, where no port explains it: units that are no ports."""
    used: dict[str, float] = {}
    for shape in shapes:
        if shape.alone:
            used[shape.form.id] = used.get(shape.form.id, 0.0) + shape.alone
    return used


def locked(shapes: Iterable[PlacedCost], through_memory: float) -> float:
    """Cycles for locked instructions: each waits until the one before is in memory."""
    return sum(is_locked(shape.form) for shape in shapes) * through_memory
