"""Loop-carried dependencies: which results of earlier iterations an iteration waits for.

The values that pass from one iteration to the next are the nodes of a small graph, whose edges are the
longest paths through one iteration. No loop can be faster than the greatest mean of its cycles, whatever
the number of iterations that a cycle takes: the maximum cycle ratio of the block's dependency graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from cyclescope.analyze.depend.compiled.chains import EQUAL
from cyclescope.analyze.depend.compiled.numbers import NO_NUMBER
from cyclescope.analyze.depend.graph import Carried, Graph, Input, Nodes

_NONE = float("-inf")
_Edges = dict[int, dict[int, float]]


class CarriedChain(msgspec.Struct, frozen=True):
    """A cycle of dependencies: `cycles` per iteration, closed after `iterations`.

    `nodes` are those of all its iterations, in order, each with the latency (`steps`) from the one before.
    """

    cycles: float
    iterations: int
    nodes: tuple[int, ...]
    steps: tuple[float, ...]

    @property
    def total(self) -> float:
        """Latency of the whole cycle."""
        return self.cycles * self.iterations


def loop_carried(graph: Graph) -> list[CarriedChain]:
    """Loop-carried dependencies, the slowest first; the first is the bound.

    Where chains are entangled, the slowest of them is listed, and others that close in one iteration.
    """
    if not graph.carried:
        return []
    ways = _Ways(graph.nodes)
    edges = ways.edges()
    chains: dict[frozenset[int], CarriedChain] = {}
    for path in (path for part in components(edges) for path in _cycles_of(part, edges)):
        total = _total(path, edges)
        nodes = ways.nodes(path)
        chain = CarriedChain(total / len(path), len(path), nodes, _latencies(graph, nodes))
        owners = frozenset(graph.owner[n] for n in nodes)
        chains[owners] = max(chains.get(owners, chain), chain, key=lambda one: one.cycles)
    return sorted(chains.values(), key=lambda c: (-c.cycles, c.nodes))


def slowest_chain(graph: Graph) -> float:
    """Cycles per iteration of the slowest loop-carried dependency, 0 where there is none."""
    return _slowest(graph.nodes) if graph.chains is None else graph.chains.cycles


def is_carried(graph: Graph) -> bool:
    """Whether any value passes from one iteration to the next."""
    return bool(graph.carried) if graph.chains is None else graph.chains.carried


def _slowest(nodes: Nodes) -> float:
    if not nodes.carried:
        return 0.0
    edges = _Ways(nodes).edges()
    paths = (path for part in components(edges) for path in _cycles_of(part, edges))
    return max((_total(path, edges) / len(path) for path in paths), default=0.0)


def trips(graph: Graph) -> list[float]:
    """By way through memory, cycles from what is stored to the same an iteration later, or less than 0."""
    if graph.chains is not None:
        return list(graph.chains.trips)
    stored = [graph.first[store] + column for _, _, store, column, _, _ in graph.passed()]
    ways = _Ways(graph.nodes)
    numbers = {value.node: n for n, value in enumerate(graph.carried) if value.distance == 1}
    cycles = (ways.back(numbers[node]) if node in numbers else None for node in stored)
    return [NO_NUMBER if one is None else one for one in cycles]


def renamed_memory(graph: Graph) -> float:
    """Cycles of the slowest chain if every load of renamed memory took one, and nothing else any.

    The renamer follows one such step of a chain in a cycle, beside the computing.
    """
    costs = graph.costs
    if not any(placed.variant.renamed for placed in costs):
        return 0.0
    rows = (
        tuple(
            one._replace(cycles=float(costs[number].variant.renamed and costs[number].loads(one.source)))
            for one in inputs
        )
        for number, inputs in zip(graph.owner, graph.inputs, strict=True)
    )
    return _slowest(msgspec.structs.replace(graph.nodes, inputs=tuple(rows)))


def _total(path: Sequence[int], edges: Mapping[int, Mapping[int, float]]) -> float:
    """Cycles of a cycle, added up in its order: as compiled code does."""
    total = 0.0
    for a, b in _steps(path):
        total += edges[a][b]
    return total


def _latencies(graph: Graph, nodes: Sequence[int]) -> tuple[float, ...]:
    """Cycles of the edges of a cycle, by the node that each leads to."""
    before = [*nodes[-1:], *nodes[:-1]]
    return tuple(
        max(cycles for node, cycles, _ in graph.inputs[b] if graph.origin(node).node == a)
        for a, b in zip(before, nodes, strict=True)
    )


def _steps(path: Sequence[int]) -> Iterable[tuple[int, int]]:
    return zip(path, [*path[1:], path[0]], strict=True)


def _cycles_of(part: Sequence[int], edges: _Edges) -> list[list[int]]:
    """The slowest cycle of a strongly connected component, and its members' own."""
    inside = set(part)
    own = [[node] for node in part if node in edges.get(node, ())]
    if len(part) == 1:
        return own
    within = {a: {b: w for b, w in edges[a].items() if b in inside} for a in part}
    return [slowest_cycle(within), *own]


class _Ways:
    """The longest ways through one iteration, from every carried value to every other."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._values, delays = _with_delays(nodes.carried)
        self._numbers = {value: number for number, value in enumerate(self._values)}
        self._delays = delays
        self._before: dict[int, dict[int, int]] = {}
        self._first, self._last = _readers(nodes.inputs)

    def edges(self) -> _Edges:
        """Cycles from value to value."""
        found: _Edges = {number: {} for number in range(len(self._values))}
        ends: dict[int, int] = {v.node: n for n, v in enumerate(self._values) if v.distance == 1}
        for number in range(len(self._nodes.carried)):
            longest = self._longest(number)
            found[number] = {ends[node]: longest[node] for node in sorted(ends.keys() & longest.keys())}
        for older, newer in self._delays:
            found[newer][older] = 0.0
        return found

    def _longest(self, start: int) -> dict[int, float]:
        """Longest ways from a carried value to the nodes behind it; `_before` has the way back."""
        wanted = -1 - start
        longest = {wanted: 0.0}
        before = self._before[start] = {}
        if wanted not in self._first:  # read by an idiom alone
            return longest
        number, last = self._first[wanted], self._last[wanted]
        while number <= last:
            best, origin = _NONE, 0
            for node, cycles, _ in self._nodes.inputs[number]:
                begin = longest.get(node)
                if begin is not None and begin + cycles > best:
                    best, origin = begin + cycles, node
            if best > _NONE:
                longest[number], before[number] = best, origin
                last = max(last, self._last.get(number, last))
            number += 1
        return longest

    def back(self, number: int) -> float | None:
        """Cycles from a carried value to its own node, None where that is not made of it."""
        return self._longest(number).get(self._values[number].node)

    def nodes(self, path: Sequence[int]) -> tuple[int, ...]:
        """All nodes on a cycle of carried values, in order."""
        found: list[int] = []
        for start, end in _steps(path):
            if (end, start) in self._delays:
                continue
            node, back = self._values[end].node, []
            while node >= 0:
                back.append(node)
                node = self._before[start][node]
            found += reversed(back)
        return tuple(found)


def _readers(rows: Sequence[Sequence[Input]]) -> tuple[dict[int, int], dict[int, int]]:
    """The first and the last node that waits for each value, numbered as in `Input`."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for number, inputs in enumerate(rows):
        for node, _, _ in inputs:
            first.setdefault(node, number)
            last[node] = number
    return first, last


def _with_delays(carried: Sequence[Carried]) -> tuple[list[Carried], set[tuple[int, int]]]:
    """The carried values, and those that only wait to get as old; pairs of (older, newer)."""
    values = list(carried)
    numbers = {value: number for number, value in enumerate(values)}
    delays = set()
    for value in values:  # grows on the way
        if value.distance > 1:
            newer = Carried(value.node, value.distance - 1)
            if newer not in numbers:
                numbers[newer] = len(values)
                values.append(newer)
            delays.add((numbers[value], numbers[newer]))
    return values, delays


# --- cycles of graphs ------------------------------------------------------------------------------


def components(edges: Mapping[int, Mapping[int, float]]) -> list[list[int]]:
    """Strongly connected components that have a cycle, each sorted."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    found: list[list[int]] = []
    for root in edges:
        if root not in number:
            _visit(root, edges, number, low, stack, found)
    return [part for part in found if len(part) > 1 or part[0] in edges[part[0]]]


def _visit(
    root: int,
    edges: Mapping[int, Mapping[int, float]],
    number: dict[int, int],
    low: dict[int, int],
    stack: list[int],
    found: list[list[int]],
) -> None:
    """Tarjan's search from one node, without recursion."""
    work = [(root, iter(edges[root]))]
    number[root] = low[root] = len(number)
    stack.append(root)
    while work:
        node, rest = work[-1]
        following = next(rest, None)
        if following is None:
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == number[node]:
                cut = stack.index(node)
                found.append(sorted(stack[cut:]))
                del stack[cut:]
        elif following not in number:
            number[following] = low[following] = len(number)
            stack.append(following)
            work.append((following, iter(edges[following])))
        elif following in stack:
            low[node] = min(low[node], number[following])


def slowest_cycle(edges: Mapping[int, Mapping[int, float]]) -> list[int]:
    """The cycle with the greatest mean of a graph, every node of which has an edge.

    From any cycle to a slower one, until none is: longest ways with the mean taken from every edge exist.
    """
    policy = {node: max(out, key=out.__getitem__) for node, out in edges.items()}
    cycle = _end_of(policy, next(iter(policy)))
    while True:
        mean = _total(cycle, edges) / len(cycle)
        slower = _positive_cycle(edges, mean)
        if slower is None:
            return cycle
        cycle = slower


def _end_of(following: Mapping[int, int], node: int) -> list[int]:
    """The cycle that a graph with one edge per node leads to."""
    path: dict[int, None] = {}
    while node not in path:
        path[node] = None
        node = following[node]
    nodes = list(path)
    return nodes[nodes.index(node) :]


def _positive_cycle(edges: Mapping[int, Mapping[int, float]], mean: float) -> list[int] | None:
    """A cycle with a greater mean than this one: longest ways that never end (Bellman and Ford)."""
    length = dict.fromkeys(edges, 0.0)
    before: dict[int, int] = {}
    changed: int | None = None
    for _ in range(len(edges) + 1):
        changed = None
        for a, out in edges.items():
            for b, cycles in out.items():
                reached = length[a] + cycles - mean
                if reached > length[b] + EQUAL:
                    length[b], before[b], changed = reached, a, b
        if changed is None:
            return None
    assert changed is not None
    for _ in edges:  # from what still grows, back into the cycle
        changed = before[changed]
    return _end_of(before, changed)[::-1]
