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

from cyclescope.infer.timing.results import EXACT, UPPER_BOUND, FormTiming, Latency
from cyclescope.isa.dataflow import is_old, pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import mnemonics
from cyclescope.isa.table import Table, load_table
from cyclescope.kernel.variant import Kind
from cyclescope.model.comparison.agreement import RELATIVE, Comparison, Match, Quantity, compare
from cyclescope.model.comparison.explanations import Reason
from cyclescope.model.facts import LOW
from cyclescope.model.machine import MachineModel, Operation
from cyclescope.model.ports import notation, port_throughput
from cyclescope.remarks.findings import About, Rule, Unexpected
from cyclescope.remarks.remark import Remark, listed
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
    title: Rule
    about: About
    found: Callable[[FormTiming, InstructionForm], Iterator[Discovery]]

    @property
    def words(self) -> tuple[str, str]:
        """Title and meaning of what it finds."""
        return self.title.of().text, self.about.of().text


def findings(subject: Subject, others: Sequence[MachineModel] = ()) -> list[FindingGroup]:
    """What is found of a machine, group by group; `others` are published numbers to be explained.

    A machine without results of its own (a model) has none but of the last kind.
    """
    table = load_table(subject.model.isa)
    known = [(one, form) for one in subject.timings.values()
             if one.status == "ok" and (form := table.get(one.id)) is not None]  # fmt: skip
    missing = "" if known else About.NO_MEASUREMENTS.value
    groups = [
        FindingGroup(rule.key, *rule.words, _gathered(_of(rule, known), table), missing) for rule in _RULES
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
        both_ends = (end for one in (slow, fast) for end in (one.source, one.target, _value(one)))
        yield Discovery(timing.id, Unexpected.PAIRS.of(*both_ends).text, most)


def _same_register(timing: FormTiming, form: InstructionForm) -> Iterator[Discovery]:
    """One register for all operands where the chain takes another time than its latencies say."""
    same = timing.throughput and timing.throughput.variants.get(Kind.SAME)
    if not same or timing.idiom or timing.throughput is None or timing.throughput.confidence == LOW:
        return
    registers = {op.name for op in form.operands if op.is_register and not op.implicit}
    sources = registers.intersection(form.operands[place].name for place in form.alike)
    chain = [lat for lat in timing.latencies if lat.source in sources and lat.target in registers]
    if not chain or not all(map(_sure, chain)):
        return
    expected = max(*map(_value, chain), timing.throughput.value or 0.0)
    if abs(same - expected) >= STEP + max(lat.spread or 0.0 for lat in chain):
        said = Unexpected.ONE_REGISTER.of(same, expected)
        yield Discovery(timing.id, said.text, abs(same - expected))


def _idioms(timing: FormTiming, form: InstructionForm) -> Iterator[Discovery]:
    """Zero idioms and broken dependencies; those that no manual lists weigh more."""
    if timing.idiom in (Idiom.ZERO, Idiom.BREAKING):
        plain = form.mnemonic.removeprefix("V")
        is_listed = plain.startswith(mnemonics("idioms"))
        said = timing.idiom if is_listed else Unexpected.UNLISTED.of(timing.idiom).text
        yield Discovery(timing.id, said, float(not is_listed))


def _false_outputs(timing: FormTiming, _: InstructionForm) -> Iterator[Discovery]:
    """Old values that are waited for although they are overwritten."""
    for lat in timing.latencies:
        if is_old(lat.source) and lat.kind not in (None, UPPER_BOUND) and lat.max and lat.confidence != LOW:
            yield Discovery(timing.id, Unexpected.OLD_VALUE.of(lat.max, lat.target).text, lat.max)


def _consumers(timing: FormTiming, _: InstructionForm) -> Iterator[Discovery]:
    """Results that one kind of instruction gets later than another."""
    for lat in timing.latencies:
        others = {name: value for name, value in lat.bypass.items() if abs(value - _value(lat)) >= STEP}
        if _sure(lat) and others:
            told = listed(Unexpected.CONSUMER.of(value, name) for name, value in others.items())
            said = Unexpected.CONSUMERS.of(lat.source, lat.target, _value(lat), told)
            most = max(abs(value - _value(lat)) for value in others.values())
            yield Discovery(timing.id, said.text, most)


_RULES = (
    _Rule("pairs", Rule.PAIRS, About.PAIRS, _operand_pairs),
    _Rule("same-register", Rule.SAME_REGISTER, About.SAME_REGISTER, _same_register),
    _Rule("idioms", Rule.IDIOMS, About.IDIOMS, _idioms),
    _Rule("outputs", Rule.OUTPUTS, About.OUTPUTS, _false_outputs),
    _Rule("consumers", Rule.CONSUMERS, About.CONSUMERS, _consumers),
)
_HIDDEN = Rule.HIDDEN.value, About.HIDDEN.value
_ISOLATION = Rule.ISOLATION.value, About.ISOLATION.value


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
            said = Unexpected.HIDDEN.of(found.value, timing.ports, allowed)
            yield Discovery(timing.id, said.text, found.value / allowed if allowed else found.value)


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
            said = Unexpected.NOT_ALONE.of(notation(operations, model.ports), alone)
            yield Discovery(name, said.text, total)


# --- published numbers -------------------------------------------------------------------------------


def _published(subject: Subject, other: MachineModel, table: Table) -> FindingGroup:
    """Latencies that another source has otherwise, and which pair or register its number is of."""
    found: dict[str, Discovery] = {}
    for one in compare(subject.model, other).comparisons:
        if one.quantity is Quantity.LATENCY and one.verdict is Match.DIFFERENT:
            told = _explained(subject, one)
            found[one.form] = max(told, found.get(one.form, told), key=lambda finding: finding.rank)
    said = Rule.AGAINST.of(other.name).text, About.AGAINST.of().text
    return FindingGroup(f"against-{other.name}", *said, _gathered(found.values(), table))


def _number(reach: tuple[float, float] | None) -> float:
    """The number that a source has: of what is only known to be at most so many that one."""
    least, most = reach or (0.0, 0.0)
    return (least + most) / 2 if least else most


def _told(reach: tuple[float, float] | None) -> Remark:
    least, most = reach or (0.0, 0.0)
    if most - least < STEP:
        return Unexpected.CYCLES.of((least + most) / 2)
    return Unexpected.CYCLES_BETWEEN.of(least, most) if least else Unexpected.CYCLES_AT_MOST.of(most)


def _explained(subject: Subject, one: Comparison) -> Discovery:
    """What differs, and of what the other number is right."""
    here, there = _number(one.first), _number(one.second)
    said = Unexpected.BOTH.of(one.pair, _told(one.first), _told(one.second))
    weight = abs(here - there)
    latencies = subject.model.forms[one.form].latencies
    alike = [pair for pair, value in latencies.items() if pair != one.pair and abs(value - there) < STEP]
    if alike:
        why = Unexpected.OF_OTHER_PAIR.of(said, alike[0])
        return Discovery(one.form, why.text, weight, explained=True)
    timing = subject.timings.get(one.form)
    same = timing.throughput.variants.get(Kind.SAME) if timing and timing.throughput else None
    if same is not None and abs(same - there) < STEP:
        return Discovery(one.form, Unexpected.OF_ONE_REGISTER.of(said).text, weight, explained=True)
    is_open = one.reason in (None, Reason.OPEN)
    why = Unexpected.UNEXPLAINED.of(said) if is_open else Unexpected.EXPLAINED.of(said, one.reason)
    return Discovery(one.form, why.text, weight)
