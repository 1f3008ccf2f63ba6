"""Port usage of forms: from the facts of port experiments to results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache, cached_property, reduce
from itertools import combinations
from typing import Protocol

import msgspec

from cyclescope.infer.copies import MadeAhead
from cyclescope.infer.front_end.undivided import MICROCODE
from cyclescope.infer.likelihood.structure import Structure
from cyclescope.infer.likelihood.usage import LATE_TURNS, Explanation, are_no_limit, most_needed
from cyclescope.infer.ports.evidence import PortFacts
from cyclescope.infer.ports.groups import LoadWidths, PortGroups
from cyclescope.isa.form import InstructionForm
from cyclescope.model.facts import HIGH, LOW, MEDIUM
from cyclescope.model.machine import Operation
from cyclescope.model.ports import notation, port_throughput
from cyclescope.remarks.front_end import Slots
from cyclescope.remarks.ports import NoPorts, Usage, group_of
from cyclescope.remarks.remark import NOTHING, Remark, together

NOISE = 0.08  # micro-operations: less of a resource is none
MISSED = 0.12  # micro-operations by which an explanation misses a class: it is measured again
_WHOLE = 1.0  # micro-operations by which an explanation misses a class: as much as one that it has or lacks
_OTHERS_OF_HIGH = 0.005  # of the odds that may be for something else: `high` promises as much
_OTHERS_OF_MEDIUM = 0.05  # the same of `medium`
UNLIKELY = 100.0  # times less likely than the best: other usages are not told
MOST_OTHERS = 3  # other usages that are told
_ORDER = (HIGH, MEDIUM, LOW)


class PortUsage(msgspec.Struct, frozen=True, dict=True):
    """Slots, ports and resources of a form.

    `slot_range` are the least and the most slots where they vary, `ports` is the usage in the notation of
    `model.ports`, with `?` for what no set of micro-operations explains, None where nothing was measured;
    `remarks` say why, or what it leaves open. `throughput` is the reciprocal throughput that follows from it,
    in cycles. `resources` has cycles of each resource: sets of ports by their notation, hidden units by the
    form that shows them. `late` says that its result comes later than others of its ports, which may lose a
    turn to it. `spare` are slots that have to be free behind its own.
    """

    slots: float | None
    ports: str | None
    operations: tuple[Operation, ...] | None = None
    throughput: float | None = None
    confidence: str = ""
    alternatives: tuple[str, ...] = ()
    resources: Mapping[str, float] = {}
    microcoded: bool = False
    remarks: tuple[Remark, ...] = ()
    slot_range: tuple[float, float] | None = None
    late: bool = False
    spare: float = 0.0

    @cached_property
    def note(self) -> str:
        """The remarks as one line."""
        return together(self.remarks)

    @property
    def group(self) -> str:
        """That of the reason why there is no usage, or ""."""
        found = group_of(self.remarks) if self.ports is None else None
        return "" if found is None else found.name.lower()


class PortJudge(Protocol):
    """What makes usages of readings: of times, or of counts."""

    @property
    def facts(self) -> PortFacts:
        """What was found of classes and forms."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the ports."""

    @property
    def naming(self) -> Remark:
        """Where the names are from."""

    @property
    def structure(self) -> Structure:
        """The ports, in the order of their names."""

    @property
    def groups(self) -> PortGroups:
        """Classes that share ports, and what explains readings among them."""

    def explain(self, form: InstructionForm, throughput: float, slots: float | None) -> list[Explanation]:
        """What explains a form's readings, the likeliest first; `slots` as far as they tell."""

    def stalls(self, microcoded: bool) -> Remark:
        """Why a form keeps others waiting that need none of its ports, or nothing."""

    def missing(self, form: InstructionForm, known: Sequence[Operation]) -> Remark:
        """What no experiment shows of a form, or nothing."""

    def doubts(
        self,
        form: InstructionForm,
        known: Sequence[Operation],
        slots: float | None,
        throughput: float,
        turns: float = 1.0,
    ) -> Iterator[tuple[Remark, str]]:
        """What speaks against a usage that fits all confinements, and the confidence that it leaves.

        `turns` are those of a port that a micro-operation may take.
        """


class PortBuilder:
    """Port usage of every form, as a judge of the readings has it."""

    def __init__(self, judge: PortJudge) -> None:
        self.judge = judge
        self.facts = judge.facts
        self._known: dict[tuple[str, float | None], PortUsage] = {}
        self.ahead: MadeAhead[tuple[str, float | None], PortUsage] | None = None  # usages
        self._sureness = cache(self._share_of)  # many forms have the same ports

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the ports."""
        return self.judge.names

    @property
    def structure(self) -> Structure:
        """The ports, in the order of their names."""
        return self.judge.structure

    @property
    def memory(self) -> frozenset[int]:
        """Ports of classes that do nothing but access memory."""
        return self.judge.groups.memory

    @property
    def wide_loads(self) -> LoadWidths:
        """What loads of the widest vectors cost others."""
        return self.judge.groups.wide

    @property
    def blind(self) -> bool:
        """Whether the core deals out ports before it knows which will be free."""
        return self.judge.groups.blind

    @cached_property
    def resources(self) -> dict[str, tuple[str, float]]:
        """Name and capacity of the resource that each class stands for."""
        structure = self.structure
        found = {}
        for name, width in self.facts.classes.widths.items():
            if name in self.facts.renamed:
                continue
            ports = structure.sets.get(name)
            label = "p" + "".join(self.names[p] for p in ports) if ports else f"unit of {name}"
            found[name] = label, float(width)
        return found

    def usage(
        self, form: InstructionForm, throughput: float | None, why_none: tuple[Remark, ...] = ()
    ) -> PortUsage:
        """What is known of a form; `why_none` says why nothing was measured."""
        key = form.id, throughput
        known = self._known.get(key) or (self.ahead.take(key) if self.ahead else None)
        if known is None:
            found = self._usage(form, throughput, why_none)
            front_end = self.facts.front_end
            known = msgspec.structs.replace(
                found, slot_range=front_end.slot_range(form), spare=front_end.spare(form)
            )
        if form.id in self.facts.confined:
            self._known[key] = known
        return known

    def _usage(
        self, form: InstructionForm, throughput: float | None, why_none: tuple[Remark, ...]
    ) -> PortUsage:
        slots = self.facts.front_end.slots.get(form.id)
        shown, _ = self.facts.front_end.told(form)
        confined = self.facts.confined.get(form.id)
        if confined is None:
            return PortUsage(shown, None, remarks=why_none or (NoPorts.UNMEASURED.of(),))
        microcoded = slots is not None and slots > MICROCODE
        found = self.judge.explain(form, throughput or math.inf, None if microcoded else shown)
        return self._combined(form, found, confined, shown, microcoded, throughput or 0.0)

    def missed(self, form: InstructionForm, usage: PortUsage) -> set[str]:
        """Classes whose measured confinement is not what a usage makes of it."""
        sets = self.structure.sets
        confined = {n: v for n, v in self.facts.confined.get(form.id, {}).items() if n in sets}
        if usage.operations is None:
            return {name for name, value in confined.items() if value > NOISE}
        expected = {
            n: sum(o.count * o.cycles for o in usage.operations if set(o.ports) <= set(sets[n]))
            for n in confined
        }
        return {name for name, value in confined.items() if abs(value - expected[name]) > MISSED}

    def _combined(
        self,
        form: InstructionForm,
        found: Sequence[Explanation],
        confined: Mapping[str, float],
        slots: float | None,
        microcoded: bool,
        throughput: float,
    ) -> PortUsage:
        best = found[0]
        missed = best.missed > MISSED
        stalls = self.judge.stalls(microcoded)
        known = () if missed and stalls else best.operations  # what stalls cost is not to look like ports
        missing = self.judge.missing(form, known)
        complete = not missing and best.complete and not (missed and stalls)
        usage = notation(known, self.names)
        if not complete:
            usage = f"{usage}+?" if known else "?"
        slots, remark = self._told(form, slots, known)
        others = [] if missed and stalls else _others(found, self.names)
        late = Usage.LATE.of() if best.late else NOTHING
        wide = [Usage.WIDE.of(more) for more in self.wide_loads.of(form, self.structure.sets).values()]
        remarks = [_conflict(best), remark, _odds(others), late, *wide]
        told = min((self._sureness(op.ports) for op in best.operations), default=1.0)
        levels = [level_of(best, told), *([self._without_slots] * (slots is None))]
        if 1 - told > _OTHERS_OF_HIGH:
            remarks.append(Usage.OTHER_NUMBER.of(told / (1 - told)))
        if missing:
            levels.append(LOW)
            remarks.append(missing)
        if stalls:
            levels.append(LOW)
            remarks.append(stalls)
        elif complete:
            turns = LATE_TURNS if best.late else 1.0
            doubts = list(self.judge.doubts(form, known, slots, throughput, turns))
            remarks += [doubt for doubt, _ in doubts]
            levels += [level for _, level in doubts]
            if self._may_have_fewer(known, throughput, confined):
                levels.append(MEDIUM)
                remarks.append(Usage.FEWER.of())
        return PortUsage(
            slots, usage, known if complete else None,
            round(port_throughput(known), 2) if complete else None,
            max(levels, key=_ORDER.index), tuple(other for other, _ in others),
            self._weights(confined), microcoded, tuple(filter(None, remarks)), late=best.late,
        )  # fmt: skip

    @property
    def _without_slots(self) -> str:
        """The confidence in ports of a form whose slots are not known.

        Without a width a class of ports may be missed, and what has them seems to need none.
        """
        return MEDIUM if self.facts.front_end.width_fact.is_told else LOW

    def _share_of(self, ports: tuple[int, ...]) -> float:
        """Share of the odds that a set of ports has: that of the classes that it is of."""
        own, sets, sure = set(ports), self.structure.sets, self.facts.evidence.sure
        same = [sure.get(name, 1.0) for name, some in sets.items() if own == set(some)]
        around = [sure.get(name, 1.0) for name, some in sets.items() if own < set(some)]
        return max(same) if same else min(around, default=1.0)

    def _weights(self, confined: Mapping[str, float]) -> dict[str, float]:
        weights: dict[str, float] = {}
        for name, value in confined.items():
            if name not in self.resources:
                continue
            label = self.resources[name][0]
            if value > max(NOISE, weights.get(label, 0.0)):  # classes of two register files share a label
                weights[label] = round(value, 2)
        return weights

    def _told(
        self, form: InstructionForm, slots: float | None, known: Sequence[Operation]
    ) -> tuple[float | None, Remark]:
        """Slots with a remark; none of what needs a port, which is not dropped."""
        if known and slots == 0:
            return None, Slots.NEEDS_PORT.of()
        return slots, self.facts.front_end.told(form)[1]

    def _may_have_fewer(
        self, known: Sequence[Operation], throughput: float, confined: Mapping[str, float]
    ) -> bool:
        """Whether one of several micro-operations, on a single port, would make the form no slower.

        Nor would it cost more among smaller classes: none of them has that port.
        """
        most = most_needed(throughput)
        wide = [op for op in known if len(op.ports) > 1]
        several = sum(op.count for op in known) > 1
        return several and any(
            port_throughput([*_less(known, op), Operation((port,), 1.0, op.cycles)]) <= most
            and not self._shows(port, op, confined)
            for op in wide if self.memory.isdisjoint(op.ports) for port in op.ports
        )  # fmt: skip

    def _shows(self, port: int, op: Operation, confined: Mapping[str, float]) -> bool:
        """Whether a measured class has a port of an operation, but not all of its ports."""
        sets = self.structure.sets
        return any(port in sets[n] and not set(op.ports) <= set(sets[n]) for n in confined if n in sets)


def runs_slower(
    known: Sequence[Operation], slots: float | None, width: float, throughput: float, turns: float = 1.0
) -> bool:
    """Whether ports and slots allow a form to run faster than it does: something else limits it.

    `turns` are those of a port that a micro-operation may take.
    """
    return are_no_limit(max(turns * port_throughput(known), (slots or 0.0) / width), throughput)


def may_have_fewer(
    known: Sequence[Operation],
    shown: Sequence[Set[int]],
    slots: float | None,
    width: float,
    throughput: float,
) -> bool:
    """Whether micro-operations of one kind with fewer ports would be as slow as a form, and not show.

    `shown` are the ports of classes that it was measured among.
    """
    for op in known:
        others = [other for other in known if other is not op]
        for ports in _unseen(op.ports, shown):
            fewer = [*others, msgspec.structs.replace(op, ports=ports)]
            as_slow = port_throughput(fewer) <= most_needed(throughput)
            if as_slow and not runs_slower(fewer, slots, width, throughput):
                return True
    return False


def _unseen(ports: Sequence[int], shown: Sequence[Set[int]]) -> Iterator[tuple[int, ...]]:
    """Parts of a set of ports that cost no class more than the whole."""
    telling = [some for some in shown if not some >= {*ports}]
    for count in range(1, len(ports)):
        for part in combinations(ports, count):
            if not any(some >= {*part} for some in telling):
                yield part


def unseen_access(facts: PortFacts, form: InstructionForm) -> Remark:
    """That nothing tells which ports a form's memory access needs, or nothing."""
    return NOTHING if facts.knows_memory(form) else Usage.UNSEEN_ACCESS.of()


def _less(operations: Sequence[Operation], one: Operation) -> list[Operation]:
    """The operations but for one micro-operation."""
    return [msgspec.structs.replace(op, count=op.count - 1) if op is one else op for op in operations]


def level_of(best: Explanation, structure: float = 1.0) -> str:
    """The confidence that an explanation's share of the odds is worth: low where it leaves something open.

    `structure` is the share of its ports.
    """
    share = best.share * structure
    if not best.complete or best.missed > _WHOLE or 1 - share > _OTHERS_OF_MEDIUM:
        return LOW
    return HIGH if 1 - share <= _OTHERS_OF_HIGH else MEDIUM


def _conflict(best: Explanation) -> Remark:
    """What is said of what no micro-operations explain, or nothing."""
    held = [part.missed for part in best.parts if part.operations is None]
    if held:
        return Usage.CONFLICT.of(max(held))
    return Usage.MISSES.of(best.missed) if best.missed > _WHOLE else NOTHING


def _others(found: Sequence[Explanation], names: Sequence[str]) -> list[tuple[str, float]]:
    """Other usages that are not much less likely, and how many times less likely each is."""
    best, shown = found[0], notation(found[0].operations, names)
    some: dict[str, float] = {}
    for other in found[1:]:
        if other.share * UNLIKELY < best.share:
            break
        text = notation(other.operations, names)
        if other.complete and text != shown:
            some.setdefault(text, best.share / other.share)
    return list(some.items())[:MOST_OTHERS]


def _odds(others: Sequence[tuple[str, float]]) -> Remark:
    """The others with their odds, or nothing."""
    some = [Usage.ODDS.of(odds, text) for text, odds in others]
    return reduce(Usage.MORE_ODDS.of, some) if some else NOTHING
