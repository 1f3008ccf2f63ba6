"""What instructions have to do with their surroundings: remarks in words, cycles on paths."""

from __future__ import annotations

from cyclescope.analyze.cost.latencies import FIRST, SECOND
from cyclescope.analyze.depend.critical_path import Path
from cyclescope.analyze.depend.graph import Graph
from cyclescope.analyze.depend.loop_carried import CarriedChain


class Remarks:
    """The remarks on the instructions of a block."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._loads = {p.load[0]: p for p in graph.memory}

    def of(self, place: int) -> tuple[str, ...]:
        """Remarks on one instruction."""
        placed = self._graph.costs[place]
        variant = placed.variant
        found = {
            "eliminated": placed.cost.eliminated,
            "zero idiom": variant.idiom == "zero",
            "dependency-breaking": variant.idiom == "breaking",
            "fused with the branch": variant.fused == FIRST,
            "fused": variant.fused == SECOND,
            "microcoded": placed.cost.microcoded,
            "renamed memory": place in self._loads and variant.renamed,
            "forwarded": place in self._loads and not variant.renamed,
            "ports unknown": placed.unknown_ports,
            f"latency {variant.latency or 0:g} by a comment": variant.latency is not None,
        }
        return tuple(remark for remark, holds in found.items() if holds)


def steps(graph: Graph, path: Path | CarriedChain | None) -> dict[int, float]:
    """Cycles by instruction that the nodes of a path add."""
    found: dict[int, float] = {}
    if path is not None:
        for node, cycles in zip(path.nodes, path.steps, strict=True):
            found[graph.owner[node]] = found.get(graph.owner[node], 0.0) + cycles
    return found
