"""What the resources of a core allow: ports, front end, other units, one iteration at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cyclescope.analyze.facts import TAKEN_BRANCHES
from cyclescope.analyze.shape import Shape, is_locked
from cyclescope.model.machine import MachineModel

Loads = dict[int, float]  # cycles by set of ports, the sets as bits
_ROUNDS, _PRECISION = 200, 1e-7


def port_loads(shapes: Iterable[Shape]) -> Loads:
    """Cycles of one iteration that some port of each set has to be busy."""
    loads: Loads = {}
    for shape in shapes:
        for ports, cycles in shape.work:
            loads[ports] = loads.get(ports, 0.0) + cycles
    return loads


def port_bound(loads: Mapping[int, float]) -> tuple[float, int]:
    """Least cycles that any binding to ports needs, and the set of ports that is full.

    The maximum, over unions of port sets, of the cycles confined to the union divided by its size: exact,
    by linear programming duality. Unions of sets that share no port are never fuller than their parts.
    """
    best, where = 0.0, 0
    for union in _unions(loads):
        confined = sum(cycles for ports, cycles in loads.items() if ports | union == union)
        cycles = confined / union.bit_count()
        if cycles > best + _PRECISION:
            best, where = cycles, union
    return best, where


def _unions(sets: Iterable[int]) -> set[int]:
    """Unions of sets that hang together."""
    single = list(sets)
    found = set(single)
    work = list(single)
    while work:
        union = work.pop()
        for ports in single:
            if ports & union and ports | union not in found:
                found.add(ports | union)
                work.append(ports | union)
    return found


def evenly(loads: Mapping[int, float], ports: int) -> list[float]:
    """Cycles per port where every set is split evenly over its ports, as OSACA's fixed binding does."""
    busy = [0.0] * ports
    for members, cycles in loads.items():
        for port in _members(members):
            busy[port] += cycles / members.bit_count()
    return busy


def _members(ports: int) -> list[int]:
    return [port for port in range(ports.bit_length()) if ports >> port & 1]


def balanced(loads: Mapping[int, float], ports: int) -> dict[int, list[float]]:
    """Cycles per port of each set in the most even binding: the fullest port as empty as it can be.

    Each set in turn fills the emptiest of its ports, until nothing changes: the sum of squares falls, and
    its only minimum has the least maximum too.
    """
    split = {
        members: [cycles / members.bit_count() if members >> p & 1 else 0.0 for p in range(ports)]
        for members, cycles in loads.items()
    }
    busy = [sum(column) for column in zip(*split.values(), strict=True)] if split else [0.0] * ports
    for _ in range(_ROUNDS):
        moved = 0.0
        for members, shares in split.items():
            moved = max(moved, _pour(_members(members), shares, busy, loads[members]))
        if moved < _PRECISION:
            break
    return split


def _pour(members: Sequence[int], shares: list[float], busy: list[float], cycles: float) -> float:
    """Bind one set anew, given the others; returns the largest change of a port."""
    others = sorted((busy[p] - shares[p], p) for p in members)
    level, rest = _level([other for other, _ in others], cycles), 0.0
    for other, port in others:
        new = max(level - other, 0.0)
        rest = max(rest, abs(new - shares[port]))
        busy[port] += new - shares[port]
        shares[port] = new
    return rest


def _level(heights: Sequence[float], amount: float) -> float:
    """How high an amount stands, poured over columns of these heights (sorted)."""
    total = amount
    for count, height in enumerate(heights, 1):
        total += height
        level = total / count
        if count == len(heights) or level <= heights[count]:
            return level
    return 0.0


def total(split: Mapping[int, Sequence[float]], ports: int) -> list[float]:
    """Cycles per port of all sets together."""
    return [sum(column) for column in zip(*split.values(), strict=True)] if split else [0.0] * ports


def front_end(shapes: Iterable[Shape], width: float) -> float:
    """Cycles that the slots of one iteration take."""
    return sum(shape.slots for shape in shapes) / width


def branches(shapes: Sequence[Shape], loop: bool) -> float:
    """Cycles for the branches that are taken: the unconditional ones, and the last one of a loop."""
    taken = sum(
        not shape.form.attributes.isdisjoint(("branch", "call", "return"))
        and "conditional_branch" not in shape.form.attributes
        for shape in shapes[:-1]
    )
    last = bool(shapes) and not shapes[-1].form.attributes.isdisjoint(("branch", "conditional_branch"))
    return (taken + (loop and last)) / TAKEN_BRANCHES


def resources(shapes: Iterable[Shape], machine: MachineModel) -> dict[str, float]:
    """Cycles per shared resource of the machine's resource view."""
    used: dict[str, float] = {}
    for shape in shapes:
        for name, cycles in shape.cost.resources.items():
            if not shape.variant.idiom and name in machine.resources:
                used[name] = used.get(name, 0.0) + cycles / machine.resources[name]
    return used


def units(shapes: Iterable[Shape]) -> dict[str, float]:
    """Cycles per form by its measured throughput, where no port explains it: units that are no ports."""
    used: dict[str, float] = {}
    for shape in shapes:
        if shape.alone:
            used[shape.form.id] = used.get(shape.form.id, 0.0) + shape.alone
    return used


def locked(shapes: Iterable[Shape], through_memory: float) -> float:
    """Cycles for locked instructions: each waits until the one before is in memory."""
    return sum(is_locked(shape.form) for shape in shapes) * through_memory
