"""Port usage of a form from how much it slows blocking instructions down: the likeliest explanation.

Among blocking instructions that fill the ports of a class, a form costs as many port cycles as it has
micro-operations that can go nowhere else. Every multiset of micro-operations says what all readings should
be; how likely they are with it, and it is before any reading, makes its odds. Few sets of ports and few
micro-operations are tried. Counts follow uops.info's Algorithm 1 (Abel and Reineke 2019), solved jointly.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import NamedTuple

import msgspec

from cyclescope.infer.likelihood.arrays import Array, Counts, np
from cyclescope.infer.likelihood.expected import Expected, begun, joined
from cyclescope.infer.likelihood.explaining import UsageCandidate, multisets, operations_of
from cyclescope.infer.likelihood.noise import MOST_TRIED, Look, Scatter, tail_of
from cyclescope.infer.likelihood.readings import Asked, Unrelated, nats_of, unrelated_of
from cyclescope.model.machine import Operation
from cyclescope.model.ports import port_throughput

Ports = tuple[int, ...]

# What is believed before any reading, in nats against.
EACH = 1.2  # a micro-operation more: of forms in tables of counters, one in three has the next higher number
BEYOND = 5.0  # a micro-operation more than slots bring: of those tables, one form in a hundred and fifty
UNCOMMON = 2.0  # a set of ports that is no class by itself: one in seven kinds of micro-operations
UNPAIRED = 3.0  # one turn of a port where all like it take two of the same: one in twenty
UNEXPLAINED = 2.5  # to be slower than its ports allow: one form in twelve waits for something else
IDLE = 1.0  # a slot without a micro-operation: one in three is for ports that no experiment shows
ACCESS = 5.0  # to access memory without the micro-operation for it: one form in a hundred and fifty
LATE = 3.0  # a result that comes later than those of others of its ports: one form in twenty
LATE_TURNS = 2.0  # of a port that such a form costs others: its own, and that of what would come with it
UNTRIED = 3.0  # something else than more micro-operations than can be tried: one form in twenty
UNRELATED = 6.0  # no micro-operations at all, but something that holds ports: one form in four hundred
REFUTED = 20.0  # faster than the ports let it: only where the throughput itself is wrong
SLOWER = 0.15  # of the measured reciprocal throughput: ports that allow as much less are not the limit
_TOO_FAST = 0.05  # of the measured reciprocal throughput: ports that need as much longer are refuted
_ROUNDING = 0.005  # cycles by which a throughput may be off besides
KEPT, _WORTH = 12, 12.0  # candidates of a group, and nats by which they are worse than its best at most
NEGLIGIBLE = 8.0  # nats: less likely explanations have no share of the odds, one in three thousand
_WHOLE = 0.25  # micro-operations: of many each class costs a whole number, within so much
_COUNTED = 0.1  # micro-operations by which a count of all is off


def most_needed(throughput: float) -> float:
    """Cycles that the ports of a form may need that was measured to take so many."""
    return (1 + _TOO_FAST) * throughput + _ROUNDING


def are_no_limit(cycles: float, throughput: float) -> bool:
    """Whether what needs so many cycles is not why a form takes those that were measured."""
    return cycles < (1 - SLOWER) * throughput


class Weighed(NamedTuple):
    """Nats of readings with every explanation, on time or with late results, and without any."""

    on_time: Array
    late: Array
    unrelated: Unrelated


class UsageSolver:
    """Explains readings on one group of ports that no class leads out of.

    `blockers` are the classes' ports; `sets` the ports that a micro-operation may have. `usual` is what
    forms of each class cost among the blocking instructions of the others, in micro-operations: more than
    the ports explain where a core chooses among them unevenly. `counts` says whether micro-operations
    beyond the slots speak against an explanation: those for memory come in the slots of others. `full` are
    the classes that nearly fill the front end. `together` is what is usual of readings whose instances stand
    in one place, where that is known to be something else. `crowded` are the classes whose ports lose a
    turn to results that come later than theirs, `late` those with such results. Where so many `instances`
    may take whole cycles together, a part of one may be read as one; 0 where they do not. `tried` are the
    turns of a port that a micro-operation takes as a rule.
    """

    def __init__(
        self,
        blockers: Mapping[str, Ports],
        sets: Sequence[Ports],
        usual: Mapping[str, Mapping[str, float]] | None = None,
        noise: Scatter | None = None,
        counts: bool = True,
        full: Container[str] = (),
        together: Mapping[str, Mapping[str, float]] | None = None,
        crowded: Collection[str] = (),
        late: Container[str] = (),
        instances: int = 0,
        tried: int = 1,
    ) -> None:
        told = blockers, sets, usual, noise, counts, full, together, crowded, late, instances
        self._by_turns = cache(partial(UsageSolver, *told))
        self._pairing, self._operations = cache(self._made_pairing), cache(self._made_operations)
        self._tried = tried
        self.crowded, self.late, self.instances = crowded, late, instances
        self.blockers = dict(blockers)
        self.sets = list(sets)
        self.noise = noise or Scatter()
        self.counts = counts
        self.full = full
        self.usual = {ports: (usual or {}).get(name, {}) for name, ports in self.blockers.items()}
        self.together = {ports: (together or {}).get(name, {}) for name, ports in self.blockers.items()}

    def candidates(
        self,
        looks: Mapping[str, Sequence[Look]],
        throughput: float,
        slots: float,
        total: float | None = None,
        per_slot: int = 1,
        beside: Mapping[str, float] | None = None,
        accesses: int = 0,
        weighed: Weighed | None = None,
    ) -> list[UsageCandidate]:
        """The likeliest explanations of the readings, the best first.

        `throughput` is the measured reciprocal throughput in cycles, infinite if unknown; `slots` the
        turns of ports that the front-end slots let expect, `per_slot` of them for each, which one
        micro-operation takes of one port; `total` all micro-operations on these ports where they were
        counted; `beside` what micro-operations for other ports cost each class as a rule; `accesses` the
        micro-operations that accesses to memory let expect, whatever slots bring; `weighed` is what
        `weighed` says of the readings, where it was asked before.
        """
        lowest = {name: min(look.value for look in some) for name, some in looks.items()}
        turns = per_slot if total is None else 1  # of a micro-operation: counters tell how many there are
        least = max((*lowest.values(), total or 0.0), default=0.0)
        limit = self._tried * MOST_TRIED + 0.5
        if turns > self._tried and max(least, slots) > limit:
            wider = self._by_turns(turns)
            return wider.candidates(looks, throughput, slots, total, per_slot, beside, accesses)
        if least > limit:
            return self._many(lowest, throughput, slots, total, turns)
        told = weighed or self.weighed([(looks, beside or {})])[0]
        on_time, late = told.on_time, told.late
        nats = self._prior + np.minimum(on_time, late) + self._pairing(turns)
        if total is None:
            if self.counts or accesses:
                nats = nats + BEYOND * np.maximum(0.0, self._number - max(1.0, slots, accesses))
        else:
            nats = nats + 0.5 * ((total - self._number) / _COUNTED) ** 2
        nats = nats + REFUTED * (self.throughputs > most_needed(throughput))
        found = [
            self._candidate(place, nats, lowest, beside or {}, bool(late[place] < on_time[place]), turns)
            for place in self._best(nats)
        ]
        held = max(lowest.values(), default=0.0)
        other = UNRELATED + told.unrelated.nats(slots if total is None else math.inf)
        return sorted([*found, UsageCandidate(None, other, held)], key=lambda one: one.nats)

    # --- explanations ------------------------------------------------------------------------------

    @cached_property
    def _multisets(self) -> Counts:
        """Turns of each set that every explanation has, the simplest first."""
        return multisets(len(self.sets), self._tried)

    @cached_property
    def _number(self) -> Counts:
        return np.asarray(self._multisets.sum(axis=1))

    @cached_property
    def _prior(self) -> Array:
        shared = np.array([ports not in self.blockers.values() for ports in self.sets], dtype=float)
        return np.asarray(EACH * self._number + UNCOMMON * ((self._multisets > 0) @ shared), dtype=np.float64)

    def _made_pairing(self, turns: int) -> Array | float:
        """Nats where a micro-operation takes so many turns of one port: a turn alone is another, and rare."""
        if turns == 1:
            return 0.0
        alone = (self._multisets % turns).sum(axis=1)
        return np.asarray(UNPAIRED * alone - EACH * (self._number - alone) * (1 - 1 / turns))

    @cached_property
    def throughputs(self) -> Array:
        """Cycles that the ports of every explanation need: those of the fullest union of sets."""
        unions = {frozenset[int]()}
        for ports in self.sets:
            unions |= {union | set(ports) for union in unions}
        found = np.zeros(len(self._multisets))
        for union in unions - {frozenset()}:
            inside = np.array([union.issuperset(ports) for ports in self.sets], dtype=float)
            found = np.maximum(found, self._multisets @ inside / len(union))
        return found

    @cached_property
    def _expected(self) -> Expected:
        """What explanations cost every class."""
        return self._costs(False)

    @cached_property
    def _expected_late(self) -> Expected:
        """The same where every micro-operation may cost crowded classes more turns than its own."""
        return self._costs(True)

    @cached_property
    def _expected_both(self) -> Expected:
        return joined(self._expected, self._expected_late)

    def _costs(self, late: bool) -> Expected:
        """What explanations cost classes, whose own results may be as late."""
        names, least, usual, tail, owners, places = list(self.blockers), [], [], [], [], []
        together, at_once = [], []
        start = 0
        for number, (name, wide) in enumerate(self.blockers.items()):
            inside = np.array([set(one) <= set(wide) for one in self.sets], dtype=float)
            touch = np.array(
                [one != wide and not set(one).isdisjoint(wide) for one in self.sets], dtype=float
            )
            rule = np.array([self.usual.get(one, {}).get(name, 0.0) for one in self.sets])
            turns = LATE_TURNS if late and name in self.crowded and name not in self.late else 1.0
            rule = np.maximum(turns * inside, rule)
            apart = np.array([self.together.get(one, {}).get(name, 0.0) for one in self.sets])
            rows = [self._multisets @ some for some in (inside, rule, np.maximum(rule, apart), touch)]
            if self.instances:
                rows[1:3] = [np.maximum(row, begun(rows[0], self.instances, len(wide))) for row in rows[1:3]]
            tails = np.where(rows[3] > 0, tail_of(True, name in self.full), tail_of(False, name in self.full))
            rows[3] = rows[0] + self._spread_over(wide)
            kinds, where = np.unique(np.stack([*rows, tails]), axis=1, return_inverse=True)
            least.append(kinds[0])
            usual.append(kinds[1])
            together.append(kinds[2])
            at_once.append(kinds[3])
            tail.append(kinds[4].astype(np.intp))
            owners.append(np.full(kinds.shape[1], number))
            places.append(start + where.reshape(-1))
            start += kinds.shape[1]
        return Expected(
            tuple(names), np.concatenate(least), np.concatenate(usual), np.concatenate(together),
            np.concatenate(at_once), np.concatenate(tail), np.concatenate(owners), np.stack(places),
        )  # fmt: skip

    def _spread_over(self, wide: Ports) -> Array:
        """Micro-operations of every explanation that may go elsewhere, and yet take ports of a class.

        Where several are ready at once, and older than what waits for these ports, each port gets some.
        """
        inside = np.array([len({*one} & {*wide}) / len(one) for one in self.sets])
        partly = np.where(inside < 1, inside, 0.0)
        return np.where(self._number > 1, np.ceil(self._multisets @ partly - _ROUNDING), 0.0)

    # --- how likely they are -----------------------------------------------------------------------

    def weighed(self, asked: Sequence[Asked]) -> list[Weighed]:
        """The readings of forms with every explanation.

        A micro-operation of a class whose results come late is as seldom on time as others are late.
        """
        widths = {name: len(ports) for name, ports in self.blockers.items()}
        others = unrelated_of(self.noise, widths, [looks for looks, _ in asked])
        half = len(self._multisets)
        if not self.crowded:
            never, alone = np.full(half, np.inf), nats_of(self.noise, self._expected, asked)
            return [Weighed(one, never, other) for one, other in zip(alone, others, strict=True)]
        both = [one + self._seldom for one in nats_of(self.noise, self._expected_both, asked)]
        return [Weighed(one[:half], one[half:], other) for one, other in zip(both, others, strict=True)]

    @cached_property
    def _seldom(self) -> Array:
        """Nats against every explanation on time, then against each where its results come late.

        Late is what has one micro-operation in all, for ports that only classes with late results have.
        """
        others = {some for name, some in self.blockers.items() if name not in self.late}
        only = [one in self.blockers.values() and one not in others for one in self.sets]
        alone = (self._multisets @ np.array(only, dtype=float) == 1) & (self._number == 1)
        return np.asarray(LATE * np.concatenate((alone, ~alone)), dtype=np.float64)

    def _best(self, nats: Array) -> list[int]:
        near = np.flatnonzero(nats <= nats.min() + _WORTH)  # to sort all takes longer than all the rest
        best: list[int] = near[np.argsort(nats[near], kind="stable")[:KEPT]].tolist()
        return best

    def _candidate(
        self,
        place: int,
        nats: Array,
        lowest: Mapping[str, float],
        beside: Mapping[str, float],
        late: bool,
        turns: int,
    ) -> UsageCandidate:
        missed = 0.0
        for name, least, usual in (self._expected_late if late else self._expected).costs(place):
            if name in lowest:
                missed = max(missed, least - lowest[name], lowest[name] - (usual + beside.get(name, 0.0)))
        return UsageCandidate(self._operations(place, turns), float(nats[place]), missed, late)

    def _made_operations(self, place: int, turns: int) -> tuple[Operation, ...]:
        counts = zip(self.sets, map(int, self._multisets[place]), strict=True)
        return tuple(one for ports, count in counts for one in operations_of(ports, count, turns))

    def _many(
        self, lowest: Mapping[str, float], throughput: float, slots: float, total: float | None, turns: int
    ) -> list[UsageCandidate]:
        """More micro-operations than can be tried: what smaller sets of ports leave to larger ones.

        Exact as long as every micro-operation may use the ports of a class, which only counts prove.
        """
        counts: dict[Ports, int] = {}
        missed = 0.0
        for name in sorted(lowest, key=lambda name: (len(self.blockers[name]), self.blockers[name])):
            ports = self.blockers[name]
            left = lowest[name] - sum(n for some, n in counts.items() if set(some) <= set(ports))
            missed = max(missed, abs(left - max(round(left), 0)))
            counts[ports] = counts.get(ports, 0) + max(round(left), 0)
        number = sum(counts.values())
        missed = missed if total is None else max(missed, abs(total - number))
        operations = tuple(
            one for ports, count in counts.items() for one in operations_of(ports, count, turns)
        )
        fits = missed <= _WHOLE and port_throughput(operations) <= most_needed(throughput)
        beyond = BEYOND * max(0.0, number - max(1.0, slots)) if total is None and self.counts else 0.0
        alone = UNPAIRED * sum(count % turns for count in counts.values())
        some = [UsageCandidate(operations, beyond + alone, missed)] if fits else []
        if total is None or not fits:
            some.append(UsageCandidate(None, UNTRIED, max(lowest.values(), default=0.0)))
        return sorted(some, key=lambda one: one.nats)


class Explanation(msgspec.Struct, frozen=True):
    """What explains the readings of all groups of ports: a candidate of each, and its share of the odds."""

    parts: tuple[UsageCandidate, ...]
    share: float

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The micro-operations of all parts that have any."""
        return tuple(op for part in self.parts for op in part.operations or ())

    @property
    def complete(self) -> bool:
        """Whether every part is explained by micro-operations."""
        return all(part.operations is not None for part in self.parts)

    @property
    def late(self) -> bool:
        """Whether results come later than those of others of the same ports."""
        return any(part.late for part in self.parts)

    @property
    def missed(self) -> float:
        """By how many micro-operations a class is missed at most."""
        return max((part.missed for part in self.parts), default=0.0)


class Told(msgspec.Struct, frozen=True):
    """What else is known of a form: cycles of its reciprocal throughput, and its slots, None if not told.

    `accesses` says whether it accesses memory that blocking instructions are for, with the ports for that.
    """

    throughput: float
    slots: float | None = None
    accesses: bool = False
    memory: frozenset[int] = frozenset()


def explanations(groups: Sequence[Sequence[UsageCandidate]], told: Told) -> list[Explanation]:
    """Explanations of all groups together, the likeliest first, with their posterior probabilities."""
    joined: list[tuple[float, tuple[UsageCandidate, ...]]] = [(0.0, ())]
    for candidates in groups:
        joined = [(nats + one.nats, (*parts, one)) for nats, parts in joined for one in candidates]
        joined = sorted(joined, key=lambda item: item[0])[: KEPT * KEPT]
    scored: list[tuple[float, int, tuple[UsageCandidate, ...]]] = []
    best = math.inf
    for place, (nats, parts) in enumerate(joined):
        if nats > best + NEGLIGIBLE:  # what is added makes no explanation likelier
            break
        scored.append((nats + _together(parts, told), place, parts))
        best = min(best, scored[-1][0])
    scored.sort(key=lambda item: item[:2])
    weights = [math.exp(scored[0][0] - nats) for nats, _, _ in scored]
    whole = math.fsum(weights)
    return [Explanation(parts, weight / whole) for weight, (_, _, parts) in zip(weights, scored, strict=True)]


def _together(parts: Sequence[UsageCandidate], told: Told) -> float:
    """Nats against candidates of all groups that none of them shows alone."""
    if any(part.operations is None for part in parts):
        return 0.0
    known = [op for part in parts for op in part.operations or ()]
    turns = LATE_TURNS if any(part.late for part in parts) else 1.0
    slow = told.throughput < math.inf and are_no_limit(turns * port_throughput(known), told.throughput)
    idle = max(0.0, (told.slots or 0.0) - sum(op.count for op in known))
    access = any(told.memory.issuperset(op.ports) for op in known)
    return UNEXPLAINED * slow + IDLE * idle + ACCESS * (access != told.accesses and bool(told.memory))
