"""Which of the chains of a pair tells its latency.

Every chain is as long as the slowest of what closes it, so that the least is right where something else than
the pair's own dependency may be what the others show. But links differ by a part of a cycle beside each other
from what they take alone: where two chains agree, a third one that does not is no better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from cyclescope.infer.timing.overwriting import LEAST_LATENCY
from cyclescope.infer.timing.results import whole
from cyclescope.kernel.variant import Kind
from cyclescope.measure.record import STABLE, Record

BOUND_BY_THROUGHPUT = 1.08  # a chain no longer than this times what something else takes proves nothing
_FASTER = 0.9  # times the least latency that is shown: a tenth is more than noise
_SAME = 0.4  # cycles: two chains of one dependency differ by less, as latencies are whole numbers
Net = Callable[[Record], float]  # latency by a record, in cycles, without its links


def preferred(every: Sequence[Record], net: Net, is_hidden: Callable[[Record], bool]) -> Record:
    """The configuration with the least latency among those that show a latency.

    A chain of the form alone is a fact, where others rest on the latencies of their links. What rounds
    disagree about tells nothing where there is a chain that they agree about.
    """
    base = _filled_enough([r for r in every if r.verdict == STABLE] or every)
    shown = [r for r in base if not is_hidden(r)]
    lawful = [r for r in base if not r.links or net(r) >= LEAST_LATENCY]
    fastest = min(lawful, key=net, default=None)
    if shown and fastest and net(fastest) < _FASTER * min(map(net, shown)):
        return fastest  # what is shown takes longer than it may
    shown = _confirmed(shown, net) or shown
    alone = [r for r in shown if not r.links]
    if any(r.kind is not Kind.UNBROKEN for r in alone):
        return min(alone, key=net)
    least = min(shown or base, key=net)
    return _whole_one(least, shown, net) or least


def _filled_enough(base: Sequence[Record]) -> Sequence[Record]:
    """Chains without those filled ones that are no longer than what other dependencies take alone."""
    least = min((r.per_instance for r in base if r.kind is Kind.UNBROKEN), default=0.0)
    longer = [r for r in base if r.kind is not Kind.FILLED or r.per_instance > BOUND_BY_THROUGHPUT * least]
    return longer or base


def _confirmed(shown: Sequence[Record], net: Net) -> list[Record]:
    """Chains with and without other dependencies cut that take the same: none of these is what they show.

    A chain with more links tells nothing then. Through memory it does, where what is cut waits for the same
    store as what is not.
    """
    some = [r for r in shown if r.kind in (Kind.LINK, Kind.UNBROKEN) and r.links]
    if len({r.kind for r in some}) < 2 or any(_is_through_memory(r) for r in some):
        return []
    nets = [net(r) for r in some]
    return some if max(nets) - min(nets) < _SAME else []


def _is_through_memory(record: Record) -> bool:
    return any("mem" in key or key.startswith("load.") for key in record.links)


def _whole_one(least: Record, others: Sequence[Record], net: Net) -> Record | None:
    """The chain that takes the whole number of cycles next above the least, where that is an average.

    Of two chains of the same dependency the one with an average has more than one path, or links that take a
    part of a cycle less beside each other than alone.
    """
    if not _cycles(least, net) % 1:
        return None
    above = math.ceil(net(least))
    return next((record for record in others if _cycles(record, net) == above), None)


def _cycles(record: Record, net: Net) -> float:
    """Cycles by a chain, a whole number where it is one but for noise."""
    error = record.spread / record.count if record.verdict == STABLE else 0.0
    return whole(net(record), record.cycles / record.count, error)
