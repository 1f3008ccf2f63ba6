"""What a core loses that wakes up the readers of results before these are sure.

An operation of one cycle that finds no port has woken up what reads its result all the same, and a port is
lost. How much that takes was asked by the distance of both (the probe `scheduler`), of values that are made
of nothing new; a maker that waited for such a value itself comes alone, and what reads it loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from cyclescope.analyze.cost.instruction import PlacedCost
from cyclescope.analyze.decode.locations import Location, Places
from cyclescope.analyze.depend.graph import Graph
from cyclescope.model.machine import Wakeup


def woken_early(graph: Graph, wakeup: Wakeup | None, asked: Sequence[tuple[int, float]]) -> float:
    """Cycles of one iteration's operations on the ports of such a core, with those that are lost.

    `asked` are the operations of rounds in which the last reads what the first makes, and their cycles.
    """
    if wakeup is None or not asked:
        return 0.0
    ports, every = len(wakeup.ports), sum(1 << port for port in wakeup.ports)
    losses = [(many - 1, max(cycles - many / ports, 0.0)) for many, cycles in asked]
    made: dict[Location, int] = {}  # places in the block of what makes values within a cycle
    work = lost = 0.0
    for number, (placed, places) in enumerate(zip(graph.costs, graph.places, strict=True)):
        if placed.cost.eliminated and len(places.read) == 1:
            _pass_on(made, places)
            continue
        work += sum([cycles for some, cycles in placed.work if not some & ~every])
        anywhere = any(some == every for some, _ in placed.work)
        near = min(_distances(number, placed, places, made), default=0) if anywhere and made else 0
        lost += _between(losses, near)
        makes = anywhere and not near and max(placed.cost.latencies.values(), default=0.0) <= 1
        for _, location in places.written:
            if makes:
                made[location] = number
            else:
                made.pop(location, None)
    return work / ports + lost if lost else 0.0


def _pass_on(made: dict[Location, int], places: Places) -> None:
    """The renamer moves values: they are made where they were."""
    source = made.get(places.read[0])
    for _, location in places.written:
        if source is None:
            made.pop(location, None)
        else:
            made[location] = source


def _distances(number: int, placed: PlacedCost, places: Places, made: dict[Location, int]) -> list[int]:
    """From what makes the values that an operation reads itself: addresses are those of loads and stores."""
    reaches = bool(placed.form.accesses)
    return [
        number - made[location]
        for source, location in zip(placed.sources, places.sources, strict=True)
        if location in made and not (reaches and source.part in ("address", "index"))
    ]


def _between(losses: Sequence[tuple[int, float]], distance: int) -> float:
    """The loss at a distance, on a straight line between two that were asked; 0 for others."""
    for (near, more), (far, less) in pairwise(losses):
        if near <= distance <= far:
            return more + (less - more) * (distance - near) / (far - near)
    return 0.0
