"""All probes, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cyclescope.errors import UsageError, shortened
from cyclescope.model.facts import BANKS, CONSUMERS, CROSSING, FORWARDING, FUSION, RENAMING
from cyclescope.probe.core import breaking, consumers, fusion, idioms, moves, partial, stack
from cyclescope.probe.memory import accesses, aliasing, banks, crossing, forwarding, renaming
from cyclescope.probe.question import Probe

PROBES: Mapping[str, Probe] = {
    module.PROBE.name: module.PROBE
    for module in (
        moves,
        breaking,
        idioms,
        fusion,
        consumers,
        renaming,
        forwarding,
        accesses,
        banks,
        crossing,
        aliasing,
        stack,
        partial,
    )
}


NEEDED: Sequence[str] = (RENAMING, FORWARDING, BANKS, CROSSING, FUSION, CONSUMERS)
"""Probes whose facts predictions need (`model.behaviour`)."""


def chosen(names: Sequence[str]) -> list[Probe]:
    """The probes of these names, all where none is given. Raises UsageError."""
    if unknown := [name for name in names if name not in PROBES]:
        raise UsageError(f"no probe {shortened(unknown[0])!r}", f"one of {', '.join(PROBES)}")
    return [PROBES[name] for name in dict.fromkeys(names)] if names else list(PROBES.values())
