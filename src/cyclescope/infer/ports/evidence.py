"""What port experiments tell about forms and classes: everything follows from a store's records."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from statistics import fmean, median
from typing import Protocol

from cyclescope.infer.likelihood.evidence import FULL
from cyclescope.infer.likelihood.noise import SMALLEST_ERROR, Look
from cyclescope.infer.likelihood.structure import Structure
from cyclescope.infer.ports.candidates import is_locked, memory_of, register_bits
from cyclescope.infer.ports.classes import ALIKE, Classes, may_be_halves
from cyclescope.infer.ports.front_end import FrontEndFacts, is_one_slot
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.measure.ports import INSTANCES, PORTS, blocked
from cyclescope.measure.record import FAILED, Record
from cyclescope.remarks.remark import Remark

SHOWN_BY = 3  # forms that show what a core does, as one may be read wrong
ERROR = 0.05  # micro-operations by which a count is off, or a reading that does not say
_VAGUE = 3.0  # times the error of another reading: beside that this one tells nothing
_FEW = 0.05  # of the forms with the widest operands, which may have fewer micro-operations than the others


Slots = Mapping[str, float]  # of forms
ClassCounts = tuple[tuple[str, ...], tuple[int, ...]]  # classes, and instances of each in a cycle


class PortEvidence(Protocol):
    """What shows the ports of classes and what forms cost these: time, or counters."""

    @property
    def classes(self) -> Classes:
        """Classes of blocking instructions."""

    @property
    def confined(self) -> Mapping[str, Mapping[str, float]]:
        """Micro-operations of a form that are confined to a class, by form and representative."""

    def looks(self, form: str) -> Mapping[str, Sequence[Look]]:
        """Readings of a form, in micro-operations confined to a class, that tell ports, by representative."""

    @property
    def shuts(self) -> bool:
        """Whether the core shuts ports to shorter vectors while it has some of the widest to do."""

    @property
    def units(self) -> Mapping[str, Remark]:
        """Classes that are not sets of ports, with the reason: hidden resources."""

    @property
    def kept(self) -> frozenset[str]:
        """Classes that keep each of their ports for two turns or more."""

    @property
    def structure(self) -> Structure:
        """The ports."""

    @property
    def sure(self) -> Mapping[str, float]:
        """Share of the odds that the ports of a class have, by representative; what is absent is certain."""

    @property
    def fillings(self) -> Sequence[ClassCounts]:
        """Two or three classes each, with instances in a cycle that would tell how many ports they share."""

    @property
    def hidden(self) -> Sequence[tuple[str, str]]:
        """Classes that may have numbers of ports together which the front end hides."""

    @property
    def crowded(self) -> frozenset[str]:
        """Classes whose ports lose a turn to results that come later than theirs."""

    @property
    def late(self) -> frozenset[str]:
        """Classes whose own results come late."""


class PortFacts:
    """What follows from the front end, the classes and their ports, whatever showed them.

    `records` are those of port experiments.
    """

    def __init__(self, front_end: FrontEndFacts, evidence: PortEvidence, records: Iterable[Record]) -> None:
        self.table = front_end.table
        self.front_end = front_end
        self.evidence = evidence
        self._records = list(records)
        self.looks = cache(evidence.looks)  # those of a form are asked for in all that is told of it

    @property
    def classes(self) -> Classes:
        """Classes of blocking instructions."""
        return self.evidence.classes

    @property
    def structure(self) -> Structure:
        """The ports."""
        return self.evidence.structure

    @property
    def confined(self) -> Mapping[str, Mapping[str, float]]:
        """Micro-operations of a form that are confined to a class, by form and representative."""
        return self.evidence.confined

    @cached_property
    def _per_slot(self) -> dict[int, int]:
        """Micro-operations that one slot of forms with operands of so many bits brings, where not one.

        Where too few forms tell it, it is what blocking instructions of the widest vectors take.
        """
        found: dict[int, list[float]] = {}
        for form in self.classes.typical:
            if is_one_slot(self.front_end.slots.get(form, 0.0)):
                most = max(self._turns_taken(form), default=0.0)
                if is_one(most):
                    found.setdefault(register_bits(self.table[form]), []).append(most)
        lowest = {bits: sorted(v)[int(len(v) * _FEW)] for bits, v in found.items() if len(v) >= 1 / _FEW}
        shown = {bits: round(median(found[bits])) if round(low) > 1 else 1 for bits, low in lowest.items()}
        return {bits: turns for bits, turns in (self._of_widest | shown).items() if turns > 1}

    @property
    def _of_widest(self) -> dict[int, int]:
        """Turns that blocking instructions of the widest vectors take, by the bits of these."""
        heads = [name for name, files in self.classes.files.items() if files == {"z"}]
        turns = [self._turns_of(name) for name in heads]
        return {register_bits(self.table[heads[0]]): min(turns)} if heads else {}

    def _turns_taken(self, form: str) -> Iterator[float]:
        """Turns that a form takes of the ports of each class; what blocks these may itself take several."""
        for name, instances in self.confined.get(form, {}).items():
            if "m" not in self.classes.files[name] and may_be_halves(instances):
                yield instances * self._turns_of(name)

    def _turns_of(self, name: str) -> int:
        """Turns of a port that an instance of a class takes."""
        return 2 if name in self.evidence.kept else self.classes.turns_of(name, self.confined)

    def per_slot(self, form: InstructionForm) -> int:
        """Micro-operations that a slot of a form brings: two where the core's units are half as wide."""
        return self._per_slot.get(register_bits(form), 1)

    def are_beside_slow(self, records: Iterable[Record]) -> bool:
        """Whether records are all of forms among slow ones, which are no blocking instructions."""
        blocking = {*self.classes.widths, *self.classes.stand_ins.values()}
        return all(r.quantity == PORTS and r.source not in blocking for r in records)

    def hear(self, records: Iterable[Record]) -> None:
        """Take more records of forms beside slow ones; the later of one experiment counts."""
        new = {record.key: record for record in records}
        old = [record for record in self._records if record.key not in new]
        self._records = [*old, *(record for record in new.values() if record.verdict != FAILED)]
        vars(self).pop("waits", None)

    @cached_property
    def waits(self) -> dict[str, dict[str, float]]:
        """Cycles for which a form keeps others waiting that run slower than their ports allow, by both."""
        widths = self.classes.widths
        records = [r for r in self._records if r.quantity == PORTS and r.source not in widths]
        among = {r.form: r.cycles / (blocked(r.variant) + INSTANCES) for r in records if r.form == r.source}
        found: dict[str, dict[str, float]] = {}
        for r in records:
            if r.source in among:
                cycles = r.cycles - blocked(r.variant) * among[r.source]
                found.setdefault(r.form, {})[r.source] = cycles / INSTANCES
        return found

    def knows_memory(self, form: InstructionForm) -> bool:
        """Whether there are blocking instructions for what a form does to its explicit memory operand."""
        op = memory_of(form)
        if op is None:
            return True
        reads, writes = self._known_accesses
        return (not op.read or reads) and (not op.write or writes)

    @cached_property
    def _known_accesses(self) -> tuple[bool, bool]:
        """Whether there are blocking instructions that read memory, and such that write it."""
        heads = (head for head in self.structure.sets if "m" in self.classes.files[head])
        moves = [self.table[name] for head in heads for name in self.classes.members[head]]
        done = [other for move in moves if (other := memory_of(move)) is not None]
        return any(op.read for op in done), any(op.write for op in done)

    def _fills_the_front_end(self, width: float) -> bool:
        return width > FULL * self.front_end.width

    @cached_property
    def hiding(self) -> frozenset[str]:
        """Register files with a set of ports as wide as the front end.

        Not where a class nearly as wide is known: what is faster than it needs no port then.
        """
        widths, files = self.classes.widths, self.classes.files
        wide = (name for name in self.structure.sets if self._fills_the_front_end(widths[name]))
        return self.front_end.saturating.difference(*(files[name] for name in wide))

    @cached_property
    def renamed(self) -> frozenset[str]:
        """Classes that no set of ports explains and that nearly fill the front end: it is what limits them.

        What a form costs among them is its slots, for one renamer or all: that is no unit besides.
        """
        known, widths = self.structure.sets, self.classes.widths.items()
        return frozenset(n for n, width in widths if n not in known and self._fills_the_front_end(width))

    @cached_property
    def reach(self) -> dict[str, frozenset[str]]:
        """Register files of the classes that share ports with each class, itself among them."""
        structure, files = self.structure, self.classes.files
        found = {}
        for name in self.classes.members:
            mine = set(structure.sets.get(name, ()))
            near = [n for n, ports in structure.sets.items() if not mine.isdisjoint(ports)]
            found[name] = frozenset().union(files[name], *[files[n] for n in near])
        return found

    @cached_property
    def alone_with_ports(self) -> set[str]:
        """Classes that no class of another register file equals."""
        sets, files = self.structure.sets, self.classes.files
        return {
            name for name, ports in sets.items()
            if not any(other == ports and files[n] != files[name] for n, other in sets.items())
        }  # fmt: skip


def is_one(cost: float) -> bool:
    """Whether a cost is rather one micro-operation than none."""
    return cost > 0.5


def low(looks: Sequence[Look]) -> float:
    """The mean of the lowest readings whose rounds agree: what disturbs one only makes it more."""
    return looks[0].value if len(looks) == 1 else fmean([look.value for look in lowest(looks)])


def lowest(looks: Sequence[Look]) -> list[Look]:
    """Those readings."""
    error = min(look.error for look in looks)
    clear = [look for look in looks if look.error <= _VAGUE * max(error, SMALLEST_ERROR)]
    least = min(look.value for look in clear)
    return [look for look in clear if look.value - least < ALIKE]


class Costs:
    """Readings of forms among the blocking instructions of classes: of forms without new ones as before.

    `before` are those that were read before there were records of the forms `since`.
    """

    def __init__(
        self,
        classes: Classes,
        records: Iterable[Record],
        before: Costs | None = None,
        since: Container[str] = (),
    ) -> None:
        self._table, self._widths, self._members = classes.table, classes.widths, classes.members
        self._records = records
        self._heads = {name: name for name in classes.widths}
        self._heads |= {name: head for head, name in classes.stand_ins.items()}
        self._same: dict[str, tuple[dict[str, list[Look]], dict[str, float]]] = {}
        if before is not None and (before._widths, before._heads) == (self._widths, self._heads):
            known = before.looks.items()
            self._same = {form: (some, before.confined[form]) for form, some in known if form not in since}

    @cached_property
    def looks(self) -> dict[str, dict[str, list[Look]]]:
        """Readings by form and representative, in micro-operations.

        Of blocking instructions of several register files those count that it costs least: the others need
        something else beside the ports that all of them have. Of locked forms there are none: what waits
        for the lock does not wait for a port.

        An instance that waits for flags of the blocking instruction before it is the oldest when it may
        begin, and all its micro-operations are ready at once: two of them take both of two ports, though one
        would do. Behind a setter of these flags, which is not kept waiting itself, it is not.
        """
        heads, same = self._heads, self._same
        found: dict[str, dict[str, dict[tuple[str, str], list[Record]]]] = {}
        for r in self._records:
            if r.quantity == PORTS and r.source in heads:
                by_class = found.setdefault(r.form, {})
                if r.form not in same:
                    some = by_class.setdefault(heads[r.source], {})
                    some.setdefault((r.source, r.target), []).append(r)
        return {
            form: same[form][0] if form in same else {
                head: self._least(form, self._widths[head], some) for head, some in by_class.items()
            }
            for form, by_class in found.items() if not self._is_locked(form)
        }  # fmt: skip

    def _is_locked(self, form: str) -> bool:
        known = self._table.get(form)
        return known is not None and is_locked(known)

    def _least(
        self, form: str, width: int, records: Mapping[tuple[str, str], Sequence[Record]]
    ) -> list[Look]:
        """Readings among the blocking instructions of a class that a form costs least, best behind setters.

        Those with the fewest cycles of blocking have the instances spread, the others in one place.
        """
        scale, found = width / INSTANCES, []
        for (source, setter), some in records.items():
            waits = not setter and bool(_awaited(self._table, form, source))
            cycles = [blocked(r.variant) for r in some]
            least = min(cycles)
            found.append([
                Look((r.cycles - n) * scale, r.spread * scale, n > least, waits)
                for r, n in zip(some, cycles, strict=True)
            ])  # fmt: skip
        one, *others = found
        return min(found, key=lambda looks: low(looks) + looks[0].waits / 2) if others else one

    @cached_property
    def confined(self) -> dict[str, dict[str, float]]:
        """Micro-operations of a form that are confined to a class, by form and representative."""
        same = self._same
        return {
            form: same[form][1] if form in same else {head: low(looks) for head, looks in some.items()}
            for form, some in self.looks.items()
        }

    def takes_turns(self, name: str, slots: Slots) -> bool:
        """Whether an instance of a class takes several turns: what costs it anything costs it a part.

        All of one slot then cost it the same part, and nothing but its own members as much as itself.
        """
        others = [form for form in self.confined if form not in self._members[name]]
        costs = [self.confined[form].get(name, 0.0) for form in others if is_one_slot(slots.get(form, 0.0))]
        parts = [cost for cost in costs if cost > ALIKE]
        return len(parts) >= SHOWN_BY and max(parts) < 1 - ALIKE and max(parts) - min(parts) < ALIKE


def _awaited(table: Table, form: str, blocker: str) -> int:
    """Flags for which a form waits among blocking instructions."""
    waiting, writing = table.get(form), table.get(blocker)
    return waiting.flags_read & writing.flags_written if waiting and writing else 0


def waits_among(facts: PortFacts, form: InstructionForm) -> Iterator[tuple[str, int]]:
    """Classes that a form may cost more for waiting, each with the flags that it waits for."""
    for head, looks in facts.looks(form.id).items():
        if looks[0].waits and is_one(low(looks)):
            yield head, _awaited(facts.table, form.id, head)
