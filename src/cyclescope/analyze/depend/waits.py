"""Loads that are not forwarded wait until the store is in the cache, and so for everything older than it.

A store goes to the cache when it has retired, behind everything in front of it. So where a load waits for a
store to be there, and the next such store comes behind the load, the two waits follow each other, though no
value passes from one to the other: a loop with a 16-byte load of what 8 bytes were stored of takes the
whole wait in every iteration, and what is computed with the load until the next such store besides. Waits
of which the second store is in front of the first load overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from cyclescope.analyze.depend.graph import Graph
from cyclescope.analyze.depend.loop_carried import slowest_chain
from cyclescope.analyze.depend.memory import Passage
from cyclescope.analyze.depend.ways import KnownWays
from cyclescope.model.behaviour.published import CoreBehaviour, LoadedStores


class CacheWait(NamedTuple):
    """A wait from the place of a store in the program to that of a load, `end` behind it, and its cycles."""

    start: int
    end: int
    cycles: float


Tail = Callable[[int, int], float]


def cache_waits(graph: Graph, behaviour: CoreBehaviour, width: float) -> float:
    """Cycles of one iteration that waits for the cache take, one after the other.

    `width` is how many slots retire in a cycle: as many as are dispatched.
    """
    if not graph.memory or not behaviour.passing:
        return 0.0
    ways = KnownWays(graph.instructions, graph.costs, graph.places, graph.memory, behaviour.passing)
    length = len(graph.instructions)
    waits = [wait for passage in ways.failed() if (wait := _wait(graph, passage, length)) is not None]
    return longest_round(waits, length, lambda load, store: _retiring(graph, load, store, width))


def _wait(graph: Graph, passage: Passage, length: int) -> CacheWait | None:
    """A wait, None of a load that comes an iteration or more behind the store, or that is not told."""
    number, operand = passage.load
    placed, start = graph.costs[number], passage.store[0]
    end = number + passage.distance * length
    if placed.variant.passing is None or not start < end <= start + length:
        return None
    source = next(k for k, n in enumerate(placed.sources) if n.part == "data" and n.operand == operand)
    cycles = (c for column in placed.columns for k, c in column if k == source)
    return CacheWait(start, end, max(cycles, default=0.0))


def _retiring(graph: Graph, load: int, store: int, width: float) -> float:
    """Cycles from a load to where all in front of a store behind it has retired, by their places."""
    length = len(graph.instructions)
    there: dict[tuple[int, int], float] = {}
    slots = 0.0
    for place in range(load, store):
        rounds, number = divmod(place, length)
        slots += graph.costs[number].slots
        first = graph.first[number]
        for node in range(first, first + len(graph.costs[number].columns)):
            known = [0.0] if place == load else []
            for one in graph.inputs[node] if place != load else ():
                value = graph.origin(one.node)
                since = there.get((value.node, rounds - value.distance))
                known += [since + one.cycles] if since is not None else []
            if known:
                there[node, rounds] = max(known)
    return max(slots // width, *there.values()) if there else slots // width


def longest_round(waits: Sequence[CacheWait], length: int, tail: Tail = lambda load, store: 0.0) -> float:
    """The most cycles of waits that follow each other within one round of so many instructions.

    `tail` is what passes between the load of one and the store of the next.
    """
    most = 0.0
    for first in waits:
        end = first.start + length
        inside = sorted(
            (w for wait in waits if (w := _behind(wait, first, length)).end <= end), key=lambda w: w.end
        )
        best: list[tuple[int, float]] = [(first.end, first.cycles)]
        for wait in inside:
            ways = [cycles + tail(at, wait.start) for at, cycles in best if at <= wait.start]
            if ways:
                best.append((wait.end, max(ways) + wait.cycles))
        most = max(most, *(cycles + tail(at, end) for at, cycles in best))
    return most


def _behind(wait: CacheWait, first: CacheWait, length: int) -> CacheWait:
    """The same wait in the round that begins with another."""
    rounds = 0 if wait.start >= first.start else 1
    return CacheWait(wait.start + rounds * length, wait.end + rounds * length, wait.cycles)


def loaded_stores(graph: Graph, core: LoadedStores | None) -> float:
    """Cycles of all stores of an iteration, 0 where too few of them are loaded again to make them slow.

    Updates that load what an update stored are no such loads. Where a chain leaves them time, they come too
    seldom as well.
    """
    if core is None or not graph.memory:
        return 0.0
    loads = {p.load[0] for p in graph.memory if not graph.costs[p.load[0]].stores}
    stores = sum(placed.stores for placed in graph.costs)
    often = core.share * max(stores, core.most * slowest_chain(graph))
    return stores * core.each if loads and len(loads) >= often else 0.0
