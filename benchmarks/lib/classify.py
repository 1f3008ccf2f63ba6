"""Whose mistake a disagreement is, by rules that say why; no rule knows a form by name.

A rule gets one disagreement and returns a verdict with its reason, or None; the first that knows
wins, and what none knows stays unexplained. The order is from proof to likelihood. Two facts carry
most rules: the time of a loop is that of its longest chain, so of two chains that both go through a
pair the shorter one is nearer to the pair's latency; and a throughput is the least time of any
sequence, so a faster one refutes a slower one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from benchmarks.lib.judging import Case, same_latency, same_throughput
from benchmarks.lib.reference import Reference
from cyclescope.infer.timing.results import UPPER_BOUND, FormTiming
from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.variant import SPEEDS, Kind, variant_of

OURS, THEIRS, OTHER, UNEXPLAINED = "ours wrong", "theirs wrong", "other definition", "unexplained"
LAW = 0.85  # cycles: no latency is shorter unless it is cut or eliminated
STEADY = 0.03  # sequences within this share of each other agree


class Verdict(msgspec.Struct, frozen=True):
    """Who is wrong, and why."""

    whose: str
    reason: str


class Context(msgspec.Struct, frozen=True):
    """What the rules may look at besides the case: all timings and matched forms."""

    reference: Reference
    timings: Mapping[str, FormTiming]
    names: Mapping[str, str]  # form id to the reference's name
    relatives: Mapping[object, tuple[InstructionForm, ...]]


Rule = Callable[[Case, Context], Verdict | None]


def context(reference: Reference, found: Mapping[str, tuple[InstructionForm, FormTiming]]) -> Context:
    """The context of a comparison."""
    groups: dict[object, list[InstructionForm]] = {}
    for form, _ in found.values():
        for key in (_twin_key(form), _family_key(form)):
            groups.setdefault(key, []).append(form)
    return Context(
        reference,
        {form.id: timing for form, timing in found.values()},
        {form.id: name for name, (form, _) in found.items()},
        {key: tuple(forms) for key, forms in groups.items()},
    )


def classify(case: Case, around: Context) -> Verdict:
    """The first rule's verdict."""
    rules = THROUGHPUT_RULES if case.theirs is None else LATENCY_RULES
    for rule in rules:
        verdict = rule(case, around)
        if verdict is not None:
            return verdict
    return Verdict(UNEXPLAINED, "no rule knows")


# --- relatives -------------------------------------------------------------------------------------


def _twin_key(form: InstructionForm) -> object:
    """Forms with one mnemonic and the same operands in several encodings."""
    return "twin", form.mnemonic, tuple(op.cls for op in form.operands if not op.implicit)


def _family_key(form: InstructionForm) -> object:
    """Forms with one mnemonic on registers of one width, whatever their masks."""
    shape = tuple(op.cls for op in form.operands if not op.implicit and op.cls != "K")
    return "family", form.mnemonic, shape


def _others(case: Case, around: Context, key: object) -> list[InstructionForm]:
    return [form for form in around.relatives.get(key, ()) if form.id != case.form.id]


def _value(case: Case, around: Context, form: InstructionForm) -> float | None:
    """What we have for another form where the case has its value."""
    timing = around.timings[form.id]
    if case.theirs is None:
        return timing.throughput.value if timing.throughput else None
    wanted = {(lat.source, lat.target) for lat in case.pairs}
    values = [
        lat.max for lat in timing.latencies if (lat.source, lat.target) in wanted and lat.max is not None
    ]
    return max(values, default=None)


def _equal(case: Case, value: float | None) -> bool:
    """Whether a value of ours would agree with theirs."""
    if value is None:
        return False
    if case.theirs is None:
        return same_throughput(value, case.their_value)
    return same_latency(value, case.theirs.low, case.theirs.high)


# --- rules for both --------------------------------------------------------------------------------


def twin_encoding(case: Case, around: Context) -> Verdict | None:
    """Tables made through an assembler's text name EVEX and measure VEX."""
    if "evex" not in case.form.attributes:
        return None
    for form in _others(case, around, _twin_key(case.form)):
        if "evex" not in form.attributes and _equal(case, _value(case, around, form)):
            return Verdict(THEIRS, "equals our value of the VEX encoding: an assembler chose the shorter one")
    return None


def impossible(case: Case, around: Context) -> Verdict | None:
    """Latencies below a cycle where we show a dependency, throughputs of nothing."""
    if case.theirs is None:
        return Verdict(THEIRS, "no instruction takes no time") if case.their_value <= 0 else None
    if case.theirs.pair and case.their_value < LAW and min(lat.max or 0.0 for lat in case.pairs) >= LAW:
        return Verdict(THEIRS, "below one cycle, and we show no idiom or elimination")
    return None


def value_classes(case: Case, around: Context) -> Verdict | None:
    """Between our fast and slow values."""
    found: list[float] = [v for lat in case.pairs for v in lat.values.values()]
    if case.theirs is None and case.timing.throughput is not None:
        variants = case.timing.throughput.variants
        found = [v for name, v in variants.items() if variant_of(name).kind in SPEEDS]
    if len(found) > 1 and min(found) <= case.their_value <= max(found):
        return Verdict(OTHER, "between our fast and slow operand values")
    return None


def other_immediate(case: Case, around: Context) -> Verdict | None:
    """The table's immediate takes another path through the same instruction."""
    has = any(op.kind == "immediate" and not op.fixed for op in case.form.operands)
    given = around.reference.immediate
    if not has or given is None:
        return None
    return Verdict(OTHER, f"the immediate is {given} there and another one here")


def zero_count(case: Case, around: Context) -> Verdict | None:
    """Shifts by CL with flags as the target: a count of zero leaves the flags, at a price."""
    counted = any({op.fixed, op.cls, op.name} & {"CL", "RCX"} for op in case.form.operands)
    flags = case.theirs is not None and any(lat.target.startswith("flags.") for lat in case.pairs)
    if counted and flags and case.their_value > 20 > case.our_value:
        return Verdict(OTHER, "their count is zero: the flags pass through, which is slow")
    return None


def family(case: Case, around: Context) -> Verdict | None:
    """One form of a family is out of line, on our side only."""
    relatives = [f for f in _others(case, around, _family_key(case.form)) if f.id in around.names]
    ours = [v for f in relatives if (v := _value(case, around, f)) is not None]
    if len(ours) >= 2 and all(_equal(case, v) for v in ours) and case.our_value > case.their_value:
        return Verdict(OURS, "our other forms of the family agree with theirs")
    return None


# --- throughput ------------------------------------------------------------------------------------


def _variants(case: Case) -> Mapping[str, float]:
    assert case.timing.throughput is not None
    return case.timing.throughput.variants


def same_register(case: Case, around: Context) -> Verdict | None:
    """They used one register for all operands."""
    values = [v for name, v in _variants(case).items() if variant_of(name).kind is Kind.SAME]
    if any(_equal(case, v) for v in values):
        return Verdict(OTHER, "equals our sequence with one register for all operands")
    return None


def own_dependency(case: Case, around: Context) -> Verdict | None:
    """Their instances wait for each other through an operand that we break."""
    plain = [v for name, v in _variants(case).items() if variant_of(name).kind is Kind.PLAIN]
    broken = [v for name, v in _variants(case).items() if variant_of(name).kind is Kind.BROKEN]
    chosen = broken and min(broken) < 0.97 * min(plain, default=min(broken))
    if chosen and case.our_value < case.their_value and any(_equal(case, v) for v in plain):
        return Verdict(OTHER, "equals our sequence whose own dependency is not broken")
    return None


def unstable_variant(case: Case, around: Context) -> Verdict | None:
    """A sequence of ours has their value, but was not chosen."""
    if any(_equal(case, v) and v < case.our_value for v in _ordinary(case)):
        return Verdict(OURS, "another sequence of ours has their value and is faster than the one published")
    return None


def serial(case: Case, around: Context) -> Verdict | None:
    """Their instances form a chain: the value is a latency of the form."""
    found = [lat.max for lat in case.timing.latencies if lat.max is not None]
    values = [value for value in found if value > max(1.5 * case.our_value, 1.5)]  # one cycle is too common
    if any(_equal(case, v) for v in values):
        return Verdict(THEIRS, "equals a latency of the form: their instances depend on each other")
    return None


def few_registers(case: Case, around: Context) -> Verdict | None:
    """Our value is the form's own latency divided by the number of our instances."""
    lengths = [v.length for v in map(variant_of, _variants(case)) if v.kind is Kind.PLAIN and v.length]
    own = [lat.max for lat in case.timing.latencies if lat.source == lat.target and lat.max is not None]
    if not lengths or case.our_value <= case.their_value:
        return None
    if any(abs(case.our_value - value / max(lengths)) <= STEADY * case.our_value for value in own):
        return Verdict(OURS, "our few instances form chains: the value is the latency over their number")
    return None


def _ordinary(case: Case) -> Sequence[float]:
    left_out = (Kind.SAME, Kind.INDEXED, Kind.SLOW)
    return [v for name, v in _variants(case).items() if variant_of(name).kind not in left_out]


def _agreeing(case: Case) -> int:
    """How many of our sequences have the published value."""
    return sum(abs(v - case.our_value) <= max(STEADY * case.our_value, 0.01) for v in _ordinary(case))


def faster_shown(case: Case, around: Context) -> Verdict | None:
    """A throughput is the least time of any sequence, and several of ours need less."""
    count = _agreeing(case)
    if case.our_value < case.their_value and count >= 2:
        return Verdict(THEIRS, "several sequences of ours are faster, and a throughput is the least time")
    return None


def short_loops(case: Case, around: Context) -> Verdict | None:
    """The difference of two short loops can be too small; sequences of all lengths agree on ours."""
    count = _agreeing(case)
    if (
        around.reference.short
        and case.their_value < case.our_value
        and count >= 3
        and count == len(_ordinary(case))
    ):
        return Verdict(THEIRS, "a difference of two short loops; our sequences of every length agree")
    return None


def scattered(case: Case, around: Context) -> Verdict | None:
    """Our sequences of different lengths do not agree, and theirs is below all: a length we lack."""
    values = _ordinary(case)
    if case.their_value < min(values) and max(values) > 1.04 * min(values):
        return Verdict(OURS, "the time depends on the sequence's length, and another length is faster")
    return None


# --- latency ---------------------------------------------------------------------------------------


def fraction(case: Case, around: Context) -> Verdict | None:
    """Their chain of the pair takes whole cycles and ours does not: ours waits for something else."""
    if case.theirs is None or case.theirs.helpers or not LAW <= case.their_value < case.our_value:
        return None
    if abs(case.our_value - round(case.our_value)) > 0.1 >= abs(case.their_value - round(case.their_value)):
        return Verdict(OURS, "theirs is a whole number of cycles and shorter, ours a fraction longer")
    return None


def only_bound(case: Case, around: Context) -> Verdict | None:
    """We have only an upper bound, and theirs lies below it."""
    if all(lat.kind == UPPER_BOUND for lat in case.pairs) and case.their_value <= case.our_value:
        return Verdict(OURS, "only an upper bound; theirs lies below it")
    return None


def throughput_bound(case: Case, around: Context) -> Verdict | None:
    """Their chain is no longer than the throughput, which hides the latency."""
    limit = case.timing.throughput.value if case.timing.throughput else None
    if (
        limit is not None
        and case.our_value < case.their_value
        and same_latency(case.their_value, limit, limit)
    ):
        return Verdict(
            THEIRS, "equals the throughput, which hides the shorter latency that our longer chain shows"
        )
    return None


def several_dependencies(case: Case, around: Context) -> Verdict | None:
    """Their instances depend on each other in several ways; the longest is what they time."""
    if case.theirs is None or "MULTI_DEP" not in case.theirs.status or case.their_value <= case.our_value:
        return None
    return Verdict(THEIRS, "the table itself says that the chain closes several dependencies at once")


def other_pair(case: Case, around: Context) -> Verdict | None:
    """Their chain with helpers takes as long as another pair of the form alone."""
    combined = case.theirs.combined if case.theirs is not None else None
    if combined is None or case.their_value >= case.our_value:
        return None
    source = case.pairs[0].source
    for lat in case.timing.latencies:
        if (
            lat.source == lat.target == source
            and lat.max is not None
            and same_latency(combined, lat.max, lat.max)
        ):
            reason = "their whole chain with helpers takes as long as the form's own chain through the source"
            return Verdict(THEIRS, reason)
    return None


def shorter_chain(case: Case, around: Context) -> Verdict | None:
    """Of two chains through a pair the shorter one is nearer to its latency."""
    direct = case.theirs is not None and bool(case.theirs.pair) and not case.theirs.helpers
    if direct and LAW <= case.their_value < case.our_value:
        return Verdict(OURS, "their chain of the pair alone is shorter, and a chain only ever adds")
    return None


def cut_here(case: Case, around: Context) -> Verdict | None:
    """We say that nothing depends, or that it is eliminated; they measure a chain."""
    if all((lat.max or 0.0) < LAW for lat in case.pairs) and case.their_value >= LAW:
        return Verdict(UNEXPLAINED, "we find no dependency or an eliminated one, they a latency")
    return None


def microcoded(case: Case, around: Context) -> Verdict | None:
    """Long instructions whose time depends on what they find in memory or tables."""
    if min(case.our_value, case.their_value) > 40 and 0.7 < case.our_value / case.their_value < 1.4:
        return Verdict(OTHER, "microcode of more than 40 cycles, whose time depends on operand values")
    return None


def summary_ends(case: Case, around: Context) -> Verdict | None:
    """A summary leaves open which pair it speaks of."""
    if case.theirs is None or case.theirs.pair:
        return None
    if case.theirs.high_bound and case.our_value > case.theirs.high:
        return Verdict(OURS, "our greatest latency is above their upper bound for all pairs")
    return Verdict(UNEXPLAINED, "the extremes over all pairs differ; the table does not say for which pair")


THROUGHPUT_RULES: tuple[Rule, ...] = (
    impossible, twin_encoding, same_register, unstable_variant, own_dependency, value_classes, serial,
    few_registers, other_immediate, faster_shown, family, scattered, short_loops, microcoded,
)  # fmt: skip
LATENCY_RULES: tuple[Rule, ...] = (
    impossible, twin_encoding, value_classes, only_bound, zero_count, several_dependencies, other_pair,
    throughput_bound, family, fraction, other_immediate, cut_here, shorter_chain, microcoded, summary_ends,
)  # fmt: skip


def normalised(text: str) -> str:
    """Assembly on one line."""
    return "; ".join(re.sub(r"\s+", " ", line.strip()) for line in text.splitlines())
