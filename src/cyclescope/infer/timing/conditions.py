"""States of the core, found by probes, in which a form has another latency.

A chain of a form meets one state only. If a probe measured another form, the note names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from cyclescope.infer.timing.results import EXACT, HALF, FormTiming, Latency
from cyclescope.isa.dataflow import is_in_memory
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

_SHORTEST = 3.0  # cycles: no load takes less, so that what does through memory is renamed


def with_conditions(
    forms: Sequence[InstructionForm], timings: Sequence[FormTiming], facts: Sequence[Fact]
) -> list[FormTiming]:
    """The timings with a note for every state that a probe found to matter."""
    some = [fact for fact in facts if _changes_latencies(fact)]
    return [
        msgspec.structs.replace(timing, notes=(*timing.notes, *notes))
        if (notes := tuple(_notes(form, timing, some)))
        else timing
        for form, timing in zip(forms, timings, strict=True)
    ]


def _changes_latencies(fact: Fact) -> bool:
    """Whether a fact is of a state that matters: of hundreds a few are, and forms are thousands."""
    if fact.value is None or fact.value < HALF:
        return False
    if fact.probe == RENAMING:
        return fact.subject == MemoryWay.UPDATED and fact.answer is CoreAnswer.FORWARDED
    return (fact.probe, fact.subject) == (VECTOR_STATES, SSE_IN_A_ROW)


def _notes(form: InstructionForm, timing: FormTiming, facts: Sequence[Fact]) -> Iterator[str]:
    """Notes of facts that matter."""
    for fact in facts:
        cycles = fact.value or 0.0
        if fact.probe == RENAMING:
            yield from _forwarded(timing.latencies, cycles)
        elif form.id == ASKED_IN_A_ROW:
            yield Timing.UPPER_HALVES.of(cycles, fact.probe).text


def _forwarded(latencies: Sequence[Latency], cycles: float) -> Iterator[str]:
    """What memory, once written, takes to be read by the next instance where it is not renamed."""
    for latency in latencies:
        same = latency.source == latency.target and is_in_memory(latency.source)
        if same and latency.kind == EXACT and latency.max is not None and 0 < latency.max < _SHORTEST:
            known = latency.source, latency.target, latency.max + cycles
            yield Timing.NOT_RENAMED.of(*known, RENAMING, ASKED_UPDATE).text
