"""States of the core, found by probes, in which a form has another latency.

A chain of a form meets one state only. If a probe measured another form, the note names it. What was asked
and makes no difference is told, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from cyclescope.infer.timing.results import EXACT, HALF, FormTiming, Latency
from cyclescope.isa.dataflow import is_in_memory
from cyclescope.isa.form import InstructionForm
from cyclescope.measure.record import ERRORS
from cyclescope.model.facts import (
    ASKED_IN_A_ROW,
    ASKED_UPDATE,
    CONSUMERS,
    RENAMING,
    SSE_IN_A_ROW,
    SSE_SIDE_BY_SIDE,
    UPPER_HALVES,
    VECTOR_STATES,
    CoreAnswer,
    Fact,
    MemoryWay,
    consumer_forms,
)
from cyclescope.remarks.timing import Timing

_UPPER_HALVES = {
    f"{how}, {told}": (how, bits)
    for how in (SSE_IN_A_ROW, SSE_SIDE_BY_SIDE)
    for bits, told in UPPER_HALVES.items()
}  # subjects of a probe
_SHORTEST = 3.0  # cycles: no load takes less, so that what does through memory is renamed


def with_conditions(
    forms: Sequence[InstructionForm], timings: Sequence[FormTiming], facts: Sequence[Fact]
) -> list[FormTiming]:
    """The timings with a note for every state that a probe found to matter, and of the forms that were asked
    for what was found not to.
    """
    forwarded = [fact.value for fact in facts if _is_forwarded(fact)]
    asked: dict[str, list[str]] = {}
    for form, note in _asked(facts):
        asked.setdefault(form, []).append(note)
    return [
        msgspec.structs.replace(timing, notes=(*timing.notes, *notes))
        if (notes := (*_forwarded(timing.latencies, forwarded), *asked.get(form.id, ())))
        else timing
        for form, timing in zip(forms, timings, strict=True)
    ]


def _is_forwarded(fact: Fact) -> bool:
    """Whether a fact says that what is updated in memory may take clearly longer than renamed memory."""
    told = fact.probe == RENAMING and fact.subject == MemoryWay.UPDATED
    return told and fact.answer is CoreAnswer.FORWARDED and (fact.value or 0.0) >= HALF


def _asked(facts: Sequence[Fact]) -> Iterator[tuple[str, str]]:
    """The forms that probes asked, and the note that what was found makes."""
    others: dict[tuple[str, str], list[str]] = {}
    for fact in facts:
        if fact.value is None or (more := _longer(fact)) is None:
            continue
        if fact.probe == VECTOR_STATES and (state := _UPPER_HALVES.get(fact.subject)):
            how, bits = state
            yield ASKED_IN_A_ROW, Timing.UPPER_HALVES.of(how, more, bits, fact.probe).text
        elif fact.probe == CONSUMERS:
            first, second = consumer_forms(fact.subject)
            others.setdefault((first, more), []).append(second)
            others.setdefault((second, more), []).append(first)
    for (form, more), some in others.items():
        yield form, Timing.CONSUMED.of(more, ", ".join(some), CONSUMERS).text


def _longer(fact: Fact) -> str | None:
    """How many cycles more something takes, in words; None where that is not known to half a cycle."""
    value, error = fact.value or 0.0, fact.error or 0.0
    if value >= HALF:
        return f"{value:.2f}"
    return "no" if value + ERRORS * error < HALF else None


def _forwarded(latencies: Sequence[Latency], cycles: Sequence[float | None]) -> Iterator[str]:
    """What memory, once written, takes to be read by the next instance where it is not renamed."""
    for latency in latencies if cycles else ():
        same = latency.source == latency.target and is_in_memory(latency.source)
        if same and latency.kind == EXACT and latency.max is not None and 0 < latency.max < _SHORTEST:
            known = latency.source, latency.target, latency.max + (cycles[0] or 0.0)
            yield Timing.NOT_RENAMED.of(*known, RENAMING, ASKED_UPDATE).text
