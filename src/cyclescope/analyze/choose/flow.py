"""Control flow of code: basic blocks, who dominates whom, natural loops."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cyclescope.analyze.decode.decoder import Flow, FlowStep

Tables = Sequence[tuple[int, Sequence[int]]]


class Loop(NamedTuple):
    """A natural loop, as positions of steps.

    `head` is where it is entered, `body` the positions of all its steps in order, `depth` 1 for a loop
    that no other contains. `innermost` tells that it contains none. `last` is the position of the branch
    back to the head.
    """

    head: int
    last: int
    body: tuple[int, ...]
    depth: int
    innermost: bool


class _Graph(NamedTuple):
    """Basic blocks: first positions (and the end of all), successors, predecessors."""

    starts: list[int]
    successors: list[list[int]]
    predecessors: list[list[int]]

    def steps(self, block: int) -> range:
        """Positions of a block's steps."""
        return range(self.starts[block], self.starts[block + 1])


def loops(
    steps: Sequence[FlowStep], index: dict[int, int], entries: Sequence[int] = (), tables: Tables = ()
) -> list[Loop]:
    """All natural loops; loops with one head are one.

    `entries` are positions where functions begin. `tables` have a position that refers to a table of
    jumps, and the positions that the table names.
    """
    if not steps:
        return []
    graph = _graph(steps, index, [*entries, *(one for _, targets in tables for one in targets)])
    _connect(steps, graph, entries, tables)
    order = _postorder(graph, _roots(graph, entries))
    dominators = _dominators(graph, order)
    bodies: dict[int, set[int]] = {}
    ends: dict[int, int] = {}
    for block, successors in enumerate(graph.successors):
        for head in successors:
            if _dominates(dominators, order, head, block):
                bodies.setdefault(head, {head}).update(_body(graph, head, block))
                ends[head] = max(ends.get(head, 0), graph.starts[block + 1] - 1)
    return _nested(graph, bodies, ends)


def _graph(steps: Sequence[FlowStep], index: dict[int, int], entries: Sequence[int]) -> _Graph:
    leaders = {0, *entries}
    for i, step in enumerate(steps):
        if step.flow in (Flow.BRANCH, Flow.JUMP, Flow.END, Flow.INVALID):
            leaders.add(i + 1)
            if step.target in index and step.flow in (Flow.BRANCH, Flow.JUMP):
                leaders.add(index[step.target])
        elif i + 1 < len(steps) and steps[i + 1].address != step.end:
            leaders.add(i + 1)
    starts = sorted(leaders - {len(steps)})
    number = {position: block for block, position in enumerate(starts)}
    starts.append(len(steps))
    successors: list[list[int]] = []
    predecessors: list[list[int]] = [[] for _ in number]
    for block in range(len(number)):
        found = _successors(steps, index, number, starts[block + 1] - 1)
        successors.append(found)
        for one in found:
            predecessors[one].append(block)
    return _Graph(starts, successors, predecessors)


def _successors(
    steps: Sequence[FlowStep], index: dict[int, int], number: dict[int, int], last: int
) -> list[int]:
    step = steps[last]
    found = []
    if step.flow in (Flow.BRANCH, Flow.JUMP) and step.target in index:
        found.append(number[index[step.target]])
    following = last + 1 < len(steps) and steps[last + 1].address == step.end
    if step.flow not in (Flow.JUMP, Flow.END, Flow.INVALID) and following:
        found.append(number[last + 1])
    return found


def _connect(steps: Sequence[FlowStep], graph: _Graph, entries: Sequence[int], tables: Tables) -> None:
    """Add where indirect jumps go to, and cut off padding.

    They go to what the table names that their function referred to last, one jump per reference; other
    jumps of the function are calls at its end. In a function without a table they go to every block
    that nothing else leads to. Padding only runs into a block that has other ways in.
    """
    begins = {0, *entries}
    limits = sorted(begins)
    number = {position: block for block, position in enumerate(graph.starts[:-1])}
    referred: dict[int, list[tuple[int, Sequence[int]]]] = {}  # tables by function
    for table in sorted(tables, key=lambda one: one[0]):
        referred.setdefault(bisect(limits, table[0]), []).append(table)
    guessing: dict[int, list[int]] = {}  # jumps without a table, by function
    for block in range(len(graph.successors)):
        last = graph.starts[block + 1] - 1
        function = bisect(limits, last)
        if _is_indirect(steps[last]) and function not in referred:
            guessing.setdefault(function, []).append(block)
        elif _is_indirect(steps[last]):
            own = [table for table in referred[function] if table[0] <= last]
            if own:
                referred[function].remove(own[-1])
                _link(graph, block, (number[position] for position in own[-1][1]))
    alone = [b for b, before in enumerate(graph.predecessors) if not before and graph.starts[b] not in begins]
    for block in alone:
        if _is_padding(graph, block):
            graph.predecessors[block + 1].remove(block)
            graph.successors[block].clear()
        for jump in guessing.get(bisect(limits, graph.starts[block]), ()):
            _link(graph, jump, [block])


def _link(graph: _Graph, block: int, targets: Iterable[int]) -> None:
    for target in targets:
        graph.successors[block].append(target)
        graph.predecessors[target].append(block)


def _is_padding(graph: _Graph, block: int) -> bool:
    return graph.successors[block] == [block + 1] and len(graph.predecessors[block + 1]) > 1


def _is_indirect(step: FlowStep) -> bool:
    return step.flow == Flow.JUMP and step.target is None


def _roots(graph: _Graph, entries: Sequence[int]) -> list[int]:
    """Blocks that nothing goes to, and those where functions begin; then whatever is left."""
    begins = set(entries)
    roots = [b for b, before in enumerate(graph.predecessors) if not before or graph.starts[b] in begins]
    known = set(roots)
    return roots + [b for b in range(len(graph.predecessors)) if b not in known]


def _postorder(graph: _Graph, roots: Sequence[int]) -> list[int]:
    """Number of every block in the order in which a depth-first search leaves it."""
    number = [-1] * len(graph.successors)
    seen = [False] * len(number)
    count = 0
    for root in roots:
        stack = [(root, 0)] if not seen[root] else []
        seen[root] = True
        while stack:
            block, place = stack.pop()
            after = graph.successors[block]
            if place < len(after):
                stack.append((block, place + 1))
                if not seen[after[place]]:
                    seen[after[place]] = True
                    stack.append((after[place], 0))
            else:
                number[block] = count
                count += 1
    return number


def _dominators(graph: _Graph, order: Sequence[int]) -> list[int]:
    """The immediate dominator of every block, itself for roots and what has none.

    The algorithm of Cooper, Harvey and Kennedy, with one virtual root (-1) above all roots.
    """
    found = [-2] * len(order)  # not known
    blocks = sorted(range(len(order)), key=lambda block: -order[block])
    changed = True
    while changed:
        changed = False
        for block in blocks:
            new = _common_of(graph, found, order, block)
            if new != found[block]:
                found[block] = new
                changed = True
    return found


def _common_of(graph: _Graph, found: Sequence[int], order: Sequence[int], block: int) -> int:
    """The common dominator of what is before a block; a block without is a root."""
    new = -2
    for before in graph.predecessors[block]:
        if found[before] != -2:
            new = before if new == -2 else _common(found, order, before, new)
    forward = any(order[before] > order[block] for before in graph.predecessors[block])
    return new if forward and new != -2 else -1


def _common(found: Sequence[int], order: Sequence[int], a: int, b: int) -> int:
    while a != b:
        if a == -1 or b == -1:
            return -1
        if order[a] < order[b]:
            a = found[a]
        else:
            b = found[b]
    return a


def _dominates(dominators: Sequence[int], order: Sequence[int], head: int, block: int) -> bool:
    while block >= 0 and order[block] < order[head]:
        block = dominators[block]
    return block == head


def _body(graph: _Graph, head: int, end: int) -> set[int]:
    """Blocks from which the end of a loop is reached without passing its head."""
    body = {head, end}
    stack = [end] if end != head else []
    while stack:
        for before in graph.predecessors[stack.pop()]:
            if before not in body:
                body.add(before)
                stack.append(before)
    return body


def _nested(graph: _Graph, bodies: dict[int, set[int]], ends: dict[int, int]) -> list[Loop]:
    """Loops with their depth. A loop contains another if it contains its head."""
    inside: dict[int, list[int]] = {}
    for head, body in bodies.items():
        for block in body:
            inside.setdefault(block, []).append(head)
    result = []
    for head, body in sorted(bodies.items()):
        positions = tuple(p for block in sorted(body) for p in graph.steps(block))
        innermost = not any(block in bodies and block != head for block in body)
        depth = len(inside[head])
        result.append(Loop(graph.starts[head], ends[head], positions, depth, innermost))
    return result
