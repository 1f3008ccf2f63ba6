"""Which of the chains of a pair shows its latency.

A chain may show another, slower dependency than that of the pair, so the least value of several chains is
right. But links may take a part of a cycle less beside each other than alone: where two chains agree, a
third one that does not is no better. A chain that is too short for a dependency proves that there is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from cyclescope.infer.timing.latency_system import ONE_CYCLE, LinkLatency
from cyclescope.infer.timing.overwriting import LEAST_LATENCY
from cyclescope.infer.timing.results import AGREED, HALF, LESS, MOVED, whole
from cyclescope.isa.dataflow import Pair
from cyclescope.kernel.variant import Kind
from cyclescope.measure.plan import LATENCY
from cyclescope.measure.record import ERRORS, FROM_BEST, STABLE, UNSTABLE, Record
from cyclescope.remarks.remark import Remark
from cyclescope.remarks.timing import Timing

_UNCUT = (Kind.UNBROKEN, Kind.FILLED)
Net = Callable[[Record], float]  # latency by a record, in cycles, without its links


def best_looks(records: Iterable[Record]) -> Sequence[Record]:
    """Records, with another look at a chain, of more rounds, in place of the first one if it is as good.

    Or if it found a state in which the chain is faster: disturbance makes none so.
    """
    every = list(records)
    looks = [r.look.again and r.quantity == LATENCY for r in every]
    if not any(looks):
        return every
    again = {
        msgspec.structs.replace(r, variant=r.look.first).key: r
        for r, other in zip(every, looks, strict=True) if other
    }  # fmt: skip
    found = [(again.get(r.key), r) for r, other in zip(every, looks, strict=True) if not other]
    return [
        msgspec.structs.replace(other, variant=first.variant)
        if other
        and (FROM_BEST.index(other.verdict) <= FROM_BEST.index(first.verdict) or _is_faster(other, first))
        else first
        for other, first in found
    ]


def by_pairs(records: Iterable[Record]) -> dict[tuple[str, str], list[Record]]:
    """Records by the pairs that they are of."""
    found: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        found.setdefault((record.source, record.target), []).append(record)
    return found


def is_disputed(record: Record, looks: Iterable[Record], links: Mapping[str, LinkLatency]) -> bool:
    """Whether a round of a chain that is sure, or another look at it, found that it takes longer or less than
    noise explains: the core may be in another state, and which one is met is a matter of luck. Or whether
    this is so of one of its links.
    """
    if record.links and any([key in links and links[key].disputed for key in record.links]):  # noqa: C419
        return True
    every = [record.cycles, *record.rounds]
    for look in looks:
        if _is_other_look(look, record):
            every += (look.cycles,) if look.verdict == STABLE else _found_twice(look)
    noise = max(ERRORS * record.spread, MOVED * record.count)
    return max(max(every) - record.cycles, record.cycles - min(every)) > noise


def _is_other_look(record: Record, other: Record) -> bool:
    """Whether a reading is one of the same chain; most are of others, which is told soonest."""
    if record.source != other.source or record.target != other.target:
        return False
    if record.verdict not in (STABLE, UNSTABLE) or record.quantity != LATENCY:
        return False
    return record.look.first == other.look.first


def _found_twice(record: Record) -> Sequence[float]:
    """The least and the most cycles that more than one round of a chain found whose rounds disagree."""
    ordered = sorted(record.rounds)
    return (ordered[1], ordered[-2]) if record.verdict == UNSTABLE and len(ordered) > 1 else ()


def _is_faster(other: Record, first: Record) -> bool:
    """Whether most rounds of another look found it faster: some may have found a state that is seldom."""
    less = first.cycles - ERRORS * first.spread
    seen = sum(cycles < less for cycles in other.rounds)
    return other.verdict == UNSTABLE and other.cycles < less and 2 * seen > len(other.rounds)


def preferred(every: Sequence[Record], net: Net, is_hidden: Callable[[Record], bool]) -> Record:
    """The configuration with the least latency among those that show a latency.

    A chain of the form alone is a fact, where others rest on the latencies of their links, unless one of
    these takes less by more than links lose: then the form is busy for as long as that chain takes. Not
    through memory, where each chain may find another state: a chain alone tells its own there, as far as its
    rounds agree. What rounds of others disagree about tells nothing where there is a chain that they agree
    about.
    """
    own = _of_its_own(_filled_enough(every), net)
    base = [r for r in own if r.verdict == STABLE or _is_in_another_state(r, own)] or own
    shown = [r for r in base if not is_hidden(r)]
    lawful = [r for r in base if not r.links or net(r) >= LEAST_LATENCY]
    fastest = min(lawful, key=net, default=None)
    if shown and fastest and _is_disproved(min(shown, key=net), fastest, net):
        return fastest  # what is shown takes longer than it may
    shown = _confirmed(shown, net) or shown
    alone = [r for r in shown if not r.links]
    least = min(shown or base, key=net)
    if any(r.kind is not Kind.UNBROKEN for r in alone):
        fact = min(alone, key=net)
        is_busy = net(least) < net(fact) - ONE_CYCLE - MOVED and not _is_through_memory(least)
        return least if is_busy else fact
    return _whole_one(least, shown, net) or least


def doubt(
    chosen: Record, every: Sequence[Record], net: Net, is_hidden: Callable[[Record], bool]
) -> Remark | None:
    """Why a latency is not sure that a chain shows: what another one says; or None."""
    if len(every) == 1:
        return None
    if (less := undercut(chosen, every, net)) is not None:
        return Timing.OTHERWISE.of(less)
    other = _contradiction(chosen, every, net, is_hidden)
    if other is not None:
        return Timing.BY_ANOTHER.of(other)
    state = _another_state(chosen, every, net, is_hidden)
    return None if state is None else Timing.OTHERWISE.of(state)


def _another_state(
    chosen: Record, every: Sequence[Record], net: Net, is_hidden: Callable[[Record], bool]
) -> float | None:
    """What chains show that may have met the core in another state than the chosen one with links, the least.

    They take less by more than noise moves a chain, or than half a cycle less than the whole number that is
    told of it; or with nothing cut more, by a cycle or so, where no other takes the same; or rounds of one
    disagree, and more than one of them is apart.
    """
    if not chosen.links:
        return None
    others = [r for r in _filled_enough(every) if r is not chosen and r.links and not is_hidden(r)]
    lawful = [net(r) for r in others if r.verdict == STABLE and net(r) >= LEAST_LATENCY]
    far = [value - net(chosen) for value in lawful]
    least = max(-MOVED, _cycles(chosen, net) - net(chosen) - HALF)
    found = [one for one in far if one < least]
    if all(abs(one) > MOVED for one in far):
        found += [one for one in far if HALF < one <= ONE_CYCLE + MOVED]
    for record in others:
        found += [one for end in _ends(record, net) if abs(one := end - net(chosen)) > HALF]
    return min((net(chosen) + one for one in found), default=None)


def _contradiction(
    chosen: Record, every: Sequence[Record], net: Net, is_hidden: Callable[[Record], bool]
) -> float | None:
    """What another chain that shows a latency as surely says otherwise, the least, where none says the same.

    Not of a form alone, which is a fact: what others do is another state. A chain in which nothing is cut may
    take longer, by another dependency.
    """
    others = [r for r in _filled_enough(every) if r is not chosen and not is_hidden(r)]
    others = [r for r in others if r.kind not in _UNCUT or net(r) < net(chosen) + MOVED]
    found = [nearest for r in others if (nearest := _nearest(r, net, net(chosen))) >= LEAST_LATENCY]
    told = _cycles(chosen, net)
    apart = [one for one in found if max(abs(one - net(chosen)), abs(one - told)) > HALF]
    if not chosen.links or any(abs(one - net(chosen)) <= MOVED and one not in apart for one in found):
        return None
    return min(apart, default=None)


def _nearest(record: Record, net: Net, value: float) -> float:
    """The latency by a chain, or the one nearest to a value between those that more than one round found."""
    if ends := _ends(record, net):
        return max(ends[0], min(value, ends[1]))
    return net(record) if record.verdict == STABLE else -math.inf


def _ends(record: Record, net: Net) -> list[float]:
    """The least and the greatest latency that more than one round of a chain found whose rounds disagree."""
    return [net(record) + (one - record.cycles) / record.count for one in _found_twice(record)]


def undercut(chosen: Record, every: Sequence[Record], net: Net) -> float | None:
    """What another chain of the pair shows that is as sure, and takes less by more than links lose; or None.

    The least one where there are several. Less is enough where the other one takes fewer whole cycles, or a
    chain alone takes an average: what makes it so is not in the way of the other.
    """
    sure = [r for r in _filled_enough(every) if r.verdict == STABLE and net(r) >= LEAST_LATENCY]
    cycles = _cycles(chosen, net)
    average = not chosen.links and cycles % 1 > 0
    limit = net(chosen) - (MOVED if average else ONE_CYCLE)
    return min((net(r) for r in sure if net(r) < limit or _cycles(r, net) <= cycles - 1), default=None)


def _is_disproved(least: Record, fastest: Record, net: Net) -> bool:
    """Whether a hidden chain takes less than the least that is shown: the more surely without links."""
    faster = net(fastest) < LESS * net(least)
    return faster or (not fastest.links and bool(least.links) and _cycles(fastest, net) < _cycles(least, net))


def _of_its_own(every: Sequence[Record], net: Net) -> Sequence[Record]:
    """Chains without those in which nothing is cut that take longer than the same with cuts ever did.

    What they show is another dependency of the form, such as that through the memory that it updates.
    Disturbance makes a chain longer, so that one whose rounds disagree takes no more than the slowest.
    """
    cut = [r for r in every if r.kind not in _UNCUT and (not r.links or net(r) >= LEAST_LATENCY)]
    most = min((net(r) + r.spread / r.count for r in cut), default=math.inf)
    return [r for r in every if r.kind not in _UNCUT or net(r) < most + MOVED]


def as_long_as_filled(base: Sequence[Record], longer: Record | None, net: Net) -> list[Record]:
    """Chains without a filled one that does not take as much longer as a `longer` one has more in it.

    Something else is slower than both then, whose time tells no latency: the fewer instructions stand in a
    chain, the more would be left for the form. What is cut is so in both, though.
    """
    found = list(base)
    filled = next((r for r in found if r.kind is Kind.FILLED), None)
    others = [r for r in found if r is not filled]
    return others if others and _more_than_filled(filled, longer, net) else found


def left_out(chosen: Record, base: Sequence[Record], longer: Record | None, net: Net) -> Remark | None:
    """Why a latency is not sure whose filled chain was left out because the longer one took more than it has
    in it: one of them met another state. What took less for its length told of none.
    """
    filled = next((r for r in base if r.kind is Kind.FILLED), None)
    if filled is None or filled is chosen or _more_than_filled(filled, longer, net) <= 0:
        return None
    is_apart = net(filled) >= LEAST_LATENCY and abs(net(filled) - _cycles(chosen, net)) > HALF
    return Timing.BY_ANOTHER.of(net(filled)) if is_apart else None


def _more_than_filled(filled: Record | None, longer: Record | None, net: Net) -> float:
    """Cycles that a longer chain takes more than what it has more in it; 0 where that may be noise, or all is
    cut in both.
    """
    if filled is None or longer is None or longer.verdict != STABLE:
        return 0.0
    more = net(longer) - net(filled)
    noise = max(ERRORS * math.hypot(filled.spread, longer.spread) / filled.count, MOVED)
    is_cut = max(net(filled), net(longer)) < -ONE_CYCLE
    return 0.0 if is_cut or abs(more) <= noise else more


def _filled_enough(base: Sequence[Record]) -> Sequence[Record]:
    """Chains without those filled ones that are no longer than what other dependencies take alone."""
    if Kind.FILLED not in [r.kind for r in base]:
        return base
    unbroken = [r for r in base if r.kind is Kind.UNBROKEN]
    steady = [r for r in unbroken if r.verdict == STABLE] or unbroken
    least = min((r.per_instance for r in steady), default=0.0)
    longer = [r for r in base if r.kind is not Kind.FILLED or r.per_instance > AGREED * least]
    return longer or base


def _confirmed(shown: Sequence[Record], net: Net) -> list[Record]:
    """Chains with and without other dependencies cut that take the same: none of these is what they show.

    A latency is a whole number of cycles: an average of two states that both chains meet confirms nothing, as
    another chain may meet one of them alone. A chain with more links tells nothing then, unless it takes less
    by more than links lose in a chain: what the other two wait for is the form itself then, which is busy for
    as long. Through memory it tells, too, where what is cut waits for the same store as what is not.
    """
    some = [r for r in shown if r.kind in (Kind.LINK, Kind.UNBROKEN) and r.links]
    if len({r.kind for r in some}) < 2 or any(_is_through_memory(r) for r in some):
        return []
    if all(_cycles(r, net) % 1 for r in some):
        return []
    nets = [net(r) for r in some]
    busy = min(map(net, shown)) < min(nets) - ONE_CYCLE - MOVED
    return some if max(nets) - min(nets) < MOVED and not busy else []


def _is_in_another_state(record: Record, others: Sequence[Record]) -> bool:
    return not record.links and record.verdict == UNSTABLE and any(map(_is_through_memory, others))


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
    return whole(net(record), record.per_instance, error, bool(record.links))


# --- chains that are too short for a dependency --------------------------------------------------------


def is_proof(record: Record, most: float, rounds: Sequence[float]) -> bool:
    """Whether a chain is surely too short, by the `most` that its links leave and what its rounds tell."""
    return is_too_short(record, most) and not is_one_or_none(record, most, rounds)


def is_too_short(record: Record, most: float) -> bool:
    """Whether a chain is shorter than a dependency makes it, by the `most` that its links leave.

    Where it is much shorter, links through memory may be in a state in which they take less.
    """
    return most < LEAST_LATENCY and (most > -ONE_CYCLE or not _is_through_memory(record))


def against_law(record: Record, value: float) -> Remark:
    """Why there is no value where a chain takes less than its links and a cycle."""
    if value < 0 and _is_through_memory(record):
        return Timing.BACK_SOONER.of(-value * record.count)
    return Timing.AGAINST_LAW.of(value)


def is_one_or_none(record: Record, most: float, rounds: Sequence[float]) -> bool:
    """Whether a chain that is too short for a dependency may have one all the same."""
    is_one = bool(record.links) and whole(most, math.inf) == 1  # but for the noise of links
    return is_one or most + ERRORS * _error_below(record, rounds) >= 1


def is_disproved(pair: Pair, sequences: Sequence[Record]) -> bool:
    """Whether sequences, all of whose instances read and write the same flag, take less than a chain."""
    if pair.source.part != "flag" or pair.source.flag != pair.target.flag:
        return False
    plain = [r for r in sequences if r.kind is Kind.PLAIN and r.verdict == STABLE]
    return any(r.per_instance + ERRORS * r.spread / r.count < LEAST_LATENCY for r in plain)


def _error_below(record: Record, rounds: Sequence[float]) -> float:
    """How far off a chain may be that is too short for a dependency, in cycles per instance.

    What disturbs makes chains longer, so that most rounds tell where not all of them agree.
    """
    less = [latency for latency in rounds if latency < LEAST_LATENCY]
    if record.verdict != UNSTABLE or 2 * len(less) <= len(rounds):
        return record.spread / record.count
    return (max(less) - min(less)) / ERRORS
