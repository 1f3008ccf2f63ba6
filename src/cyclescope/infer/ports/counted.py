"""Facts of port experiments where performance counters say which ports executed micro-operations.

The experiments are the same as without counters. What the counters add: the ports of a blocking
instruction are read off instead of inferred, and what is confined to them is counted instead of timed
(uops.info's Algorithm 1, Abel and Reineke 2019), so that no port is too wide for the front end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice

import msgspec

from cyclescope.infer.likelihood.explaining import UsageCandidate
from cyclescope.infer.likelihood.noise import Look, Tail, alike
from cyclescope.infer.likelihood.structure import Structure
from cyclescope.infer.likelihood.usage import (
    Explanation,
    Ports,
    Told,
    are_no_limit,
    explanations,
    most_needed,
)
from cyclescope.infer.ports.builder import runs_slower, unseen_access
from cyclescope.infer.ports.candidates import files_of
from cyclescope.infer.ports.classes import Blockers, Classes, Grouping
from cyclescope.infer.ports.evidence import ERROR, ClassCounts, PortFacts
from cyclescope.infer.ports.front_end import FrontEndFacts
from cyclescope.infer.ports.groups import PortGroups
from cyclescope.isa.form import InstructionForm
from cyclescope.measure.ports import ALONE, INSTANCES, PAIRS, PORTS, blocked
from cyclescope.measure.record import Record
from cyclescope.model.facts import MEDIUM
from cyclescope.model.machine import Operation
from cyclescope.model.ports import port_throughput
from cyclescope.remarks.ports import Named, Usage
from cyclescope.remarks.remark import NOTHING, Remark

_BUSY = 0.9  # of the cycles: a port that a blocking instruction fills
_SEEN = 0.05  # micro-operations of an instance: no stray event
_MORE = 0.3  # micro-operations counted that are not explained
COUNTS = alike(Tail(0.01, 0.1))  # counts hardly scatter, whatever is chosen
_SINGLE = (0.9, 1.1)  # micro-operations of a blocking instruction


def ports_of(event: str) -> tuple[str, ...]:
    """Ports that an event counts: `p0` one, `p2+3` two; none where it counts something else."""
    return tuple(event[1:].split("+")) if event.startswith("p") else ()


class Counters:
    """What is read off counters; `events` are the names of what the records count."""

    def __init__(self, records: Iterable[Record], events: Sequence[str]) -> None:
        named = [(place, frozenset(ports_of(name))) for place, name in enumerate(events)]
        self._events = [(place, ports) for place, ports in named if ports]
        self._records = [r for r in records if r.counters]
        self._alone = {r.form: r for r in self._records if r.quantity == ALONE}

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the ports."""
        return tuple(sorted(port for _, ports in self._events for port in ports))

    def count(self, record: Record, ports: frozenset[str]) -> float:
        """Micro-operations of a record on some ports, by their names."""
        return sum(record.counters[place] for place, some in self._events if some <= ports)

    @cached_property
    def filled(self) -> dict[str, tuple[frozenset[str], float]]:
        """Ports that each blocking instruction fills among more of itself, with how many it uses."""
        found = {}
        for r in self._records:
            if r.quantity == PAIRS and r.form == r.source:
                busy = {
                    ports: r.counters[place] for place, ports in self._events
                    if r.counters[place] > _BUSY * len(ports) * r.cycles
                }  # fmt: skip
                found[r.form] = frozenset().union(*busy), sum(busy.values()) / blocked(r.variant)
        return found

    def beside(self, widths: Mapping[str, int]) -> Iterator[tuple[str, str, float]]:
        """Forms, classes, and micro-operations of a form that are on the ports that a class fills."""
        for r in self._records:
            if r.quantity == PORTS and r.source in widths:
                blocking = blocked(r.variant) * widths[r.source]
                yield r.form, r.source, (self.count(r, self.filled[r.source][0]) - blocking) / INSTANCES

    def total(self, form: str, ports: Iterable[int]) -> float | None:
        """Micro-operations of a form on some ports with nothing around it; None where none were counted."""
        record = self._alone.get(form)
        names = frozenset(self.labels[p] for p in ports)
        return None if record is None else self.count(record, names) / INSTANCES

    @cached_property
    def of_one(self) -> list[str]:
        """Forms of which one micro-operation was counted in all."""
        every = range(len(self.labels))
        return [name for name in self._alone if _SINGLE[0] < (self.total(name, every) or 0.0) < _SINGLE[1]]

    def was_seen_on(self, form: str, ports: Iterable[int]) -> bool:
        """Whether a form alone was counted on some of the ports."""
        return (self.total(form, ports) or 0.0) > _SEEN

    @cached_property
    def _used(self) -> dict[str, frozenset[str]]:
        found: dict[str, set[str]] = {}
        for r in self._records:
            own, _ = self.filled.get(r.source, (frozenset(), 0.0))
            if r.quantity == ALONE or (r.quantity == PORTS and own):  # else others are counted with it
                some = [ports for place, ports in self._events if r.counters[place] > _SEEN * INSTANCES]
                found.setdefault(r.form, set()).update(*[ports for ports in some if not ports <= own])
        return {form: frozenset(ports) for form, ports in found.items()}

    def unused(self, form: str, ports: Iterable[int]) -> tuple[int, ...]:
        """Ports on which a form was never counted, neither alone nor where others were blocked."""
        return tuple(p for p in ports if self.labels[p] not in self._used.get(form, ()))


def grouped_by_counts(
    front_end: FrontEndFacts, blockers: Blockers, filled: Mapping[str, tuple[frozenset[str], float]]
) -> Grouping:
    """One candidate per set of ports that it fills, and those that have not been looked at.

    Not one that may have more ports than the front end can fill: others of its registers have ports that it
    was not seen on, or others share some of its ports. Those that vectors have, apart from it, tell nothing.
    """
    candidates = {name: width for (_, width), group in blockers.items() for name in group}
    heads: dict[tuple[frozenset[str], frozenset[str]], str] = {}
    found: dict[str, list[str]] = {}
    missing = [(name, name, width) for name, width in candidates.items() if name not in filled]
    for name, width in candidates.items():
        ports, count = filled.get(name, (frozenset(), 0.0))
        files = frozenset(files_of(front_end.table[name]))
        if len(files) > 1 or len(ports) != width or not _SINGLE[0] < count / (2 * width) < _SINGLE[1]:
            continue
        found.setdefault(heads.setdefault((files, ports), name), []).append(name)
    for (files, ports), name in heads.items():
        away = [other for some, other in heads if some != files and ports.isdisjoint(other)]
        same = [other for some, other in heads if some == files and not any(other <= one for one in away)]
        near = [*same, *(other for _, other in heads if not ports.isdisjoint(other))]
        if candidates[name] >= front_end.width and not all(ports >= other for other in near):
            del found[name]
    return Grouping(found, missing)


class CountedEvidence:
    """What counters tell of classes of blocking instructions, and of forms among them.

    All classes are sets of ports: what is not one micro-operation on as many ports as run per cycle is no
    class here. And all is certain, as the counters name the ports.
    """

    units: Mapping[str, Remark] = {}
    sure: Mapping[str, float] = {}
    fillings: Sequence[ClassCounts] = ()
    hidden: Sequence[tuple[str, str]] = ()
    crowded = late = kept = frozenset[str]()  # counts are of micro-operations, not of turns

    def __init__(self, classes: Classes, counters: Counters) -> None:
        self.classes = classes
        self.counters = counters

    @cached_property
    def shuts(self) -> bool:
        """Whether the core shuts ports to shorter vectors while it has some of the widest to do."""
        return self.classes.are_shut({})

    @cached_property
    def structure(self) -> Structure:
        """The ports, as the counters name them."""
        labels = self.counters.labels
        place = {name: n for n, name in enumerate(labels)}
        filled = self.counters.filled
        sets = {name: tuple(sorted(place[p] for p in filled[name][0])) for name in self.classes.members}
        return Structure(len(labels), sets)

    @cached_property
    def confined(self) -> dict[str, dict[str, float]]:
        """Micro-operations of a form that are confined to a class, by form and representative."""
        found: dict[str, dict[str, float]] = {}
        for form, head, value in self.counters.beside(self.classes.widths):
            some = found.setdefault(form, {})
            some[head] = min(value, some.get(head, value))
        return found

    def looks(self, form: str) -> dict[str, Sequence[Look]]:
        """What was counted of a form, by representative."""
        return {name: (Look(value, ERROR),) for name, value in self.confined.get(form, {}).items()}


class CountedJudge:
    """What makes usages of counts: the counters name the ports, whatever else takes time."""

    naming = Named.COUNTERS.of()

    def __init__(self, facts: PortFacts, counters: Counters) -> None:
        self.facts = facts
        self.names = counters.labels
        self.structure = facts.structure
        self._counters = counters

    @cached_property
    def groups(self) -> PortGroups:
        """Classes that share ports, and what explains counts among them."""
        return PortGroups(self.facts, self.structure, COUNTS)

    def explain(self, form: InstructionForm, throughput: float, slots: float | None) -> list[Explanation]:
        """What explains a form's counts, the likeliest first; slots tell nothing more."""
        groups, found = self.groups, []
        for (group, solver), some in groups.looks(form):
            ports = {p for ports in group.values() for p in ports}
            total, per_slot = self._counters.total(form.id, ports), self.facts.per_slot(form)
            least = _least(some, group)
            found.append(solver.candidates(least, throughput, groups.expected(form), total, per_slot, {}))
        told = Told(throughput, None, groups.accesses(form), groups.memory)
        return [self._counted(form, some, throughput) for some in explanations(found, told)]

    def _counted(self, form: InstructionForm, some: Explanation, throughput: float) -> Explanation:
        """An explanation with what was counted on ports that none of its own has, and without ports on which
        nothing was counted where the form is as slow as the others let it, and nothing else limits it.
        """
        if not some.complete:
            return some
        most, found = most_needed(throughput), list(some.operations)
        more = self._beside(form.id, found)
        if more and port_throughput([*found, *more]) <= most:
            some = msgspec.structs.replace(some, parts=(*some.parts, UsageCandidate(more, 0.0, 0.0)))
            found += more
        free_to_choose = self._has_other_limit(form, throughput)
        for place, op in enumerate([] if free_to_choose else found):
            _, fewer = self._fewer(form.id, op)
            known = [*found[:place], fewer, *found[place + 1 :]]
            if port_throughput(found) < port_throughput(known) <= most:
                found = known
        rest = iter(found)
        parts = [(part, tuple(islice(rest, len(part.operations or ())))) for part in some.parts]
        replaced = tuple(msgspec.structs.replace(part, operations=own) for part, own in parts)
        return msgspec.structs.replace(some, parts=replaced)

    def _has_other_limit(self, form: InstructionForm, throughput: float) -> bool:
        """Whether slots or a chain may be why a form is no faster: it need not use all of its ports."""
        front_end = self.facts.front_end
        slotted = not are_no_limit((front_end.slots.get(form.id) or 0.0) / front_end.width, throughput)
        shared = any(op.is_register and op.fixed and op.read and op.write for op in form.operands)
        return slotted or shared or front_end.is_slowed_by_waiting(form, throughput)

    def _beside(self, form: str, found: Sequence[Operation]) -> tuple[Operation, ...]:
        """What is counted beside some, if it is on ports that none of them has: as many micro-operations as
        on each of the sets of ports that other forms show alone, and one on what is left.
        """
        every = range(self.structure.ports)
        free = set(every).difference(*(op.ports for op in found))
        more = (self._counters.total(form, every) or 0.0) - sum(op.count for op in found)
        used = free.difference(self._counters.unused(form, free))
        if more <= _MORE or abs((self._counters.total(form, used) or 0.0) - more) > _MORE:
            return ()
        sets = [] if more - 1 <= _MORE else [some for some in self._singles if not used.isdisjoint(some)]
        told = [Operation(some, float(round(self._counters.total(form, some) or 0.0))) for some in sets]
        covered = [port for some in sets for port in some]
        if rest := used.difference(covered):
            told.append(Operation(tuple(sorted(rest)), 1.0))
        apart = len(covered) == len(free.intersection(covered))  # else it is not told whose a count is
        return tuple(told) if apart and all(self._is_even(form, op) for op in told) else ()

    @cached_property
    def _singles(self) -> list[Ports]:
        """The sets of ports on which forms of one micro-operation were counted."""
        every = range(self.structure.ports)
        unused = {self._counters.unused(name, every) for name in self._counters.of_one}
        return sorted(tuple(p for p in every if p not in some) for some in unused)

    def _is_even(self, form: str, op: Operation) -> bool:
        """Whether a whole number was counted on some ports, and as much on each where it is several."""
        counts = [self._counters.total(form, (port,)) or 0.0 for port in op.ports]
        even = op.count == 1 or max(counts) - min(counts) <= _SEEN
        return op.count > 0 and even and abs(sum(counts) - op.count) <= _MORE

    def _fewer(self, form: str, op: Operation) -> tuple[tuple[int, ...], Operation]:
        """Ports of a micro-operation on which a form was never counted, and it with the others, if any."""
        unused = self._counters.unused(form, op.ports)
        fewer = tuple(p for p in op.ports if p not in unused)
        return unused, msgspec.structs.replace(op, ports=fewer or op.ports)

    def stalls(self, microcoded: bool) -> Remark:
        """Nothing that counts would show."""
        return NOTHING

    def missing(self, form: InstructionForm, known: Sequence[Operation]) -> Remark:
        """What no class shows of a form though it was counted, or nothing."""
        total = self._counters.total(form.id, range(self.structure.ports))
        if total is None:
            return unseen_access(self.facts, form)
        more = total - sum(op.count for op in known)
        return Usage.UNFILLED.of(more) if more > _MORE else NOTHING

    def doubts(
        self,
        form: InstructionForm,
        known: Sequence[Operation],
        slots: float | None,
        throughput: float,
        turns: float = 1.0,
    ) -> Iterator[tuple[Remark, str]]:
        """What speaks against a usage that fits all counts, and the confidence that it leaves."""
        if runs_slower(known, slots, self.facts.front_end.width, throughput, turns):
            yield Usage.SLOWER.of(), MEDIUM
        classes = set(self.structure.sets.values())
        for op in known:
            unused, fewer = self._fewer(form.id, op)
            rest = [other for other in known if other is not op]
            suffices = not throughput or port_throughput([*rest, fewer]) <= most_needed(throughput)
            if fewer.ports != op.ports and suffices:
                yield Usage.NEVER_COUNTED.of(", ".join(self.names[p] for p in unused)), MEDIUM
            if op.ports not in classes:
                yield Usage.AS_COUNTED.of(", ".join(self.names[p] for p in op.ports)), MEDIUM


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
