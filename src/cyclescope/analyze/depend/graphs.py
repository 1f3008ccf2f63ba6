"""Dependency graphs on one machine: with the costs of its model, the least, and the most that is proved."""

from __future__ import annotations

from collections.abc import Sequence

from cyclescope.analyze.cost.changes import LEAST_PROVED, MOST_PROVED
from cyclescope.analyze.cost.instruction import PlacedCost, PlacedCosts
from cyclescope.analyze.decode.block import BlockInstruction
from cyclescope.analyze.depend.graph import Graph, build, rebuilt
from cyclescope.analyze.depend.standing import Standings
from cyclescope.model.machine import MachineModel


class Graphs:
    """Makes the graphs of blocks; what forms cost is looked up once for all of them."""

    def __init__(self, machine: MachineModel, stand_in: MachineModel | None = None) -> None:
        self.machine = machine
        self.costs = PlacedCosts(machine, stand_in=stand_in)
        self._standings = Standings(self.costs)
        self._with = {ends: self.costs.with_ends(ends) for ends in (LEAST_PROVED, MOST_PROVED)}
        self._differing: dict[tuple[str, bool], dict[int, tuple[PlacedCost, bool]]] = {
            (ends, whole): {} for ends in self._with for whole in (False, True)
        }

    def of(self, instructions: Sequence[BlockInstruction]) -> Graph:
        """The graph of a block, all of whose instructions the machine knows."""
        return build(instructions, self._standings)

    def with_ends(self, graph: Graph, ends: str) -> Graph:
        """The same graph with the least or the most latencies that are proved."""
        return rebuilt(graph, self._with[ends])

    def may_differ(self, graph: Graph, ends: str) -> bool:
        """Whether chains may take another time with the least or the most latencies that are proved.

        Latencies to and from memory count only where something is loaded that was stored.
        """
        if graph.memory and ends == LEAST_PROVED:  # memory takes no time then
            return True
        whole = bool(graph.memory)
        known = self._differing[ends, whole]
        for placed in graph.costs:
            found = known.get(id(placed))
            if found is None:  # kept with its cost, so that no other gets its id
                found = known[id(placed)] = placed, self._differs(placed, ends, whole)
            if found[1]:
                return True
        return False

    def _differs(self, placed: PlacedCost, ends: str, whole: bool) -> bool:
        """Whether a value takes another time from others; if not `whole`, one in a register or a flag."""
        other = self._with[ends].like(placed)
        return other is not placed and _ways(placed, whole) != _ways(other, whole)


def _ways(placed: PlacedCost, whole: bool) -> object:
    """Latencies of all pairs, or of those that are not in memory."""
    if whole:
        return placed.columns, placed.column_of, placed.base, placed.stored
    return placed.between_registers
