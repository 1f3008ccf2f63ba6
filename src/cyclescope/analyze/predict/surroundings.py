"""Instructions in their place in a block: remarks, and cycles on paths."""

from __future__ import annotations

from cyclescope.analyze.cost.latencies import FIRSTS, SECOND
from cyclescope.analyze.depend.critical_path import Path
from cyclescope.analyze.depend.graph import Graph
from cyclescope.analyze.depend.loop_carried import CarriedChain
from cyclescope.remarks.prediction import Placed


class Remarks:
    """The remarks on the instructions of a block, where a load takes so many cycles."""

    def __init__(self, graph: Graph, load: float) -> None:
        self._graph, self._load = graph, load
        self._loads = {p.load[0]: p for p in graph.memory}

    def of(self, place: int) -> tuple[str, ...]:
        """Remarks on one instruction."""
        placed = self._graph.costs[place]
        variant = placed.variant
        stored = place in self._loads
        renamed = variant.renamed or (variant.passing is not None and variant.passing < self._load)
        found = {
            Placed.ELIMINATED: placed.cost.eliminated,
            Placed.ZERO: variant.idiom == "zero",
            Placed.BREAKING: variant.idiom == "breaking",
            Placed.FUSED_WITH_BRANCH: variant.fused in FIRSTS,
            Placed.FUSED: variant.fused == SECOND,
            Placed.MICROCODED: placed.cost.microcoded,
            Placed.RENAMED: stored and renamed,
            Placed.FORWARDED: stored and not renamed,
            Placed.PORTS_UNKNOWN: placed.unknown_ports,
        }
        told = [meaning.of() for meaning, holds in found.items() if holds]
        if variant.latency is not None:
            told.append(Placed.COMMENTED.of(variant.latency))
        return tuple(one.text for one in told)


def steps(graph: Graph, path: Path | CarriedChain | None) -> dict[int, float]:
    """Cycles by instruction that the nodes of a path add, those of one through several iterations in each."""
    found: dict[int, float] = {}
    if path is not None:
        iterations = path.iterations if isinstance(path, CarriedChain) else 1
        for node, cycles in zip(path.nodes, path.steps, strict=True):
            found[graph.owner[node]] = found.get(graph.owner[node], 0.0) + cycles / iterations
    return found
