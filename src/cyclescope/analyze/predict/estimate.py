"""How many cycles a block takes by its bounds: the numbers of a prediction, without what explains them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import msgspec

from cyclescope.analyze.cost.changes import LEAST_PROVED, MOST_PROVED
from cyclescope.analyze.cost.instruction import PlacedCost
from cyclescope.analyze.cost.traits import IS_SLOW_ALONE
from cyclescope.analyze.decode.block import Block
from cyclescope.analyze.depend.graph import Graph
from cyclescope.analyze.depend.graphs import Graphs
from cyclescope.analyze.depend.loop_carried import is_carried, slowest_chain
from cyclescope.analyze.predict import bounds, effects
from cyclescope.analyze.predict.effects import EFFECTS, LINES_OF_CODE, RESOURCES, TAKEN, UNITS, Situation
from cyclescope.analyze.predict.prediction import (
    FRONT_END,
    IN_ORDER,
    LOOP_CARRIED,
    NO_BOUNDS,
    PORTS,
    PORTS_FIXED,
    SCHEDULED,
)
from cyclescope.analyze.predict.uncertainty import factors, interval
from cyclescope.analyze.predict.watched import AVERAGING
from cyclescope.model.binding import port_bound
from cyclescope.model.machine import ASSUMED, EXTRACTED
from cyclescope.once import once

_UNSURE = frozenset((*NO_BOUNDS, FRONT_END, LOOP_CARRIED, IN_ORDER, SCHEDULED, *effects.ASSUMED_EFFECTS))


@cache
def _bits(ports: tuple[int, ...]) -> int:
    return sum(1 << port for port in ports)


class BlockEstimate(msgspec.Struct, frozen=True):
    """Cycles per iteration of a block: `cycles`, `lower`, `interval` and `bottleneck` as in `Prediction`.

    `bounds` has the cycles of each bound that decides, the greatest first.
    """

    cycles: float
    lower: float
    interval: tuple[float, float]
    bottleneck: str
    bounds: dict[str, float]


class BlockBounds:
    """The bounds of one block on one machine.

    `in_order` are the simulated cycles of cores that execute in order, 0 elsewhere; `scheduled` simulates
    cores whose scheduler is known to lose ports, with `if_busy` only where these are busy; with `fixed`,
    operations are split evenly over their ports.
    `deciding` are the cycles of every bound, of which the greatest, those of the `bottleneck`, decides; of
    equal ones it is the first. `fetched` are the cycles in which the code arrives, as far as the machine is
    known to be limited by its bytes.
    """

    def __init__(
        self, block: Block, graph: Graph, graphs: Graphs, in_order: float = 0.0, fixed: bool = False,
        scheduled: Callable[[], float | None] | None = None, if_busy: bool = False,
    ) -> None:  # fmt: skip
        self.block, self.graph, self.machine = block, graph, graphs.machine
        self._graphs, self._in_order, self._fixed = graphs, in_order, fixed
        self._scheduled, self._if_busy = scheduled, if_busy
        self.costs = graph.costs
        self.loads = bounds.port_loads(self.costs)
        known = graphs.costs
        self.situation = Situation(
            block, graph, self.costs, self.machine, known.forward, known.behaviour, known.units
        )
        self.fetched = bounds.fetched(block.instructions, self.machine.core)
        self.slowest_chain, self._traits = slowest_chain(graph), graph.traits
        self._sure_front_end = self._surely_fetched()
        self.deciding = self._deciding()
        self.bottleneck = max(self.deciding, key=self.deciding.__getitem__)
        self.cycles = self.deciding[self.bottleneck]

    def estimate(self, upper: float | None = None) -> BlockEstimate:
        """The numbers alone; `upper` are the cycles of the simulated core, where it was asked."""
        ranked = dict(sorted(self.deciding.items(), key=lambda pair: -pair[1]))
        return BlockEstimate(self.cycles, self.lower, self.interval(upper), self.bottleneck, ranked)

    def _deciding(self) -> dict[str, float]:
        found = {PORTS: port_bound(self.loads)[0]}
        if self._fixed:
            found[PORTS_FIXED] = max(self.evenly, default=0.0)
        found[FRONT_END] = max(bounds.front_end(self.costs, self.machine.core), self.fetched)
        found[LOOP_CARRIED] = self.slowest_chain
        for effect in EFFECTS:
            if effect.needs and effect.needs not in self._traits:
                continue
            if cycles := effect.of(self.situation):
                found[effect.name] = cycles
        if self._in_order:
            found[IN_ORDER] = self._in_order
        if self._scheduled and (not self._if_busy or self._are_busy(found)):
            scheduled = self._scheduled() or 0.0
            if scheduled > (1 + AVERAGING) * max(found.values()):
                found[SCHEDULED] = scheduled
        return found

    def _are_busy(self, found: Mapping[str, float]) -> bool:
        """Whether a block is bound by the ports of which cycles are lost, or would be by one less of them.

        Shared resources are left out, which have what was measured of the same losses. A chain with results
        that come early waits where the port that it got at dispatch has others in front, however few.
        """
        rest = max([cycles for name, cycles in found.items() if name != RESOURCES])
        if self.machine.core.writeback and self.slowest_chain >= rest:
            early = self.situation.behaviour.early
            if any(placed.form.mnemonic in early for placed in self.costs):
                return True
        for dealt in (self.machine.core.wakeup, self.machine.core.writeback):
            if dealt is None or len(dealt.ports) < 2:
                continue
            others = ~_bits(dealt.ports)
            work = sum([cycles for ports, cycles in self.loads.items() if not ports & others])
            if work >= rest * (len(dealt.ports) - 1) * (1 - AVERAGING):
                return True
        return False

    @once
    def evenly(self) -> list[float]:
        """Cycles per port where operations are split evenly over their ports."""
        return bounds.evenly(self.loads, len(self.machine.ports))

    @once
    def by_place(self) -> tuple[float, float]:
        """The least and the most cycles by where a linker puts the code; the same where that is all one."""
        rest = max((c for name, c in self.deciding.items() if name != LINES_OF_CODE), default=0.0)
        least, most = bounds.placings(self.block, self.costs, self.situation.behaviour.lines)
        return max(rest, least), max(rest, most)

    # --- what is sure ----------------------------------------------------------------------------

    @once
    def lower(self) -> float:
        """The greatest bound without what is assumed, at most what is expected.

        That is time in memory, latencies that are ranges, a width that nobody claims, shared resources (ports
        say what is sure of them), the throughput of forms that the machine's own model does not know, and
        that of locked instructions: they wait for stores, and for less beside others than alone.
        """
        sure = [c for n, c in self.deciding.items() if n not in _UNSURE]
        rest = max(*sure, self._sure_front_end)
        if IS_SLOW_ALONE in self._traits:
            own = [one for one in self._known if not one.locked]
            rest = max([rest, *bounds.units(own, sure=True).values()])
        if self.slowest_chain > rest:  # what is proved of it is no more
            rest = max(rest, self.least_chain)
        return min(rest, self.cycles)

    @once
    def _known(self) -> list[PlacedCost]:
        return [one for one in self.costs if one.alone and self._is_known(one)]

    def _is_known(self, placed: PlacedCost) -> bool:
        """Whether the machine's own model has the throughput of a form, and not just the most that it is."""
        return not self._graphs.costs.is_borrowed(placed.form) and placed.cost.throughput is not None

    def _surely_fetched(self) -> float:
        """Cycles of the front end that are known to be needed: none of a width that is only assumed."""
        width = self.machine.width
        if width.kind == ASSUMED:
            return self.fetched
        extracted, costs = self.machine.provenance.kind == EXTRACTED, self._graphs.costs
        if extracted or costs.stand_in is not None:
            unsure = [extracted or costs.is_borrowed(placed.form) for placed in self.costs]
            slots = [bounds.sure_slots(s) if u else s.slots for s, u in zip(self.costs, unsure, strict=True)]
        else:
            slots = [placed.slots for placed in self.costs]
        return max(sum(slots) / width.slots, self.fetched)

    @once
    def least_chain(self) -> float:
        """The slowest chain with the least latencies that are proved."""
        return self._chain_with(LEAST_PROVED) if self._may_be_less else self.slowest_chain

    @once
    def _may_be_less(self) -> bool:
        return self.slowest_chain > 0 and self._graphs.may_differ(self.graph, LEAST_PROVED)

    @once
    def most_chain(self) -> float:
        """The slowest chain with the most latencies that are proved."""
        more = is_carried(self.graph) and self._graphs.may_differ(self.graph, MOST_PROVED)
        return self._chain_with(MOST_PROVED) if more else self.slowest_chain

    def _chain_with(self, ends: str) -> float:
        return slowest_chain(self._graphs.with_ends(self.graph, ends))

    def interval(self, upper: float | None = None) -> tuple[float, float]:
        """Least and most cycles; `upper` are those of the simulated core, where it was asked.

        Else those of operations that are dealt out evenly: cores choose ports before they know what is late.
        What is proved of the slowest chain is asked for only where the chain can make the least.
        """
        upper = max(self.evenly, default=0.0) if upper is None else upper
        whole, chain = self.interval_with(self.slowest_chain, upper), self.slowest_chain
        makes_it = chain * factors(self.machine.provenance.kind, LOOP_CARRIED)[0] >= whole[0]
        if not makes_it or not self._may_be_less or whole == self.interval_with(0.0, upper):
            return whole
        return self.interval_with(self.least_chain, upper)

    def interval_with(self, least_chain: float, upper: float | None = None) -> tuple[float, float]:
        """The interval if the slowest chain takes so many cycles at least."""
        sure = {
            LOOP_CARRIED: (least_chain, self.most_chain),
            FRONT_END: (self._sure_front_end, self.deciding[FRONT_END]),
            TAKEN: (0.0, self.deciding.get(TAKEN, 0.0)),  # one a cycle: nothing was asked
        }
        most = max(upper or 0.0, self.cycles)
        if IS_SLOW_ALONE in self._traits:
            most = max(most, bounds.one_unit(self.costs))
            sure[UNITS] = max(bounds.units(self._known).values(), default=0.0), self.deciding[UNITS]
        return interval(self.machine.provenance.kind, self.deciding, sure, self.lower, most)
