"""From a form's cost in a machine model to what the engine needs of it.

A model has latencies from operand to operand, and micro-operations without an order. The engine gets
both: an operation waits for the sources it needs, a target comes after its sources by the model's
latencies, and is late by what its operations waited for ports.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from math import ceil
from typing import Self, TypeVar

import msgspec

from cyclescope.isa.dataflow import OLD, Node, has_old, is_old, overwritten, sources, targets
from cyclescope.isa.form import InstructionForm, model_form_id
from cyclescope.isa.operand import Operand
from cyclescope.isa.registry import mnemonics
from cyclescope.model.machine import Core, FormCost, MachineModel, Operation
from cyclescope.once import once
from cyclescope.simulate.engine import MOST_OPERATIONS, MOST_TARGETS, Template, Work
from cyclescope.simulate.units import BROUGHT, Units, result_of

ZERO, BREAKING = "zero", "breaking"
USUAL_LATENCY = 1.0  # cycles where the model says nothing: what most instructions take, on any core
_INCREMENT = "GPR64pi"  # LLVM's classes of registers that a base is moved by, after the access
_INSIDE = {"register", "flag"}  # of a core: parts of sources and targets that are not in memory

Item = TypeVar("Item")


def cost_of(machine: MachineModel, form: InstructionForm) -> FormCost | None:
    """What a form costs on a machine; an unknown configuration costs what the plain form does."""
    return machine.forms.get(form.id) or machine.forms.get(model_form_id(form))


class Ends(msgspec.Struct, frozen=True, dict=True):
    """Sources and targets of a form, in the order in which the engine sees them.

    `old` are what destinations held before, where the core waits for it.
    """

    form: InstructionForm
    old: tuple[Node, ...] = ()

    @classmethod
    def of(cls, form: InstructionForm, pairs: Collection[str]) -> Self:
        """Those of a form; `pairs` are the ones that have a latency, false dependencies among them."""
        if not has_old(pairs):
            return cls(form)
        old = (p.source for p in overwritten(form) if f"{p.source.name}->{p.target.name}" in pairs)
        return cls(form, tuple(old))

    @once
    def sources(self) -> list[Node]:
        """Everything that the form reads, and old values of destinations that it waits for."""
        return [*sources(self.form), *self.old]

    @once
    def targets(self) -> list[Node]:
        """Everything that it writes, as far as the engine can hold it."""
        return targets(self.form)[:MOST_TARGETS]

    def is_address(self, node: Node) -> bool:
        """Whether a source is where something is loaded from; on some ISAs it is an operand of its own."""
        if node.part in ("address", "index"):
            op = self.form.operands[node.operand]
            return op.is_memory and op.read if not op.is_register else bool(self.loaded)
        return node.part == "register" and node.name in self._loaded_bases

    def is_pointer(self, node: Node) -> bool:
        """Whether a target is a pointer that the form moves on: it depends on the address alone."""
        moves = node.part == "register" and node.name in self._bases
        counted = moves and (node.name == "RSP" or any(s.name == node.name for s in self.sources))
        return counted or self.is_written_back(node)

    def is_written_back(self, node: Node) -> bool:
        """Whether a target is the base of an explicit address, moved on."""
        return node.part == "register" and self.form.operands[node.operand].role == "base"

    def moves(self, source: Node, target: Node) -> bool:
        """Whether the place where a written-back base goes depends on a source."""
        if source.part == "register":
            return source.name == target.name or moves_base(self.form.operands[source.operand])
        return source.part in ("address", "index")

    def is_apart(self, source: Node, target: Node) -> bool:
        """Whether a target gets nothing of a source: what an exchange leaves of an operand is in the other.

        A sum is put into the one, and its old value into the other. What clears a part of every vector
        register leaves nothing of one in another.
        """
        if self.is_for_each:
            return source.name != target.name
        if source.name != target.name or source.part != "register":
            return False
        name = self.form.mnemonic
        return name in mnemonics("exchanges") or (name in mnemonics("sums") and source.name == "op2")

    @once
    def writes_register(self) -> bool:
        """Whether a result goes to a register, and not to flags alone."""
        return any(node.part == "register" for node in self.targets)

    @once
    def is_for_each(self) -> bool:
        """Whether the form does one thing to each register of a file: it reads and writes several alone."""
        operands = self.form.operands
        each = all(op.is_register and op.implicit and op.read and op.write for op in operands)
        return each and len(operands) > 1

    @once
    def _bases(self) -> set[str]:
        """Registers that implicit memory operands go by; the stack pointer, where that is moved on by it."""
        every = {op.fixed for op in self.form.operands if op.is_memory and op.implicit}
        return {"RSP"} if "stack" in self.form.attributes else every

    @once
    def loaded(self) -> list[Operand]:
        """Operands in memory that are read."""
        return [op for op in self.form.operands if op.is_memory and op.read]

    @once
    def _loaded_bases(self) -> set[str]:
        """Those by which something is loaded."""
        return {op.fixed for op in self.loaded if op.implicit}

    def is_loaded(self, node: Node) -> bool:
        """Whether a source reaches the result through a load."""
        return node.part == "data" or self.is_address(node)

    @once
    def computes(self) -> bool:
        """Whether there is more than a store: something is made of what is read."""
        return bool(self.loaded) or any(t.part != "data" and not self.is_pointer(t) for t in self.targets)

    @once
    def only_loads(self) -> bool:
        """Whether it passes on what it loads: no other value is read, no flags tell of a result.

        So do pops, and pushes of memory: they only count the stack pointer besides.
        """
        others = (s for s in self.sources if s.part not in ("data", "address", "index"))
        modifies = any(op.write for op in self.loaded)
        return all(s.name in self._bases for s in others) and not modifies and not self.form.flags_written


def moves_base(op: Operand) -> bool:
    """Whether an operand is the register that an address is moved by after the access."""
    return op.is_register and op.cls.startswith(_INCREMENT)


class Latencies:
    """Cycles from every source to every target, with the gaps of the model filled.

    A gap between registers and flags has the largest latency known between such. A load adds its latency,
    from the address as from the data, once stored; a store adds the rest of the way through memory.
    """

    def __init__(self, ends: Ends, cost: FormCost, core: Core, extracted: bool = False) -> None:
        self.ends = ends
        self._extracted = extracted
        self._known = cost.latencies
        self._read = [node for node in ends.sources if node.part != OLD]
        self._load = core.load_latency
        self._store = max(core.forward_latency - self._load, 0.0)
        self._measured = not extracted and bool(cost.operations) and not cost.eliminated

    @once
    def own(self) -> float:
        """Latency of what is not known, without loads and stores."""
        pairs = [(s, t, self._given(s, t)) for s in self._read for t in self.ends.targets]
        known = [(s, t, cycles) for s, t, cycles in pairs if cycles is not None]
        direct = [c for s, t, c in known if not self.ends.is_loaded(s) and t.part != "data"]
        if direct:
            return max(direct)
        addressed = [(s, c) for s, _, c in known if self.ends.is_address(s)]
        loaded = [c for s, c in addressed if s.part != "index"] or [c for _, c in addressed]
        if loaded:  # an index may take longer on the way to it
            return max(max(loaded) - self._load, 0.0)
        every = (cycles for pair, cycles in self._known.items() if not is_old(pair))
        only_loads = bool(self._read) and all(map(self.ends.is_loaded, self._read))
        modifies = any(op.write for op in self.ends.loaded)  # as NOT does
        return max(every, default=0.0 if only_loads and not modifies else USUAL_LATENCY)

    def between(self, source: Node, target: Node) -> float | None:
        """Cycles from a source to a target, None where it does not depend on it."""
        if self.ends.is_apart(source, target):
            return None
        given = self._given(source, target)
        if source.part == OLD:
            return given
        if given == 0 and self._is_inside(source, target):
            return None
        apart = self.ends.is_written_back(target) and not self.ends.moves(source, target)
        if apart and (self._extracted or not given):
            return None  # LLVM says how long all results together take
        if given is not None:
            return max(given, 0.0)
        if self.ends.is_pointer(target):
            return self._moved(source, target)
        if source.part == "flag" and self._measured and self._told(source) == {None, 0.0}:
            return None  # a shift keeps it if the count is 0: nothing waits for it, nor does what is stored
        if source.part == "data" and (known := self._from_address(target)) is not None:
            return known
        return self._computing_default(target) + (self._load if self.ends.is_loaded(source) else 0.0)

    def _is_inside(self, source: Node, target: Node) -> bool:
        """Whether an operation makes the target of the source: in no cycle it makes nothing of it."""
        own = self._measured and not self.ends.is_address(source)
        other = "RSP" != target.name != source.name  # each pointer is moved on alone
        return {source.part, target.part} <= _INSIDE and (other if self.ends.is_pointer(target) else own)

    def _moved(self, source: Node, target: Node) -> float | None:
        """A pointer moved on; the front end does it for the stack pointer."""
        if source.name != target.name and not self.ends.is_written_back(target):
            framed = target.name == "RSP" and source.part == "register" and self.ends.is_address(source)
            return USUAL_LATENCY if framed else None
        return 0.0 if target.name == "RSP" else USUAL_LATENCY

    def _given(self, source: Node, target: Node) -> float | None:
        return self._known.get(f"{source.name}->{target.name}")

    def _from_address(self, target: Node) -> float | None:
        known = (self._given(s, target) for s in self.ends.sources if self.ends.is_address(s))
        return next((cycles for cycles in known if cycles is not None), None)

    def _computing_default(self, target: Node) -> float:
        return self._store * (target.part == "data") + (self.own if self.ends.computes else 0.0)

    @once
    def rows(self) -> list[list[float | None]]:
        """By source, cycles to every target."""
        return [[self.between(s, t) for t in self.ends.targets] for s in self.ends.sources]

    def lead(self, number: int, targets: Sequence[int]) -> float | None:
        """Cycles between the arrival of a source and the start of the operation that makes targets of it.

        Less than 0 for a source that is needed later than others, None for one that makes no difference.
        """
        source, row = self.ends.sources[number], self.rows[number]
        if 0 in self._told(source) and row.count(None) == len(row):  # as its pairs of no cycles say
            return None
        names = self.ends.targets
        back = self._given(source, source) if source.part == "data" else None
        sooner = back is not None and back < self._load  # than any load: what is made of it waits for none
        kept = [n for n in targets if sooner and names[n].name == source.name]
        each = [c - self._computing[n] for n in kept or targets if (c := row[n]) is not None]
        return max(each, default=self._load * self.ends.is_loaded(source))

    def _told(self, source: Node) -> set[float | None]:
        return {self._given(source, t) for t in self.ends.targets}

    @once
    def _computing(self) -> list[float]:
        """The part of the latencies to each target that is computing."""
        read = zip(self.ends.sources, self.rows, strict=True)
        direct = [row for s, row in read if s.part != OLD and not self.ends.is_loaded(s)]
        ways = [[c for row in direct if (c := row[n]) is not None] for n in range(len(self.ends.targets))]
        pairs = zip(ways, self.ends.targets, strict=True)
        return [max(some) if some else self._computing_default(target) for some, target in pairs]


def template(
    form: InstructionForm, cost: FormCost, core: Core, units: Units, idiom: str = "", extracted: bool = False,
    passes: bool = False,
) -> Template:  # fmt: skip
    """What the form needs. `idiom` is what its registers make of it, "" for nothing special.

    `extracted` says that the cost is LLVM's, `passes` that a load gets what is stored without waiting for the
    operations that store it.
    """
    ends = Ends.of(form, cost.latencies)
    idle = cost.eliminated or idiom == ZERO
    latencies = Latencies(ends, cost, core, extracted)
    rows = _rows(ends, latencies, cost, idiom)
    read = len(rows) - len(ends.old)
    alone = not any(cycles is not None for row in rows[:read] for cycles in row)
    base = (0.0 if idle or not alone else latencies.own or USUAL_LATENCY,) * len(ends.targets)
    work = () if idle else tuple(_work(ends, latencies, cost, units, idiom, passes))
    slots = cost.slots if cost.slots is not None else max(sum(op.count for op in cost.operations or ()), 1.0)
    stores = sum(op.is_memory and op.write for op in form.operands)
    return Template(
        slots, base, rows, work, cost.microcoded, max(ceil(slots), 1),
        0 if idle else len(ends.loaded), 0 if idle else stores,
        needed_slots(slots, cost.spare, core),
    )  # fmt: skip


def needed_slots(slots: float, spare: float, core: Core) -> float:
    """Slots that a cycle has to have left for an instruction, 0 where it may be divided between cycles."""
    return min(slots + spare, core.width) if core.whole and slots <= core.width else 0.0


def spread(template: Template, sources: Sequence[int], targets: Sequence[int]) -> Template:
    """The template of an instruction some of whose sources and targets are several registers each."""
    if {*sources, *targets} <= {1}:
        return template
    rows = (tuple(_repeated(row, targets)) for row in template.latencies)
    feeds = list(_repeated(range(len(targets)), targets))
    work = tuple(
        msgspec.structs.replace(
            op, feeds=sum(1 << n for n, t in enumerate(feeds) if op.feeds >> t & 1),
            after=tuple(_repeated(op.after, sources)),
        )
        for op in template.work
    )  # fmt: skip
    return msgspec.structs.replace(
        template, base=tuple(_repeated(template.base, targets)), work=work,
        latencies=tuple(_repeated(list(rows), sources)),
    )  # fmt: skip


def _repeated(items: Iterable[Item], counts: Sequence[int]) -> Iterator[Item]:
    for item, count in zip(items, counts, strict=True):
        yield from [item] * count


def _rows(
    ends: Ends, latencies: Latencies, cost: FormCost, idiom: str
) -> tuple[tuple[float | None, ...], ...]:
    if idiom:
        return tuple((None,) * len(ends.targets) for _ in ends.sources)
    if cost.eliminated:
        return tuple(
            tuple(None if s.part == OLD or ends.is_apart(s, t) else 0.0 for t in ends.targets)
            for s in ends.sources
        )
    return tuple(map(tuple, latencies.rows))


def _work(
    ends: Ends, latencies: Latencies, cost: FormCost, units: Units, idiom: str, passes: bool
) -> list[Work]:
    """The micro-operations, loads as early as their address, stores only on the way to memory."""
    operations = [op for op in units.in_a_row(cost) if op.ports and op.count > 0]
    every = sum(1 << n for n, t in enumerate(ends.targets) if not ends.is_pointer(t))
    stored = [n for n, t in enumerate(ends.targets) if t.part == "data"]
    memory = sum(1 << n for n in stored)

    def led(some: Sequence[int]) -> tuple[float | None, ...]:
        return tuple([None if idiom else latencies.lead(n, some) for n in range(len(ends.sources))])

    leads = led(range(len(ends.targets)))
    early = tuple(0.0 if ends.is_address(s) and not idiom else None for s in ends.sources)
    if ends.is_for_each:  # which operation is for which register is not known: none holds up the others
        every, leads = 0, (None,) * len(ends.sources)
    work: list[Work] = []
    for op in operations:
        is_load = bool(ends.loaded) and op.ports in units.loads
        is_store = bool(memory) and not is_load and op.ports in units.stores
        copy = Work(0, 1, every, early if is_load else leads, is_load)
        if is_store or (passes and every == memory):  # nothing waits for what only stores
            copy = Work(0, 1, 0 if passes else memory, led(stored))
        elif units.results and not is_load and (ends.writes_register or (units.flags and ends.targets)):
            alone = len(operations) == 2 and bool(ends.loaded)  # beside its load
            usual = round(latencies.own) if alone else result_of(op, cost, units.results)
            copy = msgspec.structs.replace(copy, result=usual)
            if units.brings(ends.form, op, operations):
                copy = msgspec.structs.replace(copy, result=BROUGHT)
        copies = _copies(op, copy, len(operations))
        work += copies if is_load or is_store else _staged(copies)
    return sorted(_with_slack(work), key=lambda op: not op.early)  # a core in order issues them as they stand


def _staged(work: list[Work]) -> list[Work]:
    """Operations in a row: a source that is needed a cycle later than others, the second of them needs."""
    if len(work) < 2 or not any((lead or 0) < 0 for lead in work[0].after):
        return work
    last = len(work) - 1
    rows = [
        tuple(None if lead is None or (lead + n < 0 and n < last) else lead + n for lead in one.after)
        for n, one in enumerate(work)
    ]
    return [
        msgspec.structs.replace(one, after=after, feeds=one.feeds if n == last else 0)
        for n, (one, after) in enumerate(zip(work, rows, strict=True))
    ]


def _copies(op: Operation, copy: Work, kinds: int) -> list[Work]:
    """As many whole operations as it takes, at most what the engine can hold."""
    count = min(max(ceil(op.count - 1e-6), 1), MOST_OPERATIONS // kinds)
    ports = sum(1 << p for p in set(op.ports))
    return [msgspec.structs.replace(copy, ports=ports, cycles=op.cycles * op.count / count)] * count


def _with_slack(work: list[Work]) -> list[Work]:
    """Operations that need the same ports cannot all start at once: the latencies include that."""
    free: dict[tuple[bool, int], float] = {}
    result = list(work)
    for n in sorted(range(len(work)), key=lambda n: work[n].ports.bit_count()):
        op = work[n]
        ports = [(op.early, p) for p in range(op.ports.bit_length()) if op.ports >> p & 1]
        first = min(ports, key=lambda port: free.get(port, 0.0))
        start = free.get(first, 0.0)
        free[first] = start + op.cycles
        result[n] = msgspec.structs.replace(op, slack=int(start))
    return result
