"""What port experiments tell about forms and classes: everything follows from a store's records."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from statistics import median
from typing import Protocol

from cyclescope.infer.likelihood.evidence import FULL
from cyclescope.infer.likelihood.noise import Look
from cyclescope.infer.likelihood.structure import Structure
from cyclescope.infer.ports.candidates import memory_of, register_bits
from cyclescope.infer.ports.classes import ClassFacts
from cyclescope.infer.ports.front_end import ONE_SLOT
from cyclescope.isa.form import InstructionForm
from cyclescope.measure.ports import INSTANCES, PORTS, blocked

EITHER = 0.5  # micro-operations: rather one than none
HALVES = 2.5  # micro-operations: what costs more was no half of a wide operation
ERROR = 0.05  # micro-operations by which a count is off, or a reading that does not say
FEW = 0.05  # of the forms with the widest operands, which may have fewer micro-operations than the others


class PortCounts(Protocol):
    """What performance counters say of single forms; ports are numbers of `labels`."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the ports."""

    def total(self, form: str, ports: Iterable[int]) -> float | None:
        """Micro-operations of a form on some ports with nothing around it; None where none were counted."""

    def was_seen_on(self, form: str, ports: Iterable[int]) -> bool:
        """Whether a form alone was counted on some of the ports."""

    def unused(self, form: str, ports: Iterable[int]) -> tuple[int, ...]:
        """Ports on which a form was never counted, neither alone nor where others were blocked."""


class PortFacts(ClassFacts):
    """Structure and confinements, however they are found: by time or by counters."""

    @property
    @abstractmethod
    def counters(self) -> PortCounts | None:
        """What was counted; None where timing has to tell."""

    @property
    @abstractmethod
    def confined(self) -> Mapping[str, Mapping[str, float]]:
        """Micro-operations of a form that are confined to a class, by form and representative."""

    @abstractmethod
    def looks(self, form: str) -> Mapping[str, Sequence[Look]]:
        """Readings of a form, in micro-operations confined to a class, that tell ports, by representative."""

    @property
    @abstractmethod
    def units(self) -> Mapping[str, str]:
        """Classes that are not sets of ports, with the reason: hidden resources."""

    @property
    @abstractmethod
    def structure(self) -> Structure:
        """The ports."""

    @property
    @abstractmethod
    def sure(self) -> Mapping[str, float]:
        """Share of the odds that the ports of a class have, by representative; what is absent is certain."""

    @cached_property
    def compared(self) -> frozenset[str]:
        """Classes that were measured together with another one."""
        heads = self.classes.keys()
        return frozenset().union(*(pair for pair in self.pairs if len(pair) > 1 and pair <= heads))

    @cached_property
    def typical(self) -> list[str]:
        """Forms by which others are judged: members of the classes, and forms that differ in width only."""
        members = {name for group in self.classes.values() for name in group}
        mnemonics = {self.table[name].mnemonic for name in members}
        alike = (f.id for f in self.table if f.mnemonic in mnemonics and memory_of(f) is None)
        return sorted(members.union(alike))

    @cached_property
    def _per_slot(self) -> dict[int, int]:
        """Micro-operations that one slot of forms with operands of so many bits brings, where not one."""
        found: dict[int, list[float]] = {}
        for form in self.typical:
            if ONE_SLOT[0] < self.slots.get(form, 0.0) < ONE_SLOT[1]:
                some = self.confined.get(form, {})
                costs = [v for name, v in some.items() if "m" not in self.files[name] and v < HALVES]
                most = max(costs, default=0.0)
                if most > EITHER:
                    found.setdefault(register_bits(self.table[form]), []).append(most)
        lowest = {bits: sorted(v)[int(len(v) * FEW)] for bits, v in found.items() if len(v) >= 1 / FEW}
        return {bits: round(median(found[bits])) for bits, low in lowest.items() if low > 1 + EITHER}

    def per_slot(self, form: InstructionForm) -> int:
        """Micro-operations that a slot of a form brings: two where the core's units are half as wide."""
        return self._per_slot.get(register_bits(form), 1)

    @cached_property
    def held(self) -> dict[str, dict[str, float]]:
        """Cycles for which a form keeps others waiting that run slower than their ports allow, by both."""
        records = [r for r in self._records if r.quantity == PORTS and r.source not in self.widths]
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
        names = (
            name for head in self.structure.sets if "m" in self.files[head] for name in self.classes[head]
        )
        moves = [self.table[name] for name in names]
        done = [other for move in moves if (other := memory_of(move)) is not None]
        return (not op.read or any(o.read for o in done)) and (not op.write or any(o.write for o in done))

    @cached_property
    def hiding(self) -> frozenset[str]:
        """Register files with a set of ports as wide as the front end.

        Not where a class nearly as wide is known: what is faster than it needs no port then.
        """
        wide = (name for name in self.structure.sets if self.widths[name] > FULL * self.width)
        return self.saturating.difference(*(self.files[name] for name in wide))

    @cached_property
    def renamed(self) -> frozenset[str]:
        """Classes that no set of ports explains and that nearly fill the front end: it is what limits them.

        What a form costs among them is its slots, for one renamer or all: that is no unit besides.
        """
        known = self.structure.sets
        return frozenset(
            n for n, width in self.widths.items() if n not in known and width > FULL * self.width
        )

    @cached_property
    def reach(self) -> dict[str, frozenset[str]]:
        """Register files of the classes that share ports with each class, itself among them."""
        structure = self.structure
        found = {}
        for name in self.classes:
            mine = set(structure.sets.get(name, ()))
            near = [n for n, ports in structure.sets.items() if not mine.isdisjoint(ports)]
            found[name] = frozenset().union(self.files[name], *[self.files[n] for n in near])
        return found

    @cached_property
    def alone_with_ports(self) -> set[str]:
        """Classes that no class of another register file equals."""
        sets = self.structure.sets
        return {
            name for name, ports in sets.items()
            if not any(other == ports and self.files[n] != self.files[name] for n, other in sets.items())
        }  # fmt: skip
