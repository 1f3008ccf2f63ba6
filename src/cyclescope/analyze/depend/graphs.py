"""Dependency graphs on one machine: with the costs of its model, the least, and the most that is proved."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

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
        self._differing: dict[tuple[int, str, bool], tuple[PlacedCost, bool]] = {}

    @cached_property
    def _least(self) -> Standings:
        return Standings(self.costs.with_ends(LEAST_PROVED))

    @cached_property
    def _most(self) -> Standings:
        return Standings(self.costs.with_ends(MOST_PROVED))

    def of(self, instructions: Sequence[BlockInstruction]) -> Graph:
        """The graph of a block, all of whose instructions the machine knows."""
        return build(instructions, self._standings)

    def with_ends(self, graph: Graph, ends: str) -> Graph:
        """The same graph with the least or the most latencies that are proved."""
        return rebuilt(graph, self._with(ends))

    def may_differ(self, graph: Graph, ends: str) -> bool:
        """Whether chains may take another time with the least or the most latencies that are proved.

        Latencies to and from memory count only where something is loaded that was stored.
        """
        if graph.memory and ends == LEAST_PROVED:  # memory takes no time then
            return True
        whole = bool(graph.memory)
        return any([self._differs(placed, ends, whole) for placed in graph.costs])  # noqa: C419 - quicker

    def _differs(self, placed: PlacedCost, ends: str, whole: bool) -> bool:
        """Whether a value takes another time from others; if not `whole`, one in a register or a flag."""
        key = id(placed), ends, whole
        found = self._differing.get(key)
        if found is None:
            other = self._with(ends).costs.like(placed)
            differs = other is not placed and _ways(placed, whole) != _ways(other, whole)
            found = self._differing[key] = placed, differs  # kept, so that no other gets its id
        return found[1]

    def _with(self, ends: str) -> Standings:
        return self._least if ends == LEAST_PROVED else self._most


def _ways(placed: PlacedCost, whole: bool) -> object:
    """Latencies of all pairs, or of those that are not in memory."""
    if whole:
        return placed.columns, placed.column_of, placed.base, placed.stored
    return placed.between_registers
