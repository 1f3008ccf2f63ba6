"""Facts of port experiments by time alone: what forms cost blocking instructions tells their ports."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations

from cyclescope.infer.likelihood.evidence import (
    FULL,
    Class,
    ClassPair,
    are_seen_to_share,
    count_of,
    evidence_of,
    filling,
    is_hidden,
    keeps_twice,
    sides_of,
)
from cyclescope.infer.likelihood.noise import MOST_TRIED, Look
from cyclescope.infer.likelihood.odds import sureness
from cyclescope.infer.likelihood.structure import Structure, solve_structure
from cyclescope.infer.likelihood.threes import evidence_of_threes, told_by_three
from cyclescope.infer.likelihood.unions import UnionEvidence
from cyclescope.infer.likelihood.usage import LATE_TURNS, Explanation, Told, explanations
from cyclescope.infer.ports.builder import may_have_fewer, runs_slower, unseen_access
from cyclescope.infer.ports.candidates import (
    domains,
    flags_by_mnemonic,
    is_called_move,
    memory_of,
    stores,
    updates,
)
from cyclescope.infer.ports.classes import Classes, taken
from cyclescope.infer.ports.evidence import SHOWN_BY, ClassCounts, Costs, PortFacts, lowest
from cyclescope.infer.ports.front_end import FrontEndFacts, dropped
from cyclescope.infer.ports.groups import PortGroups, ReadingsAhead, learned_scatter
from cyclescope.infer.ports.naming import named
from cyclescope.isa.form import InstructionForm
from cyclescope.model.behaviour.nops import is_nop
from cyclescope.model.facts import LOW, MEDIUM
from cyclescope.model.machine import MachineModel, Operation
from cyclescope.remarks.ports import Named, NoClass, Usage
from cyclescope.remarks.remark import NOTHING, Remark

_APART = 0.06  # of the time alone: disjoint ports
PAIR_ERROR = 0.02  # of the time alone, by which that of a pair is off
DIVIDES = 2.5  # cycles: units that are not pipelined take more, limits of transfers and of ports less
_SIDES = {"r": "r", "m": "m"}  # the other register files are those of vectors
_ORDER = "rvzfpm"  # of register files, by whose classes ports are numbered


class TimedEvidence:
    """What port experiments tell by the time that blocking instructions and others take."""

    def __init__(self, classes: Classes, front_end: FrontEndFacts, costs: Costs) -> None:
        self.table, self.classes = classes.table, classes
        self.width = front_end.width
        self._front_end, self._throughputs = front_end, front_end.throughputs
        self._costs = costs

    # --- confinement -------------------------------------------------------------------------------

    def readings(self, form: str) -> Mapping[str, Sequence[Look]]:
        """Readings of a form in micro-operations that are confined to a class, by representative."""
        return self._costs.looks.get(form, {})

    def looks(self, form: str) -> Mapping[str, Sequence[Look]]:
        """The readings that tell ports: not those of the widest vectors among others where ports are shut.

        Nor those of blocking instructions that wait for flags.
        """
        found = {n: some for n, some in self.readings(form).items() if not self._waits(form, n, some)}
        if not self.shuts or "z" not in domains(self.table[form]) or not self._has_widest:
            return found
        return {name: some for name, some in found.items() if "v" not in self.classes.files[name]}

    @cached_property
    def shuts(self) -> bool:
        """Whether the core shuts ports to shorter vectors while it has some of the widest to do."""
        return self.classes.are_shut(self.confined)

    def _waits(self, form: str, head: str, looks: Sequence[Look]) -> bool:
        """Whether a form costs a class that reads its flags more than micro-operations would."""
        reads = self.table[head].flags_read if round(min(one.value for one in looks)) > MOST_TRIED else 0
        return bool(reads and reads & flags_by_mnemonic(self.table)[self.table[form].mnemonic])

    @cached_property
    def _has_widest(self) -> bool:
        """Whether vectors of 512 bits have classes of their own."""
        return any("z" in self.classes.files[name] for name in self.structure.sets)

    @property
    def confined(self) -> dict[str, dict[str, float]]:
        """Micro-operations of a form that are confined to a class, by form and representative."""
        return self._costs.confined

    @cached_property
    def kept(self) -> frozenset[str]:
        """Classes that keep each of their ports for two turns or more."""
        return frozenset(name for name in self.classes.members if self._is_kept(name))

    def _is_kept(self, name: str) -> bool:
        if "z" not in (files := self.classes.files)[name]:
            return self._costs.takes_turns(name, self._front_end.slots)
        plain = [o for o in files if len(files[o]) == 1 and "z" not in files[o] and self._tells(name, o)]
        near = [self._class(o) for o in plain if self._is_sound(o)]
        return keeps_twice([self._pair(self._class(name), other) for other in near], self.width)

    @cached_property
    def units(self) -> dict[str, Remark]:
        """Classes that are not sets of ports, with the reason: hidden resources."""
        return {name: reason for name in self.classes.members if (reason := self._is_no_blocker(name))}

    def _is_no_blocker(self, name: str) -> Remark:
        """Why the forms of a class are not single micro-operations that keep ports busy, or nothing."""
        if len(self.classes.files[name]) > 1:
            return NoClass.TWO_FILES.of()
        if self.classes.compared and name not in self.classes.compared:
            return NoClass.NOT_COMPARED.of()
        if not self._is_sound(name):
            return NoClass.UNSOUND.of()
        plain = [o for o in self.classes.members if len(self.classes.files[o]) == 1]
        sound = [o for o in plain if self._is_sound(o) and self._tells(name, o)]
        near = [o for o in sound if self.classes.widths[o] <= FULL * self.width]
        around = [o for o in near if self._needs(name, o)]
        more = name in self.kept or self.classes.turns_of(name, self.confined) > 1
        several = more or any(self._taken(name, other) > 1 for other in around if other != name)
        if several or any(self._apart(*pair) for pair in combinations(around, 2)):
            return NoClass.SEVERAL.of()
        if self._fills_the_front_end(name, sound):
            return NoClass.FILLS_THE_FRONT_END.of()
        if self._may_be_renaming(name, sound):
            return NoClass.RENAMING.of()
        return NOTHING

    def _may_be_renaming(self, name: str, others: Sequence[str]) -> bool:
        """Whether a class may be limited by how many instructions of its files are renamed in a cycle.

        No core has ports for moves alone: where nothing else runs as often, no port is what moves run out of,
        unless instructions that are renamed apart from them are in their way.
        """
        mine = self._class(name)
        apart = [
            o
            for o in map(self._class, others)
            if mine.sides.isdisjoint(o.sides) and self._tells(name, o.name)
        ]
        shown = [self._pair(mine, o) for o in apart if mine.width + o.width <= self.width]
        if are_seen_to_share(shown, self.width):
            return False
        beside = [o for o in others if o != name and self._class(o).sides == mine.sides]
        wide = [o for o in beside if self.classes.widths[o] >= mine.width]
        return bool(beside) and self.classes.only_moves(name) and all(map(self.classes.only_moves, wide))

    def _fills_the_front_end(self, name: str, others: Sequence[str]) -> bool:
        """Whether what limits a class may be renaming: nearly as many as the front end has slots run.

        Of instructions that need no port, as moves that are eliminated, some cores rename a little less.
        """
        if self.classes.widths[name] <= FULL * self.width:
            return False
        mine = self._class(name)
        near = [self._class(o) for o in others if o != name and self.classes.widths[o] <= FULL * self.width]
        near = [other for other in near if other.sides == mine.sides]
        return bool(near) and not are_seen_to_share([self._pair(mine, o) for o in near], self.width)

    def _is_sound(self, name: str) -> bool:
        """Whether more instances of a class take as much longer as one micro-operation each.

        Stores may take longer: they leave in pairs only if they go to the same cache line.
        """
        count = self._taken(name, name, 1)
        return count == 1 or (count > 1 and "m" in self.classes.files[name])

    def _taken(self, name: str, other: str, default: int = 0) -> int:
        """The likeliest number of micro-operations that a form of a class costs another."""
        looks = self.readings(name).get(other)
        return count_of(lowest(looks), self.classes.widths[other] > FULL * self.width) if looks else default

    def _needs(self, name: str, other: str) -> bool:
        """Whether a form of a class needs the ports of another for what it costs it.

        Not where the two fill these ports together sooner than that would let them: a Zen 3 chooses ports
        before it knows which will be free, and puts some multiplications where additions are; a late result
        may keep others of its port from it, as two additions on a Zen 5, and three beside six no more than
        one each.
        """
        count = self._taken(name, other)
        filled = 1 + count * self.classes.widths[name] / self.classes.widths[other]
        together = self.classes.pairs.get(frozenset((name, other)), math.inf)
        return count > 0 and together > filled * (1 - _APART)

    @cached_property
    def crowded(self) -> frozenset[str]:
        """Classes whose ports lose a turn to results that come later than theirs.

        What runs as often as the ports of a class let it has one micro-operation for them. Where some such
        forms cost the class two, the second is the turn of one whose result would come with theirs; so it is
        where they cost a class two that has all of these ports and others. What costs it more keeps it
        waiting for something else: conditional moves wait thirty turns for the flags of a shift by 0 on a
        Zen 3.
        """
        typical, sets = self.classes.typical, self.structure.sets
        found = {head: sum(self._costs_a_turn_more(form, head) for form in typical) for head in sets}
        return frozenset(head for head, forms in found.items() if forms >= SHOWN_BY)

    def _costs_a_turn_more(self, form: str, head: str) -> bool:
        sets, widths, cycles = self.structure.sets, self.classes.widths, self._throughputs.get(form, math.inf)
        twice = [n for n, cost in self.confined.get(form, {}).items() if round(cost) == 2 and n in sets]
        inside = [n for n in twice if {*sets[n]} <= {*sets[head]} and cycles * widths[n] < 1 + _APART]
        return head in twice and bool(inside) and "m" not in self.classes.files[head]

    @cached_property
    def late(self) -> frozenset[str]:
        """Classes whose own results come late: they cost another two turns of its ports, and need one."""
        sets = self.structure.sets
        return frozenset(n for n in sets if any(self._is_late(n, o) for o in sets if o != n))

    def _is_late(self, name: str, other: str) -> bool:
        return self._tells(name, other) and self._taken(name, other) > 1

    def _apart(self, one: str, other: str) -> bool:
        """Whether two classes are seen to have no port in common."""
        widths, ratio = self.classes.widths, self.classes.pairs.get(frozenset((one, other)), math.inf)
        return widths[one] + widths[other] <= self.width and ratio < 1 + _APART

    @cached_property
    def structure(self) -> Structure:
        """The ports."""
        widths = {name: w for name, w in self.classes.widths.items() if name not in self.units}
        members = self.classes.members
        kinds = {
            name: (_ORDER.index(file), min(members[name], key=lambda n: (updates(self.table[n]), n)))
            for name in widths if (file := "".join(self.classes.files[name])) in _ORDER
        }  # fmt: skip
        return solve_structure(widths, self._evidence, kinds)

    @cached_property
    def _evidence(self) -> list[UnionEvidence]:
        known = map(self._class, sorted(self.classes.widths.keys() - self.units.keys()))
        pairs = evidence_of([self._pair(*pair) for pair in combinations(known, 2)], self.width)
        threes = self.classes.threes, self.classes.widths
        return [*pairs, *evidence_of_threes(*threes, pairs, self.width, PAIR_ERROR)]

    @cached_property
    def fillings(self) -> list[ClassCounts]:
        """Classes that may share some of their ports, with instances in a cycle that tell how many."""
        pairs = [((e.first, e.second), some) for e in self._evidence if e.asked and not e.third
                 for some in filling(self._class(e.first), self._class(e.second), e, self.width)]  # fmt: skip
        return [*pairs, *told_by_three(self.structure.sets, self._evidence, self.width, PAIR_ERROR)]

    @cached_property
    def hidden(self) -> list[tuple[str, str]]:
        """Classes that may have numbers of ports together which the front end hides."""
        return [(e.first, e.second) for e in self._evidence if is_hidden(e, self.width)]

    def _class(self, name: str) -> Class:
        width, sides = self.classes.widths[name], sides_of(self.classes.files[name], _SIDES)
        return Class(name, width, sides, taken(self._front_end, name, width) - width)

    @cached_property
    def sure(self) -> dict[str, float]:
        """Share of the odds that the ports of a class have, by representative."""
        return sureness(self.structure, self._evidence)

    def _pair(self, one: Class, other: Class) -> ClassPair:
        if self._switches(one.name, other.name):
            return ClassPair(one, other, None, (), ())
        both = frozenset((one.name, other.name))
        ratio = self.classes.pairs.get(both)
        together = None if ratio is None else Look(ratio, PAIR_ERROR)
        knees = {n: Look(time, PAIR_ERROR) for n, time in self.classes.knees.get(both, {}).items()}
        backlogs = self.classes.backlogs(one.name, other.name)
        inside = self.readings(one.name).get(other.name, ()), self.readings(other.name).get(one.name, ())
        late = any(self._is_late(*pair) for pair in ((one.name, other.name), (other.name, one.name)))
        return ClassPair(one, other, together, *inside, LATE_TURNS if late else 1.0, knees, backlogs)

    def _tells(self, one: str, other: str) -> bool:
        """Whether what one class costs another is a matter of ports that both may have: not of memory's."""
        files = self.classes.files
        return ("m" in files[one]) == ("m" in files[other]) and not self._switches(one, other)

    def _switches(self, one: str, other: str) -> bool:
        """Whether two classes together tell nothing: of vectors that shut ports to the others."""
        return self.shuts and self.classes.differ_in_length(one, other)


class TimedJudge:
    """What makes usages of times.

    `known` is a machine that gives ports their names where they match, and nothing else.
    """

    def __init__(self, facts: PortFacts, known: MachineModel | None) -> None:
        self.facts = facts
        self._known = known

    @cached_property
    def _named(self) -> tuple[tuple[str, ...], Structure]:
        return named(self.facts.structure, self.facts.classes.members, self._known)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the ports."""
        return self._named[0]

    @property
    def naming(self) -> Remark:
        """Where the names are from: those of the known machine where they match, or none."""
        alike = Named.INTERCHANGEABLE.of()
        if self._known is None or set(self.names).isdisjoint(self._known.ports):
            return Named.NEUTRAL.of(alike)
        known = self._known.borrowed.core if self._known.borrowed else self._known.name
        return Named.OF_MACHINE.of(known, alike)

    @property
    def structure(self) -> Structure:
        """The ports, in the order of their names."""
        return self._named[1]

    @cached_property
    def groups(self) -> PortGroups:
        """Classes that share ports, and what explains readings among them."""
        return PortGroups(self.facts, self.structure, learned_scatter(self.facts, self.structure))

    @cached_property
    def _ahead(self) -> ReadingsAhead:
        return ReadingsAhead(self.groups)

    def explain(self, form: InstructionForm, throughput: float, slots: float | None) -> list[Explanation]:
        """What explains a form's readings, the likeliest first; `slots` as far as they tell."""
        groups, found = self.groups, []
        for one in self._ahead.of(form):
            told = groups.expected(form), None, self.facts.per_slot(form), one.beside, one.accesses
            found.append(one.solver.candidates(one.looks, throughput, *told, one.weighed))
        least = math.inf if self.facts.front_end.waits(form, throughput) else throughput
        return explanations(found, Told(least, slots, groups.accesses(form), groups.memory))

    def stalls(self, microcoded: bool) -> Remark:
        """Why a form keeps others waiting that need none of its ports, or nothing."""
        return Usage.MICROCODED.of() if microcoded else NOTHING

    def missing(self, form: InstructionForm, known: Sequence[Operation]) -> Remark:
        """What no experiment shows of a form, or nothing."""
        return unseen_access(self.facts, form)

    def doubts(
        self,
        form: InstructionForm,
        known: Sequence[Operation],
        slots: float | None,
        throughput: float,
        turns: float = 1.0,
    ) -> Iterator[tuple[Remark, str]]:
        """What speaks against a usage that fits all confinements, and the confidence that it leaves.

        `turns` are those of a port that a micro-operation may take. What runs slower may have fewer ports
        than were told, where these explain it and do not show, unless it takes over `DIVIDES` cycles or its
        instances wait for each other. So may what no sequence times, as some branches, and the datum of a
        store, whose address is what limits it. What the renamer executes has none, however many of them.
        """
        width = self.facts.front_end.width
        if runs_slower(known, slots, width, throughput, turns):
            slowed = self.facts.front_end.is_slowed_by_waiting(form, throughput)
            renamed = not known and self.facts.front_end.is_eliminated(form.id)
            ports = throughput < DIVIDES and not slowed and not renamed
            unseen = ports and (not known or self._may_have_fewer(form, known, slots, throughput))
            yield Usage.SLOWER.of(), LOW if unseen else MEDIUM
        elif not throughput and any(len(op.ports) > 1 for op in known):
            yield Usage.UNTIMED.of(), LOW
        if self.groups.in_turn and self._beside(known):
            yield Usage.IN_TURN.of(), LOW
        if stores(form) and is_called_move(form) and self._may_have_fewer(form, known, slots, throughput):
            yield Usage.FEWER.of(), MEDIUM
        hidden = not self.facts.hiding.isdisjoint(domains(form))
        if (idle := round(slots or 0) - self._slots_of(form, known)) > 0:
            needs_none = is_nop(form) or (not hidden and bool(known or dropped(form)))
            yield Usage.IDLE_SLOTS.of(idle), MEDIUM if needs_none else LOW
        missing = max(1, round(slots or 0)) - self._slots_of(form, self._beside(known))
        if idle <= 0 < missing and memory_of(form) is not None and hidden:
            yield Usage.UNSEEN.of(), LOW

    def _may_have_fewer(
        self, form: InstructionForm, known: Sequence[Operation], slots: float | None, throughput: float
    ) -> bool:
        """Whether a form with fewer ports would be as slow, and cost no class more."""
        shown = [set(self.structure.sets.get(n, ())) for n in self.facts.confined.get(form.id, ())]
        return may_have_fewer(known, shown, slots, self.facts.front_end.width, throughput)

    def _slots_of(self, form: InstructionForm, operations: Sequence[Operation]) -> int:
        """Slots that some micro-operations of a form fill, each of whose slots may bring several turns."""
        return sum(math.ceil(round(op.count) / self.facts.per_slot(form)) for op in operations)

    def _beside(self, known: Sequence[Operation]) -> list[Operation]:
        """Micro-operations beside those for memory, which come in the slots of others."""
        return [op for op in known if self.groups.memory.isdisjoint(op.ports)]
