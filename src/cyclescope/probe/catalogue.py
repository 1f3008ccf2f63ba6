"""All probes, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cyclescope.errors import UsageError, shortened
from cyclescope.probe.core import breaking, fusion, idioms, moves, partial, stack
from cyclescope.probe.memory import accesses, aliasing, crossing, forwarding, renaming
from cyclescope.probe.question import Probe

PROBES: Mapping[str, Probe] = {
    module.PROBE.name: module.PROBE
    for module in (
        moves,
        breaking,
        idioms,
        fusion,
        renaming,
        forwarding,
        accesses,
        crossing,
        aliasing,
        stack,
        partial,
    )
}


def chosen(names: Sequence[str]) -> list[Probe]:
    """The probes of these names, all where none is given. Raises UsageError."""
    if unknown := [name for name in names if name not in PROBES]:
        raise UsageError(f"no probe {shortened(unknown[0])!r}", f"one of {', '.join(PROBES)}")
    return [PROBES[name] for name in dict.fromkeys(names)] if names else list(PROBES.values())
