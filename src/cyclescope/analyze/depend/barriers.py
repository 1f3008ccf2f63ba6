"""What stands behind a barrier, where that waits until all before it has ended."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

from cyclescope.analyze.depend.graph import Graph
from cyclescope.isa.register import register_files

_OTHERS = ("v", "f")  # register files of vectors and floats


def behind_barriers(graph: Graph, held: Mapping[str, tuple[float, float]], width: float) -> float:
    """Cycles of an iteration whose barriers let nothing pass: each stretch between two takes its longest
    path, and by how much the barrier `held` it, or what the barrier takes with the front end alone.
    """
    places = [n for n, placed in enumerate(graph.costs) if placed.form.mnemonic in held]
    return _Stretches(graph, held, places, width).cycles() if places else 0.0


class _Stretches:
    """Stretches of a block, each behind one of its barriers; what is before the first is behind the last."""

    def __init__(
        self, graph: Graph, held: Mapping[str, tuple[float, float]], places: list[int], width: float
    ) -> None:
        self._graph, self._places, self._width = graph, places, width
        self._slots = [0.0] * len(places)
        self._held = [held[graph.costs[place].form.mnemonic] for place in places]

    def cycles(self) -> float:
        """The time of all, one after the other."""
        found = 0.0
        for place, path, slots in zip(self._places, self._paths(), self._slots, strict=True):
            alone = (self._graph.costs[place].cost.throughput or 0.0) + slots / self._width
            found += max(alone, path)
        return found

    def _number(self, instruction: int) -> int:
        return (bisect_right(self._places, instruction) - 1) % len(self._places)

    def _paths(self) -> list[float]:
        """The longest path of each stretch, behind its barrier and the front end; 0 where there is none."""
        graph, first = self._graph, self._places[0]
        owner, found = graph.owner, [0.0] * len(self._places)
        done: dict[int, float] = {}
        for number in (*range(first, len(graph.costs)), *range(first)):
            stretch, placed = self._number(number), graph.costs[number]
            if number in self._places:
                continue
            begun = self._held[stretch][not register_files(placed.form).isdisjoint(_OTHERS)]
            begun += self._slots[stretch] / self._width
            self._slots[stretch] += placed.slots
            found[stretch] = max(found[stretch], begun + placed.alone) if placed.alone else found[stretch]
            for node in range(graph.first[number], graph.first[number] + len(placed.columns)):
                most = begun + graph.base[node]
                for one, cycles, _ in graph.inputs[node]:
                    source = graph.origin(one)
                    before = owner[source.node]
                    apart = (number < first) - (before < first)  # iterations, within a stretch
                    within = self._number(before) == stretch and source.distance == apart
                    most = max(most, cycles + (done.get(source.node, begun) if within else begun))
                done[node] = most
                if most > begun:
                    found[stretch] = max(found[stretch], most)
        return found
