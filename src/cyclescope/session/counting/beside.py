"""Events by name, counted beside the core cycles of kernels: as many as the core counts at once."""

from __future__ import annotations

from collections.abc import Sequence

from cyclescope.backend.native import NativeBackend
from cyclescope.host.counters import Event, availability, events_for
from cyclescope.host.events import named_events
from cyclescope.infer.api import counting
from cyclescope.measure.survey import reader
from cyclescope.remarks.run import Counting


def count_named(backend: NativeBackend, names: Sequence[str]) -> dict[str, str]:
    """Count events, the first ones first where it cannot be all; each with the reason why not, or ""."""
    known, read = backend.capabilities(), reader(backend)
    if known.emulated or (why_none := availability(read=read)):
        why_none = Counting.EMULATED.of().text if known.emulated else why_none
        return dict.fromkeys(names, why_none)
    codes = {name: (name, kind, config) for name, _, kind, config, _ in named_events(read)}
    codes |= {event[0]: event for event in events_for(known.identity.llvm, ports=False)}
    found = {name: "" if name in codes else Counting.UNKNOWN.of().text for name in names}
    return found | _counted(backend, [codes[name] for name in names if not found[name]])


def _counted(backend: NativeBackend, events: Sequence[Event]) -> dict[str, str]:
    """Count them without those that cannot be beside the ones before."""
    found: dict[str, str] = {}
    rest = list(events)
    while rest and (why := counting(backend, rest)):
        opened = len(backend.capabilities().counters)  # the cycles, and those before the one that was refused
        found[rest.pop(opened - 1)[0]] = why  # the last one where none is opened: they are too many
    return found
