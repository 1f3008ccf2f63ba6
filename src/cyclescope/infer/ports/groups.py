"""Classes that share ports, directly or through others, and what explains readings among all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from statistics import median, median_low

from cyclescope.infer.likelihood.evidence import FULL
from cyclescope.infer.likelihood.noise import Look, Scatter, Tail, alike, learned, tail_of
from cyclescope.infer.likelihood.structure import Structure, port_sets
from cyclescope.infer.likelihood.usage import Explanation, Ports, Told, UsageSolver, explanations
from cyclescope.infer.ports.candidates import memory_of
from cyclescope.infer.ports.facts import PortFacts
from cyclescope.isa.form import InstructionForm

COUNTS = alike(Tail(0.01, 0.1))  # counts hardly scatter, whatever is chosen
SURE = 0.9  # of the odds: readings of a form that is explained so well tell how readings scatter
SLOWED = 0.3  # micro-operations: as much of a class that accesses leave alone is no noise
TAUGHT = 400  # forms that tell it: shares of a hundredth are known within half of that

Group = tuple[dict[str, Ports], UsageSolver]


class PortGroups:
    """The groups of a machine's classes; `structure` has the numbers that its ports go by."""

    def __init__(self, facts: PortFacts, structure: Structure) -> None:
        self.facts = facts
        self.structure = structure

    @cached_property
    def groups(self) -> list[Group]:
        """Classes that share ports, with their solver."""
        return self._with(self.noise)

    @cached_property
    def noise(self) -> Scatter:
        """How readings scatter here, as those of the forms show that forms of classes are judged by."""
        if self.facts.counters:
            return COUNTS
        readings: list[list[tuple[float, float]]] = [[], [], [], []]
        first = self._with(Scatter())
        for name in self.facts.typical[:: max(1, len(self.facts.typical) // TAUGHT)]:
            for off, error, tail in self._off(first, self.facts.table[name]):
                readings[tail].append((off, error))
        return learned(readings)

    def _off(self, groups: Sequence[Group], form: InstructionForm) -> Iterator[tuple[float, float, int]]:
        """By how much a form's readings are off what explains them best, where that is sure."""
        throughput = self.facts.throughputs.get(form.id, math.inf)
        for group, solver in groups:
            looks = {name: some for name, some in self.facts.looks(form.id).items() if name in group}
            beside = self._beside(form, group)
            candidates = (
                solver.candidates(looks, throughput, self.expected(form), beside=beside) if looks else []
            )
            found = explanations([candidates], Told(throughput)) if candidates else []
            if not found or found[0].share < SURE or not found[0].complete:
                continue
            sets = [op.ports for op in found[0].operations for _ in range(round(op.count))]
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

    def _with(self, noise: Scatter) -> list[Group]:
        sets = self.structure.sets
        groups: list[dict[str, Ports]] = []
        for name, ports in sets.items():
            touching = [g for g in groups if any(not set(ports).isdisjoint(other) for other in g.values())]
            merged = {name: ports}
            for group in touching:
                merged |= group
                groups.remove(group)
            groups.append(merged)
        usual = {name: self._usual(name) for name in sets}
        together = {name: self._usual_together(name) for name in sets if "m" in self.facts.files[name]}
        full = {name for name, width in self.facts.widths.items() if width > FULL * self.facts.width}

        def solver(group: Mapping[str, Ports]) -> UsageSolver:
            counts = not self._is_memory(group)
            return UsageSolver(group, port_sets(group), usual, noise, counts, full, together)

        return [(group, solver(group)) for group in groups]

    def _is_memory(self, group: Mapping[str, Ports]) -> bool:
        return all("m" in self.facts.files[name] for name in group)

    def _usual(self, name: str) -> dict[str, float]:
        """What a form of a class costs among other blocking instructions.

        It is one micro-operation: what costs more makes others wait for its flags.
        """
        most = math.inf if "m" in self.facts.files[name] else 1.0
        return {other: min(cost, most) for other, cost in self._costs(name).items()}

    def _usual_together(self, name: str) -> dict[str, float]:
        """The same of accesses to memory whose instances stand in one place."""
        found: dict[str, list[float]] = {}
        for form in self.facts.classes[name]:
            for other, looks in self.facts.looks(form).items():
                if other != name and (some := [look.value for look in looks if look.together]):
                    found.setdefault(other, []).append(min(some))
        return {other: median_low(some) for other, some in found.items()}

    def _costs(self, name: str) -> dict[str, float]:
        """The median of what the members of a class cost among other blocking instructions."""
        members = [self.facts.confined.get(form, {}) for form in self.facts.classes[name]]
        seen = {other for some in members for other in some if other != name}
        return {other: median_low(some[other] for some in members if other in some) for other in seen}

    @cached_property
    def _accesses_cost(self) -> dict[bool, dict[str, float]]:
        """What loads, and what stores, cost classes whose ports they do not use, but for noise.

        The least that any of them does: what is stored of one register file may take a micro-operation of it.
        """
        found: dict[bool, dict[str, list[float]]] = {False: {}, True: {}}
        for name in self.structure.sets:
            op = memory_of(self.facts.table[name]) if "m" in self.facts.files[name] else None
            for form in self.facts.classes[name] if op is not None else ():
                for other, looks in self.facts.looks(form).items():
                    cost = median(look.value for look in looks)
                    found[op is not None and op.write].setdefault(other, []).append(cost)
        return {
            kind: {name: cost for name, costs in some.items() if (cost := min(costs)) > SLOWED}
            for kind, some in found.items()
        }

    def _beside(self, form: InstructionForm, group: Mapping[str, Ports]) -> dict[str, float]:
        """What a form's accesses to memory cost the classes of a group that are for something else."""
        if self.facts.counters or self._is_memory(group):
            return {}
        found: dict[str, float] = {}
        for write in (False, True):
            if any(op.is_memory and (op.write if write else op.read) for op in form.operands):
                for name, cost in self._accesses_cost.get(write, {}).items():
                    if name in group:
                        found[name] = found.get(name, 0.0) + cost
        return found

    def expected(self, form: InstructionForm) -> int:
        """Micro-operations that a form's slots let expect."""
        slots = self.facts.slots.get(form.id)
        return (math.ceil(slots - 0.3) if slots is not None else 1) * self.facts.per_slot(form)

    def explain(self, form: InstructionForm, throughput: float, slots: float | None) -> list[Explanation]:
        """What explains a form's readings, the likeliest first; `slots` as far as they tell."""
        per_slot, counters = self.facts.per_slot(form), self.facts.counters
        found = []
        for group, solver in self.groups:
            some = {name: looks for name, looks in self.facts.looks(form.id).items() if name in group}
            if counters:
                some = _least(some, group)
            if some:
                ports = {p for ports in group.values() for p in ports}
                total = counters.total(form.id, ports) if counters else None
                beside = self._beside(form, group)
                found.append(
                    solver.candidates(some, throughput, self.expected(form), total, per_slot, beside)
                )
        return explanations(found, Told(throughput, slots, self._accesses(form), self.memory))

    def _accesses(self, form: InstructionForm) -> bool:
        return memory_of(form) is not None and self.facts.knows_memory(form)

    @cached_property
    def memory(self) -> frozenset[int]:
        """Ports of classes that do nothing but access memory."""
        sets, files = self.structure.sets, self.facts.files
        return frozenset(p for name, ports in sets.items() if "m" in files[name] for p in ports)


def _least(looks: Mapping[str, Sequence[Look]], ports: Mapping[str, Ports]) -> dict[str, Sequence[Look]]:
    """The least of what was counted for classes of the same ports: each is an upper bound.

    What was timed is none where a class does not fill its ports all the time.
    """
    best: dict[Ports, str] = {}
    for name, some in looks.items():
        if _lowest(some) < _lowest(looks.get(best.get(ports[name], ""), ())):
            best[ports[name]] = name
    return {name: looks[name] for name in best.values()}


def _lowest(looks: Sequence[Look]) -> float:
    return min((look.value for look in looks), default=math.inf)
