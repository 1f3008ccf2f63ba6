"""What port experiments tell about forms and classes: everything follows from a store's records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from cyclescope.infer.port_mapping import (
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
from cyclescope.isa.register import domain
from cyclescope.isa.table import Table
from cyclescope.measure.ports import ALONE, INSTANCES, PAIRS, PORTS, SLOTS
from cyclescope.measure.record import FAILED, Record
from cyclescope.measure.store import Store

ONE_SLOT = (0.75, 1.3)  # front-end slots of a blocking instruction
EVEN = 0.03  # by which the rate of a blocking instruction may miss a whole number
SAME = 1.9  # times as long as one alone: the same ports
APART = 0.06  # of the time alone: disjoint ports
PASSES = 0.45  # ports: a union larger than the wider class by this is no containment
INSIDE = 0.72  # micro-operations confined to a class: a form of it is inside
OWN = 1.4  # micro-operations of a form among its own class; store bandwidth depends on addresses
TWICE, EITHER = 1.5, 0.5  # micro-operations: certainly more than one, rather none than one
WHOLE = 0.13  # ports: unions nearer to a whole number are taken for it
RENAMED = 0.22  # cycles: a move faster than this needs no execution unit
GROUP = 36  # candidates of one width and register file that are compared with each other
_LEFT_OUT = frozenset(
    ("evex", "x87", "mmx", "d3now", "masked", "rep", "repne", "string", "branch", "call", "return", "stack",
     "high_byte", "lock", "vsib")
)  # fmt: skip
_PLAIN_MOVES = ("MOV", "VMOVUPS", "MOVUPS")  # a load or a store and nothing else
_CLASSES = ("R64", "XMM", "K")
_NARROW = ("R32", "R8l")


def domains(form: InstructionForm) -> frozenset[str]:
    """Register files that a form works on: `r`, `v`, `k`, and `m` for memory; flags count as `r`."""
    found = {
        {"h": "r", "x": "v", "m": "v"}.get(domain(o.cls), domain(o.cls))
        for o in form.operands
        if o.is_register
    }
    found |= {"m" for o in form.operands if o.is_memory}
    if form.flags_read or form.flags_written or not found:
        found.add("r")
    return frozenset(found - {"?"})


def read_facts(store: Store, table: Table, forms: Sequence[InstructionForm] | None = None) -> PortFacts:
    """What a store tells, of the given forms or of all."""
    throughputs = store.throughputs()
    common = list(store.records_of((SLOTS, PAIRS)))
    if forms is None:
        return PortFacts(table, throughputs, [*common, *store.records_of((PORTS,))])
    heads = PortFacts(table, throughputs, common).classes if common else {}
    wanted = list(dict.fromkeys([*heads, *(form.id for form in forms)]))
    return PortFacts(table, throughputs, [*common, *store.records_of((PORTS,), wanted)])


class PortFacts:
    """Slots, classes of blocking instructions, structure, confinements.

    `throughputs` are reciprocal throughputs by form id, in cycles; `records` those of port experiments.
    """

    def __init__(self, table: Table, throughputs: Mapping[str, float], records: Iterable[Record]) -> None:
        self.table = table
        self.throughputs = throughputs
        self._records = [r for r in records if r.verdict != FAILED]

    # --- the front end ---------------------------------------------------------------------------

    @cached_property
    def filler(self) -> str:
        """The form that needs a front-end slot and no port, to be put between others.

        A move that the renamer executes, seen by its being faster than execution units allow; NOP
        where there is none, which some cores fuse in pairs.
        """
        others = {f: t for f, t in self.throughputs.items() if self._is_filler(f)}
        best = min(
            others, key=lambda f: (round(others[f], 2), self.table[f].mnemonic != "MOV", f), default=""
        )
        nop = self.throughputs.get("NOP", math.inf)
        return best if best and others[best] < max(RENAMED, 1.05 * nop) else "NOP"

    def _is_filler(self, form_id: str) -> bool:
        form = self.table[form_id]
        plain = form.mnemonic in ("MOV", "VMOVAPS") and form.memory < 0
        return plain and all(op.is_register and op.cls in ("R64", "XMM") for op in form.operands)

    @cached_property
    def width(self) -> float:
        """Front-end slots per cycle."""
        rate = 1 / self.throughputs[self.filler]
        return float(round(rate)) if abs(rate - round(rate)) < EVEN * rate else rate

    @cached_property
    def alone(self) -> dict[str, float]:
        """Cycles of `INSTANCES` instances of a form with nothing around them."""
        return {r.form: r.cycles for r in self._records if r.quantity == PORTS and r.variant == ALONE}

    @cached_property
    def slots(self) -> dict[str, float]:
        """Front-end slots of each form; the least of several measurements, as disturbances add."""
        found: dict[str, float] = {}
        for r in self._records:
            if r.quantity == SLOTS:
                value = (r.cycles * self.width - int(r.variant[1:])) / INSTANCES
                found[r.form] = min(value, found.get(r.form, math.inf))
        return found

    # --- classes of blocking instructions ----------------------------------------------------------

    @cached_property
    def blockers(self) -> dict[tuple[str, int], list[str]]:
        """Candidates of one slot, by register file and width, one per mnemonic, the best first."""
        best: dict[tuple[str, str, int], tuple[tuple[object, ...], str]] = {}
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
            if not 1 <= width < self.width or abs(rate - width) > EVEN * width:
                continue
            key = "".join(sorted(_files(form))), form.mnemonic, width
            choice = _preference(form), form_id
            if key not in best or choice < best[key]:
                best[key] = choice
        groups: dict[tuple[str, int], list[tuple[tuple[object, ...], str]]] = {}
        for (files, _, width), choice in best.items():
            groups.setdefault((files, width), []).append(choice)
        return {key: [name for _, name in sorted(some)[:GROUP]] for key, some in groups.items()}

    @cached_property
    def pairs(self) -> dict[frozenset[str], float]:
        """Times as long as one class alone, for two forms that would each fill their ports."""
        found: dict[frozenset[str], float] = {}
        for r in self._records:
            if r.quantity == PAIRS:
                key = frozenset((r.form, r.source))
                ratio = r.cycles / int(r.variant.split("x")[1].split(".")[0])
                found[key] = min(ratio, found.get(key, math.inf))
        return found

    @cached_property
    def classes(self) -> dict[str, list[str]]:
        """Members by representative: forms that take twice as long together as alone."""
        found: dict[str, list[str]] = {}
        for group in self.blockers.values():
            heads: list[str] = []
            for name in group:
                same = (h for h in heads if self.pairs.get(frozenset((h, name)), 0.0) > SAME)
                head = next(same, None)
                if head is None:
                    heads.append(name)
                found.setdefault(head or name, []).append(name)
        return found

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
        found: dict[str, dict[str, float]] = {}
        for r in self._records:
            if r.quantity == PORTS and r.source in self.widths:
                value = (r.cycles - int(r.variant[1:])) * self.widths[r.source] / INSTANCES
                some = found.setdefault(r.form, {})
                some[r.source] = min(value, some.get(r.source, math.inf))
        return found

    @cached_property
    def units(self) -> dict[str, str]:
        """Classes that are not sets of ports, with the reason: hidden resources."""
        found = {name: self._unit(name) for name in self.classes}
        return {name: reason for name, reason in found.items() if reason}

    def _unit(self, name: str) -> str:
        """Why a class is no set of ports, or ""."""
        if len(self.files[name]) > 1:
            return "it needs ports of two register files"
        if not INSIDE < self._inside(name, name, 1.0) < OWN:
            return "its instances do not keep their ports busy"
        width = self.widths[name]
        others = [c for c in self.classes if c != name and self._related(name, c)]
        if min((c for c in (self._inside(name, o) for o in others) if c > EITHER), default=0.0) > TWICE:
            return "its instances have more than one micro-operation"
        for other in others:
            wider = self.widths[other] > width
            same = self.widths[other] == width and self._inside(name, other) < EITHER
            if self._inside(other, name) > INSIDE and (wider or same):
                return f"it slows {other} down, which can escape to other ports"
        return ""

    def _inside(self, form: str, blocker: str, default: float = 0.0) -> float:
        return self.confined.get(form, {}).get(blocker, default)

    def _related(self, one: str, other: str) -> bool:
        """Whether two classes may share ports at all: memory, general registers, vectors with masks."""
        kinds = [{"v" if f == "k" else f for f in self.files[name]} for name in (one, other)]
        return not kinds[0].isdisjoint(kinds[1])

    @cached_property
    def structure(self) -> Structure:
        """The ports."""
        widths = {name: w for name, w in self.widths.items() if name not in self.units}
        return solve_structure(widths, list(self._relations(sorted(widths))))

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
        limit = (a + b) / self.width
        if ratio is None or ratio < max(1.0, limit) + APART:
            return Relation(one, other, DISJOINT) if inside < INSIDE else Relation(small, large, SUBSET)
        union = (a + b) / ratio
        if inside > INSIDE and union < max(a, b) + PASSES:
            return Relation(small, large, SUBSET)
        if abs(union - round(union)) < WHOLE and round(union) >= max(a, b):
            return Relation(one, other, UNION, round(union))
        if inside < EITHER / 2:
            return Relation(small, large, OUTSIDE)
        return Relation(one, other, AT_LEAST, math.ceil(union - WHOLE))


def is_candidate(form: InstructionForm) -> bool:
    """Whether a form's operands let it be a blocking instruction."""
    if form.encoding is None or not form.attributes.isdisjoint(_LEFT_OUT):
        return False
    registers = [op for op in form.operands if op.is_register]
    if form.flags_read and form.flags_written:  # each would wait for the one before
        return False
    if any(op.fixed for op in registers) or any(op.is_memory and op.implicit for op in form.operands):
        return False
    if form.memory >= 0:
        moves = form.mnemonic in _PLAIN_MOVES and len(form.operands) == 2 and len(registers) == 1
        return moves and registers[0].cls in ("R64", "XMM")
    if not any(op.write for op in registers) or not any(op.cls in _CLASSES for op in registers):
        return False
    return all(op.cls in (*_CLASSES, *_NARROW) for op in registers)


def _files(form: InstructionForm) -> set[str]:
    if form.memory >= 0:
        return {"m"}
    return {domain(op.cls) for op in form.operands if op.is_register}


def _preference(form: InstructionForm) -> tuple[object, ...]:
    """Best first: writes only, reads no flags, few operands, VEX."""
    registers = [op for op in form.operands if op.is_register]
    both = any(op.read and op.write for op in registers)
    return both, bool(form.flags_read), len(form.operands), not form.is_vex, form.id
