"""Port usage of forms: from the facts of port experiments to results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from statistics import median_low

import msgspec

from cyclescope.infer.ports.candidates import domains, is_locked, memory_of
from cyclescope.infer.ports.facts import PortFacts
from cyclescope.infer.ports.front_end import dropped
from cyclescope.infer.ports.structure import port_sets
from cyclescope.infer.ports.usage import Usage, UsageSolver, explains_slowness
from cyclescope.infer.timing.results import HIGH, LOW, MEDIUM
from cyclescope.isa.form import InstructionForm
from cyclescope.model.machine import Operation
from cyclescope.model.ports import notation, port_throughput

NOISE = 0.08  # micro-operations: less of a resource is none
NEEDS_PORT = "its front-end slots are not known: it reads as none, though it needs a port"
MICROCODED = 4.6  # front-end slots: more come from the microcode sequencer
MISSED = 0.12  # micro-operations by which an explanation misses a class: it is measured again
MORE = 0.3  # micro-operations counted that are not explained
SLOWER = 0.85  # times the measured reciprocal throughput: ports that allow less are not the limit
DIVIDES = 2.5  # cycles: units that are not pipelined take more, limits of transfers and of ports less
_ORDER = (HIGH, MEDIUM, LOW)


class PortUsage(msgspec.Struct, frozen=True):
    """Slots, ports and resources of a form.

    `slot_range` are the least and the most slots where they vary, `ports` is the usage in the notation of
    `model.ports`, with `?` for what no set of micro-operations explains, None with a `reason` where nothing
    was measured; `throughput` the reciprocal throughput that follows from it, in cycles. `resources` has
    cycles of each resource: sets of ports by their notation, hidden units by the form that shows them.
    `residual` is by how many micro-operations the explanation misses the measurements at most.
    """

    slots: float | None
    ports: str | None
    operations: tuple[Operation, ...] | None = None
    throughput: float | None = None
    residual: float | None = None
    confidence: str = ""
    alternatives: tuple[str, ...] = ()
    resources: Mapping[str, float] = {}
    microcoded: bool = False
    note: str = ""
    reason: str = ""
    slot_range: tuple[float, float] | None = None


class PortBuilder:
    """Port usage of every form from the facts."""

    def __init__(self, facts: PortFacts) -> None:
        self.facts = facts

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the ports: those of the counters, else numbers in the order of the structure."""
        if self.facts.labels:
            return self.facts.labels
        count = self.facts.structure.ports
        return tuple(str(n) if count <= 10 else f"{n:x}" for n in range(count))

    @cached_property
    def groups(self) -> list[tuple[dict[str, tuple[int, ...]], UsageSolver]]:
        """Classes that share ports, with their solver."""
        sets = self.facts.structure.sets
        groups: list[dict[str, tuple[int, ...]]] = []
        for name, ports in sets.items():
            touching = [g for g in groups if any(not set(ports).isdisjoint(other) for other in g.values())]
            merged = {name: ports}
            for group in touching:
                merged |= group
                groups.remove(group)
            groups.append(merged)
        usual = {name: self._usual(name) for name in sets}
        return [(group, UsageSolver(group, port_sets(group), usual)) for group in groups]

    def _usual(self, name: str) -> dict[str, float]:
        """What a form of a class costs among other blocking instructions: the median of its members.

        It is one micro-operation: what costs more makes others wait for its flags.
        """
        members = [self.facts.confined.get(form, {}) for form in self.facts.classes[name]]
        seen = {other for some in members for other in some if other != name}
        middle = {other: median_low(some[other] for some in members if other in some) for other in seen}
        return {other: min(cost, 1.0) for other, cost in middle.items()}

    @cached_property
    def resources(self) -> dict[str, tuple[str, float]]:
        """Name and capacity of the resource that each class stands for."""
        structure = self.facts.structure
        found = {}
        for name, width in self.facts.widths.items():
            ports = structure.sets.get(name)
            label = "p" + "".join(self.names[p] for p in ports) if ports else f"unit of {name}"
            found[name] = label, float(width)
        return found

    def usage(self, form: InstructionForm, throughput: float | None, reason: str = "") -> PortUsage:
        """What is known of a form. `reason` says why nothing was measured."""
        found = self._usage(form, throughput, reason)
        return msgspec.structs.replace(found, slot_range=self.facts.slot_range(form))

    def _usage(self, form: InstructionForm, throughput: float | None, reason: str) -> PortUsage:
        slots = self.facts.slots.get(form.id)
        shown, _ = self.facts.told(form)
        confined = self.facts.confined.get(form.id)
        if confined is None:
            return PortUsage(shown, None, reason=reason or "not measured")
        microcoded = slots is not None and slots > MICROCODED
        expected = (math.ceil(slots - 0.3) if slots is not None else 1) * self.facts.per_slot(form)
        parts = self._parts(form, confined, throughput or math.inf, expected)
        if shown is not None and not microcoded and not self.facts.labels:
            parts = _filled(parts, round(shown))
        return self._combined(form, parts, confined, shown, microcoded, throughput or 0.0)

    def _parts(
        self, form: InstructionForm, confined: Mapping[str, float], throughput: float, expected: int
    ) -> list[Usage]:
        """The usage of every group of ports; what one group explains of the throughput none other has to."""
        asked = []
        for group, solver in self.groups:
            some = {name: value for name, value in confined.items() if name in group}
            if self.facts.labels:
                some = _least(some, group)
            if some:
                total = self.facts.total(form.id, {p for ports in group.values() for p in ports})
                asked.append((solver, some, total))
        per_slot = self.facts.per_slot(form)
        parts = [
            solver.solve(some, throughput, expected, total, 0.0, per_slot) for solver, some, total in asked
        ]
        alone = [port_throughput(part.operations or ()) for part in parts]
        for place, (solver, some, total) in enumerate(asked):
            elsewhere = max([0.0, *alone[:place], *alone[place + 1 :]])
            if elsewhere >= alone[place] and explains_slowness(throughput, elsewhere):
                parts[place] = solver.solve(some, throughput, expected, total, elsewhere, per_slot)
                alone[place] = port_throughput(parts[place].operations or ())
        return parts

    def missed(self, form: InstructionForm, usage: PortUsage) -> set[str]:
        """Classes whose measured confinement is not what a usage makes of it."""
        sets = self.facts.structure.sets
        confined = {n: v for n, v in self.facts.confined.get(form.id, {}).items() if n in sets}
        if usage.operations is None:
            return {name for name, value in confined.items() if value > NOISE}
        expected = {
            n: sum(o.count for o in usage.operations if set(o.ports) <= set(sets[n])) for n in confined
        }
        return {name for name, value in confined.items() if abs(value - expected[name]) > MISSED}

    def _combined(
        self,
        form: InstructionForm,
        parts: list[Usage],
        confined: Mapping[str, float],
        slots: float | None,
        microcoded: bool,
        throughput: float,
    ) -> PortUsage:
        missed = any(part.residual > MISSED for part in parts)
        stalls = "" if self.facts.labels else _stalls(form, microcoded, missed)
        if missed and stalls:  # what they cost is not to look like ports
            parts = [msgspec.structs.replace(part, operations=None, alternatives=()) for part in parts]
        known = tuple(op for part in parts for op in part.operations or ())
        missing = self._missing(form, known)
        complete = not missing and all(part.operations is not None for part in parts)
        usage = notation(known, self.names)
        if not complete:
            usage = f"{usage}+?" if known else "?"
        levels = [part.confidence for part in parts] or [LOW]
        slots, remark = self._told(form, slots, known)
        notes = [note for note in (*(part.note for part in parts), remark) if note]
        levels += [MEDIUM] * (slots is None)
        if missing:
            levels.append(MEDIUM)
            notes.append(missing)
        if stalls:
            levels.append(LOW)
            notes.append(stalls)
        elif complete:
            doubts = list(self._doubts(form, known, slots, throughput))
            notes += [sentence for sentence, _ in doubts]
            if self._is_loose(known, throughput, confined):
                levels.append(MEDIUM)
                notes.append("one of its micro-operations may have fewer ports than the class that it is of")
            vague = any(part.residual > MISSED or part.alternatives for part in parts)
            levels += [LOW if vague else level for _, level in doubts]
        weights: dict[str, float] = {}
        for name, value in confined.items():
            label = self.resources[name][0]
            if value > max(NOISE, weights.get(label, 0.0)):  # classes of two register files share a label
                weights[label] = round(value, 2)
        return PortUsage(
            slots, usage, known if complete else None,
            round(port_throughput(known), 2) if complete else None,
            round(max((part.residual for part in parts), default=0.0), 2), max(levels, key=_ORDER.index),
            tuple(notation(other, self.names) for part in parts for other in part.alternatives),
            weights, microcoded, "; ".join(dict.fromkeys(notes)),
        )  # fmt: skip

    def _told(
        self, form: InstructionForm, slots: float | None, known: Sequence[Operation]
    ) -> tuple[float | None, str]:
        """Slots with a remark; none of what needs a port, which is not dropped."""
        return (None, NEEDS_PORT) if known and slots == 0 else (slots, self.facts.told(form)[1])

    def _missing(self, form: InstructionForm, known: Sequence[Operation]) -> str:
        """What no experiment shows of a form, or ""."""
        total = self.facts.total(form.id, range(self.facts.structure.ports))
        if total is not None:
            more = total - sum(op.count for op in known)
            return f"{more:.1f} micro-operations are on ports that no class fills" if more > MORE else ""
        if not self.facts.knows_memory(form):
            return "no blocking instruction shows which ports its memory access needs"
        return ""

    def _doubts(
        self, form: InstructionForm, known: Sequence[Operation], slots: float | None, throughput: float
    ) -> Iterator[tuple[str, str]]:
        """What speaks against a usage that fits all confinements, and the confidence that it leaves.

        What runs slower for less than `DIVIDES` cycles may have fewer ports than were told, or share some.
        """
        if max(port_throughput(known), (slots or 0.0) / self.facts.width) < SLOWER * throughput:
            level = MEDIUM if throughput > DIVIDES or self.facts.labels else LOW
            yield "it runs slower than these ports allow: something else limits it", level
        if self.facts.labels:  # the rest was counted
            yield from ((sentence, MEDIUM) for sentence in self._never_there(form, known, throughput))
            return
        count = sum(round(op.count) for op in known)
        if (idle := round(slots or 0) - count) > 0:
            level = MEDIUM if known or dropped(form) else LOW
            yield f"{idle} of its slots need no port, or one of a set as wide as the front end", level
        elif memory_of(form) is not None and self._may_hide(form, known):
            yield "a micro-operation for any of as many ports as the front end has slots would not show", LOW

    def _never_there(
        self, form: InstructionForm, known: Sequence[Operation], throughput: float
    ) -> Iterator[str]:
        """Ports on which nothing was counted, if the form would be no slower without them."""
        for op in known:
            unused = self.facts.unused(form.id, op.ports)
            fewer = msgspec.structs.replace(op, ports=tuple(p for p in op.ports if p not in unused))
            rest = [other for other in known if other is not op]
            if (
                unused
                and fewer.ports
                and not port_throughput([*rest, fewer]) > 1.05 * throughput + 0.02 > 0.02
            ):
                yield f"it was never counted on {', '.join(self.names[p] for p in unused)}"

    def _is_loose(self, known: Sequence[Operation], throughput: float, confined: Mapping[str, float]) -> bool:
        """Whether one of several micro-operations, on a single port, would make the form no slower.

        Nor would it cost more among smaller classes: none of them has that port.
        """
        most = 1.05 * throughput + 0.02
        single = [msgspec.structs.replace(op, count=1.0) for op in known if len(op.ports) > 1]
        several = sum(op.count for op in known) > 1
        return several and any(
            port_throughput([*_less(known, op), msgspec.structs.replace(op, ports=(port,))]) <= most
            and not self._shows(port, op, confined)
            for op in single if self.memory.isdisjoint(op.ports) for port in op.ports
        )  # fmt: skip

    def _shows(self, port: int, op: Operation, confined: Mapping[str, float]) -> bool:
        """Whether a measured class has a port of an operation, but not all of its ports."""
        sets = self.facts.structure.sets
        return any(port in sets[n] and not set(op.ports) <= set(sets[n]) for n in confined if n in sets)

    def _may_hide(self, form: InstructionForm, known: Sequence[Operation]) -> bool:
        """Whether a form may have a micro-operation beside those for memory that no experiment shows."""
        beside = [op for op in known if self.memory.isdisjoint(op.ports)]
        return not beside and not self.facts.saturating.isdisjoint(domains(form))

    @cached_property
    def memory(self) -> frozenset[int]:
        """Ports of classes that do nothing but access memory."""
        sets, files = self.facts.structure.sets, self.facts.files
        return frozenset(p for name, ports in sets.items() if "m" in files[name] for p in ports)


def _stalls(form: InstructionForm, microcoded: bool, missed: bool) -> str:
    """Why a form keeps others waiting that need none of its ports, or ""."""
    if microcoded:
        return "microcoded: dispatch stalls while the sequencer delivers"
    return "locked: other accesses to memory wait for it" if missed and is_locked(form) else ""


def _less(operations: Sequence[Operation], one: Operation) -> list[Operation]:
    """The operations but for one micro-operation."""
    return [
        msgspec.structs.replace(op, count=op.count - 1) if op.ports == one.ports else op for op in operations
    ]


def _filled(parts: Sequence[Usage], slots: int) -> list[Usage]:
    """The parts with as many micro-operations as slots, if another explanation that fits as well has them."""
    missing = slots - sum(_count(part.operations or ()) for part in parts)
    found = list(parts)
    for place, part in enumerate(parts):
        if missing <= 0 or not part.operations:
            continue
        more = _count(part.operations) + missing
        for other in part.alternatives:
            if _count(other) == more:
                rest = (part.operations, *(some for some in part.alternatives if some != other))
                found[place] = msgspec.structs.replace(part, operations=other, alternatives=rest)
                return found
    return found


def _count(operations: Sequence[Operation]) -> int:
    return sum(round(op.count) for op in operations)


def _least(confined: Mapping[str, float], ports: Mapping[str, tuple[int, ...]]) -> dict[str, float]:
    """The least of what was counted for classes of the same ports: each is an upper bound.

    What was timed is none where a class does not fill its ports all the time.
    """
    best: dict[tuple[int, ...], str] = {}
    for name, value in confined.items():
        if value < confined.get(best.get(ports[name], ""), math.inf):
            best[ports[name]] = name
    return {name: confined[name] for name in best.values()}
