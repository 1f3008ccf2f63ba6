"""Classes of blocking instructions: forms that use the same ports, and what two of them together take."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import product
from statistics import fmean
from typing import NamedTuple

from cyclescope.infer.likelihood.noise import Look
from cyclescope.infer.ports.candidates import (
    candidates,
    domains,
    files_of,
    is_move,
    memory_of,
    preference,
    stores,
    updates,
)
from cyclescope.infer.ports.front_end import EVEN, FREE, FrontEndFacts
from cyclescope.isa.table import Table
from cyclescope.measure.ports import BACKLOG, INSTANCES, PAIRS, beside, blocked, together
from cyclescope.measure.record import Record

_SAME = 0.05  # of the time of both one after the other: two of the same ports take no less
SHUT = 1.2  # times as long as on all ports that either of two classes has: one port of four is shut, or more
SHUT_PAIRS = 2  # pairs that take so long; one may be a wrong reading
ALIKE = 0.12  # micro-operations: looks at the same that are nearer than this differ by noise
_WHOLE = 0.25  # cycles by which what gathered may take more or less: each issues in a whole cycle
MOST_WAITING = 4  # instances under way of a form that waits for what it writes: half of the registers

Blockers = Mapping[tuple[str, int], Sequence[str]]  # candidates by register files and width, the best first
Pairs = Mapping[frozenset[str], float]
Knees = Mapping[frozenset[str], Mapping[int, float]]
Backlogs = Mapping[frozenset[str], Look]
Threes = Mapping[tuple[str, ...], Mapping[tuple[int, ...], float]]


class Grouping(NamedTuple):
    """Members of classes by representative, and pairs with their width that are still to be compared."""

    members: Mapping[str, list[str]]
    uncompared: Sequence[tuple[str, str, int]]


def blockers_of(front_end: FrontEndFacts, widest: float) -> dict[tuple[str, int], list[str]]:
    """Candidates of one slot, by register file and width, one per mnemonic, the best first.

    `widest` is what their rate has to stay below. Where no store is of one slot, those of two are candidates.
    """
    timed = [form for form in candidates(front_end.table) if form.id in front_end.throughputs]
    some = [(form, 1) for form in timed if front_end.takes(form.id, 1)]
    if not any(stores(form) for form, _ in some):
        some += [(form, 2) for form in timed if stores(form) and front_end.takes(form.id, 2)]
    best: dict[tuple[str, str, bool, int], tuple[tuple[object, ...], str]] = {}
    for form, slots in some:
        form_id = form.id
        rate = 1 / front_end.throughputs[form_id]
        width = round(rate)
        if not 1 <= width * slots < widest or abs(rate - width) > EVEN * width:
            continue
        alone = front_end.alone.get(form_id, 0.0)
        waits = alone > FREE * max(INSTANCES / rate, 1.0)  # for what it overwrites, more than it need
        if (updates(form) or waits) and front_end.alone.get(form_id, math.inf) * width > MOST_WAITING:
            continue  # its instances would wait for each other, and its rate may be that of its registers
        key = "".join(sorted(files_of(form))), form.mnemonic, stores(form), width
        choice = (slots > 1, slots > 1 and "v" in domains(form), *preference(form, waits)), form_id
        if key not in best or choice < best[key]:
            best[key] = choice
    groups: dict[tuple[str, int], list[tuple[tuple[object, ...], str]]] = {}
    for (files, _, _, width), choice in best.items():
        groups.setdefault((files, width), []).append(choice)
    return {key: [name for _, name in sorted(some)] for key, some in sorted(groups.items())}


def may_be_halves(cost: float) -> bool:
    """Whether so many micro-operations may be one for each half of a wide operation."""
    return round(cost) <= 2


def taken(front_end: FrontEndFacts, name: str, width: int) -> int:
    """Slots that so many instances of a blocking instruction take."""
    return width * max(1, round(front_end.slots.get(name, 1.0)))


def pairs_of(records: Iterable[Record]) -> dict[frozenset[str], float]:
    """Times as long as one class alone, for two forms that would each fill their ports."""
    return {pair: found[0] for pair, found in _least_ratios(records).items() if 0 in found}


def knees_of(records: Iterable[Record]) -> Knees:
    """The same for two that fill ports together, by how many instances there are in a cycle."""
    found = _least_ratios(records).items()
    knees = {pair: {count: ratio for count, ratio in some.items() if count} for pair, some in found}
    return {pair: some for pair, some in knees.items() if some}


def threes_of(records: Iterable[Record]) -> Threes:
    """Cycles of so many instances of three classes in a cycle, by the classes in their order and by these."""
    found: dict[tuple[str, ...], dict[tuple[int, ...], float]] = {}
    for r in records:
        if r.quantity == PAIRS and r.target:
            some, counts = found.setdefault((r.form, r.source, r.target), {}), beside(r.variant)
            some[counts] = min(r.cycles / blocked(r.variant), some.get(counts, math.inf))
    return found


def backlogs_of(records: Iterable[Record]) -> Backlogs:
    """Cycles that two forms take for what each of them would do in one, once they gathered.

    The error has in it by how much the two orders differ: where ports are chosen early, what is last in one
    may issue sooner than others, and later in the other.
    """
    found: dict[frozenset[str], dict[str, tuple[list[Record], list[Record]]]] = {}
    for r in records:
        if r.quantity == BACKLOG:
            orders = found.setdefault(frozenset((r.form, r.source)), {})
            orders.setdefault(r.form, ([], []))[blocked(r.variant) > 1].append(r)
    told = {pair: [_slope(*some) for some in orders.values() if all(some)] for pair, orders in found.items()}
    return {pair: _either(slopes) for pair, slopes in told.items() if slopes}


def _either(looks: Sequence[Look]) -> Look:
    """The mean of some readings of the same."""
    values = [look.value for look in looks]
    apart = (max(values) - min(values)) / 2
    return Look(fmean(values), math.hypot(apart, max(look.error for look in looks)))


def _slope(few: Sequence[Record], many: Sequence[Record]) -> Look:
    """Cycles for each instance more, times those that both forms alone do in a cycle."""
    each = min(together(r.variant) for r in few)
    counts = [fmean(together(r.variant) for r in some) / each for some in (few, many)]
    times = [fmean(r.cycles for r in some) for some in (few, many)]
    error = math.hypot(_WHOLE, *(fmean(r.spread for r in some) for some in (few, many)))
    cycles = counts[1] - counts[0]
    return Look((times[1] - times[0]) / cycles, error / cycles)


def _least_ratios(records: Iterable[Record]) -> dict[frozenset[str], dict[int, float]]:
    found: dict[frozenset[str], dict[int, float]] = {}
    for r in records:
        if r.quantity == PAIRS and not r.target:
            some, count = found.setdefault(frozenset((r.form, r.source)), {}), together(r.variant)
            some[count] = min(r.cycles / blocked(r.variant), some.get(count, math.inf))
    return found


def grouped_by_time(blockers: Blockers, pairs: Pairs) -> Grouping:
    """Classes of forms that take twice as long together as alone."""
    found: dict[str, list[str]] = {}
    missing: list[tuple[str, str, int]] = []
    for (_, width), group in blockers.items():
        heads: list[str] = []
        for name in group:
            ratios = [(head, pairs.get(frozenset((head, name)))) for head in heads]
            unknown = next((head for head, ratio in ratios if ratio is None), None)
            like = (head for head, ratio in ratios if ratio is not None and ratio > 2 * (1 - _SAME))
            head = next(like, None)
            if head is None and unknown is not None:
                missing.append((unknown, name, width))
                continue
            if head is None:
                heads.append(name)
            found.setdefault(head or name, []).append(name)
    return Grouping(found, missing)


class Classes:
    """The classes by their representatives, with the candidates that they are made of and times of pairs.

    `knees` are times of pairs that fill ports together, `threes` of three that share some, `backlogs` of
    forms that gathered before they issued.
    """

    def __init__(
        self,
        table: Table,
        blockers: Blockers,
        grouping: Grouping,
        pairs: Pairs,
        knees: Knees | None = None,
        threes: Threes | None = None,
        backlogs: Backlogs | None = None,
    ) -> None:
        self.knees, self.threes, self._backlogs = knees or {}, threes or {}, backlogs or {}
        self.table = table
        self.blockers = blockers
        self.members, self.uncompared = grouping
        self.pairs = pairs

    @cached_property
    def widths(self) -> dict[str, int]:
        """Width of each class."""
        return {
            name: width
            for (_, width), group in self.blockers.items()
            for name in group
            if name in self.members
        }

    @cached_property
    def files(self) -> dict[str, frozenset[str]]:
        """Register files of each class."""
        groups = self.blockers.items()
        return {name: frozenset(f) for (f, _), group in groups for name in group if name in self.members}

    def backlogs(self, one: str, other: str) -> list[Look]:
        """Cycles of two classes for what each would do in one, once their instances gathered."""
        mine, others = self.members[one], self.members[other]
        pairs = (frozenset(pair) for pair in product(mine, others)) if self._backlogs else ()
        return [self._backlogs[pair] for pair in pairs if pair in self._backlogs]

    def only_moves(self, name: str) -> bool:
        """Whether a class has nothing but moves between registers."""
        return all(is_move(self.table[member]) for member in self.members[name])

    @cached_property
    def compared(self) -> frozenset[str]:
        """Classes that were measured together with another one."""
        heads = self.members.keys()
        return frozenset().union(*(pair for pair in self.pairs if len(pair) > 1 and pair <= heads))

    @cached_property
    def typical(self) -> list[str]:
        """Forms by which others are judged: members of the classes, and forms that differ in width only."""
        members = {name for group in self.members.values() for name in group}
        mnemonics = {self.table[name].mnemonic for name in members}
        alike = (f.id for f in self.table if f.mnemonic in mnemonics and memory_of(f) is None)
        return sorted(members.union(alike))

    @cached_property
    def stand_ins(self) -> dict[str, str]:
        """Of classes that access memory: a member of another register file than the representative.

        A store needs its datum as well: what waits for what brings vectors to it need not wait for others.
        """
        found = {}
        for head, members in self.members.items():
            mine = domains(self.table[head])
            others = [name for name in members if domains(self.table[name]) != mine]
            if "m" in self.files[head] and others:
                found[head] = others[0]
        return found

    def differ_in_length(self, one: str, other: str) -> bool:
        """Whether one of two classes is of the widest vectors and the other of shorter ones."""
        return "z" in self.files[one] ^ self.files[other] and "v" in self.files[one] | self.files[other]

    def are_shut(self, costs: Mapping[str, Mapping[str, float]]) -> bool:
        """Whether the core shuts ports to shorter vectors while it has some of 512 bits to do.

        The two then take longer together than on any ports that both have alone. Where none were measured
        together it may. `costs` are micro-operations of a class that others are confined to, by both.
        """
        pairs = {
            pair: ratio for pair, ratio in self.pairs.items() if len(pair) > 1 and pair <= self.widths.keys()
        }
        told = [
            ratio * max(taken) / sum(taken)
            for pair, ratio in pairs.items() if self.differ_in_length(*pair)
            if (taken := [self.widths[name] * self.turns_of(name, costs) for name in pair])
        ]  # fmt: skip
        return not told or sum(times > SHUT for times in told) >= SHUT_PAIRS

    def turns_of(self, name: str, costs: Mapping[str, Mapping[str, float]]) -> int:
        """Turns of a port that an instance of a class takes: more than one where units are narrower than it.

        It costs as many to those shorter vectors that have all of its ports, however many of them there are.
        What costs none of them anything takes as many as the others of its length.
        """
        if "z" not in self.files[name]:
            return 1
        if (own := self._shown_turns(name, costs)) is not None:
            return own
        alike = (self._shown_turns(n, costs) for n, files in self.files.items() if "z" in files)
        return min((turns for turns in alike if turns is not None), default=1)

    def _shown_turns(self, name: str, costs: Mapping[str, Mapping[str, float]]) -> int | None:
        """What shorter vectors show of it; None where it costs none of them anything.

        Not those that need ports of another register file as well: these may be what limits them.
        """
        among = costs.get(name, {}).items()
        some = [v for other, v in among if self.files.get(other, frozenset()) == {"v"} and may_be_halves(v)]
        whole = [round(cost) for cost in some if abs(cost - round(cost)) < ALIKE]
        return max([1, *whole]) if max(some, default=0.0) > ALIKE else None
