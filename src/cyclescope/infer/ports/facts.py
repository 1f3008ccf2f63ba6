"""What port experiments tell about forms and classes: everything follows from a store's records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from statistics import fmean, median

from cyclescope.infer.likelihood.evidence import (
    FULL,
    Class,
    ClassPair,
    are_seen_to_share,
    count_of,
    evidence_of,
    paired,
    sides_of,
)
from cyclescope.infer.likelihood.noise import SMALLEST_ERROR, Look
from cyclescope.infer.likelihood.structure import Structure, UnionEvidence, solve_structure, sureness
from cyclescope.infer.ports.candidates import (
    domains,
    memory_of,
    register_bits,
    updates,
)
from cyclescope.infer.ports.classes import ClassFacts
from cyclescope.infer.ports.front_end import ONE_SLOT
from cyclescope.isa.form import InstructionForm
from cyclescope.measure.ports import INSTANCES, PORTS, blocked

APART = 0.06  # of the time alone: disjoint ports
VAGUE = 3.0  # times the error of another reading: beside that this one tells nothing
EITHER = 0.5  # micro-operations: rather one than none
HALVES = 2.5  # micro-operations: what costs more was no half of a wide operation
ERROR = 0.05  # micro-operations by which a count is off, or a reading that does not say
PAIR_ERROR = 0.02  # of the time alone, by which that of a pair is off
ALIKE = 0.12  # micro-operations: looks at the same that are nearer than this differ by noise
FEW = 0.05  # of the forms with the widest operands, which may have fewer micro-operations than the others
_SIDES = {"r": "r", "m": "m"}  # the other register files are those of vectors
_ORDER = "rvzfpm"  # of register files, by whose classes ports are numbered


class PortFacts(ClassFacts):
    """Structure and confinements."""

    in_order = False

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the ports; none as timing does not tell."""
        return ()

    def total(self, form: str, ports: Iterable[int]) -> float | None:
        """All micro-operations of a form on some ports; None as timing does not tell."""
        return None

    def was_seen_on(self, form: str, ports: Iterable[int]) -> bool:
        """Whether a form alone was counted on some ports; timing does not see that."""
        return False

    def unused(self, form: str, ports: Iterable[int]) -> tuple[int, ...]:
        """Ports on which a form was never counted; timing does not count."""
        return ()

    # --- confinement -------------------------------------------------------------------------------

    @cached_property
    def _looks(self) -> dict[str, dict[str, list[Look]]]:
        """Readings of a form among the blocking instructions of a class, by form and representative."""
        found: dict[str, dict[str, list[Look]]] = {}
        for r in self._records:
            if r.quantity == PORTS and r.source in self.widths:
                scale = self.widths[r.source] / INSTANCES
                look = Look((r.cycles - blocked(r.variant)) * scale, r.spread * scale)
                found.setdefault(r.form, {}).setdefault(r.source, []).append(look)
        return found

    def readings(self, form: str) -> dict[str, Sequence[Look]]:
        """Readings of a form in micro-operations that are confined to a class, by representative."""
        some = self._looks.get(form, {})
        return {n: some.get(n) or (Look(v, ERROR),) for n, v in self.confined.get(form, {}).items()}

    def looks(self, form: str) -> Mapping[str, Sequence[Look]]:
        """The readings that tell ports: not those of the widest vectors among others where ports are shut."""
        found = self.readings(form)
        if self.labels or not self.shuts or "z" not in domains(self.table[form]) or not self._has_widest:
            return found
        return {name: some for name, some in found.items() if "v" not in self.files[name]}

    @cached_property
    def _has_widest(self) -> bool:
        """Whether vectors of 512 bits have classes of their own."""
        return any("z" in self.files[name] for name in self.structure.sets)

    @cached_property
    def confined(self) -> dict[str, dict[str, float]]:
        """Micro-operations of a form that are confined to a class, by form and representative."""
        return {
            form: {name: _low(looks) for name, looks in some.items()} for form, some in self._looks.items()
        }

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

    @cached_property
    def units(self) -> dict[str, str]:
        """Classes that are not sets of ports, with the reason: hidden resources."""
        return {name: reason for name in self.classes if (reason := self._is_no_blocker(name))}

    def _is_no_blocker(self, name: str) -> str:
        """Why the forms of a class are not single micro-operations that keep ports busy, or ""."""
        if len(self.files[name]) > 1:
            return "it needs ports of two register files"
        if self.compared and name not in self.compared:
            return "it was not compared with the other classes: measure again"
        if not self._is_sound(name):
            return "its instances do not keep their ports busy"
        sound = [o for o in self.classes if self._is_sound(o) and self._tells(name, o)]
        near = [o for o in sound if self.widths[o] <= FULL * self.width]
        around = [o for o in near if self._taken(name, o)]
        several = any(self._taken(name, other) > 1 for other in around if other != name)
        if several or any(self._apart(*pair) for pair in combinations(around, 2)):
            return "its instances have more than one micro-operation"
        if self._fills_the_front_end(name, sound):
            return "it may need no port: it nearly fills the front end and shares ports with no other class"
        return ""

    def _fills_the_front_end(self, name: str, others: Sequence[str]) -> bool:
        """Whether what limits a class may be renaming: nearly as many as the front end has slots run.

        Of instructions that need no port, as moves that are eliminated, some cores rename a little less.
        """
        if self.widths[name] <= FULL * self.width:
            return False
        mine = self._class(name)
        near = [self._class(o) for o in others if o != name and self.widths[o] <= FULL * self.width]
        near = [other for other in near if other.sides == mine.sides]
        return bool(near) and not any(are_seen_to_share(self._pair(mine, o), self.width) for o in near)

    @cached_property
    def compared(self) -> frozenset[str]:
        """Classes that were measured together with another one."""
        heads = self.classes.keys()
        return frozenset().union(*(pair for pair in self.pairs if len(pair) > 1 and pair <= heads))

    def _is_sound(self, name: str) -> bool:
        """Whether more instances of a class take as much longer as one micro-operation each.

        Stores may take longer: they leave in pairs only if they go to the same cache line.
        """
        count = self._taken(name, name, 1)
        return count == 1 or (count > 1 and "m" in self.files[name])

    def _taken(self, name: str, other: str, default: int = 0) -> int:
        """The likeliest number of micro-operations that a form of a class costs another."""
        looks = self.readings(name).get(other)
        return count_of(_lowest(looks), self.widths[other] > FULL * self.width) if looks else default

    def _apart(self, one: str, other: str) -> bool:
        """Whether two classes are seen to have no port in common."""
        ratio = self.pairs.get(frozenset((one, other)), math.inf)
        return self.widths[one] + self.widths[other] <= self.width and ratio < 1 + APART

    def _related(self, one: str, other: str) -> bool:
        """Whether two classes may share ports at all: those for memory are apart from the others."""
        return ("m" in self.files[one]) == ("m" in self.files[other])

    @cached_property
    def structure(self) -> Structure:
        """The ports."""
        widths = {name: w for name, w in self.widths.items() if name not in self.units}
        kinds = {
            name: (_ORDER.index(file), min(self.classes[name], key=lambda n: (updates(self.table[n]), n)))
            for name in widths if (file := "".join(self.files[name])) in _ORDER
        }  # fmt: skip
        return solve_structure(widths, self._evidence, kinds)

    @cached_property
    def _evidence(self) -> list[UnionEvidence]:
        classes = [self._class(name) for name in sorted(self.widths) if name not in self.units]
        return evidence_of([self._pair(*pair) for pair in paired(classes)], self.width)

    def _class(self, name: str) -> Class:
        return Class(name, self.widths[name], sides_of(self.files[name], _SIDES))

    @cached_property
    def _sure(self) -> dict[str, float]:
        return {} if self.labels else sureness(self.structure, self._evidence)

    def sureness(self, ports: Sequence[int]) -> float:
        """Share of the odds that a set of ports has: that of the classes that it is of."""
        own, sets = set(ports), self.structure.sets
        same = [self._sure.get(name, 1.0) for name, some in sets.items() if own == set(some)]
        around = [self._sure.get(name, 1.0) for name, some in sets.items() if own < set(some)]
        return max(same) if same else min(around, default=1.0)

    def _pair(self, one: Class, other: Class) -> ClassPair:
        if self._switches(one.name, other.name):
            return ClassPair(one, other, None, (), ())
        ratio = self.pairs.get(frozenset((one.name, other.name)))
        together = None if ratio is None else Look(ratio, PAIR_ERROR)
        inside = (
            self.readings(first.name).get(second.name, ()) for first, second in ((one, other), (other, one))
        )
        return ClassPair(one, other, together, *inside)

    def _tells(self, one: str, other: str) -> bool:
        """Whether what one class costs another is a matter of ports that both may have."""
        return self._related(one, other) and not self._switches(one, other)

    def _switches(self, one: str, other: str) -> bool:
        """Whether two classes together tell nothing: of vectors that shut ports to the others."""
        return self.shuts and self._differ_in_length(one, other)

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


def _low(looks: Sequence[Look]) -> float:
    """The mean of the lowest readings whose rounds agree: what disturbs one only makes it more."""
    return fmean(look.value for look in _lowest(looks))


def _lowest(looks: Sequence[Look]) -> list[Look]:
    error = min(look.error for look in looks)
    clear = [look for look in looks if look.error <= VAGUE * max(error, SMALLEST_ERROR)]
    least = min(look.value for look in clear)
    return [look for look in clear if look.value - least < ALIKE]
