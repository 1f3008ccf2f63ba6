"""The critical path: the longest way through one iteration, everything from outside at hand."""

from __future__ import annotations

from itertools import pairwise

import msgspec

from cyclescope.analyze.dependency import Graph


class Path(msgspec.Struct, frozen=True):
    """`cycles` from the first instruction of the path to the last result.

    `nodes` are on it in order, each adding its `steps` entry.
    """

    cycles: float
    nodes: tuple[int, ...] = ()
    steps: tuple[float, ...] = ()


def critical_path(graph: Graph) -> Path:
    """The longest path; of several, the one that ends first."""
    done: list[float] = []
    before: list[int] = []
    for inputs, base in zip(graph.inputs, graph.base, strict=True):
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
