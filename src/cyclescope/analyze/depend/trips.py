"""Round trips through memory: what the next iteration loads of what this one stored, again and again.

On some cores a short trip takes longer than its parts. The probe `memory-renaming` found how long trips of
a few additions take, and updates with a few instructions between them.
"""

from __future__ import annotations

from cyclescope.analyze.cost.known import is_locked
from cyclescope.analyze.depend.graph import Graph
from cyclescope.analyze.depend.loop_carried import trips
from cyclescope.analyze.depend.memory import Passage
from cyclescope.model.behaviour.passing import MemoryPassing


def memory_trips(graph: Graph, passing: MemoryPassing) -> float:
    """Cycles of the slowest trip that ends where it began, 0 where none is known to take longer."""
    if not graph.memory or not passing.knows_trips:
        return 0.0
    ways = zip(graph.memory, trips(graph), strict=True)
    closed = {p.store: (p, cycles) for p, cycles in ways if p.distance == 1}
    taken = [(cycles, _taken(graph, p, cycles, passing)) for p, cycles in closed.values() if cycles >= 0]
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
