"""Round trips through memory: what the next iteration loads of what this one stored, again and again.

On some cores a short trip takes longer than its parts. The probe `memory-renaming` found how long trips of
a few additions take, and updates with a few instructions between them.
"""

from __future__ import annotations

from cyclescope.analyze.cost.known import is_locked
from cyclescope.analyze.depend.graph import Graph
from cyclescope.analyze.depend.loop_carried import own_cycles
from cyclescope.analyze.depend.memory import Passage
from cyclescope.model.behaviour.passing import MemoryPassing


def memory_trips(graph: Graph, passing: MemoryPassing) -> float:
    """Cycles of the slowest trip that ends where it began, 0 where none is known to take longer."""
    if not graph.memory or not passing.knows_trips:
        return 0.0
    closed = {p.store: p for p in graph.memory if p.distance == 1}
    if not closed:
        return 0.0
    parts = own_cycles(graph, {_stored(graph, place): place for place in closed})
    taken = [(cycles, _taken(graph, closed[place], cycles, passing)) for place, cycles in parts.items()]
    return max((trip for cycles, trip in taken if trip > cycles), default=0.0)


def _taken(graph: Graph, passage: Passage, cycles: float, passing: MemoryPassing) -> float:
    """Cycles of a trip whose parts take so many."""
    if passage.load != passage.store:
        return passing.trip(cycles)
    update = graph.costs[passage.load[0]]
    if passage.between or is_locked(update.form):  # updates alone were asked
        return cycles
    if update.variant.passing is None:  # its latency was measured with nothing beside it
        return cycles
    return passing.update(cycles, sum(placed.slots for placed in graph.costs) - update.slots)


def _stored(graph: Graph, place: tuple[int, int]) -> int:
    """The node of what an instruction stores."""
    number, operand = place
    placed = graph.costs[number]
    nodes = zip(placed.targets, placed.column_of, strict=True)
    column = next(column for node, column in nodes if node.part == "data" and node.operand == operand)
    return graph.first[number] + column
