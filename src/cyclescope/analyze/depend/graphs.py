"""Dependency graphs on one machine: with the costs of its model, the least, and the most that is proved."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from cyclescope.analyze.cost.changes import LEAST_PROVED, MOST_PROVED
from cyclescope.analyze.cost.instruction import PlacedCost, PlacedCosts
from cyclescope.analyze.cost.latencies import CostVariant
from cyclescope.analyze.decode.block import BlockInstruction
from cyclescope.analyze.depend.graph import Graph, build, rebuilt
from cyclescope.model.machine import MachineModel


class Graphs:
    """Makes the graphs of blocks; what forms cost is looked up once for all of them."""

    def __init__(self, machine: MachineModel, stand_in: MachineModel | None = None) -> None:
        self.machine = machine
        self.costs = PlacedCosts(machine, stand_in=stand_in)
        self._differing: dict[tuple[str, str, CostVariant], bool] = {}

    @cached_property
    def _least(self) -> PlacedCosts:
        return PlacedCosts(self.machine, LEAST_PROVED, self.costs.stand_in, self.costs.behaviour)

    @cached_property
    def _most(self) -> PlacedCosts:
        return PlacedCosts(self.machine, MOST_PROVED, self.costs.stand_in, self.costs.behaviour)

    def of(self, instructions: Sequence[BlockInstruction]) -> Graph:
        """The graph of a block, all of whose instructions the machine knows."""
        return build(instructions, self.costs)

    def with_ends(self, graph: Graph, ends: str) -> Graph:
        """The same graph with the least or the most latencies that are proved."""
        return rebuilt(graph, self._with(ends))

    def may_differ(self, graph: Graph, ends: str) -> bool:
        """Whether chains may take another time with the least or the most latencies that are proved.

        Latencies to and from memory count only where something is loaded that was stored.
        """
        if graph.memory and (ends == LEAST_PROVED or any(placed.cost.ranges for placed in graph.costs)):
            return True
        return any((s.cost.ranges or s.guessed) and self._differs(s, ends) for s in graph.costs)

    def _differs(self, placed: PlacedCost, ends: str) -> bool:
        """Whether a value in a register or a flag takes another time from others."""
        key = ends, placed.form.id, placed.variant
        found = self._differing.get(key)
        if found is None:
            other = self._with(ends).get(placed.form, placed.variant)
            found = self._differing[key] = placed.between_registers != other.between_registers
        return found

    def _with(self, ends: str) -> PlacedCosts:
        return self._least if ends == LEAST_PROVED else self._most
