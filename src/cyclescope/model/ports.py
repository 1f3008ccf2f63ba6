"""Port usage: the notation `1*p06+2*p23`, and the throughput that follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from cyclescope.model.binding import Loads, port_bound
from cyclescope.model.dispatch_cycles import ROUNDING, SETTLING
from cyclescope.model.machine import Core, FormCost, Halves, Operation

ONLY_BESIDE = "beside "  # names of resources that count only beside operations of just the ports that follow


def notation(operations: Sequence[Operation], ports: Sequence[str]) -> str:
    """`1*p06+1*p23`, smallest port sets first; `-` where no port is used.

    Operations that keep a port busy for several cycles are written `1*p0/4`.
    """
    parts = []
    for op in sorted(operations, key=lambda o: (len(o.ports), o.ports)):
        busy = f"/{op.cycles:g}" if op.cycles != 1 else ""
        parts.append(f"{op.count:g}*{port_set(op.ports, ports)}{busy}")
    return "+".join(parts) or "-"


@cache
def port_set(some: tuple[int, ...], ports: tuple[str, ...]) -> str:
    """`p06`, or `pALU0,ALU3` where ports have more letters."""
    names = [ports[port] for port in some]
    return "p" + ("" if all(len(name) == 1 for name in names) else ",").join(names)


def resource_ports(name: str, ports: Sequence[str]) -> tuple[int, ...]:
    """The ports of a shared resource that is a set of them, as its name has them; none of a unit.

    Names are `pcd`, and `pALU0,ALU3` where ports have more letters.
    """
    rest, found = name.removeprefix("p"), []
    if rest == name:
        return ()
    for number, port in enumerate(ports):
        if rest.startswith(port):
            found.append(number)
            rest = rest.removeprefix(port).removeprefix(",")
    return () if rest else tuple(found)


def holding(resources: Mapping[str, float], ports: Sequence[str]) -> tuple[Operation, ...]:
    """Operations that keep sets of ports busy for as many cycles: each set for what those inside it leave."""
    sets = sorted(
        (len(some), some, resources[name]) for name in resources if (some := resource_ports(name, ports))
    )
    found: list[Operation] = []
    for _, some, cycles in sets:
        inside = sum(op.count for op in found if {*op.ports} <= {*some})
        if (left := round(cycles - inside)) > 0:
            found.append(Operation(some, float(left)))
    return tuple(found)


def counted(
    used: dict[str, float], ports: Sequence[str], operations: Iterable[Operation]
) -> dict[str, float]:
    """Cycles by resource, without what counts only beside operations of just its ports, if there are none."""
    some = {name for name in used if name.startswith(ONLY_BESIDE)}
    there = {port_set(op.ports, ports) for op in operations} if some else set()
    return {
        name: cycles for name, cycles in used.items()
        if name not in some or name.removeprefix(ONLY_BESIDE) in there
    }  # fmt: skip


def port_throughput(operations: Iterable[Operation]) -> float:
    """Least cycles per instruction that the ports allow: the load of the fullest set of ports.

    Exact for ideal port binding (`binding.port_bound`).
    """
    return _port_throughput(tuple(operations))


@lru_cache(maxsize=1 << 14)  # more usages than the forms of a machine have
def _port_throughput(operations: tuple[Operation, ...]) -> float:
    loads: Loads = {}
    for op in operations:
        key = sum(1 << port for port in set(op.ports))
        loads[key] = loads.get(key, 0.0) + op.count * op.cycles
    return port_bound(loads)[0]


def even_throughput(operations: Iterable[Operation]) -> float:
    """Cycles that operations take of the fullest port where each goes to any of its ports as often."""
    taken: dict[int, float] = {}
    for op in operations:
        for port in op.ports:
            taken[port] = taken.get(port, 0.0) + op.count * op.cycles / len(op.ports)
    return max(taken.values(), default=0.0)


def turn_throughput(operations: Sequence[Operation], ports: tuple[int, ...]) -> float:
    """Cycles of the fullest of some ports where those operations that have just these get them in turn.

    The operations are in the order of a loop's instructions; the turn goes on from one trip to the next.
    """
    busy, number = [0.0] * len(ports), 0
    for op in [op for op in operations if op.ports == ports] * len(ports):
        for _ in range(round(op.count)):
            busy[number % len(ports)] += op.cycles
            number += 1
    return max(busy) / len(ports)


def halves_throughput(operations: Sequence[Operation], halves: Halves, rounded: float | None = None) -> float:
    """Cycles of the fuller of two sets of ports between which operations go to and fro.

    The operations are in the order of a loop's instructions; what the last one got counts for the first.
    Behind a whole number of rounds of those that need the second set, one for each of its ports, the share
    `rounded` goes astray, if it is not None.
    """
    some = tuple(_dealt(operations, halves))
    return _to_and_fro(some, len(halves.first), len(halves.second), halves.astray, rounded)


@lru_cache(4096)  # loads and stores of blocks in order, of which there are few
def _to_and_fro(
    some: tuple[tuple[bool, float], ...], first: int, second: int, usual: float, rounded: float | None
) -> float:
    """The same of operations by whether they need the second set, and their cycles."""
    astray = [usual] * len(some)
    for n in range(len(some) if rounded is not None else 0):
        before = next((many for many in range(len(some)) if not some[n - 1 - many][0]), 0)
        if before and before % second == 0:
            astray[n] = rounded or 0.0
    at, slope = 0.0, 1.0  # how likely the second set is: so much, and so much of that before the first
    for (own, _), share in zip(some, astray, strict=True):
        at, slope = _other(at, own, share), 0.0 if own else slope * (2 * share - 1)
    likely, busy = (at / (1 - slope) if slope < 1 else 0.5), [0.0, 0.0]
    for (own, cycles), share in zip(some, astray, strict=True):
        likely = _other(likely, own, share)
        busy[0] += cycles * (1 - likely)
        busy[1] += cycles * likely
    return max(busy[0] / first, busy[1] / second)


def _dealt(operations: Iterable[Operation], halves: Halves) -> Iterator[tuple[bool, float]]:
    """Of each operation on these ports whether it needs the second set, and for how long it keeps a port."""
    second, both = {*halves.second}, {*halves.both}
    for op in operations:
        if both.issuperset(op.ports):
            yield from [(second.issuperset(op.ports), op.cycles)] * round(op.count)


def _other(likely: float, own: bool, astray: float) -> float:
    """How likely the second set is for an operation, from how likely it was for the one before."""
    return 1.0 if own else (1 - likely) * (1 - astray) + likely * astray


class Dealt(NamedTuple):
    """The slots of an instruction, spare ones behind them, and its operations."""

    slots: float
    spare: float
    operations: Sequence[Operation]


def late_throughput(loop: Sequence[Dealt], halves: Halves, core: Core) -> float:
    """Cycles of the fuller half where the first of a cycle of dispatch goes on from earlier cycles.

    Each cycle of dispatch is taken to be as full as instructions let it be.
    """
    whole, width = core.whole, core.width
    rows = tuple([
        (slots, min(slots + spare, width) if whole else 0.0, (*_dealt(some, halves),) if some else ())
        for slots, spare, some in loop
    ])  # fmt: skip
    if not any([accesses for _, _, accesses in rows]):  # noqa: C419 - quicker
        return 0.0
    return _late(rows, width, len(halves.first), len(halves.second), halves.astray, halves.late)


@lru_cache(4096)  # blocks with the same accesses at the same places
def _late(
    rows: tuple[tuple[float, float, tuple[tuple[bool, float], ...]], ...],
    width: float, ports: int, others: int, astray: float, late: int,
) -> float:  # fmt: skip
    """The same of slots, those that a cycle has to have left, and accesses as `_to_and_fro` has them."""
    used, likely = 0.0, 0.5  # slots of this cycle, how likely the second half had the last
    first, second = 0.0, 0.0
    ends = [likely] * (late + 1)  # the same where each of the cycles before ended
    full = width + ROUNDING
    seen: dict[tuple[float, ...], tuple[float, ...]] = {}
    for repetition in range(2 * SETTLING):
        state = tuple(map(round, (used, likely, *ends), (2,) * (len(ends) + 2)))
        if state in seen or repetition + 1 == 2 * SETTLING:
            before, one, two = seen.get(state) or [*seen.values()][SETTLING]
            trips = repetition - before
            return max((first - one) / ports, (second - two) / others) / trips
        seen[state] = repetition, first, second
        for slots, least, accesses in rows:
            used = (width if used + least > full else used) + slots
            while used > full:
                used, ends = used - width, [*ends[1:], likely]
                likely = _other(1 - ends[0], False, astray)
            for own, cycles in accesses:
                likely = 1.0 if own else 1 - likely
                first += cycles * (1 - likely)
                second += cycles * likely
    return 0.0


def issue_throughput(cost: FormCost, core: Core) -> tuple[float, str] | None:
    """Cycles per instruction that the ports and the front end allow, and which of them bounds.

    None where the port usage is not known.
    """
    if cost.operations is None:
        return None
    ports = port_throughput(cost.operations)
    slots = (cost.slots or 0) / core.width
    return (slots, "front end") if slots > ports else (ports, "ports")
