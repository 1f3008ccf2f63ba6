"""Control flow of code: basic blocks, who dominates whom, natural loops."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from typing import NamedTuple

from cyclescope.analyze.decode import BRANCH, END, INVALID, JUMP, Step


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


def loops(steps: Sequence[Step], index: dict[int, int], entries: Sequence[int] = ()) -> list[Loop]:
    """All natural loops; loops with one head are one. `entries` are positions where functions begin."""
    if not steps:
        return []
    graph = _connected(steps, _graph(steps, index, entries), entries)
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


def _graph(steps: Sequence[Step], index: dict[int, int], entries: Sequence[int]) -> _Graph:
    leaders = {0, *entries}
    for i, step in enumerate(steps):
        if step.flow in (BRANCH, JUMP, END, INVALID):
            leaders.add(i + 1)
            if step.target in index and step.flow in (BRANCH, JUMP):
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


def _successors(steps: Sequence[Step], index: dict[int, int], number: dict[int, int], last: int) -> list[int]:
    step = steps[last]
    found = []
    if step.flow in (BRANCH, JUMP) and step.target in index:
        found.append(number[index[step.target]])
    following = last + 1 < len(steps) and steps[last + 1].address == step.end
    if step.flow not in (JUMP, END, INVALID) and following:
        found.append(number[last + 1])
    return found


def _connected(steps: Sequence[Step], graph: _Graph, entries: Sequence[int]) -> _Graph:
    """The graph with what becomes of blocks that no branch names.

    Where a function has an indirect jump, they are its targets. Padding, which only runs into a block
    that has other ways in, is cut off.
    """
    begins = {0, *entries}
    limits = sorted(begins)
    jumps: dict[int, list[int]] = {}  # by function
    for block in range(len(graph.successors)):
        if _is_indirect(steps[graph.starts[block + 1] - 1]):
            jumps.setdefault(bisect(limits, graph.starts[block]), []).append(block)
    for block, before in enumerate(graph.predecessors):
        position = graph.starts[block]
        if before or position in begins:
            continue
        own = jumps.get(bisect(limits, position), [])
        after = graph.successors[block]
        if after == [block + 1] and len(graph.predecessors[block + 1]) > 1:
            graph.predecessors[block + 1].remove(block)
            after.clear()
        elif own:
            before.extend(own)
            for jump in own:
                graph.successors[jump].append(block)
    return graph


def _is_indirect(step: Step) -> bool:
    return step.flow == JUMP and step.target is None


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
