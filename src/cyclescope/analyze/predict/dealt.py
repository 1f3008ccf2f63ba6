"""Ports that operations get at dispatch, and which write one result in a cycle: what is lost on them.

A port that writes one result in a cycle holds up what would write another one: where an operation that
takes longer began before, one of a chain waits for the next cycle, and the chain with it. One that takes no
longer is younger: it waits itself.
"""

from __future__ import annotations

from math import sqrt

from cyclescope.analyze.cost.instruction import PlacedCost
from cyclescope.analyze.depend.graph import Graph
from cyclescope.analyze.depend.loop_carried import loop_carried
from cyclescope.model.machine import IDEAL, Core
from cyclescope.simulate.units import Units, result_of

_Made = tuple[int, int, float]  # ports as bits, cycles to the result, how many


def meeting_results(graph: Graph, core: Core, units: Units) -> float:
    """Cycles of the slowest chain with those in which its ports write what began before; 0 if none does.

    Operations go to any of their ports as often. Each of the chain waits as often as its port writes another
    one's result, which is the less often the longer a trip takes: both together are the root of a square.
    """
    if core.writeback is None or core.binding != IDEAL:
        return 0.0
    every = sum(1 << port for port in core.writeback.ports)
    made = [_made(placed, every, units) for placed in graph.costs]
    if len({cycles for some in made for _, cycles, _ in some}) < 2:
        return 0.0
    chain = next(iter(loop_carried(graph)), None)
    if chain is None:
        return 0.0
    owners = dict.fromkeys(graph.owner[node] for node in chain.nodes)
    meet = sum(_met(one, made) for number in owners for one in made[number]) / chain.iterations
    return (chain.cycles + sqrt(chain.cycles**2 + 4 * meet)) / 2 if meet else 0.0


def _made(placed: PlacedCost, every: int, units: Units) -> list[_Made]:
    """The results that an instruction makes on these ports."""
    found = []
    for op in placed.operations:
        ports = sum(1 << port for port in set(op.ports))
        if ports and not ports & ~every and (cycles := result_of(op, placed.cost, units.results)):
            found.append((ports, cycles, op.count))
    return found


def _met(one: _Made, made: list[list[_Made]]) -> float:
    """By how many cycles of a trip an operation waits, times the cycles that the trip takes."""
    own, result, _ = one
    later = [(ports, count) for some in made for ports, cycles, count in some if cycles > result]
    return sum(
        count * (own & ports).bit_count() / (own.bit_count() * ports.bit_count()) for ports, count in later
    )
