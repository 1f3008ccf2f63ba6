"""How a core's ports are found: one small protocol, whatever tells them.

Where micro-operations were counted, counters tell ports, else times do, both by classes of blocking
instructions; a core that issues in order has pairing rules instead (`InOrder`). What the store has decides.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple, Protocol

from cyclescope.infer.ports.builder import PortBuilder, PortUsage
from cyclescope.infer.ports.candidates import candidates, is_locked
from cyclescope.infer.ports.class_questions import ClassQuestions, are_compared, why_not_among
from cyclescope.infer.ports.classes import (
    Classes,
    backlogs_of,
    blockers_of,
    grouped_by_time,
    knees_of,
    pairs_of,
    threes_of,
)
from cyclescope.infer.ports.counted import (
    CountedEvidence,
    CountedJudge,
    Counters,
    grouped_by_counts,
    ports_of,
)
from cyclescope.infer.ports.evidence import Costs, PortFacts
from cyclescope.infer.ports.front_end import FREE, FrontEndFacts, dropped
from cyclescope.infer.ports.in_order import ORDER_OF_ISSUE, InOrder, issues_in_order
from cyclescope.infer.ports.questions import LONGEST_PAIR, longest_pair
from cyclescope.infer.ports.timed import DIVIDES, TimedEvidence, TimedJudge
from cyclescope.infer.timing.elimination import takes_no_time
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.kernel.chain import Unmeasurable
from cyclescope.kernel.variant import Kind
from cyclescope.measure.front_end import FETCH, NARROW_LOOPS, WIDTH
from cyclescope.measure.plan import Key, Planner
from cyclescope.measure.ports import ALONE, BACKLOG, PAIRS, PORTS, SLOTS, Company, PortPlanner, Stage
from cyclescope.measure.record import FrontEndReadings, Record
from cyclescope.measure.store import Store
from cyclescope.model.machine import MachineModel
from cyclescope.remarks.ports import NoPorts
from cyclescope.remarks.remark import Remark

_BY_KIND = {
    Kind.TAKEN: NoPorts.TAKEN,
    Kind.NEXT: NoPorts.TAKEN,
    Kind.NOT_TAKEN: NoPorts.NOT_TAKEN,
    Kind.COUNT: NoPorts.COUNT,
    Kind.FAST: NoPorts.VALUES,
}  # what sequences with other instructions in them are for
_OF_CLASSES = (ALONE, BACKLOG, PAIRS, PORTS)  # what is measured for ports by classes
_LONG_BY = {"serializing": NoPorts.SERIALIZING, "nontemporal": NoPorts.PAST_CACHES}


class Approach(Protocol):
    """What is asked of a core's ports, and what the answers tell: `TimedPorts`, `CountedPorts`, `InOrder`."""

    @property
    def in_order(self) -> bool:
        """Whether the core issues in program order."""

    @property
    def front_end(self) -> FrontEndFacts:
        """What is known of its front end."""

    @property
    def width(self) -> float:
        """Instructions that it takes in a cycle."""

    @property
    def ports(self) -> PortBuilder | None:
        """What tells ports; None where a core shows none."""

    def stages(
        self, plans: PortPlanner, forms: Sequence[InstructionForm], again: Callable[[], Approach]
    ) -> Iterator[Stage]:
        """What to ask, stage by stage; the answers of one are in the store before the next begins.

        `again` reads what the store tells by then.
        """

    def is_complete(self, planner: Planner) -> bool:
        """Whether all that usages rest on was asked."""

    def usage(self, form: InstructionForm, planner: Planner) -> PortUsage:
        """What is known of a form, or why nothing is."""


# --- by classes of blocking instructions --------------------------------------------------------------


class TimedPorts:
    """Ports by what blocking instructions and others take together.

    `known` is a machine that gives ports their names where they match, and nothing else. `before` is what was
    read before there were records of the forms `since`.
    """

    in_order = False

    def __init__(
        self, front_end: FrontEndFacts, known: MachineModel | None = None,
        before: Costs | None = None, since: Container[str] = (),
    ) -> None:  # fmt: skip
        self.front_end = front_end
        self._known = known
        self._before = before, since
        self.costs: Costs | None = None  # as soon as ports were asked for

    @property
    def width(self) -> float:
        """Slots of the front end in a cycle."""
        return self.front_end.width

    @cached_property
    def ports(self) -> PortBuilder | None:
        """What tells ports; None where nothing fills the front end."""
        front_end = self.front_end
        if not front_end.filler:
            return None
        blockers = blockers_of(front_end, front_end.width)  # others need slots beside them to be timed
        pairs = pairs_of(front_end.records)
        records = front_end.records
        more = knees_of(records), threes_of(records), backlogs_of(records)
        classes = Classes(front_end.table, blockers, grouped_by_time(blockers, pairs), pairs, *more)
        self.costs, self._before = Costs(classes, records, *self._before), (None, ())
        evidence = TimedEvidence(classes, front_end, self.costs)
        return PortBuilder(TimedJudge(PortFacts(front_end, evidence, records), self._known))

    def takes(self, records: Sequence[Record]) -> bool:
        """Take new records, if all are of forms beside slow ones: what these share is all that they tell.

        False where more would have to be told anew.
        """
        facts = self.ports.facts if self.ports else None
        if facts is None or not facts.are_beside_slow(records):
            return False
        facts.hear(records)
        return True

    def stages(
        self, plans: PortPlanner, forms: Sequence[InstructionForm], again: Callable[[], Approach]
    ) -> Iterator[Stage]:
        """Those of classes; none where nothing fills the front end."""
        if self.ports:
            yield from ClassQuestions(plans, lambda: _ports(again()), forms).stages()

    def is_complete(self, planner: Planner) -> bool:
        """Whether the classes were compared to the end."""
        return self.ports is None or are_compared(self.ports.facts, planner)

    def usage(self, form: InstructionForm, planner: Planner) -> PortUsage:
        """What is known of a form, or why nothing is."""
        return _usage(self.ports, form, planner)


class CountedPorts:
    """Ports by what was counted on them; `events` are the names of what the records count."""

    in_order = False

    def __init__(self, front_end: FrontEndFacts, events: Sequence[str]) -> None:
        self.front_end = front_end
        self._counters = Counters(front_end.records, events)

    @property
    def width(self) -> float:
        """Slots of the front end in a cycle."""
        return self.front_end.width

    @cached_property
    def ports(self) -> PortBuilder | None:
        """What tells ports; None where nothing fills the front end."""
        front_end = self.front_end
        if not front_end.filler:
            return None
        blockers = blockers_of(front_end, front_end.width + 1)  # they need not leave slots to others
        grouping = grouped_by_counts(front_end, blockers, self._counters.filled)
        classes = Classes(front_end.table, blockers, grouping, pairs_of(front_end.records))
        evidence = CountedEvidence(classes, self._counters)
        return PortBuilder(CountedJudge(PortFacts(front_end, evidence, front_end.records), self._counters))

    def takes(self, records: Sequence[Record]) -> bool:
        """Whether new records change nothing that was told: what was counted beside any form may."""
        return not records

    def stages(
        self, plans: PortPlanner, forms: Sequence[InstructionForm], again: Callable[[], Approach]
    ) -> Iterator[Stage]:
        """Those of classes, and of those that a form alone was counted on."""
        if self.ports:
            seen = self._counters.was_seen_on
            yield from ClassQuestions(plans, lambda: _ports(again()), forms, seen).stages()

    def is_complete(self, planner: Planner) -> bool:
        """Whether the classes were compared to the end."""
        return self.ports is None or are_compared(self.ports.facts, planner)

    def usage(self, form: InstructionForm, planner: Planner) -> PortUsage:
        """What is known of a form, or why nothing is."""
        return _usage(self.ports, form, planner)


def _ports(approach: Approach) -> PortBuilder:
    """What tells ports of a core that has some."""
    assert approach.ports is not None, "what filled the front end does no more"
    return approach.ports


def _usage(ports: PortBuilder | None, form: InstructionForm, planner: Planner) -> PortUsage:
    if ports is None:
        return PortUsage(None, None, remarks=(NoPorts.NO_FILLER.of(),))
    cycles = ports.facts.front_end.throughputs.get(form.id)
    return ports.usage(form, cycles, _why_none(ports.facts, form, planner))


def _why_none(facts: PortFacts, form: InstructionForm, planner: Planner) -> tuple[Remark, ...]:
    """Why a form has no port usage: what was missing first of all that leads to one."""
    if form.id in facts.confined:
        return ()
    front_end = facts.front_end
    plans = _plans_of(planner)
    company = plans.company(form)
    if company is not None:
        return _in_company(form, company, front_end.throughputs.get(form.id, 0.0))
    try:
        planner.uses(form, 1)
    except Unmeasurable as error:
        return (NoPorts.NO_KERNEL.of(str(error)),)
    if form.id not in front_end.alone:
        return (NoPorts.UNMEASURED.of(),)
    if is_locked(form):
        return (NoPorts.LOCKED.of(),)
    cycles = longest_pair(front_end, form)
    if cycles > LONGEST_PAIR:
        return (_long(form).of(cycles),)
    if form.id not in front_end.slots:
        return (NoPorts.NO_SLOTS.of(),)
    return (why_not_among(facts, form, plans),)


@lru_cache(maxsize=1)
def _plans_of(planner: Planner) -> PortPlanner:
    """One for all forms: it keeps the blocking sequences that it made."""
    return PortPlanner(planner)


def _in_company(form: InstructionForm, company: Company, cycles: float) -> tuple[Remark, ...]:
    """Why no blocking instructions stand among what needs other instructions beside it."""
    why = _needs(form, company)
    remark = why.of(", ".join(company.others))
    divides = why is NoPorts.VALUES and cycles > DIVIDES
    return (remark, NoPorts.UNPIPELINED.of(cycles)) if divides else (remark,)


def _needs(form: InstructionForm, company: Company) -> NoPorts:
    """What the instructions beside a form's instances are for."""
    attributes = form.attributes
    if not attributes.isdisjoint(("call", "return")):
        return NoPorts.CALLS
    if company.kind in _BY_KIND:
        return _BY_KIND[company.kind]
    if company.restores and "stack" in attributes:
        return NoPorts.STACK
    if form.x87_pops:
        return NoPorts.X87_STACK
    return NoPorts.RESTORED if company.restores else NoPorts.COMPANY


def _long(form: InstructionForm) -> NoPorts:
    """What is said of two instances that take too long."""
    found = (why for attribute, why in _LONG_BY.items() if attribute in form.attributes)
    return next(found, NoPorts.TOO_LONG)


# --- what a store has ---------------------------------------------------------------------------------


def _maybe_free(table: Table, throughputs: Mapping[str, float]) -> list[InstructionForm]:
    """Candidates for blocking that may run as often as the front end has slots, and what may be dropped."""
    known = [form for form in candidates(table) if form.id in throughputs]
    least = min((throughputs[form.id] for form in known), default=0.0)
    fastest = [form for form in known if throughputs[form.id] < FREE * least]
    return [*fastest, *(form for form in table if form.id in throughputs and dropped(form))]


class OtherEvidence(NamedTuple):
    """What ports rest on beside their own experiments: throughputs by form, and forms that take no time."""

    throughputs: dict[str, float]
    free: frozenset[str]

    @classmethod
    def of(cls, store: Store, table: Table) -> OtherEvidence:
        """That of a store."""
        throughputs = store.throughputs()
        some = _maybe_free(table, throughputs)
        return cls(throughputs, frozenset(form.id for form in some if takes_no_time(store, form)))


def _front_end_of(store: Store, table: Table, known: OtherEvidence | None = None) -> FrontEndFacts:
    """What a store tells of the front end, without port experiments."""
    throughputs, eliminated = known or OtherEvidence.of(store, table)
    readings = FrontEndReadings(*store.readings((SLOTS, WIDTH, FETCH, NARROW_LOOPS)))
    return FrontEndFacts(table, throughputs, (), readings, eliminated)


def _by_classes(
    front_end: FrontEndFacts, events: Sequence[str], known: MachineModel | None,
    before: Approach | None = None, since: Container[str] = (),
) -> TimedPorts | CountedPorts:  # fmt: skip
    if any(map(ports_of, events)):
        return CountedPorts(front_end, events)
    costs = before.costs if isinstance(before, TimedPorts) else None
    return TimedPorts(front_end, known, costs, since)


def read_approach(
    store: Store,
    table: Table,
    known: MachineModel | None = None,
    forms: Sequence[InstructionForm] | None = None,
    evidence: OtherEvidence | None = None,
) -> Approach:
    """How the ports of a store's core are found, with what it tells of the given forms or of all.

    `evidence` is what it tells beside ports, where that was read before.
    """
    front_end, events = _front_end_of(store, table, evidence), store.events()
    names = None if forms is None else list(dict.fromkeys(form.id for form in forms))

    def by_classes(records: Iterable[Record]) -> TimedPorts | CountedPorts:
        return _by_classes(front_end.among(records), events, known)

    def records(quantity: str, names: Sequence[str] | None) -> Iterator[Record]:
        return store.records_of((quantity,), names, rounds=False)

    if issues_in_order(store.records_of((ORDER_OF_ISSUE,))):
        return InOrder(front_end.among(store.records_of((ALONE, PORTS), names)))
    if names is None:
        return by_classes(store.records_of(_OF_CLASSES, rounds=False))
    every = list(dict.fromkeys([*names, *(form.id for form in candidates(table))]))
    common = [*records(BACKLOG, None), *records(PAIRS, None), *records(ALONE, every)]
    if len(names) == len(table):  # the typical ones are among them
        return by_classes([*common, *records(PORTS, names)])
    _ = front_end.counts  # once for both that share it
    ports = by_classes(common).ports
    wanted = list(dict.fromkeys([*(ports.facts.classes.typical if ports else ()), *names]))
    return by_classes([*common, *records(PORTS, wanted)])


class GrowingApproach:
    """How ports are found, again and again while a store gets answers: only what is new is read.

    `known` gives names to ports. Throughputs are in the store before it is first read.
    """

    def __init__(self, store: Store, table: Table, known: MachineModel | None = None) -> None:
        self._store, self._table, self._known = store, table, known
        self._front_end: FrontEndFacts | None = None
        self._evidence: OtherEvidence | None = None
        self._events: Sequence[str] = ()
        self._records: dict[Key, Record] = {}
        self._last = 0  # number of the last record, which one that replaces it may have, too
        self._told: TimedPorts | CountedPorts | None = None
        self._since = set[str]()  # forms with new records

    def settle_front_end(self) -> None:
        """Nothing more is measured of the front end, or of forms alone."""
        self._records, self._last, self._told = {}, 0, None
        self._front_end = self._evidence = None
        if not issues_in_order(self._store.records_of((ORDER_OF_ISSUE,))):
            self._front_end, self._events = _front_end_of(self._store, self._table), self._store.events()

    def read(self) -> Approach:
        """What the store tells by now."""
        if self._front_end is None:
            self._evidence = self._evidence or OtherEvidence.of(self._store, self._table)
            return read_approach(self._store, self._table, self._known, evidence=self._evidence)
        found = self._store.records_of(_OF_CLASSES, since=self._last, rounds=False)
        new = [record for record in found if self._records.get(record.key) != record]
        self._since |= {record.form for record in new}
        for record in new:  # one that was measured again has the place of the later one
            self._records.pop(record.key, None)
            self._records[record.key] = record
            self._last = max(self._last, record.id)
        if self._told is None or (new and not self._told.takes(new)):
            _ = self._front_end.counts  # once for all that share it
            front_end = self._front_end.among(self._records.values())
            self._told = _by_classes(front_end, self._events, self._known, self._told, self._since)
            self._since = set()
        return self._told
