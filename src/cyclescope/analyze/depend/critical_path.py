"""The critical path: the longest path through one iteration, if everything from outside is ready."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from cyclescope.analyze.depend.graph import Graph, Input


class Path(msgspec.Struct, frozen=True):
    """`cycles` from the first instruction of the path to the last result.

    `nodes` are on it in order, each adding its `steps` entry.
    """

    cycles: float
    nodes: tuple[int, ...] = ()
    steps: tuple[float, ...] = ()


def critical_path(graph: Graph) -> Path:
    """The longest path; of several, the one that ends first."""
    return _longest(graph.inputs, graph.base)


def whole_path(graph: Graph) -> Path:
    """The longest path if an instruction had one latency, its largest: all results after all operands.

    That is the critical path of the OSACA paper; what is loaded counts before the rest, as an instruction
    of its own. Of each instruction, its first node stands for it.
    """
    rows: list[list[Input]] = [[] for _ in graph.instructions]
    bases = [0.0] * len(rows)
    for number, inputs, base in zip(graph.owner, graph.inputs, graph.base, strict=True):
        bases[number] = max(bases[number], base)
        most = graph.costs[number].largest
        rows[number] += [
            Input(graph.owner[node], max(cycles, most[k in graph.costs[number].loaded]), k)
            for node, cycles, k in inputs
            if node >= 0
        ]
    path = _longest(rows, bases)
    nodes = tuple(graph.first[number] for number in path.nodes)
    return Path(path.cycles, nodes, path.steps) if path.cycles else Path(0.0)


def _longest(rows: Sequence[Sequence[Input]], bases: Sequence[float]) -> Path:
    done: list[float] = []
    before: list[int] = []
    for inputs, base in zip(rows, bases, strict=True):
        most, origin = base, -1
        for node, cycles, _ in inputs:
            if node >= 0 and done[node] + cycles > most:
                most, origin = done[node] + cycles, node
        done.append(most)
        before.append(origin)
    if not done:
        return Path(0.0)
    nodes = [max(range(len(done)), key=done.__getitem__)]
    while before[nodes[-1]] >= 0:
        nodes.append(before[nodes[-1]])
    nodes.reverse()
    times = [0.0, *(done[node] for node in nodes)]
    steps = tuple(b - a for a, b in pairwise(times))
    return Path(times[-1], tuple(nodes), steps)
