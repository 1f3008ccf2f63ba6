"""What needs a second look: values that break a law, or that another kernel may show better.

The laws: a latency is at least a cycle unless the chain is shown to be cut; nothing is faster than a NOP or a
simple instruction; pairs of the same kind take the same time, and so do forms that differ in width alone, or
the second look has to find the difference again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from cyclescope.infer.timing.results import (
    AGREED,
    BELOW,
    EXACT,
    FINEST,
    INTERVAL,
    MUCH,
    TOLERANCE,
    UPPER_BOUND,
    Latency,
    Throughput,
    whole,
)
from cyclescope.isa.dataflow import Pair
from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.overwriting import own_destinations
from cyclescope.kernel.variant import ASIDE, Kind, variant_of
from cyclescope.model.facts import HIGH, LOW, MEDIUM
from cyclescope.remarks.timing import Cause

CUT_SHORT = 2.5  # cycles: the issue of what cuts a chain may delay one that is shorter
_WIDTHS = (
    (re.compile(r"\b[XYZ]MM\b"), "VMM"),
    (re.compile(r"_1to\d+"), "_bcst"),
    (re.compile(r"\bM\d+\b"), "M"),
    (re.compile(r"\bR(16|32|64)\b"), "R"),
    (re.compile(r"\bVSIB_[XYZ]MM\b"), "VSIB"),
)


def is_doubtful(latency: Latency, throughput: float) -> bool:
    """Whether a longer chain may tell more: withheld, hidden by the throughput, or no whole number."""
    if latency.cause is Cause.WITHHELD:
        return True
    if latency.kind == UPPER_BOUND:
        return latency.cause is Cause.HIDDEN
    if latency.kind not in (EXACT, INTERVAL) or latency.max is None or latency.values:
        return False
    if 1 < latency.max < MUCH * throughput:
        return True
    measured = latency.measured or 0.0
    return BELOW < measured % 1 < 1 - BELOW and 1 < measured < 20


def is_undecided(latency: Latency) -> bool:
    """Whether more rounds may tell another value: it is no whole number, or within its error of none.

    That includes the whole number at the end of the interval that an average gives. Or it is a bound by a
    chain whose rounds disagree: the least that they show is a matter of luck.
    """
    if latency.kind == UPPER_BOUND and latency.confidence in (MEDIUM, LOW):
        return True
    if latency.kind == INTERVAL:
        return True
    if latency.values:
        return any(value % 1 for value in latency.values.values())
    if latency.kind != EXACT or latency.max is None or latency.measured is None:
        return False
    error = latency.spread or 0.0
    sides = {whole(latency.measured + side * error, math.inf) for side in (-1, 1)}
    return bool(latency.max % 1) or (latency.max > 1 and sides != {latency.max})


def is_unsure(throughput: Throughput | None) -> bool:
    """Whether a throughput is withheld, its sequences say different things, or it has one alone: another time
    may tell.
    """
    if throughput is None:
        return False
    sequences = [name for name in throughput.variants if variant_of(name).kind not in ASIDE]
    unsure = throughput.confidence != HIGH or len(sequences) == 1
    return throughput.cause is Cause.WITHHELD or (throughput.value is not None and unsure)


def is_through_memory(pair: Pair, latency: Latency) -> bool:
    """Whether a chain goes through memory, where room between load and store may tell a shorter latency.

    Of values that depend on the operands, each chain has its own state already.
    """
    known = latency.max is not None and not latency.values
    return known and "data" in (pair.source.part, pair.target.part)


def may_be_delayed(latency: Latency) -> bool:
    """Whether what cuts other dependencies, an instruction or two, may be what a short chain waits for."""
    return latency.kind in (EXACT, INTERVAL) and 1 + BELOW < (latency.max or 0.0) < CUT_SHORT


def slower_than_others(latencies: Sequence[Latency], every: Sequence[Pair]) -> list[bool]:
    """Whether a pair takes longer than another of the same kind, perhaps because of what it breaks."""
    kinds = [(pair.source.part, pair.target.part) for pair in every]
    least: dict[tuple[str, str], float] = {}
    for kind, latency in zip(kinds, latencies, strict=True):
        if latency.max is not None:
            least[kind] = min(latency.max, least.get(kind, math.inf))
    limits = [1.1 * least.get(kind, math.inf) for kind in kinds]
    return [(lat.max or 0.0) > limit for limit, lat in zip(limits, latencies, strict=True)]


def same_but_width(form: InstructionForm) -> str:
    """What the forms of one mnemonic that differ in width only have in common."""
    name = form.id
    for pattern, replacement in _WIDTHS:
        name = pattern.sub(replacement, name)
    return name


def is_uneven(throughput: float) -> bool:
    """Whether a throughput is no simple fraction, as whole micro-operations on equal ports give it.

    Many are true; but a core shared with another program's thread gives such values as well.
    """
    if throughput <= FINEST:
        return False
    parts = (2, 3, 4, 6)
    return min(abs(throughput - round(throughput * n) / n) for n in parts) > TOLERANCE * throughput


def is_of_ports(throughput: float) -> bool:
    """Whether a throughput is a whole number of instances a cycle, as ports give it: nothing else need limit
    it.
    """
    rate = 1 / throughput
    return rate > 1 - TOLERANCE and abs(rate - round(rate)) < TOLERANCE * rate


def waits_for_its_own(form: InstructionForm, throughput: Throughput | None) -> bool:
    """Whether what a form takes may be that instances wait for destinations that they read.

    Many chains side by side take longer than ports need where a core deals ports out before it knows when
    operands are ready: then it is no whole number of instances a cycle, and no simple fraction or another one
    with another number of destinations.
    """
    if throughput is None or not throughput.value or not own_destinations(form):
        return False
    if is_of_ports(throughput.value):
        return False
    looks = [(variant_of(name).kind, cycles) for name, cycles in throughput.variants.items()]
    plain = [cycles for kind, cycles in looks if kind in (Kind.PLAIN, Kind.UNROLLED)]
    return is_uneven(throughput.value) or max(plain, default=0.0) > AGREED * throughput.value


def outliers(forms: Sequence[InstructionForm], throughputs: Mapping[str, float]) -> set[str]:
    """Ids of forms whose throughput is uneven, or differs a little from the least of other widths."""
    least: dict[str, float] = {}
    widths = {form.id: same_but_width(form) for form in forms if form.id in throughputs}
    for form_id, name in widths.items():
        least[name] = min(throughputs[form_id], least.get(name, math.inf))
    alone = {i for i, name in widths.items() if AGREED < throughputs[i] / max(least[name], 1e-9) < MUCH}
    return alone | {i for i in widths if is_uneven(throughputs[i])}
