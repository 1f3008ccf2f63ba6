"""What is asked to find ports: classes of blocking instructions, and forms among them.

Every stage rests on what the stages before it found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import combinations, islice, product

from cyclescope.infer.front_end.undivided import MICROCODE
from cyclescope.infer.likelihood.structure import Structure
from cyclescope.infer.ports.builder import PortBuilder, PortUsage
from cyclescope.infer.ports.candidates import domains, is_locked, memory_of, preference, stores
from cyclescope.infer.ports.classes import taken
from cyclescope.infer.ports.evidence import ClassCounts, PortFacts, is_one, waits_among
from cyclescope.infer.ports.questions import LONGEST_PAIR, made
from cyclescope.infer.ports.resources import SMALLEST_PART, hidden_units, make_ahead
from cyclescope.infer.workload import AMONG, BETWEEN, CLASSES, HIDDEN_RESOURCES, MEMORY, PORTS_AGAIN
from cyclescope.isa.form import InstructionForm
from cyclescope.measure.plan import Planner
from cyclescope.measure.ports import INSTANCES, PortPlanner, Question, Stage
from cyclescope.model.facts import HIGH
from cyclescope.remarks.ports import NoPorts
from cyclescope.remarks.remark import Remark

_LEAST = 8  # cycles of blocking
SPARE = 5  # more cycles of blocking when looking a second time, with the instances in one place
_LONGEST = 64
UNIT = 0.9, 12.0  # cycles of forms that show hidden resources


class ClassQuestions:
    """The stages that tell ports; `read` gives what the answers so far tell.

    `was_seen_on` says whether a form alone was counted on some ports: never, where nothing is counted.
    """

    def __init__(
        self,
        plans: PortPlanner,
        read: Callable[[], PortBuilder],
        forms: Sequence[InstructionForm],
        was_seen_on: Callable[[str, Iterable[int]], bool] = lambda form, ports: False,
    ) -> None:
        self.plans = plans
        self._read_ports = read
        self._forms = forms
        self._was_seen_on = was_seen_on
        self._structure: Structure | None = None
        self._usages: dict[str, PortUsage] = {}  # of forms that were not measured again since

    def _read(self) -> PortFacts:
        return self._read_ports().facts

    def stages(self) -> Iterator[Stage]:
        """Names and questions; each begins when the answers of the one before can be read."""
        asked: set[tuple[str, str, int]] = set()
        while uncompared := [pair for pair in self._read().classes.uncompared if pair not in asked]:
            asked.update(uncompared)  # some have no registers for both, and no answer
            yield CLASSES, partial(self._compared, self._read(), uncompared)
        yield BETWEEN, lambda: self._between_classes(self._read())
        told: set[ClassCounts] = set()
        while fillings := [some for some in self._read().evidence.fillings if some not in told]:
            told.update(fillings)
            yield BETWEEN, partial(self._fillings, self._read(), fillings)
        if hidden := self._read().evidence.hidden:
            yield BETWEEN, partial(self._backlogs, self._read(), hidden)
        classes = self._read()
        yield AMONG, lambda: self._against(classes, self._forms, 0)
        yield MEMORY, lambda: self._for_memory(classes)
        yield PORTS_AGAIN, self._again
        yield HIDDEN_RESOURCES, self._hidden

    def _compared(self, facts: PortFacts, pairs: Iterable[tuple[str, str, int]]) -> Iterator[Question]:
        for one, other, width in pairs:
            yield from self._pair(facts, one, other, width, width)

    def _pair(self, facts: PortFacts, one: str, other: str, first: int, second: int) -> Iterator[Question]:
        forms = facts.table[one], facts.table[other]
        for order in (0, 1):
            yield self.plans.pair(*forms, (first, second), order)

    def _between_classes(self, facts: PortFacts) -> Iterator[Question]:
        widths = facts.classes.widths
        names = sorted(widths)
        for one, other in combinations(names, 2):
            yield from self._pair(facts, one, other, widths[one], widths[other])
        for more in (0, SPARE):
            yield from self._against(facts, [facts.table[name] for name in names], more, everything=True)

    def _fillings(self, facts: PortFacts, fillings: Iterable[ClassCounts]) -> Iterator[Question]:
        """Classes that may share some of their ports, in numbers that tell how many."""
        for names, counts in fillings:
            for order in (0, 1):
                yield self.plans.filling([facts.table[name] for name in names], counts, order)

    def _backlogs(self, facts: PortFacts, pairs: Iterable[tuple[str, str]]) -> Iterator[Question]:
        """Classes of whose ports the front end hides some, by members that one register keeps waiting."""
        members, widths = facts.classes.members, facts.classes.widths
        for one, other in pairs:
            some = [[facts.table[name] for name in members[head]] for head in (one, other)]
            both = (p for p in product(*some) if self.plans.gates(p[0]) & self.plans.gates(p[1]))
            for forms in islice(both, 1):
                yield from self.plans.backlogs(forms, (widths[one], widths[other]))
                yield from self.plans.backlogs(forms[::-1], (widths[other], widths[one]))

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
        files = facts.classes.files
        wanted = {n: w for n, w in facts.classes.widths.items() if only is None or n in only}
        classes = [(facts.table[name], width) for name, width in wanted.items()]
        for form in forms if classes else ():
            mine = domains(form)
            for blocker, width in classes:
                near = everything or files[blocker.id] <= mine or _touches(facts, blocker.id, mine)
                near = near or self._was_seen_on(form.id, facts.structure.sets.get(blocker.id, ()))
                if near and (cycles := _hiding(facts, form, taken(facts.front_end, blocker.id, width))):
                    yield self.plans.against(form, blocker, width, cycles + more, more > 0, look)

    def _for_memory(self, facts: PortFacts) -> Iterator[Question]:
        """Loads and stores in a second place: what they take depends on what was accessed before them."""
        access = {name for name, files in facts.classes.files.items() if "m" in files}
        yield from self._against(
            facts, (form for form in self._forms if memory_of(form) is not None), SPARE, only=access
        )

    def _again(self) -> Iterator[Question]:
        """What the best explanation misses, as before and with more blocking; accesses that none expects.

        Where a form may cost more for the flags that it waits for, too, and nothing is certain.
        """
        builder = self._read_ports()
        facts = builder.facts
        self._structure, self._usages = facts.structure, {}
        setters = Setters(builder, self._forms)
        ahead = make_ahead(builder, (form.id for form in self._forms[len(self._forms) // 2 :]))
        for form in self._forms:
            usage = builder.usage(form, facts.front_end.throughputs.get(form.id))
            doubtful = usage.ports is not None and usage.confidence != HIGH and not usage.microcoded
            missed = builder.missed(form, usage) if doubtful else set()
            for more in (0, SPARE) if missed else ():
                yield from self._against(facts, [form], more, only=missed, look=2)
            waits = [*waits_among(facts, form)] if doubtful else []
            for head, flags in waits:
                setter, width = setters.of(flags, head), facts.classes.widths[head]
                if setter and (cycles := _hiding(facts, form, width, 1)):
                    yield self.plans.against(form, facts.table[head], width, cycles, setter=setter)
            unexpected = _unexpected(facts, form)
            for head in unexpected:
                yield from self._beside_stand_in(facts, form, head)
            if not missed and not unexpected and not waits:
                self._usages[form.id] = usage
        ahead.end()

    def _beside_stand_in(self, facts: PortFacts, form: InstructionForm, head: str) -> Iterator[Question]:
        """A form among those accesses of a class that are of another register file."""
        width, other = facts.classes.widths[head], facts.table[facts.classes.stand_ins[head]]
        if cycles := _hiding(facts, form, width):
            for more in (0, SPARE):
                yield self.plans.against(form, other, width, cycles + more, more > 0)

    def _hidden(self) -> Iterator[Question]:
        """Forms of every kind among those that run slower than their ports allow: do they share a unit?"""
        ports = self._read_ports()
        facts, throughputs, widths = (
            ports.facts,
            ports.facts.front_end.throughputs,
            ports.facts.classes.widths,
        )
        known = [form for form in self._forms if form.id in facts.confined]
        same = facts.structure == self._structure  # else the ports have other numbers
        units = hidden_units(ports, known, self._usages if same else {})
        slow = [facts.table[name] for name in units.slow if _may_block(facts, name)]
        for form in map(facts.table.__getitem__, {**units.alike, **widths}):
            for unit in slow:
                alone = throughputs[unit.id]
                cycles = _hiding(facts, form, math.ceil(facts.front_end.slots[unit.id] / alone))
                told = form.id in widths or throughputs[form.id] > SMALLEST_PART * alone
                if cycles and told and not domains(form).isdisjoint(domains(unit)):
                    count = math.ceil(cycles / alone)
                    yield self.plans.against(form, unit, 1, count)


def _unexpected(facts: PortFacts, form: InstructionForm) -> list[str]:
    """Classes of accesses that a form costs something although it accesses no memory in their way."""
    confined = facts.confined.get(form.id, {})
    return [
        head for head in facts.classes.stand_ins
        if is_one(confined.get(head, 0.0)) and not _accesses_like(form, facts.table[head])
    ]  # fmt: skip


def _accesses_like(form: InstructionForm, access: InstructionForm) -> bool:
    """Whether a form reads memory, or writes it, as an access does."""
    writes = stores(access)
    return any(op.is_memory and (op.write if writes else op.read) for op in form.operands)


def _may_block(facts: PortFacts, form: str) -> bool:
    """Whether a slow form is fast enough to stand beside others, and leaves them slots."""
    slots, cycles = facts.front_end.slots.get(form, math.inf), facts.front_end.throughputs[form]
    fast, slow = UNIT
    return slots <= MICROCODE and fast <= cycles <= slow and form not in facts.classes.widths


def _hiding(facts: PortFacts, form: InstructionForm, width: int, more: int = 0) -> int:
    """Cycles of blocking in so many slots that hide the form's own limits; 0 where that would be too many.

    `more` are slots of what stands before each instance.
    """
    front_end = facts.front_end
    alone = front_end.alone.get(form.id, math.inf)
    if is_locked(form) or alone > LONGEST_PAIR or form.id not in front_end.slots:
        return 0
    spare = front_end.width - width
    slots = (max(front_end.slots[form.id], 1.0) + more) * INSTANCES
    crowded = math.ceil(1.2 * slots / spare) + 1 if spare > 0 else 0
    escaping = min(math.ceil(1.2 * slots) + 1, _LONGEST)  # one port may have to take them all
    needed = max(_LEAST, math.ceil(1.3 * alone) + 2, crowded, escaping)
    return needed if needed <= _LONGEST else 0


def why_not_among(facts: PortFacts, form: InstructionForm, plans: PortPlanner) -> Remark:
    """Why a form whose slots are known was read among no blocking instructions."""
    mine, files = domains(form), facts.classes.files
    near = [name for name in files if files[name] <= mine or _touches(facts, name, mine)]
    if not near:
        return NoPorts.NO_CLASS.of()
    widths = facts.classes.widths
    fitting = [name for name in near if _hiding(facts, form, taken(facts.front_end, name, widths[name]))]
    if not fitting:
        return NoPorts.MANY_SLOTS.of(facts.front_end.slots[form.id], _LONGEST)
    found = plans.planner.used_registers(form, INSTANCES)
    if any(plans.beside(facts.table[name], found) is not None for name in fitting):
        return NoPorts.UNREAD.of()
    return NoPorts.NO_REGISTERS.of()


def _touches(facts: PortFacts, blocker: str, files: frozenset[str]) -> bool:
    """Whether a form of some register files may use a class's ports because they are shared.

    MMX blocking instructions are for others only where their ports are no other class's, and never for
    x87, whose stack they fill.
    """
    mine = facts.classes.files[blocker]
    if "z" in mine:  # what is shorter runs beside them as it would never without
        return "z" in files
    if len(mine) > 1 or ("x" in mine and ("s" in files or blocker not in facts.alone_with_ports)):
        return False
    return not facts.reach[blocker].isdisjoint(files)


def are_compared(facts: PortFacts, planner: Planner) -> bool:
    """Whether the classes were compared to the end, in pairs and each among each; else ports are not known.

    Some pairs leave no registers for both, and are never compared.
    """
    plans, table, widths = PortPlanner(planner), facts.table, facts.classes.widths
    names = sorted(facts.classes.compared or widths)  # what was found to be a class since, is none
    pairs = [(a, b, widths[a], widths[b]) for a, b in combinations(names, 2)]
    wanted = [(a, b, w, v) for a, b, w, v in pairs if frozenset((a, b)) not in facts.classes.pairs]
    questions = [plans.pair(table[a], table[b], (w, v), 0) for a, b, w, v in wanted]
    if facts.confined.keys() <= widths.keys():  # others come when all classes are known
        uncompared = facts.classes.uncompared
        questions += [plans.pair(table[a], table[b], (width, width), 0) for a, b, width in uncompared]
        questions += [
            plans.against(table[a], table[b], widths[b], cycles)
            for a, b in product(names, repeat=2)
            if b not in facts.confined.get(a, ())
            and (cycles := _hiding(facts, table[a], taken(facts.front_end, b, widths[b])))
        ]
    return not any(True for _ in made(questions))


class Setters:
    """Forms that set flags in one micro-operation that is known well: `forms` are those to choose from."""

    def __init__(self, builder: PortBuilder, forms: Iterable[InstructionForm]) -> None:
        self._builder = builder
        self._forms = forms

    @cached_property
    def _known(self) -> list[tuple[frozenset[int], InstructionForm]]:
        """The forms, with their ports."""
        plain = [f for f in self._forms if f.flags_written and not f.flags_read and _has_choice(f)]
        cycles = self._builder.facts.front_end.throughputs
        usages = [(self._builder.usage(form, cycles.get(form.id)), form) for form in plain]
        return [
            (frozenset(op.ports), form) for usage, form in usages if usage.confidence == HIGH
            for op in usage.operations or () if len(usage.operations or ()) == op.count * op.cycles == 1
        ]  # fmt: skip

    def of(self, flags: int, head: str) -> InstructionForm | None:
        """What sets some flags on ports that a class leaves free, if anything does."""
        ports = self._builder.structure.sets.get(head, ())
        some = [
            (not mine.isdisjoint(ports), -len(mine), preference(form), form) for mine, form in self._known
            if not flags & ~form.flags_written and not mine <= {*ports}
        ]  # fmt: skip
        return min(some, key=lambda one: one[:3])[3] if some else None


def _has_choice(form: InstructionForm) -> bool:
    """Whether a form works on registers, any of them."""
    return not any(op.is_memory or (op.is_register and op.fixed) for op in form.operands)
