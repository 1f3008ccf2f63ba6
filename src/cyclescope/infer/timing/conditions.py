"""What probes found that changes latencies of a form: in which state the core is, and what it takes then.

A chain of a form meets one state only. What a probe asked of another form is told as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from cyclescope.infer.timing.results import EXACT, FormTiming, Latency
from cyclescope.isa.form import InstructionForm
from cyclescope.model.facts import (
    ASKED_IN_A_ROW,
    ASKED_UPDATE,
    RENAMING,
    SSE_IN_A_ROW,
    VECTOR_STATES,
    CoreAnswer,
    Fact,
    MemoryWay,
)
from cyclescope.remarks.timing import Timing

_LEAST = 0.5  # cycles: half of the least that a whole number of cycles differs by
_SHORTEST = 3.0  # cycles: no load takes less, so that what does through memory is renamed


def with_conditions(
    forms: Sequence[InstructionForm], timings: Sequence[FormTiming], facts: Sequence[Fact]
) -> list[FormTiming]:
    """The timings with a note for every state that a probe found to matter."""
    return [
        msgspec.structs.replace(timing, notes=(*timing.notes, *notes))
        if (notes := tuple(_notes(form, timing, facts)))
        else timing
        for form, timing in zip(forms, timings, strict=True)
    ]


def _notes(form: InstructionForm, timing: FormTiming, facts: Sequence[Fact]) -> Iterator[str]:
    for fact in facts:
        if fact.value is None or fact.value < _LEAST:
            continue
        if (fact.probe, fact.subject) == (RENAMING, MemoryWay.UPDATED):
            if fact.answer is CoreAnswer.FORWARDED:
                yield from _forwarded(timing.latencies, fact.value)
        elif (fact.probe, fact.subject, form.id) == (VECTOR_STATES, SSE_IN_A_ROW, ASKED_IN_A_ROW):
            yield Timing.UPPER_HALVES.of(fact.value, fact.probe).text


def _forwarded(latencies: Sequence[Latency], cycles: float) -> Iterator[str]:
    """What memory, once written, takes to be read by the next instance where it is not renamed."""
    for latency in latencies:
        same = latency.source == latency.target and latency.source.endswith(".data")
        if same and latency.kind == EXACT and latency.max is not None and 0 < latency.max < _SHORTEST:
            known = latency.source, latency.target, latency.max + cycles
            yield Timing.NOT_RENAMED.of(*known, RENAMING, ASKED_UPDATE).text
