"""Classes that share ports, directly or through others, and what explains readings among all of them."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import permutations
from statistics import median, median_low
from typing import NamedTuple

from cyclescope.infer.likelihood.evidence import FULL
from cyclescope.infer.likelihood.noise import Look, Scatter, learned, tail_of
from cyclescope.infer.likelihood.readings import Asked, Looks
from cyclescope.infer.likelihood.structure import Structure, port_sets
from cyclescope.infer.likelihood.usage import Ports, Told, UsageSolver, Weighed, explanations
from cyclescope.infer.ports.candidates import accesses_of, domains, memory_of
from cyclescope.infer.ports.classes import ALIKE
from cyclescope.infer.ports.evidence import SHOWN_BY, PortFacts, is_one, low
from cyclescope.isa.form import InstructionForm
from cyclescope.measure.ports import INSTANCES

_UNSURE = 0.1  # of the odds for others: readings of forms that are explained so well tell how they scatter
SLOWED = 0.3  # micro-operations: as much of a class that accesses leave alone is no noise
_IN_THE_WAY = 0.1  # of what ports let two classes take: more is no error of a loop
TAUGHT = 400  # forms that tell it: shares of a hundredth are known within half of that

_OWN = frozenset("zx")  # register files of classes that others are not asked among

_Costs = dict[str, list[float]]  # what loads cost, by class

Group = tuple[dict[str, Ports], UsageSolver]
WEIGHED_AT_ONCE = 32  # forms whose readings are weighed at once: more leave the cache
_NOT_ASKED = 64 * WEIGHED_AT_ONCE  # forms that nobody asked for yet: some 20 MB


class PortGroups:
    """The groups of a machine's classes; `structure` has the numbers that its ports go by.

    `noise` is how readings scatter here.
    """

    def __init__(self, facts: PortFacts, structure: Structure, noise: Scatter) -> None:
        self.facts = facts
        self.structure = structure
        self.noise = noise
        self.wide = LoadWidths(facts)
        self._without: dict[frozenset[str], list[Group]] = {}

    @cached_property
    def groups(self) -> list[Group]:
        """Classes that share ports, with their solver."""
        return self._grouped(self.structure.sets)

    def _for(self, form: InstructionForm, asked: Container[str]) -> list[Group]:
        """The same for a form: sets of ports that only vectors of 512 bits or MMX have are for those alone.

        Unless it was `asked` among them: no reading would tell such a set from the one of its own files.
        """
        mine, files = domains(form), self.facts.classes.files
        others = (n for n in self.structure.sets if files[n] <= _OWN and files[n].isdisjoint(mine))
        left_out = frozenset(name for name in others if name not in asked)
        if left_out not in self._without:
            sets = {name: ports for name, ports in self.structure.sets.items() if name not in left_out}
            self._without[left_out] = self._grouped(sets)
        return self._without[left_out]

    def _grouped(self, sets: Mapping[str, Ports]) -> list[Group]:
        usual = {name: self._usual(name) for name in sets}
        together = {name: self._usual(name, True) for name in sets}
        most = FULL * self.facts.front_end.width
        full = {name for name, width in self.facts.classes.widths.items() if width > most}

        def solver(group: Mapping[str, Ports]) -> UsageSolver:
            counts = not self.is_memory(group)
            evidence = self.facts.evidence
            crowded = evidence.crowded & group.keys()
            begun = 0 if counts else INSTANCES
            sets = port_sets(group)
            return UsageSolver(
                group, sets, usual, self.noise, counts, full, together, crowded, evidence.late, begun
            )

        return [(group, solver(group)) for group in _joined(sets)]

    def is_memory(self, group: Mapping[str, Ports]) -> bool:
        """Whether all classes of a group access memory."""
        return all("m" in self.facts.classes.files[name] for name in group)

    def _usual(self, name: str, together: bool = False) -> dict[str, float]:
        """What a form of a class costs among other blocking instructions, spread or in one place.

        It is one micro-operation, rather than two where the core deals ports out badly: what costs more makes
        others wait for its flags.
        """
        most = math.inf if "m" in self.facts.classes.files[name] else 1.5
        return {other: min(cost, most) for other, cost in self._costs(name, together).items()}

    def _costs(self, name: str, together: bool) -> dict[str, float]:
        """The median of what the members of a class cost among other blocking instructions."""
        found: dict[str, list[float]] = {}
        for form in self.facts.classes.members[name]:
            for other, looks in self.facts.looks(form).items():
                if other != name and (some := [look.value for look in looks if look.together == together]):
                    found.setdefault(other, []).append(min(some))
        return {other: median_low(some) for other, some in found.items()}

    def looks(self, form: InstructionForm) -> Iterator[tuple[Group, dict[str, Sequence[Look]]]]:
        """The groups that tell something of a form, with its readings there."""
        known = self.facts.looks(form.id)
        for group in self._for(form, known):
            some = {name: looks for name, looks in known.items() if name in group[0]}
            if some:
                yield group, some

    def expected(self, form: InstructionForm) -> int:
        """Micro-operations that a form's slots let expect."""
        slots = self.facts.front_end.slots.get(form.id)
        return (math.ceil(slots - 0.3) if slots is not None else 1) * self.facts.per_slot(form)

    def accesses(self, form: InstructionForm) -> bool:
        """Whether a form accesses memory that blocking instructions are for."""
        return memory_of(form) is not None and self.facts.knows_memory(form)

    @cached_property
    def blind(self) -> bool:
        """Whether the core deals out ports before it knows which will be free.

        One pair of classes that share some ports shows it, by taking longer than all that they have let
        them, or by one of them costing the other something although it has a port beside those. What
        accesses to memory take is known apart.
        """
        return any(
            self._escapes_badly(*pair)
            for group in _joined(self.structure.sets) if not self.is_memory(group)
            for pair in permutations(group, 2)
        )  # fmt: skip

    def _escapes_badly(self, one: str, other: str) -> bool:
        """Whether a class is in another's way more than their ports explain."""
        mine, theirs = set(self.structure.sets[one]), set(self.structure.sets[other])
        classes, width = self.facts.classes, self.facts.front_end.width
        if mine.isdisjoint(theirs) or classes.widths[other] > FULL * width:
            return False
        both = len(mine) + len(theirs)
        expected = max(both / len(mine | theirs), both / width, 1.0)
        cost = self.facts.confined.get(one, {}).get(other, 0.0)
        late = classes.pairs.get(frozenset((one, other)), 0.0) > (1 + _IN_THE_WAY) * expected
        return late or (is_one(cost) and not mine <= theirs)

    @cached_property
    def in_turn(self) -> bool:
        """Whether the core may give each class its ports in turn, whatever these have to do.

        Whoever has a port of a class then costs it all that would fill this port in turn: one micro-operation
        for two of four ports and two for all four look alike. Most classes show it then, and few otherwise.
        """
        pairs = permutations(self.facts.classes.widths, 2)
        told = [told for pair in pairs for told in self._as_in_turn(*pair)]
        return 2 * sum(told) > len(told)

    def _as_in_turn(self, one: str, wider: str) -> Iterator[bool]:
        """Whether two classes that share ports cost each other what ports in turn let them."""
        classes, costs = self.facts.classes, self.facts.confined
        mine, theirs = classes.widths[one], classes.widths[wider]
        plain = all(len(f) == 1 and "m" not in f for f in (classes.files[one], classes.files[wider]))
        sound = all(abs(costs.get(name, {}).get(name, 0.0) - 1) < ALIKE for name in (one, wider))
        there, back = costs.get(one, {}).get(wider, 0.0), costs.get(wider, {}).get(one, 0.0)
        told = plain and sound and mine < theirs and not classes.differ_in_length(one, wider)
        if told and is_one(max(there, back)):
            yield abs(there - theirs / mine) < ALIKE and abs(back - mine / theirs) < ALIKE

    @cached_property
    def memory(self) -> frozenset[int]:
        """Ports of classes that do nothing but access memory."""
        sets, files = self.structure.sets, self.facts.classes.files
        return frozenset(p for name, ports in sets.items() if "m" in files[name] for p in ports)


def _joined(sets: Mapping[str, Ports]) -> list[dict[str, Ports]]:
    """Classes that share ports, directly or through others."""
    groups: list[dict[str, Ports]] = []
    for name, ports in sets.items():
        touching = [g for g in groups if any(not set(ports).isdisjoint(other) for other in g.values())]
        merged = {name: ports}
        for group in touching:
            merged |= group
            groups.remove(group)
        groups.append(merged)
    return groups


def learned_scatter(facts: PortFacts, structure: Structure) -> Scatter:
    """How readings scatter, as those of the forms show that forms of classes are judged by."""
    readings: list[list[tuple[float, float]]] = [[], [], [], []]
    typical = facts.classes.typical
    first, accesses = PortGroups(facts, structure, Scatter()), AccessCosts(facts)
    for name in typical[:: max(1, len(typical) // TAUGHT)]:
        for off, error, tail in _off(first, accesses, facts.table[name]):
            readings[tail].append((off, error))
    return learned(readings)


def _off(
    groups: PortGroups, accesses: AccessCosts, form: InstructionForm
) -> Iterator[tuple[float, float, int]]:
    """By how much a form's readings are off what explains them best, where that is sure."""
    throughput = groups.facts.front_end.throughputs.get(form.id, math.inf)
    for (group, solver), looks in groups.looks(form):
        beside = groups.wide.of(form, group) if groups.is_memory(group) else accesses.of(form, group)
        told = groups.expected(form), None, groups.facts.per_slot(form), beside
        candidates = solver.candidates(looks, throughput, *told)
        found = explanations([candidates], Told(throughput)) if candidates else []
        if not found or 1 - found[0].share > _UNSURE or not found[0].complete or found[0].parts[0].late:
            continue
        sets = [op.ports for op in found[0].operations for _ in range(round(op.count * op.cycles))]
        for name, some in looks.items():
            wide = group[name]
            least = sum(set(one) <= set(wide) for one in sets)
            if name not in beside and all(
                solver.usual.get(one, {}).get(name, 0.0) <= (set(one) <= set(wide))
                and solver.together.get(one, {}).get(name, 0.0) <= (set(one) <= set(wide)) + SLOWED
                for one in sets
            ):
                touches = any(one != wide and not set(one).isdisjoint(wide) for one in sets)
                tail = tail_of(touches, name in solver.full)
                yield from ((look.value - least, look.error, tail) for look in some)


class AccessCosts:
    """What accesses to memory cost classes whose ports they do not use, but for noise.

    The least that any of them does: what is stored of one register file may take a micro-operation of it.
    """

    def __init__(self, facts: PortFacts) -> None:
        self.facts = facts

    @cached_property
    def by_kind(self) -> dict[bool, dict[str, float]]:
        """By whether they store, the classes that they slow and by how much."""
        found: dict[bool, dict[str, list[float]]] = {False: {}, True: {}}
        classes = self.facts.classes
        for name in self.facts.structure.sets:
            op = memory_of(self.facts.table[name]) if "m" in classes.files[name] else None
            for form in classes.members[name] if op is not None else ():
                for other, looks in self.facts.looks(form).items():
                    cost = median(look.value for look in looks)
                    found[op is not None and op.write].setdefault(other, []).append(cost)
        return {
            kind: {name: cost for name, costs in some.items() if (cost := min(costs)) > SLOWED}
            for kind, some in found.items()
        }

    def of(self, form: InstructionForm, group: Mapping[str, Ports]) -> dict[str, float]:
        """What a form's accesses to memory cost the classes of a group that are for something else."""
        found: dict[str, float] = {}
        for write in (False, True):
            if any(op.is_memory and (op.write if write else op.read) for op in form.operands):
                for name, cost in self.by_kind.get(write, {}).items():
                    if name in group:
                        found[name] = found.get(name, 0.0) + cost
        return found


class LoadWidths:
    """What loads cost classes of other loads more than narrower ones of their register file do.

    Some cores move as much to registers in a load of the widest vectors as in several others, and let none of
    these begin beside it. Alone, and among loads of its own ports, it costs what narrower ones do: it is one
    micro-operation.
    """

    def __init__(self, facts: PortFacts) -> None:
        self._facts = facts

    @cached_property
    def _by_width(self) -> Mapping[tuple[bool, int], _Costs]:
        """What loads cost classes of accesses, by whether they load vectors, and by bits."""
        found: dict[tuple[bool, int], _Costs] = {}
        files = self._facts.classes.files
        for name in self._facts.confined:
            form = self._facts.table[name]
            if bits := _loaded(form):
                some = found.setdefault(("v" in domains(form), bits), {})
                for head, looks in self._facts.looks(name).items():
                    if "m" in files[head]:
                        some.setdefault(head, []).append(low(looks))
        return found

    @cached_property
    def _more(self) -> Mapping[tuple[bool, int], Mapping[str, float]]:
        """By how much loads of a width cost classes more than the widest of which none is known to."""
        found, plain = {}, dict[bool, tuple[bool, int]]()
        for key in sorted(self._by_width):
            if more := dict(self._beyond(plain.get(key[0], key), key)):
                found[key] = more
            else:
                plain[key[0]] = key
        return found

    def _beyond(self, narrower: tuple[bool, int], wider: tuple[bool, int]) -> Iterator[tuple[str, float]]:
        """Classes that loads cost clearly more than narrower ones do, and have ports that no load misses."""
        sets, more = self._facts.structure.sets, dict[str, float]()
        for head, costs in self._by_width[wider].items():
            others = self._by_width[narrower].get(head, [])
            if head in sets and min(len(costs), len(others)) >= SHOWN_BY:
                more[head] = median(costs) - median(others)
        wide = self._by_width[wider]
        own = [{*sets[n]} for n, cost in more.items() if is_one(median(wide[n])) > is_one(cost)]
        for head, cost in more.items():
            if is_one(cost) and any(ports < {*sets[head]} for ports in own):
                yield head, cost

    def of(self, form: InstructionForm, group: Container[str]) -> dict[str, float]:
        """What a load costs the classes of a group for its width."""
        found = self._more.get(("v" in domains(form), _loaded(form)), {})
        return {head: cost for head, cost in found.items() if head in group}

    @cached_property
    def heads(self) -> frozenset[str]:
        """The classes that some loads cost more for their width."""
        return frozenset(head for some in self._more.values() for head in some)


def is_load(form: InstructionForm) -> bool:
    """Whether a form reads memory that its operands say, and writes none."""
    return _loaded(form) > 0


def _loaded(form: InstructionForm) -> int:
    """Bits that a form loads, 0 where it loads nothing or stores as well."""
    op = memory_of(form)
    return op.width if op is not None and op.read and not op.write else 0


class OfGroup(NamedTuple):
    """What is known of a form and one group of ports.

    `beside` is what else costs the classes, `accesses` the micro-operations that accesses let expect.
    """

    solver: UsageSolver
    looks: Looks
    beside: Mapping[str, float]
    accesses: int
    weighed: Weighed


class ReadingsAhead:
    """Weighs readings, those of a form's neighbours with it: whoever asks for all asks in their order."""

    def __init__(self, groups: PortGroups) -> None:
        self._groups = groups
        self._costs = AccessCosts(groups.facts)
        self._ready: dict[str, list[OfGroup]] = {}
        self._begun: set[int] = set()

    @cached_property
    def _forms(self) -> list[str]:
        return list(self._groups.facts.confined)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {form: place for place, form in enumerate(self._forms)}

    def of(self, form: InstructionForm) -> list[OfGroup]:
        """The groups that tell something of a form."""
        found = self._ready.pop(form.id, None)
        if found is None:
            self._weigh(self._near(form.id))
            found = self._ready.pop(form.id)
        return found

    def _near(self, form: str) -> Sequence[str]:
        """A form with its neighbours; alone where these were weighed before."""
        part = self._places.get(form, -1) // WEIGHED_AT_ONCE
        if part < 0 or part in self._begun:
            return [form]
        self._begun.add(part)
        return self._forms[part * WEIGHED_AT_ONCE : (part + 1) * WEIGHED_AT_ONCE]

    def _weigh(self, forms: Sequence[str]) -> None:
        if len(self._ready) > _NOT_ASKED:
            self._ready.clear()
        asked = {form: list(self._asked(self._groups.facts.table[form])) for form in forms}
        by_solver: dict[UsageSolver, list[Asked]] = {}
        for some in asked.values():
            for solver, looks, beside, _ in some:
                by_solver.setdefault(solver, []).append((looks, beside))
        weighed = {solver: iter(solver.weighed(some)) for solver, some in by_solver.items()}
        for form, some in asked.items():
            self._ready[form] = [OfGroup(*one, next(weighed[one[0]])) for one in some]

    def _asked(self, form: InstructionForm) -> Iterator[tuple[UsageSolver, Looks, Mapping[str, float], int]]:
        for (group, solver), looks in self._groups.looks(form):
            if self._groups.is_memory(group):
                yield solver, looks, self._groups.wide.of(form, group), accesses_of(form)
            else:
                yield solver, looks, self._costs.of(form, group), 0
