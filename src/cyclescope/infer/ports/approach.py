"""How a core's ports are found: one small protocol, whatever tells them.

Timed and counted facts are of classes of blocking instructions (`ByClasses`); a core that issues in order has
pairing rules instead (`InOrder`). What the store has decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Protocol

from cyclescope.infer.ports.builder import PortBuilder, PortUsage
from cyclescope.infer.ports.candidates import candidates
from cyclescope.infer.ports.class_questions import ClassQuestions, are_compared
from cyclescope.infer.ports.counted import CountedFacts, ports_of
from cyclescope.infer.ports.facts import PortFacts
from cyclescope.infer.ports.front_end import FrontEndFacts
from cyclescope.infer.ports.in_order import ORDER, InOrder, InOrderFacts, issues_in_order
from cyclescope.infer.ports.questions import SLOWEST
from cyclescope.infer.ports.timed import TimedFacts
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.kernel.chain import Unmeasurable
from cyclescope.measure.front_end import FETCH, WIDTH
from cyclescope.measure.plan import Planner
from cyclescope.measure.ports import ALONE, PAIRS, PORTS, SLOTS, PortPlanner, Stage
from cyclescope.measure.record import FrontEndReadings, Record
from cyclescope.measure.store import Store
from cyclescope.model.machine import MachineModel

NO_FILLER = "no stable throughput of NOP or of a move tells how many instructions fill the front end"


class Approach(Protocol):
    """What is asked of a core's ports, and what the answers tell."""

    @property
    def facts(self) -> FrontEndFacts:
        """What is known of its front end, and more."""

    @property
    def in_order(self) -> bool:
        """Whether it issues in program order."""

    @property
    def ports(self) -> PortBuilder | None:
        """What tells ports; None where a core shows none."""

    def stages(self, plans: PortPlanner, store: Store, forms: Sequence[InstructionForm]) -> Iterator[Stage]:
        """What to ask, stage by stage; the answers of one are in the store before the next begins."""

    def is_complete(self, planner: Planner) -> bool:
        """Whether all that usages rest on was asked."""

    def usage(self, form: InstructionForm, planner: Planner) -> PortUsage:
        """What is known of a form, or why nothing is."""


class ByClasses:
    """Ports from classes of blocking instructions.

    `known` is a machine that gives ports their names where they match, and nothing else.
    """

    in_order = False

    def __init__(self, facts: PortFacts, known: MachineModel | None = None) -> None:
        self.facts = facts
        self._known = known

    @cached_property
    def _builder(self) -> PortBuilder:
        return PortBuilder(self.facts, self._known)

    @property
    def ports(self) -> PortBuilder | None:
        """What tells ports; None where nothing fills the front end."""
        return self._builder if self.facts.filler else None

    def stages(self, plans: PortPlanner, store: Store, forms: Sequence[InstructionForm]) -> Iterator[Stage]:
        """Those of classes; none where nothing fills the front end."""
        table = self.facts.table
        if self.facts.filler:
            yield from ClassQuestions(plans, lambda: read_port_facts(store, table), forms).stages()

    def is_complete(self, planner: Planner) -> bool:
        """Whether the classes were compared to the end."""
        return are_compared(self.facts, planner)

    def usage(self, form: InstructionForm, planner: Planner) -> PortUsage:
        """What is known of a form, or why nothing is."""
        cycles = self.facts.throughputs.get(form.id)
        return self._builder.usage(form, cycles, self._why_none(form, planner))

    def _why_none(self, form: InstructionForm, planner: Planner) -> str:
        """Why a form has no port usage, or ""."""
        facts = self.facts
        if not facts.filler:
            return NO_FILLER
        if form.id in facts.confined:
            return ""
        try:
            planner.instances(form, 1)
        except Unmeasurable as error:
            return str(error)
        if facts.alone.get(form.id, 0.0) > SLOWEST:
            return f"two instances take {facts.alone[form.id]:.0f} cycles: too long to be hidden"
        if form.id not in facts.alone:
            return "not measured"
        if form.id not in facts.slots:
            return "its front-end slots could not be measured"
        return "no blocking instruction of its register files leaves it the registers that it needs"


def read_port_facts(store: Store, table: Table, forms: Sequence[InstructionForm] | None = None) -> PortFacts:
    """What a store tells of the ports of a core that issues out of order, of the given forms or of all."""
    throughputs, events = store.throughputs(), store.events()
    readings = _readings(store)

    def facts(records: Iterable[Record]) -> PortFacts:
        if any(map(ports_of, events)):
            return CountedFacts(table, throughputs, records, readings, events)
        return TimedFacts(table, throughputs, records, readings)

    if forms is None:
        return facts(store.records_of((ALONE, PAIRS, PORTS)))
    names = [form.id for form in forms]
    known = list(dict.fromkeys([*names, *(form.id for form in candidates(table))]))
    common = [*store.records_of((PAIRS,)), *store.records_of((ALONE,), known)]
    wanted = list(dict.fromkeys([*facts(common).typical, *names]))
    return facts([*common, *store.records_of((PORTS,), wanted)])


def read_approach(
    store: Store,
    table: Table,
    known: MachineModel | None = None,
    forms: Sequence[InstructionForm] | None = None,
) -> Approach:
    """How the ports of a store's core are found, with what it tells of the given forms or of all."""
    if not issues_in_order(store.records_of((ORDER,))):
        return ByClasses(read_port_facts(store, table, forms), known)
    names = None if forms is None else [form.id for form in forms]
    records = store.records_of((ALONE, PORTS), names)
    return InOrder(InOrderFacts(table, store.throughputs(), records, _readings(store)))


def _readings(store: Store) -> FrontEndReadings:
    return FrontEndReadings(*map(store.readings, (SLOTS, WIDTH, FETCH)))
