"""What a core loses if some of its loads are ready later than others, while loads fill its ports.

A load whose address was loaded before is ready later than others, and on some cores takes more of the
loads' ports; so do plain loads and loads of operations on memory, in turn; and vectors that are loaded
and stored together may take more than either alone. The probe `banks` found how much; the reason is not
known. Of many that wait for others no more are on their way than a core has room for: Little's law.
"""

from __future__ import annotations

from collections.abc import Sequence

from cyclescope.analyze.cost.instruction import PlacedCost
from cyclescope.analyze.depend.graph import Graph
from cyclescope.model.behaviour.late_loads import LateLoads
from cyclescope.model.behaviour.published import BesideAdditions, BesideStores


def late_loads(graph: Graph, core: LateLoads | None) -> float:
    """Cycles of one iteration's loads into general registers, 0 where they are of a kind and none is late."""
    if core is None:
        return 0.0
    loads = [n for n, placed in enumerate(graph.costs) if placed.loads_general]
    if len(loads) < 2:  # one alone is not late, nor of two kinds
        return 0.0
    chains = graph.chains
    bits = chains.late if chains is not None else 0
    late = {n for n in loads if bits >> n & 1} if chains is not None else _late(graph, set(loads))
    on_their_way = _on_their_way(graph, core, loads, late) if core.entries and late else 0.0
    early = [graph.costs[n] for n in loads if n not in late]
    operations = sum(not placed.only_loads and not placed.stores for placed in early)
    mixed = min(operations, sum(graph.costs[n].only_loads for n in loads))
    more = len(late) * core.late + mixed * core.mixed
    return max(on_their_way, len(loads) * core.each + more if more else 0.0)


def _on_their_way(graph: Graph, core: LateLoads, loads: Sequence[int], late: set[int]) -> float:
    """Cycles in which there is room for all loads of an iteration, which come one after the other."""
    chains = graph.chains
    waits = chains.waits if chains is not None else _waits(graph, set(loads))
    places = sum(number - loads[0] for number in late)
    later = places / len(graph.costs)  # of an iteration: they wait for less
    return (waits + len(loads) * core.held) / (core.entries + later)


def beside_additions(graph: Graph, core: BesideAdditions | None) -> float:
    """Cycles of the accesses of an iteration that has nothing but accesses and additions of registers.

    So it was asked; where others take slots as well, or one instruction does both, 0.
    """
    if core is None:
        return 0.0
    accesses = additions = 0
    for placed in graph.costs:
        reaches = bool(placed.form.accesses)
        plain = placed.slots == 1 and placed.work and not placed.form.vector_width
        if not plain or (reaches and not _moves(placed)):
            return 0.0
        accesses, additions = accesses + reaches, additions + (not reaches)
    return core.cycles(accesses, additions) if accesses else 0.0


def beside_stores(costs: Sequence[PlacedCost], core: Sequence[BesideStores], longer: float) -> float:
    """Cycles of one iteration's loads and stores of a size, the most of all sizes; 0 without one of both.

    Of cores that do the widest vectors by halves some lose turns of the ports that both have in common. So
    much `longer` loads take for bytes in two lines.
    """
    found = 0.0
    for one in core:
        same = [access for placed in costs for access in placed.form.accesses if access.size == one.size]
        loads, stores = sum(access.read for access in same), sum(access.write for access in same)
        if loads and stores:
            found = max(found, loads * one.load + stores * one.store + longer)
    return found


def _moves(placed: PlacedCost) -> bool:
    return placed.only_loads or (placed.stores and not placed.loads_general)


def _late(graph: Graph, loads: set[int]) -> set[int]:
    """The loads whose addresses are made of what the same iteration loads before."""
    made: set[int] = set()  # nodes that come of a load
    found: set[int] = set()
    for number, placed in enumerate(graph.costs):
        first = graph.first[number]
        for node in range(first, first + len(placed.columns)):
            from_loads = {one.source for one in graph.inputs[node] if one.node in made}
            if number in loads and any(placed.sources[k].part in ("address", "index") for k in from_loads):
                found.add(number)
            if number in loads or from_loads:
                made.add(node)
    return found


def _waits(graph: Graph, loads: set[int]) -> float:
    """Cycles that all loads wait for their addresses, if everything from outside the iteration is there."""
    ready = [0.0] * len(graph.owner)
    found = 0.0
    for number, placed in enumerate(graph.costs):
        wait = 0.0
        for node, column in enumerate(placed.columns, graph.first[number]):
            own = max([0.0, *[cycles for _, cycles in column]])
            for one in graph.inputs[node]:
                if one.node < 0:
                    continue
                if placed.sources[one.source].part in ("address", "index"):
                    wait = max(wait, ready[one.node])
                own = max(own, ready[one.node] + one.cycles)
            ready[node] = own
        found += wait if number in loads else 0.0
    return found
