"""The port step of a campaign: front-end slots, classes of blocking instructions, confinements.

Every stage reads what the stages before it wrote to the store, so that a run that was stopped goes on
where it was, and asks for the experiments that are not there yet.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from itertools import combinations, product

from cyclescope.backend.base import Backend, Effort
from cyclescope.infer.again import Disturbed
from cyclescope.infer.likelihood.structure import Structure
from cyclescope.infer.ports.builder import MICROCODED, PortBuilder, PortUsage
from cyclescope.infer.ports.candidates import domains, is_locked, memory_of
from cyclescope.infer.ports.facts import PortFacts
from cyclescope.infer.ports.in_order import LONGEST as LONGEST_PAIRED
from cyclescope.infer.ports.in_order import InOrderFacts, InOrderPorts, order_questions
from cyclescope.infer.ports.named import NamedPorts
from cyclescope.infer.ports.questions import (
    COUNTING,
    PROVING,
    SLOWEST,
    second_slot_questions,
    slot_questions,
    width_questions,
)
from cyclescope.infer.ports.resources import PART, hidden_units
from cyclescope.infer.ports.stored import read_facts
from cyclescope.infer.timing.results import HIGH
from cyclescope.infer.workload import (
    AGAIN,
    ALONE,
    AMONG,
    BETWEEN,
    CHECKED,
    CLASSES,
    DOUBTED,
    HIDDEN,
    MEMORY,
    ORDER,
    PAIRED,
    SECOND_SLOTS,
    SLOTS,
    WIDTHS,
)
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.kernel.chain import Unmeasurable
from cyclescope.measure.plan import Experiment, Key, Planner
from cyclescope.measure.ports import INSTANCES, PortPlanner, Question
from cyclescope.measure.sampling import Sampler
from cyclescope.measure.store import Store
from cyclescope.model.machine import MachineModel

CAREFUL = Effort(rounds=2, want=8, target=8000.0)
SHORT = Effort(rounds=2, want=4, target=3500.0)  # half the time of usual efforts, and as good here
THRICE = Effort(rounds=3, want=4, target=3500.0)  # neighbours disturb two rounds alike more often than three
LEAST = 8  # cycles of blocking
SPARE = 5  # more cycles of blocking when looking a second time, with the instances in one place
LONGEST = 64
NO_FILLER = "no stable throughput of NOP or of a move tells how many instructions fill the front end"
UNIT = 0.9, 12.0  # cycles of forms that show hidden resources


Stage = tuple[str, Callable[[], Iterable[Question]]]


class PortCampaign:
    """Runs port experiments on a backend and writes a store."""

    def __init__(
        self,
        table: Table,
        backend: Backend,
        store: Store,
        planner: Planner,
        tell: Callable[[str, int, int, Sampler], None] = lambda stage, done, total, sampler: None,
        again: Disturbed | None = None,
    ) -> None:
        self.table = table
        self._disturbed = again or Disturbed({})
        self.backend = backend
        self.store = store
        self.plans = PortPlanner(planner)
        self._tell = tell
        self._done: set[Key] = set()
        self._structure: Structure | None = None
        self._places: dict[str, int] = {}
        self._usages: dict[str, PortUsage] = {}  # of forms that were not measured again since

    def run(
        self, forms: Sequence[InstructionForm], blocking: Sequence[InstructionForm], deadline: float
    ) -> bool:
        """Measure forms; `blocking` are those that may become blocking instructions.

        Throughputs have to be in the store. Returns whether there was time for everything.
        """
        both = list({form.id: form for form in (*blocking, *forms)}.values())
        self._places = {form.id: number for number, form in enumerate(forms, 1)}
        if not self.run_front_end(both, deadline):
            return False
        return all(self.settle(stage, make(), deadline) for stage, make in self._stages(forms))

    def run_front_end(self, forms: Sequence[InstructionForm], deadline: float = math.inf) -> bool:
        """Measure the front end's part alone: order of issue, width, lengths of encodings, slots."""
        self._done = self.store.done().difference(self._disturbed.keys)
        return all(self.settle(stage, make(), deadline) for stage, make in self._front_end_stages(forms))

    def _front_end_stages(self, forms: Sequence[InstructionForm]) -> Iterator[Stage]:
        yield ALONE, lambda: map(self.plans.alone, forms)
        yield ORDER, lambda: order_questions(self.table, self.plans)
        yield WIDTHS, lambda: width_questions(self.table, self.plans, forms)
        facts = self.facts()
        if not facts.in_order and facts.filler:
            yield SLOTS, lambda: slot_questions(self.facts(), self.plans, forms)
            yield SECOND_SLOTS, lambda: second_slot_questions(self.facts(), self.plans, forms)

    def _stages(self, forms: Sequence[InstructionForm]) -> Iterator[Stage]:
        """Names and questions of the other stages; each begins when the one before is in the store."""
        facts = self.facts()
        if isinstance(facts, InOrderFacts):
            yield PAIRED, lambda: self._paired(facts, forms)
            return
        if not facts.filler:
            return
        asked: set[tuple[str, str, int]] = set()
        while uncompared := [pair for pair in self.facts().uncompared if pair not in asked]:
            asked.update(uncompared)  # some have no registers for both, and no answer
            yield CLASSES, partial(self._compared, uncompared)
        yield BETWEEN, lambda: self._between_classes(self.facts())
        classes = self.facts()
        yield AMONG, lambda: self._against(classes, forms, 0)
        yield MEMORY, lambda: self._for_memory(classes, forms)
        yield AGAIN, lambda: self._again(forms)
        yield HIDDEN, lambda: self._hidden(self.facts(), forms)

    def facts(self) -> PortFacts:
        """What the store tells by now."""
        return read_facts(self.store, self.table)

    def settle(self, stage: str, questions: Iterable[Question], deadline: float) -> bool:
        """Measure what a stage asks and the store does not have; whether there was time for all."""
        wanted: Iterable[Question] = (q for q in questions if q.key not in self._done)
        total = len(self._places)
        if stage != AGAIN:  # which finds out what to ask while the first answers come
            wanted = list(wanted)
            total = len(wanted)
        settled = 0
        sampler = Sampler(self.backend, _effort(stage))
        for batch in sampler.measure(_made(wanted), lambda: time.monotonic() < deadline):
            self.store.write(self._disturbed.settle(batch))
            self._done.update(experiment.key for experiment, _ in batch)
            if stage == AGAIN:
                settled = max([settled, *(self._places.get(e.form, 0) for e, _ in batch)])
            else:
                settled += len(batch)
            self._tell(stage, settled, max(settled, total), sampler)
        self.store.note_samples(sampler.counts)
        finished = time.monotonic() < deadline
        if finished and total:  # some have no kernel
            self._tell(stage, total, total, sampler)
        return finished

    # --- stages ------------------------------------------------------------------------------------

    def _paired(self, facts: InOrderFacts, forms: Iterable[InstructionForm]) -> Iterator[Question]:
        """Every form alternating with every partner."""
        for form in forms:
            short = facts.alone.get(form.id, math.inf) <= INSTANCES * LONGEST_PAIRED
            for name in facts.partners if short else ():
                yield self.plans.against(form, self.table[name], 1, INSTANCES)

    def _compared(self, pairs: Iterable[tuple[str, str, int]]) -> Iterator[Question]:
        for one, other, width in pairs:
            yield from self._pair(one, other, width, width)

    def _pair(self, one: str, other: str, first: int, second: int) -> Iterator[Question]:
        forms = self.table[one], self.table[other]
        for order in (0, 1):
            yield self.plans.pair(*forms, (first, second), order)

    def _between_classes(self, facts: PortFacts) -> Iterator[Question]:
        names = sorted(facts.widths)
        for one, other in combinations(names, 2):
            yield from self._pair(one, other, facts.widths[one], facts.widths[other])
        for more in (0, SPARE):
            yield from self._against(facts, [self.table[name] for name in names], more, everything=True)

    def _against(
        self,
        facts: PortFacts,
        forms: Iterable[InstructionForm],
        more: int,
        everything: bool = False,
        only: Container[str] | None = None,
        look: int = 1,
    ) -> Iterator[Question]:
        """Forms among the blocking instructions of the register files that they work on.

        `everything` means those of all classes, `only` some of them.
        """
        classes = [(self.table[name], width) for name, width in facts.widths.items()]
        for form in forms:
            mine = domains(form)
            for blocker, width in classes:
                near = everything or facts.files[blocker.id] <= mine or _touches(facts, blocker.id, mine)
                near = near or facts.was_seen_on(form.id, facts.structure.sets.get(blocker.id, ()))
                cycles = _hiding(facts, form, width)
                if near and cycles and (only is None or blocker.id in only):
                    yield self.plans.against(form, blocker, width, cycles + more, more > 0, look)

    def _for_memory(self, facts: PortFacts, forms: Iterable[InstructionForm]) -> Iterator[Question]:
        """Loads and stores in a second place: what they take depends on what was accessed before them."""
        access = {name for name, files in facts.files.items() if "m" in files}
        yield from self._against(
            facts, (form for form in forms if memory_of(form) is not None), SPARE, only=access
        )

    def _again(self, forms: Sequence[InstructionForm]) -> Iterator[Question]:
        """What the best explanation misses: as before, and with more blocking instructions."""
        facts = self.facts()
        builder = PortBuilder(facts)
        self._structure, self._usages = facts.structure, {}
        for form in forms:
            usage = builder.usage(form, facts.throughputs.get(form.id))
            doubtful = usage.ports is not None and usage.confidence != HIGH and not usage.microcoded
            if missed := builder.missed(form, usage) if doubtful else set():
                for more in (0, SPARE):
                    yield from self._against(facts, [form], more, only=missed, look=2)
            else:
                self._usages[form.id] = usage

    def _hidden(self, facts: PortFacts, forms: Sequence[InstructionForm]) -> Iterator[Question]:
        """Forms of every kind among those that run slower than their ports allow: do they share a unit?"""
        known = (form for form in forms if form.id in facts.confined)
        same = facts.structure == self._structure  # else the ports have other numbers
        units = hidden_units(PortBuilder(facts), known, self._usages if same else {})
        slow = [self.table[name] for name in units.slow if self._may_block(facts, name)]
        for form in map(self.table.__getitem__, {**units.alike, **facts.widths}):
            for unit in slow:
                alone = facts.throughputs[unit.id]
                cycles = _hiding(facts, form, math.ceil(facts.slots[unit.id] / alone))
                told = form.id in facts.widths or facts.throughputs[form.id] > PART * alone
                if cycles and told and not domains(form).isdisjoint(domains(unit)):
                    count = math.ceil(cycles / alone)
                    yield self.plans.against(form, unit, 1, count)

    def _may_block(self, facts: PortFacts, form: str) -> bool:
        """Whether a slow form is fast enough to stand beside others, and leaves them slots."""
        if is_locked(self.table[form]):  # what limits it is the lock
            return False
        slots = facts.slots.get(form, math.inf)
        fast, slow = UNIT
        return slots <= MICROCODED and fast <= facts.throughputs[form] <= slow and form not in facts.widths


def _hiding(facts: PortFacts, form: InstructionForm, width: int) -> int:
    """Cycles of blocking that hide the form's own limits; 0 where that would be too many."""
    alone = facts.alone.get(form.id, math.inf)
    if alone > SLOWEST or form.id not in facts.slots:
        return 0
    spare = facts.width - width
    slots = max(facts.slots[form.id], 1.0) * INSTANCES
    crowded = math.ceil(1.2 * slots / spare) + 1 if spare > 0 else 0
    escaping = min(math.ceil(1.2 * slots) + 1, LONGEST)  # one port may have to take them all
    needed = max(LEAST, math.ceil(1.3 * alone) + 2, crowded, escaping)
    return needed if needed <= LONGEST else 0


def _touches(facts: PortFacts, blocker: str, files: frozenset[str]) -> bool:
    """Whether a form of some register files may use a class's ports because they are shared.

    MMX blocking instructions are for others only where their ports are no other class's, and never for
    x87, whose stack they fill.
    """
    mine = facts.files[blocker]
    if "z" in mine:  # what is shorter runs beside them as it would never without
        return "z" in files
    if len(mine) > 1 or ("x" in mine and ("s" in files or blocker not in facts.alone_with_ports)):
        return False
    return not facts.reach[blocker].isdisjoint(files)


def _effort(stage: str) -> Effort:
    """How hard to measure: the classes are few, and all else stands on them."""
    if stage in (CLASSES, BETWEEN, DOUBTED, CHECKED):
        return CAREFUL
    if stage == WIDTHS:
        return PROVING
    if stage in (SLOTS, SECOND_SLOTS):
        return COUNTING
    return THRICE if stage == AGAIN else SHORT


def _made(questions: Iterable[Question]) -> Iterator[Experiment]:
    """The experiments, made when they are asked for: the backend measures meanwhile."""
    for question in questions:
        try:
            found = question.make()
        except Unmeasurable:
            continue
        if found is not None:
            yield found


def are_compared(facts: PortFacts, planner: Planner) -> bool:
    """Whether the classes were compared to the end, in pairs and each among each; else ports are not known.

    Some pairs leave no registers for both, and are never compared.
    """
    if facts.in_order:
        return True
    plans, table, widths = PortPlanner(planner), facts.table, facts.widths
    names = sorted(facts.compared or widths)  # what was found to be a class since, is none
    pairs = [(a, b, widths[a], widths[b]) for a, b in combinations(names, 2)]
    wanted = [(a, b, w, v) for a, b, w, v in pairs if frozenset((a, b)) not in facts.pairs]
    questions = [plans.pair(table[a], table[b], (w, v), 0) for a, b, w, v in wanted]
    if facts.confined.keys() <= widths.keys():  # others come when all classes are known
        uncompared = facts.uncompared
        questions += [plans.pair(table[a], table[b], (width, width), 0) for a, b, width in uncompared]
        questions += [
            plans.against(table[a], table[b], widths[b], cycles)
            for a, b in product(names, repeat=2)
            if b not in facts.confined.get(a, ()) and (cycles := _hiding(facts, table[a], widths[b]))
        ]
    return not any(True for _ in _made(questions))


def ports_builder(facts: PortFacts, known: MachineModel | None) -> PortBuilder:
    """What tells the ports of forms, or how they pair where a core issues in order."""
    if isinstance(facts, InOrderFacts):
        return InOrderPorts(facts)
    return NamedPorts(facts, known) if facts.filler else PortBuilder(facts)


def why_no_usage(facts: PortFacts, planner: Planner, form: InstructionForm) -> str:
    """Why a form has no port usage, or ""."""
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
