"""Cores that issue in program order: the experiment that shows it, and pairing rules in place of ports.

A chain of slow instructions and, behind it, a chain of fast ones that depends on none of them: a core that
issues out of order works on both at once, and the loop takes as long as the longer; in order the second chain
begins when the last of the first does. Neither needs more than one port at a time, so that nothing else than
waiting delays them: where many independent instructions stand behind a chain, a core with a queue per port
lets some of them go before the chain. A core that issues in order has no queue that a blocking instruction
could fill, so ports cannot be found as on others. What it has are rules about which instructions issue in one
cycle; they are measured by alternating two forms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial

import msgspec

from cyclescope.infer.ports.builder import PortUsage
from cyclescope.infer.ports.candidates import files_of, is_candidate, updates
from cyclescope.infer.ports.front_end import FrontEndFacts
from cyclescope.infer.workload import PAIRED
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import instruction_set
from cyclescope.isa.table import Table
from cyclescope.kernel.chain import Unmeasurable
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import CANARY, LONG, Kernel
from cyclescope.measure.plan import Experiment, Key, Planner
from cyclescope.measure.ports import INSTANCES, PORTS, PortPlanner, Question, Stage
from cyclescope.measure.record import STABLE, Record
from cyclescope.remarks.ports import NoPorts
from cyclescope.remarks.remark import NOTHING

ORDER_OF_ISSUE = "order"
SLOW = 4  # in the first chain: what all but the last wait is lost in order; any queue holds them
QUICK = (8, 12, 16, 24)  # in the second: one of them takes about as long as the first
LOST = 0.5  # of the wait for the first chain: halfway between none and all
_CLEAR = 1.2  # times as long in order as out of order: less cannot be told by a reading
TOGETHER, _APART = 0.3, 0.7  # cycles that a form and another take longer than the slower of them
_LONGEST = 40.0  # cycles of a form of which a cycle more or less is seen
_MOST = 12  # forms that others are paired with


# --- the experiment --------------------------------------------------------------------------------


def order_forms(table: Table) -> list[InstructionForm]:
    """The forms that tell the order of issue."""
    roles = instruction_set(table.isa).roles
    return [table[name] for name in (roles.slow, roles.beside) if name in table]


def order_questions(table: Table, plans: PortPlanner) -> Iterator[Question]:
    """Each of two chains alone, and one behind the other."""
    roles = instruction_set(table.isa).roles
    slow, beside = table.get(roles.slow), table.get(roles.beside)
    chain = _chain(slow, plans) if slow and beside else None
    if slow is None or beside is None or chain is None:
        return
    first = chain.kernel.body * SLOW
    taken = frozenset(plans.planner.dialect.written(slow, first[0].registers))
    block = plans.block(beside, taken)
    if block is None:
        return
    (fast,) = block.take(1)
    second = (msgspec.structs.replace(fast, registers=fast.registers[:1] * len(fast.registers)),)
    for key, items in (
        ((slow.id, ORDER_OF_ISSUE, "", "", f"x{SLOW}"), first),
        *(((beside.id, ORDER_OF_ISSUE, "", "", f"x{count}"), second * count) for count in QUICK),
        *(((slow.id, ORDER_OF_ISSUE, beside.id, "", f"x{count}"), first + second * count) for count in QUICK),
    ):
        yield Question(key, partial(_loop, key, items, chain.kernel))


def _loop(key: Key, items: tuple[Instruction, ...], start: Kernel) -> Experiment:
    """Instructions from the state of a kernel."""
    code = b"".join([i.code for i in items])
    kernel = msgspec.structs.replace(
        start, code=code, instructions=len(items), body=items, flags=CANARY | LONG
    )
    return Experiment(*key, kernel, 1)


def _chain(form: InstructionForm, plans: PortPlanner) -> Experiment | None:
    """A chain of a form alone: nothing cut, no link."""
    try:
        found = plans.planner.latency(form)
    except Unmeasurable:
        return None
    return next((e for e in found if not e.links and len(e.kernel.body) == 1), None)


def issues_in_order(records: Iterable[Record]) -> bool:
    """Whether the records of the experiment show a core that issues in program order.

    Of every count it is known what both kinds of cores would take: what was taken lies nearer to that of the
    one or of the other, all counts together, those that tell them apart best counting most.
    """
    found = [r for r in records if r.quantity == ORDER_OF_ISSUE and r.verdict == STABLE]
    alone = {(r.form, r.variant): r.cycles for r in found if not r.source}
    lost = apart = 0.0
    for record in found:
        first = alone.get((record.form, f"x{SLOW}"), 0.0)
        second = alone.get((record.source, record.variant), 0.0)
        hidden, behind = max(first, second), first * (SLOW - 1) / SLOW + second
        if first and second and behind > _CLEAR * hidden:
            lost += (record.cycles - hidden) * (behind - hidden)
            apart += (behind - hidden) ** 2
    return lost > LOST * apart


# --- what it tells ---------------------------------------------------------------------------------


class InOrder:
    """A core that issues in order, by how fast forms are alone and in pairs: an `Approach`."""

    in_order = True
    ports = None

    def __init__(self, front_end: FrontEndFacts) -> None:
        self.table = front_end.table
        self.front_end = front_end

    @cached_property
    def width(self) -> float:
        """Instructions that issue in a cycle: the width, or where it is not told those of the fastest."""
        if self.front_end.width_fact.is_told:
            return self.front_end.width_fact.slots
        times = self.front_end.throughputs.items()
        return float(round(1 / min((t for f, t in times if is_candidate(self.table[f])), default=1.0)))

    @cached_property
    def partners(self) -> list[str]:
        """Forms that others are paired with: one of each register file and rate, plain loads and stores."""
        chosen: dict[tuple[str, float, str], str] = {}
        throughputs = self.front_end.throughputs
        for form_id in sorted(throughputs, key=lambda name: (len(self.table[name].operands), name)):
            form, rate = self.table[form_id], 1 / throughputs[form_id]
            if self._is_partner(form) and 0.95 < rate < self.width + 0.5:
                files = files_of(form)
                memory = form_id if "m" in files else ""
                chosen.setdefault(("".join(sorted(files)), round(rate), memory), form_id)
        return list(chosen.values())[:_MOST]

    def _is_partner(self, form: InstructionForm) -> bool:
        """Whether instances of a form wait for nothing but their turn."""
        return form.id in self.front_end.alone and is_candidate(form) and not updates(form)

    @cached_property
    def paired(self) -> dict[str, dict[str, float]]:
        """Cycles of an instance of a form and one of another, by both."""
        found: dict[str, dict[str, float]] = {}
        for r in self.front_end.records:
            if r.quantity == PORTS:
                found.setdefault(r.form, {})[r.source] = r.cycles / INSTANCES
        return found

    def rules(self, form: str) -> tuple[list[str], list[str]]:
        """Forms that issue in one cycle with a form, and those that do not."""
        least = max(self.front_end.throughputs.get(form, 0.0), 1.0)
        alone = self.front_end.alone.get(form, math.inf) / INSTANCES
        if alone > least + TOGETHER or alone > _LONGEST:
            return [], []  # its instances wait for each other, or noise is longer than a cycle
        pairs = self.paired.get(form, {}).items()
        together = [other for other, cycles in pairs if cycles < least + TOGETHER]
        return together, [other for other, cycles in pairs if cycles > least + _APART]

    def stages(
        self, plans: PortPlanner, forms: Sequence[InstructionForm], again: Callable[[], object]
    ) -> Iterator[Stage]:
        """One: every form alternating with every partner."""
        yield PAIRED, lambda: self._pairs(plans, forms)

    def _pairs(self, plans: PortPlanner, forms: Iterable[InstructionForm]) -> Iterator[Question]:
        for form in forms:
            short = self.front_end.alone.get(form.id, math.inf) <= INSTANCES * _LONGEST
            for name in self.partners if short else ():
                yield plans.against(form, self.table[name], 1, INSTANCES)

    def is_complete(self, planner: Planner) -> bool:
        """Always: what was not paired has no rules."""
        return True

    def usage(self, form: InstructionForm, planner: Planner) -> PortUsage:
        """No ports, with the rules as the remarks."""
        together, apart = self.rules(form.id)
        rules = (
            NoPorts.ISSUES_WITH.of(", ".join(together)) if together else NOTHING,
            NoPorts.NOT_WITH.of(", ".join(apart)) if apart else NOTHING,
        )
        return PortUsage(None, None, remarks=(NoPorts.IN_ORDER.of(), *filter(None, rules)))
