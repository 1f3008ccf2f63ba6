"""False output dependencies of a store: what waits for the value that it overwrites."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from cyclescope.infer.timing.results import UPPER_BOUND, FormTiming, Latency
from cyclescope.isa.dataflow import is_old
from cyclescope.report.tables import aligned
from cyclescope.report.words import counted

_NONE, _HIDDEN, _UNKNOWN = "none", "hidden", "unknown"


def waiting(timings: Sequence[FormTiming]) -> list[FormTiming]:
    """The forms with a false dependency, with nothing but these among their latencies."""
    found = []
    for timing in timings:
        shown = tuple(latency for latency in timing.latencies if _is_shown(latency))
        if shown:
            found.append(msgspec.structs.replace(timing, latencies=shown))
    return found


def _is_shown(latency: Latency) -> bool:
    return is_old(latency.source) and latency.kind not in (None, UPPER_BOUND) and bool(latency.max)


def outputs_text(timings: Sequence[FormTiming]) -> str:
    """A line per false dependency, and how many forms have none, or tell nothing."""
    found = waiting(timings)
    rows = [(t.id, f"{lat.source} -> {lat.target}", _cycles(lat), lat.confidence)
            for t in found for lat in t.latencies]  # fmt: skip
    return "\n".join([*aligned(rows, (0, 1, 3)), *_summary(timings, len(found))])


def _cycles(latency: Latency) -> str:
    if latency.min != latency.max:
        return f"{latency.min:.2f} to {latency.max:.2f}"
    return f"{latency.max:.2f}"


def _summary(timings: Sequence[FormTiming], found: int) -> Iterator[str]:
    others = Counter(map(_outcome, timings))
    every = sum(others.values()) - others[""]
    yield (
        f"{counted(found, 'form')} of {every} that overwrite a register without reading it wait for its old "
        f"value; {others[_NONE]} do not, of {others[_HIDDEN]} the throughput hides it, "
        f"of {others[_UNKNOWN]} it is not known"
    )


def _outcome(timing: FormTiming) -> str:
    """What is known of a form that overwrites registers, "" of another."""
    old = [latency for latency in timing.latencies if is_old(latency.source)]
    if not old:
        return ""
    if any(map(_is_shown, old)):
        return "shown"
    if any(latency.max is None for latency in old):
        return _UNKNOWN
    return _HIDDEN if any(latency.max for latency in old) else _NONE
