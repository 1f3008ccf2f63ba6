"""All probes, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cyclescope.errors import UsageError, shortened
from cyclescope.model.facts import (
    ADDRESSING,
    BANKS,
    BARRIERS,
    CODE_LINES,
    CONSUMERS,
    CROSSING,
    FORWARDING,
    FUSED_BRANCHES,
    FUSION,
    RENAMING,
    SCHEDULER,
    STACK_ENGINE,
    VECTOR_STATES,
    Fact,
)
from cyclescope.probe.beside import lines, sharing
from cyclescope.probe.branches import (
    correlated,
    loop_counts,
    misprediction,
    patterns,
    rates,
    return_stack,
    targets,
)
from cyclescope.probe.core import (
    barriers,
    breaking,
    bypass,
    consumers,
    dispatch,
    fused_branches,
    fusion,
    idioms,
    moves,
    partial,
    prefixes,
    scheduler,
    special_values,
    stack,
    vector_states,
)
from cyclescope.probe.memory import (
    accesses,
    addressing,
    aliasing,
    atomics,
    bandwidth,
    banks,
    cache_sets,
    caches,
    copies,
    crossing,
    forwarding,
    gather,
    pages,
    renaming,
)
from cyclescope.probe.question import Probe
from cyclescope.probe.sizes import code_lines, decoded, in_flight, issue_order

PROBES: Mapping[str, Probe] = {
    module.PROBE.name: module.PROBE
    for module in (
        moves,
        barriers,
        breaking,
        idioms,
        fusion,
        fused_branches,
        consumers,
        bypass,
        renaming,
        forwarding,
        accesses,
        addressing,
        banks,
        crossing,
        aliasing,
        stack,
        scheduler,
        partial,
        issue_order,
        in_flight,
        dispatch,
        decoded,
        code_lines,
        caches,
        cache_sets,
        pages,
        special_values,
        vector_states,
        prefixes,
        misprediction,
        return_stack,
        targets,
        rates,
        loop_counts,
        patterns,
        correlated,
        atomics,
        gather,
        bandwidth,
        copies,
        lines,
        sharing,
    )
}


NEEDED: Sequence[str] = (
    RENAMING, FORWARDING, BANKS, CROSSING, FUSION, CONSUMERS, STACK_ENGINE, SCHEDULER,
    CODE_LINES, ADDRESSING, FUSED_BRANCHES, VECTOR_STATES, BARRIERS,
)  # fmt: skip
"""Probes whose facts predictions need (`model.behaviour`)."""


def chosen(names: Sequence[str]) -> list[Probe]:
    """The probes of these names, all where none is given. Raises UsageError."""
    if unknown := [name for name in names if name not in PROBES]:
        raise UsageError(f"no probe {shortened(unknown[0])!r}", f"one of {', '.join(PROBES)}")
    return [PROBES[name] for name in dict.fromkeys(names)] if names else list(PROBES.values())


def unanswered(known: Sequence[Fact], isa: str) -> list[Probe]:
    """Probes that predictions need: those without an answer, or with cases that were never asked."""
    answered = {fact.probe for fact in known if fact.is_resolved}
    told = {(fact.probe, fact.subject) for fact in known}
    return [
        probe for probe in chosen(NEEDED)
        if probe.name not in answered
        or any((probe.name, case.subject) not in told for case in probe.cases(isa))
    ]  # fmt: skip
