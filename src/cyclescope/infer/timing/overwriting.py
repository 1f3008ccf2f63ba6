"""False output dependencies: whether a form waits for the old value of a register that it only writes.

A sequence with one destination is compared with the same sequence with several. Slower by more than the
errors of both, and by a whole latency: a dependency, whose latency the chain shows. As fast, and faster
than any chain: none. As slow as the throughput: hidden, unless one-cycle instructions on the way make the
chain longer than the throughput.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from cyclescope.infer.timing.latency_system import UNCUT, LinkLatency
from cyclescope.infer.timing.link_chains import least_lawful
from cyclescope.infer.timing.results import (
    EXACT,
    HALF,
    INTERVAL,
    LESS,
    UNMEASURED,
    UPPER_BOUND,
    Latency,
    confidence,
    first_error,
    rounded,
    whole,
    without_value,
)
from cyclescope.isa.dataflow import Pair, is_old
from cyclescope.kernel.stream import kind_of
from cyclescope.kernel.variant import Kind
from cyclescope.measure.record import ERRORS, FAILED, NOISY, STABLE, Record
from cyclescope.model.facts import HIGH, LOW, MEDIUM
from cyclescope.remarks.remark import Remark
from cyclescope.remarks.timing import Timing, cause_of, withheld

LEAST_LATENCY = 0.85  # cycles: a latency is one at least, but for noise; less shows an idiom or none
_LONGEST = 40.0  # cycles of a chain that is filled: the window of a core holds several of its instances
_SPARE = 3  # one-cycle instructions more than the throughput has cycles
FOUND, ABSENT = Timing.FALSE_DEPENDENCY.of(), Timing.NO_FALSE_DEPENDENCY.of()
HIDDEN, NOT_WHOLE = Timing.HIDDEN.of(), Timing.NOT_WHOLE.of()
ONE_CHAIN, CHAINS_DISAGREE = Timing.UNCONFIRMED.of(), Timing.DISAGREE.of()
_DISTURBED, _WITHOUT = Timing.DISTURBED.of(), Timing.NO_THROUGHPUT.of()


class _Verdict(msgspec.Struct, frozen=True):
    """What one chain says: `cycles` of the latency, the bound where it is none."""

    remark: Remark
    cycles: float
    measured: float
    spread: float
    confidence: str
    stable: bool
    least: float | None = None  # where two chains differ within their errors

    @property
    def is_bound(self) -> bool:
        return self.remark not in (FOUND, ABSENT)


def output_latency(
    pair: Pair,
    records: Sequence[Record],
    streams: Sequence[Record],
    links: Mapping[str, LinkLatency],
    missing: Callable[[], str],
) -> Latency:
    """The latency from a destination's old value; `streams` are the form's sequences of its throughput.

    `missing` says why there is no kernel, or "": a question that takes its time.
    """
    source, target = pair.source.name, pair.target.name
    usable = {r.kind: r for r in records if r.verdict != FAILED}
    if Kind.KEPT not in usable:
        reason = pair.excluded or missing() or first_error(records) or UNMEASURED
        return without_value((source, target), reason)
    if usable[Kind.KEPT].per_instance < least_lawful(links):
        return without_value(
            (source, target), withheld(Timing.FASTER_THAN_NOP.of(usable[Kind.KEPT].per_instance))
        )
    found = list(_verdicts(usable, _sequences(streams), links))
    return _latency(source, target, _together(*found))


def filling(latency: Latency) -> int:
    """How many one-cycle instructions make a chain tell more than it does, 0 where none can or need be."""
    known = is_old(latency.source) and latency.max
    if not known or known > _LONGEST:
        return 0
    return math.ceil(known) + _SPARE


def _sequences(streams: Sequence[Record]) -> list[Record]:
    """The sequences that kernels with one destination are made of."""
    usable = [r for r in streams if r.verdict != FAILED]
    kind = kind_of(r.kind for r in usable)
    return [r for r in usable if r.kind is kind]


def _verdicts(
    usable: Mapping[Kind, Record], streams: Sequence[Record], links: Mapping[str, LinkLatency]
) -> Iterator[_Verdict]:
    yield _verdict(usable[Kind.KEPT], streams, 0.0)
    chain, apart = usable.get(Kind.FILLED), usable.get(Kind.FILLED_APART)
    if chain is None or apart is None:
        return
    known = [links[key] for key in chain.links if key in links]
    if len(known) == len(chain.links) and not any(link.convention == UNCUT for link in known):
        found = _verdict(chain, [apart], sum(link.value for link in known) / chain.count)
        disputed = any(link.disputed for link in known)
        yield msgspec.structs.replace(found, confidence=_less(found)) if disputed else found


def _verdict(chain: Record, others: Sequence[Record], filling: float) -> _Verdict:
    """What a chain says beside sequences of several destinations; `filling` are cycles of other links."""
    measured = chain.per_instance - filling
    spread = chain.spread / chain.count
    stable = chain.verdict == STABLE
    if measured < LEAST_LATENCY:
        return _Verdict(ABSENT, 0.0, measured, spread, confidence(chain), stable)
    if not others:
        return _Verdict(_WITHOUT, measured, measured, spread, confidence(chain), stable)
    apart = min(others, key=lambda record: record.per_instance)
    errors = ERRORS * (spread + apart.spread / apart.count)
    least = max(apart.per_instance / LESS, apart.per_instance + errors)
    cycles = whole(measured, chain.per_instance)
    stable = stable and apart.verdict == STABLE
    trust = min(confidence(chain), confidence(apart), key=(LOW, MEDIUM, HIGH).index)
    if chain.per_instance <= least or cycles + filling <= least:
        return _Verdict(HIDDEN, measured, measured, spread, trust, stable)
    if NOISY in (chain.verdict, apart.verdict):
        return _Verdict(_DISTURBED, measured, measured, spread, LOW, stable)
    is_latency = cycles % 1 == 0 or chain.per_instance >= least + 1
    return _Verdict(FOUND if is_latency else NOT_WHOLE, cycles, measured, spread, trust, stable)


def _together(first: _Verdict, second: _Verdict | None = None) -> _Verdict:
    """Both chains: a dependency is high only where the second one finds the same.

    What disturbs makes readings longer: a chain that is too short for a dependency is proof against one that
    is not stable.
    """
    if second is None:
        return _unconfirmed(first)
    if first.is_bound:
        return _bounded(first, second)
    if second.is_bound:
        return msgspec.structs.replace(first, confidence=_less(first))
    if second.remark == ABSENT and not first.stable:
        return second
    return _agreed(first, second)


def _unconfirmed(verdict: _Verdict) -> _Verdict:
    """A chain alone: a dependency only where both readings are stable."""
    if verdict.remark != FOUND:
        return verdict
    if verdict.stable:
        return msgspec.structs.replace(verdict, confidence=_less(verdict))
    return msgspec.structs.replace(verdict, remark=ONE_CHAIN, confidence=LOW)


def _agreed(first: _Verdict, second: _Verdict) -> _Verdict:
    """The latency that two chains agree on: one that is no whole number is an average of both."""
    if first.cycles == second.cycles:
        return first
    if abs(first.cycles - second.cycles) <= HALF + ERRORS * (first.spread + second.spread):
        return msgspec.structs.replace(
            first, cycles=max(first.cycles, second.cycles), least=min(first.cycles, second.cycles),
            confidence=_less(first),
        )  # fmt: skip
    most = max(first, second, key=lambda verdict: verdict.cycles)
    return msgspec.structs.replace(most, remark=CHAINS_DISAGREE, confidence=LOW)


def _bounded(first: _Verdict, second: _Verdict) -> _Verdict:
    """What a filled chain says where the other one gives a bound only, which it has to keep."""
    if second.remark != FOUND:
        return min(first, second, key=lambda verdict: (verdict.is_bound, verdict.cycles))
    if second.cycles > first.cycles + HALF:
        return msgspec.structs.replace(first, remark=CHAINS_DISAGREE, confidence=LOW)
    return msgspec.structs.replace(second, confidence=_less(second))


def _less(verdict: _Verdict) -> str:
    return MEDIUM if verdict.confidence == HIGH else verdict.confidence


def _latency(source: str, target: str, verdict: _Verdict) -> Latency:
    least = most = rounded(verdict.cycles)
    kind = UPPER_BOUND if verdict.is_bound else EXACT
    if verdict.is_bound:
        least = 0.0
    elif verdict.least is not None:
        least, kind = rounded(verdict.least), INTERVAL
    return Latency(
        source, target, least, most, kind, rounded(verdict.spread), note=verdict.remark.text,
        confidence=verdict.confidence, measured=rounded(verdict.measured),
        cause=cause_of(verdict.remark),
    )  # fmt: skip
