"""Comparing our values with those of a reference: what agrees, and what about the rest.

Throughput agrees within 5 % or 0.03 cycles. Latencies are equal when they are the same whole number
of cycles, give or take 0.3 cycles or 5 %: the noise, and what neither side claims to know better. A
reference's range agrees with a value of ours inside it, its upper bound with a value not above it. A
summary over all pairs is compared with the least and the greatest of ours, but for false dependencies, which
no reference has. Where we only have an
upper bound, that is a disagreement unless it equals the reference's exact value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from benchmarks.lib.matching import llvm_pair
from benchmarks.lib.reference import Reference, Row, RowLatency
from cyclescope.infer.timing.results import UPPER_BOUND, FormTiming, Latency
from cyclescope.isa.dataflow import is_old
from cyclescope.isa.form import InstructionForm

SHARE, LEAST = 0.05, 0.03  # throughput
LATENCY = 0.3  # cycles


class Case(msgspec.Struct, frozen=True):
    """One value of ours beside one of the reference's.

    `pairs` are our latencies that the row speaks of, none for a throughput.
    """

    form: InstructionForm
    timing: FormTiming
    row: Row
    pairs: tuple[Latency, ...] = ()
    theirs: RowLatency | None = None

    @property
    def what(self) -> str:
        """`throughput`, `op1 -> op2`, or `all pairs`."""
        if self.theirs is None:
            return "throughput"
        if not self.theirs.pair:
            return "all pairs"
        first = self.pairs[0]
        more = f" and {len(self.pairs) - 1} more" if len(self.pairs) > 1 else ""
        return f"{first.source} -> {first.target}{more}"

    @property
    def our_value(self) -> float:
        """Our throughput, or the greatest of our latencies."""
        if self.theirs is None:
            assert self.timing.throughput is not None
            return self.timing.throughput.value or 0.0
        return max(lat.max or 0.0 for lat in self.pairs)

    @property
    def their_value(self) -> float:
        """Their throughput, or the greatest of their latencies."""
        return self.theirs.high if self.theirs is not None else self.row.throughput or 0.0

    def ours(self) -> str:
        """Our value as text."""
        if self.theirs is None:
            return f"{self.our_value:.2f}"
        values = sorted({value for lat in self.pairs for value in (lat.min, lat.max) if value is not None})
        kinds = {lat.kind for lat in self.pairs}
        mark = "<= " if kinds == {UPPER_BOUND} else ""
        return mark + (f"{values[0]:.2f}" if len(values) == 1 else f"{values[0]:.2f} to {values[-1]:.2f}")

    def reference(self) -> str:
        """Their value as text."""
        if self.theirs is None:
            return f"{self.their_value:.2f}"
        low, high = (
            ("<= " if b else "") + f"{v:.2f}"
            for v, b in ((self.theirs.low, self.theirs.low_bound), (self.theirs.high, self.theirs.high_bound))
        )
        return low if low == high else f"{low} to {high}"


class Tally(msgspec.Struct):
    """Values compared, and those that disagree."""

    compared: int = 0
    disagreeing: list[Case] = []

    @property
    def agreeing(self) -> int:
        """Values that agree."""
        return self.compared - len(self.disagreeing)


def same_throughput(ours: float, theirs: float) -> bool:
    """Within 5 % of theirs or 0.03 cycles."""
    return abs(ours - theirs) <= max(SHARE * theirs, LEAST) + 1e-9


def same_latency(ours: float, low: float, high: float) -> bool:
    """Inside a range, give or take 0.3 cycles or 5 %."""
    return low - _slack(low) <= ours <= high + _slack(high)


def _slack(value: float) -> float:
    return max(LATENCY, SHARE * value) + 1e-9


def throughputs(reference: Reference, found: dict[str, tuple[InstructionForm, FormTiming]]) -> Tally:
    """Every form that both have a throughput of."""
    tally = Tally()
    for name, (form, timing) in found.items():
        theirs = reference.rows[name].throughput
        ours = timing.throughput.value if timing.throughput else None
        if theirs is None or ours is None:
            continue
        tally.compared += 1
        if not same_throughput(ours, theirs):
            tally.disagreeing.append(Case(form, timing, reference.rows[name]))
    return tally


def latencies(reference: Reference, found: dict[str, tuple[InstructionForm, FormTiming]]) -> Tally:
    """Every latency of the reference that we have a value for."""
    tally = Tally()
    for name, (form, timing) in found.items():
        for case in _latency_cases(reference.rows[name], form, timing):
            tally.compared += 1
            if not agrees(case):
                tally.disagreeing.append(case)
    return tally


def _latency_cases(row: Row, form: InstructionForm, timing: FormTiming) -> Iterator[Case]:
    known = (lat for lat in timing.latencies if lat.max is not None and not is_old(lat.source))
    ours = {(lat.source, lat.target): lat for lat in known}
    for theirs in row.latencies:
        if theirs.pair:
            some: Iterable[Latency] = (ours[p] for p in llvm_pair(form, theirs.pair) if p in ours)
        else:
            some = (lat for (a, b), lat in ours.items() if "flags.AF" not in (a, b))
        pairs = tuple(some)
        if pairs:
            yield Case(form, timing, row, pairs, theirs)


def agrees(case: Case) -> bool:
    """Whether the latencies of a case are equal."""
    theirs = case.theirs
    assert theirs is not None
    if not theirs.pair:
        return _summary_agrees(case.pairs, theirs, bool(case.timing.idiom))
    values = [value for lat in case.pairs for value in _claimed(lat)]
    return any(same_latency(value, theirs.low, theirs.high) for value in values)


def _claimed(latency: Latency) -> tuple[float, ...]:
    """The values a latency states: classes of values, or its ends; of a bound only the bound."""
    assert latency.max is not None and latency.min is not None
    if latency.kind == UPPER_BOUND:
        return (latency.max,)
    return (*latency.values.values(), latency.min, latency.max)


def _summary_agrees(pairs: Sequence[Latency], theirs: RowLatency, idiom: bool) -> bool:
    """The extremes over all pairs; with one register twice an idiom's least latency is 0."""
    values = [value for lat in pairs for value in _claimed(lat)]
    least, most = min(values), max(values)
    low_end = -1.0 if theirs.low_bound else theirs.low
    high_start = 0.0 if theirs.high_bound else theirs.high
    low_good = same_latency(least, low_end, theirs.low) or (idiom and theirs.low == 0)
    return low_good and same_latency(most, high_start, theirs.high)
