"""What port experiments tell about forms and classes: everything follows from a store's records."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from statistics import fmean, median

from cyclescope.infer.ports.candidates import (
    files_of,
    is_candidate,
    memory_of,
    preference,
    register_bits,
    stores,
    updates,
)
from cyclescope.infer.ports.front_end import EVEN, NOTHING, ONE_SLOT, FrontEndFacts
from cyclescope.infer.ports.structure import (
    AT_LEAST,
    DISJOINT,
    OUTSIDE,
    SUBSET,
    UNION,
    Relation,
    Structure,
    solve_structure,
)
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.measure.ports import ALONE, INSTANCES, PAIRS, PORTS, blocked
from cyclescope.measure.record import FAILED, FrontEndReadings, Record

SAME = 1.9  # times as long as one alone: the same ports
APART = 0.06  # of the time alone: disjoint ports
PASSES = 0.45  # ports: a union larger than the wider class by this is no containment
INSIDE = 0.72  # micro-operations confined to a class: a form of it is inside
OWN = 1.4  # micro-operations of a form among its own class
TWICE, EITHER = 1.9, 0.5  # micro-operations: certainly more than one, rather none than one
WHOLE = 0.13  # ports: unions nearer to a whole number are taken for it
MOST_WAITING = 4  # instances under way of a form that reads what it writes: half of the registers
ALIKE = 0.12  # micro-operations: looks at the same that are nearer than this differ by noise
FEW = 0.05  # of the forms with the widest operands, which may have fewer micro-operations than the others
_SIDES = {"r": "r", "m": "m"}  # the other register files are those of vectors
_ORDER = "rvfpm"  # of register files, by whose classes ports are numbered


class PortFacts(FrontEndFacts):
    """Classes of blocking instructions, structure, confinements; `records` are those of port experiments."""

    in_order = False

    def __init__(
        self,
        table: Table,
        throughputs: Mapping[str, float],
        records: Iterable[Record],
        readings: FrontEndReadings = NOTHING,
    ) -> None:
        super().__init__(table, throughputs, readings)
        self._records = [r for r in records if r.verdict != FAILED]

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the ports; none as timing does not tell."""
        return ()

    def widest(self) -> float:
        """What the rate of blocking instructions has to stay below: others need slots beside them."""
        return self.width

    def total(self, form: str, ports: Iterable[int]) -> float | None:
        """All micro-operations of a form on some ports; None as timing does not tell."""
        return None

    def was_seen_on(self, form: str, ports: Iterable[int]) -> bool:
        """Whether a form alone was counted on some ports; timing does not see that."""
        return False

    def unused(self, form: str, ports: Iterable[int]) -> tuple[int, ...]:
        """Ports on which a form was never counted; timing does not count."""
        return ()

    @cached_property
    def alone(self) -> dict[str, float]:
        """Cycles of `INSTANCES` instances of a form with nothing around them."""
        return {r.form: r.cycles for r in self._records if r.quantity == ALONE}

    # --- classes of blocking instructions ----------------------------------------------------------

    @cached_property
    def blockers(self) -> dict[tuple[str, int], list[str]]:
        """Candidates of one slot, by register file and width, one per mnemonic, the best first."""
        best: dict[tuple[str, str, bool, int], tuple[tuple[object, ...], str]] = {}
        for form_id, slots in self.slots.items():
            form = self.table[form_id]
            if (
                form_id not in self.throughputs
                or not is_candidate(form)
                or not ONE_SLOT[0] < slots < ONE_SLOT[1]
            ):
                continue
            rate = 1 / self.throughputs[form_id]
            width = round(rate)
            if not 1 <= width < self.widest() or abs(rate - width) > EVEN * width:
                continue
            if updates(form) and self.alone.get(form_id, math.inf) * width > MOST_WAITING:
                continue  # its instances would wait for each other
            key = "".join(sorted(files_of(form))), form.mnemonic, stores(form), width
            choice = preference(form), form_id
            if key not in best or choice < best[key]:
                best[key] = choice
        groups: dict[tuple[str, int], list[tuple[tuple[object, ...], str]]] = {}
        for (files, _, _, width), choice in best.items():
            groups.setdefault((files, width), []).append(choice)
        return {key: [name for _, name in sorted(some)] for key, some in sorted(groups.items())}

    @cached_property
    def pairs(self) -> dict[frozenset[str], float]:
        """Times as long as one class alone, for two forms that would each fill their ports."""
        found: dict[frozenset[str], float] = {}
        for r in self._records:
            if r.quantity == PAIRS:
                key = frozenset((r.form, r.source))
                ratio = r.cycles / blocked(r.variant)
                found[key] = min(ratio, found.get(key, math.inf))
        return found

    @cached_property
    def _grouped(self) -> tuple[dict[str, list[str]], list[tuple[str, str, int]]]:
        """Members by representative, and the pairs (with their width) that are still to be compared."""
        found: dict[str, list[str]] = {}
        missing: list[tuple[str, str, int]] = []
        for (_, width), group in self.blockers.items():
            heads: list[str] = []
            for name in group:
                ratios = [(head, self.pairs.get(frozenset((head, name)))) for head in heads]
                unknown = next((head for head, ratio in ratios if ratio is None), None)
                head = next((head for head, ratio in ratios if ratio is not None and ratio > SAME), None)
                if head is None and unknown is not None:
                    missing.append((unknown, name, width))
                    continue
                if head is None:
                    heads.append(name)
                found.setdefault(head or name, []).append(name)
        return found, missing

    @property
    def classes(self) -> dict[str, list[str]]:
        """Members by representative: forms that take twice as long together as alone."""
        return self._grouped[0]

    @property
    def uncompared(self) -> list[tuple[str, str, int]]:
        """Forms to be compared next, with their width, before the classes are complete."""
        return self._grouped[1]

    @cached_property
    def widths(self) -> dict[str, int]:
        """Width of each class by its representative."""
        return {
            name: width
            for (_, width), group in self.blockers.items()
            for name in group
            if name in self.classes
        }

    @cached_property
    def files(self) -> dict[str, frozenset[str]]:
        """Register files of each class by its representative."""
        groups = self.blockers.items()
        return {name: frozenset(f) for (f, _), group in groups for name in group if name in self.classes}

    # --- confinement -------------------------------------------------------------------------------

    @cached_property
    def confined(self) -> dict[str, dict[str, float]]:
        """Micro-operations of a form that are confined to a class, by form and representative."""
        found: dict[str, dict[str, list[float]]] = {}
        widths = self.widths
        for r in self._records:
            if r.quantity == PORTS and (width := widths.get(r.source)):
                value = (r.cycles - blocked(r.variant)) * width / INSTANCES
                found.setdefault(r.form, {}).setdefault(r.source, []).append(value)
        return {form: {name: _low(v) for name, v in some.items()} for form, some in found.items()}

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
                most = max((v for name, v in some.items() if "m" not in self.files[name]), default=0.0)
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
        found = {name: reason for name in self.classes if (reason := self._is_no_blocker(name))}
        proper = [name for name in self.classes if name not in found]
        found |= {name: reason for name in proper if (reason := self._stalls(name, proper))}
        return found | self._foreign([name for name in proper if name not in found])

    def _foreign(self, proper: Sequence[str]) -> dict[str, str]:
        """Classes that are in the way of others with which they have no port in common."""
        strange = [pair for pair in combinations(proper, 2) if not self._related(*pair)]
        pairs = {pair for pair in strange if self._visible(*pair) and self._meet(*pair)}
        found = {}
        while pairs:
            met = Counter(name for pair in pairs for name in pair)
            worst = max(met, key=lambda name: (met[name], name))
            other = next(b if a == worst else a for a, b in sorted(pairs) if worst in (a, b))
            found[worst] = f"it slows {other} down, which has other ports"
            pairs = {pair for pair in pairs if worst not in pair}
        return found

    def _is_no_blocker(self, name: str) -> str:
        """Why the forms of a class are not single micro-operations that keep ports busy, or ""."""
        if len(self.files[name]) > 1:
            return "it needs ports of two register files"
        if not self._is_sound(name):
            return "its instances do not keep their ports busy"
        around = [o for o in self.classes if self._is_sound(o) and self._inside(name, o) > INSIDE]
        twice = any(self._inside(name, other) > TWICE for other in around if other != name)
        if twice or any(self._apart(*pair) for pair in combinations(around, 2)):
            return "its instances have more than one micro-operation"
        return ""

    def _is_sound(self, name: str) -> bool:
        """Whether more instances of a class take as much longer as one micro-operation each.

        Stores may take longer: they leave in pairs only if they go to the same cache line.
        """
        most = OWN if "m" not in self.files[name] else math.inf
        return INSIDE < self._inside(name, name, 1.0) < most

    def _apart(self, one: str, other: str) -> bool:
        """Whether two classes are seen to have no port in common."""
        ratio = self.pairs.get(frozenset((one, other)), math.inf)
        return self.widths[one] + self.widths[other] <= self.width and ratio < 1 + APART

    def _stalls(self, name: str, proper: Sequence[str]) -> str:
        """Which class of more ports, or of others, is slowed down though it could escape, or ""."""
        for other in proper:
            wider = self.widths[other] > self.widths[name]
            same = self.widths[other] == self.widths[name] and self._inside(name, other) < EITHER
            least = EITHER if wider else INSIDE
            slows = other != name and (wider or same) and self._inside(other, name) > least
            if slows and not (wider and self._escapes(other, name)):
                return f"it slows {other} down, which can escape to other ports"
        return ""

    def _escapes(self, wide: str, narrow: str) -> bool:
        """Whether two classes that fill their ports alone are seen to run together as fast as ports let them.

        Then what one does to a few instances of the other comes from how ports are chosen.
        """
        ratio = self.pairs.get(frozenset((wide, narrow)), math.inf)
        union = (self.widths[wide] + self.widths[narrow]) / ratio
        return self._inside(narrow, wide) > INSIDE and abs(union - self.widths[wide]) < WHOLE

    def _meet(self, one: str, other: str) -> bool:
        """Whether a few instances of one class slow the other down.

        Where only as many as fill their ports do, it comes from the order in which they are issued.
        """
        return max(self._inside(one, other), self._inside(other, one)) > EITHER

    def _inside(self, form: str, blocker: str, default: float = 0.0) -> float:
        return self.confined.get(form, {}).get(blocker, default)

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
        return solve_structure(widths, list(self._relations(sorted(widths))), kinds)

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

    def _visible(self, one: str, other: str) -> bool:
        """Whether two classes take longer together than each alone and the front end explain."""
        limit = (self.widths[one] + self.widths[other]) / self.width
        return self.pairs.get(frozenset((one, other)), 0.0) > max(1.0, limit) + APART

    def _near(self, one: str, other: str) -> bool:
        """Whether classes of two register files share ports on this machine, as far as is seen."""
        files = {_SIDES.get(f, "v") for f in (*self.files[one], *self.files[other])}
        return len(files) == 1 or (self._one_space and "m" not in files)

    @cached_property
    def _one_space(self) -> bool:
        """Whether some integer class and some vector class are seen to share ports."""
        proper = [name for name in self.classes if name not in self.units]
        return any(
            self._visible(one, other) or max(self._inside(one, other), self._inside(other, one)) > INSIDE
            for one in proper if "r" in self.files[one]
            for other in proper if self.files[other].isdisjoint("rm")
        )  # fmt: skip

    def _relations(self, names: Sequence[str]) -> Iterable[Relation]:
        for position, one in enumerate(names):
            for other in names[position + 1 :]:
                yield self._relation(one, other)

    def _relation(self, one: str, other: str) -> Relation:
        """What two classes share, by their mix where the front end lets it be seen, else by confinement."""
        a, b = self.widths[one], self.widths[other]
        ratio = self.pairs.get(frozenset((one, other)))
        small, large = (one, other) if a <= b else (other, one)
        inside = self._inside(small, large)
        if not self._related(one, other) and inside < INSIDE:
            return Relation(one, other, DISJOINT)
        if inside < INSIDE and (ratio is None or not self._visible(one, other)):
            hidden = ratio is not None and a + b > self.width and self._near(one, other)
            return Relation(one, other, AT_LEAST, self.width) if hidden else Relation(one, other, DISJOINT)
        if ratio is None or not self._visible(one, other):
            return Relation(small, large, SUBSET)
        union = (a + b) / ratio
        if inside > INSIDE and union < max(a, b) + PASSES:
            return Relation(small, large, SUBSET)
        if abs(union - round(union)) < WHOLE and round(union) >= max(a, b):
            return Relation(one, other, UNION, round(union))
        if inside < EITHER / 2:
            return Relation(small, large, OUTSIDE)
        return Relation(one, other, AT_LEAST, math.ceil(union - WHOLE))


def _low(looks: Sequence[float]) -> float:
    """The mean of the lowest looks: what disturbs one only makes it more."""
    if len(looks) == 1:
        return looks[0]
    least = min(looks)
    return fmean(look for look in looks if look - least < ALIKE)
