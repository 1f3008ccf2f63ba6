"""A block on the simulated core: what instructions do, where the time goes, what would save some."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cyclescope.analyze.cost.instruction import PlacedCost
from cyclescope.analyze.depend.graph import Graph
from cyclescope.analyze.predict.causes import TimeShare, causes
from cyclescope.analyze.predict.sensitivity import Gain, gains
from cyclescope.analyze.predict.watched import (
    LoopOnCore,
    LoopTrace,
    WatchedInstruction,
    filled_iterations,
    shown_iterations,
    window_iterations,
)
from cyclescope.isa.register import domain
from cyclescope.model.machine import Core

_FILES = {"r": "general registers", "h": "general registers", "v": "vector registers", "k": "mask registers"}
_FLAGS, _OTHERS = "flags", "other registers"


class Occupancy(msgspec.Struct, frozen=True):
    """How many entries of a buffer are in use, on average and at most; `room` is None where nobody knows it.

    A register is in use from the dispatch of the instruction that writes it until that retires.
    """

    name: str
    mean: float
    most: int
    room: int | None = None


class BlockSimulation(msgspec.Struct, frozen=True):
    """What the simulated core does with a block.

    `cycles` and `ports` (operations by port) are of an iteration in the steady state, as are `shares`, which
    say where the time goes, and `gains`, which say what would save some of it. `known` are the positions of
    the instructions in the block, in whose order all others count; `rows` are the first iterations, from an
    empty core. `policy` is when operations get their ports, `assumed` whether that is only what is taken
    where nobody knows.
    """

    cycles: float
    exact: bool
    policy: str
    assumed: bool
    ports: dict[str, float]
    shares: tuple[TimeShare, ...]
    gains: tuple[Gain, ...]
    occupancy: tuple[Occupancy, ...]
    known: tuple[int, ...]
    rows: tuple[WatchedInstruction, ...]


def observed(
    loop: LoopOnCore, graph: Graph, known: Sequence[int], ports: Sequence[str], core: Core, floor: float
) -> BlockSimulation:
    """A loop, watched. No change makes it take less than `floor`: what bounds it and is not simulated."""
    length = len(loop.templates)
    steady = loop.steady()
    first = filled_iterations(loop.layout, length)
    last = first + window_iterations(length) - 1
    names = [[placed.sources[k].name for k in placed.engine_sources] for placed in graph.costs]
    trace = LoopTrace(loop, last + 1, ports, names)
    shares = causes(trace, first, last)
    cycles = max(steady.cycles, floor)
    return BlockSimulation(
        steady.cycles, steady.exact, loop.layout.policy, not core.binding,
        {name: count for name, count in zip(ports, steady.operations, strict=False) if count},
        shares, gains(loop, ports, shares, cycles, floor), occupancy(trace, graph.costs, core, first, last),
        tuple(known), tuple(trace.rows(shown_iterations(length) * length)),
    )  # fmt: skip


def occupancy(
    loop: LoopTrace, costs: Sequence[PlacedCost], core: Core, first: int, last: int
) -> tuple[Occupancy, ...]:
    """Buffers and registers in use while iterations `first` to `last` are dispatched."""
    rows = loop.trace.instructions
    begin, end = rows[first * loop.length][0], rows[last * loop.length][0]
    spans: dict[str, list[tuple[int, int, int]]] = {}
    rooms = {
        "reorder buffer": core.reorder_buffer, "load buffer": core.load_buffer,
        "store buffer": core.store_buffer,
    }  # fmt: skip
    for sequence, (dispatched, _, retired) in enumerate(rows):
        template, placed = loop.loop.templates[sequence % loop.length], costs[sequence % loop.length]
        held = {
            "reorder buffer": template.entries,
            "load buffer": template.loads,
            "store buffer": template.stores,
        }
        for name, entries in (held | _registers(placed)).items():
            if entries:
                spans.setdefault(name, []).append((dispatched, retired, entries))
        for issued, _ in loop.trace.operations[sequence]:
            spans.setdefault("waiting for a port or operands", []).append((dispatched, issued, 1))
    return tuple(
        Occupancy(name, *_used(some, begin, end), rooms.get(name) or None) for name, some in spans.items()
    )


def _registers(placed: PlacedCost) -> dict[str, int]:
    """Registers that an instruction writes, by what they are."""
    found: dict[str, int] = {}
    for node in placed.targets:
        if node.part == "register":
            op = placed.form.operands[node.operand]
            name = _FILES.get(op.file or domain(op.cls), _OTHERS)
            found[name] = found.get(name, 0) + 1
        elif node.part == "flag":
            found[_FLAGS] = 1
    return found


def _used(spans: Sequence[tuple[int, int, int]], begin: int, end: int) -> tuple[float, int]:
    """Entries in use between two cycles, on average and at most."""
    total, changes = 0, dict.fromkeys((begin, end), 0)
    for since, until, entries in spans:
        first, last = max(since, begin), min(until, end)
        if first < last:
            total += (last - first) * entries
            changes[first] = changes.get(first, 0) + entries
            changes[last] = changes.get(last, 0) - entries
    now = most = 0
    for cycle in sorted(changes):
        now += changes[cycle]
        most = max(most, now)
    return total / max(end - begin, 1), most
