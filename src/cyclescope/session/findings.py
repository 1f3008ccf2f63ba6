"""What the measurements of a machine say that one might not expect, found by rules.

They are the questions of section 7.3 of the uops.info paper, asked of every form. A finding rests on values
of medium or high confidence only, and on differences beyond the spreads of both.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations

import msgspec

from cyclescope.infer.timing.results import EXACT, LOW, UPPER_BOUND, FormTiming, Latency
from cyclescope.isa.dataflow import is_old, pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import mnemonics
from cyclescope.isa.table import Table, load_table
from cyclescope.kernel.variant import Kind
from cyclescope.model.comparison.agreement import RELATIVE, Comparison, Match, Quantity, compare
from cyclescope.model.comparison.explanations import Reason
from cyclescope.model.machine import MachineModel, Operation
from cyclescope.model.ports import notation, port_throughput
from cyclescope.remarks.timing import Idiom
from cyclescope.session.subjects import Subject

STEP = 0.5  # cycles: latencies are whole numbers, so that a difference of less is none
_ORDINARY = ("register", "flag")  # sources of which one expects the same latency


class Discovery(msgspec.Struct, frozen=True):
    """What was found of a form; `alike` other forms of its mnemonic have the same text.

    `weight` orders findings of a group, the most telling first; those that are `explained` come before.
    """

    form: str
    text: str
    weight: float = 0.0
    alike: int = 0
    explained: bool = False

    @property
    def rank(self) -> tuple[bool, float]:
        """How telling it is."""
        return self.explained, self.weight


class FindingGroup(msgspec.Struct, frozen=True):
    """The findings of one rule: `total` forms. `missing` says why there can be none."""

    key: str
    title: str
    about: str
    findings: tuple[Discovery, ...]
    missing: str = ""

    @property
    def total(self) -> int:
        """Forms, those alike counted."""
        return sum(1 + one.alike for one in self.findings)


class _Rule(msgspec.Struct, frozen=True):
    key: str
    title: str
    about: str
    found: Callable[[FormTiming, InstructionForm], Iterator[Discovery]]


def findings(subject: Subject, others: Sequence[MachineModel] = ()) -> list[FindingGroup]:
    """What is found of a machine, group by group; `others` are published numbers to be explained.

    A machine without results of its own (a model) has none but of the last kind.
    """
    table = load_table(subject.model.isa)
    known = [(one, form) for one in subject.timings.values()
             if one.status == "ok" and (form := table.get(one.id)) is not None]  # fmt: skip
    missing = "" if known else "the source has no measurements of its own"
    groups = [
        FindingGroup(rule.key, rule.title, rule.about, _gathered(_of(rule, known), table), missing)
        for rule in _RULES
    ]
    hidden = FindingGroup("hidden", *_HIDDEN, _gathered(_hidden_units(subject), table), missing)
    isolation = FindingGroup("isolation", *_ISOLATION, _gathered(_isolated(subject.model), table))
    return [*groups, hidden, isolation] + [_published(subject, other, table) for other in others]


def _of(rule: _Rule, known: Iterable[tuple[FormTiming, InstructionForm]]) -> Iterator[Discovery]:
    for timing, form in known:
        yield from rule.found(timing, form)


def _gathered(found: Iterable[Discovery], table: Table) -> tuple[Discovery, ...]:
    """One finding for all forms of a mnemonic that it is the same of, the most telling first."""
    firsts: dict[tuple[str, str], Discovery] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for one in found:
        form = table.get(one.form)
        key = (form.mnemonic if form else one.form, one.text)
        firsts.setdefault(key, one)
        counts[key] += 1
    every = [msgspec.structs.replace(one, alike=counts[key] - 1) for key, one in firsts.items()]
    return tuple(sorted(every, key=lambda one: (not one.explained, -one.weight, one.form, one.text)))


# --- rules -------------------------------------------------------------------------------------------


def _sure(latency: Latency) -> bool:
    """Whether a latency is a value to build on."""
    known = latency.max is not None and latency.min == latency.max
    return known and latency.kind == EXACT and latency.confidence != LOW and not latency.values


def _value(latency: Latency) -> float:
    return latency.max or 0.0


def _apart(one: Latency, other: Latency) -> float:
    """By how much two latencies differ beyond doubt, 0 where they do not."""
    distance = abs(_value(one) - _value(other))
    return distance if distance >= STEP + (one.spread or 0.0) + (other.spread or 0.0) else 0.0


def _operand_pairs(timing: FormTiming, form: InstructionForm) -> Iterator[Discovery]:
    """Sources of one target with different latencies, of registers and flags: the way of memory is longer."""
    parts = {pair.source.name: pair.source.part for pair in pairs(form)}
    targets: dict[str, list[Latency]] = {}
    for latency in filter(_sure, timing.latencies):
        if parts.get(latency.source) in _ORDINARY and not latency.convention:
            targets.setdefault(latency.target, []).append(latency)
    apart = [(_apart(a, b), a, b) for some in targets.values() for a, b in combinations(some, 2)]
    most, *both = max(apart, key=lambda found: found[0], default=(0.0,))
    if most:
        slow, fast = sorted((one for one in both if isinstance(one, Latency)), key=_value, reverse=True)
        said = f"{slow.source} -> {slow.target} takes {_value(slow):g} cycles"
        yield Discovery(timing.id, f"{said}, {fast.source} -> {fast.target} {_value(fast):g}", most)


def _same_register(timing: FormTiming, form: InstructionForm) -> Iterator[Discovery]:
    """One register for all operands where the chain takes another time than its latencies say."""
    same = timing.throughput and timing.throughput.variants.get(Kind.SAME)
    if not same or timing.idiom or timing.throughput is None or timing.throughput.confidence == LOW:
        return
    registers = {op.name for op in form.operands if op.is_register and not op.implicit}
    chain = [lat for lat in timing.latencies if lat.source in registers and lat.target in registers]
    if not chain or not all(map(_sure, chain)):
        return
    expected = max(*map(_value, chain), timing.throughput.value or 0.0)
    if abs(same - expected) >= STEP + max(lat.spread or 0.0 for lat in chain):
        yield Discovery(
            timing.id, f"with one register {same:g} cycles, with different ones the chain takes {expected:g}",
            abs(same - expected),
        )  # fmt: skip


def _idioms(timing: FormTiming, form: InstructionForm) -> Iterator[Discovery]:
    """Zero idioms and broken dependencies; those that no manual lists weigh more."""
    if timing.idiom in (Idiom.ZERO, Idiom.BREAKING):
        plain = form.mnemonic.removeprefix("V")
        listed = plain.startswith(mnemonics("idioms"))
        more = "" if listed else ", which no manual that we know of lists"
        yield Discovery(timing.id, timing.idiom + more, float(not listed))


def _false_outputs(timing: FormTiming, _: InstructionForm) -> Iterator[Discovery]:
    """Old values that are waited for although they are overwritten."""
    for lat in timing.latencies:
        if is_old(lat.source) and lat.kind not in (None, UPPER_BOUND) and lat.max and lat.confidence != LOW:
            yield Discovery(timing.id, f"waits {lat.max:g} cycles for the old value of {lat.target}", lat.max)


def _consumers(timing: FormTiming, _: InstructionForm) -> Iterator[Discovery]:
    """Results that one kind of instruction gets later than another."""
    for lat in timing.latencies:
        others = {name: value for name, value in lat.bypass.items() if abs(value - _value(lat)) >= STEP}
        if _sure(lat) and others:
            said = ", ".join(f"{value:g} to {name} instructions" for name, value in others.items())
            most = max(abs(value - _value(lat)) for value in others.values())
            yield Discovery(timing.id, f"{lat.source} -> {lat.target} {_value(lat):g} cycles, {said}", most)


_RULES = (
    _Rule("pairs", "Operand pairs that differ in latency",
          "The result is there at another time after one source than after another: one number per "
          "instruction is wrong for one of them.", _operand_pairs),
    _Rule("same-register", "One register for all operands",
          "With one register for all operands these take another time than the same chain through others.",
          _same_register),
    _Rule("idioms", "Zero idioms and broken dependencies",
          "With one register for all sources these do not wait for it; what no manual lists comes first.",
          _idioms),
    _Rule("outputs", "False output dependencies",
          "These wait for the value that they overwrite.", _false_outputs),
    _Rule("consumers", "Latencies that depend on the consumer",
          "Integer and floating-point instructions get the result at different times.", _consumers),
)  # fmt: skip

_HIDDEN = (
    "Throughput and ports disagree",
    "Slower than their ports and the front end allow: a unit that no port explains, or a port usage that is "
    "incomplete.",
)
_ISOLATION = (
    "Port usage that running alone would get wrong",
    "Run alone, these load their ports evenly, as one kind of operation that may use all of them would: "
    "counters per port alone, without blocking instructions, cannot tell.",
)


def _hidden_units(subject: Subject) -> Iterator[Discovery]:
    """Slower than the ports and the front end allow: something else is busy."""
    for timing in subject.timings.values():
        found, ports = timing.throughput, timing.ports_throughput
        if found is None or found.value is None or ports is None or found.kind != EXACT:
            continue
        if LOW in (found.confidence, timing.ports_confidence) or timing.slots is None:
            continue
        allowed = max(ports, timing.slots / subject.model.core.width)
        over = found.value - allowed - (found.spread or 0.0)
        if over > RELATIVE * found.value:
            said = f"{found.value:g} cycles, its ports ({timing.ports}) and slots allow {allowed:.3g}"
            yield Discovery(timing.id, said, found.value / allowed if allowed else found.value)


def _isolated(model: MachineModel) -> Iterator[Discovery]:
    """Operations of overlapping sets of ports that load all of these evenly."""
    for name, cost in model.forms.items():
        operations = [op for op in cost.operations or () if op.ports]
        union = tuple(sorted({port for op in operations for port in op.ports}))
        unlike = [(a, b) for a, b in combinations(operations, 2) if a.ports != b.ports]
        overlap = any(set(a.ports) & set(b.ports) for a, b in unlike)
        if not overlap or cost.confidence == LOW:
            continue
        total = sum(op.count * op.cycles for op in operations)
        if math.isclose(port_throughput(operations), total / len(union)):
            alone = notation([Operation(union, total)], model.ports)
            yield Discovery(name, f"{notation(operations, model.ports)}, and not {alone}", total)


# --- published numbers -------------------------------------------------------------------------------


def _published(subject: Subject, other: MachineModel, table: Table) -> FindingGroup:
    """Latencies that another source has otherwise, and which pair or register its number is of."""
    found: dict[str, Discovery] = {}
    for one in compare(subject.model, other).comparisons:
        if one.quantity is Quantity.LATENCY and one.verdict is Match.DIFFERENT:
            told = _explained(subject, one)
            found[one.form] = max(told, found.get(one.form, told), key=lambda finding: finding.rank)
    about = (
        "Where the other number is that of another operand pair, or of one register for all operands, both "
        "are right, and one number is too few. Those come first."
    )
    title = f"Latencies that {other.name} has otherwise"
    return FindingGroup(f"against-{other.name}", title, about, _gathered(found.values(), table))


def _number(reach: tuple[float, float] | None) -> float:
    """The number that a source has: of what is only known to be at most so many that one."""
    least, most = reach or (0.0, 0.0)
    return (least + most) / 2 if least else most


def _told(reach: tuple[float, float] | None) -> str:
    least, most = reach or (0.0, 0.0)
    if most - least < STEP:
        return f"{(least + most) / 2:.3g} cycles"
    return f"{least:.3g} to {most:.3g} cycles" if least else f"at most {most:.3g} cycles"


def _explained(subject: Subject, one: Comparison) -> Discovery:
    """What differs, and of what the other number is right."""
    here, there = _number(one.first), _number(one.second)
    said = f"{one.pair} {_told(one.first)} here, {_told(one.second)} there"
    weight = abs(here - there)
    latencies = subject.model.forms[one.form].latencies
    alike = [pair for pair, value in latencies.items() if pair != one.pair and abs(value - there) < STEP]
    if alike:
        return Discovery(one.form, f"{said}, which is what {alike[0]} takes here", weight, explained=True)
    timing = subject.timings.get(one.form)
    same = timing.throughput.variants.get(Kind.SAME) if timing and timing.throughput else None
    if same is not None and abs(same - there) < STEP:
        why = "which is what it takes here with one register"
        return Discovery(one.form, f"{said}, {why}", weight, explained=True)
    why = "unexplained" if one.reason in (None, Reason.OPEN) else one.reason
    return Discovery(one.form, f"{said}, {why}", weight)
