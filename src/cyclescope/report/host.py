"""A host in words."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby

import msgspec

from cyclescope.host.events import NamedEvent
from cyclescope.host.identity import Hypervisor, Identity
from cyclescope.isa.registry import instruction_set
from cyclescope.measure.survey import Survey
from cyclescope.report.card import EMULATED
from cyclescope.report.tables import aligned
from cyclescope.session.counting.process import CountedProcess

SCHEMA_VERSION = 1
_ALWAYS = 0.995  # of the time: less is a counter that was shared


def host_json(survey: Survey) -> str:
    """The survey as JSON."""
    best = survey.calibration
    data = {
        "schema_version": SCHEMA_VERSION,
        "cpu": survey.identity,
        "machine": survey.identity.machine,
        "isa": survey.capabilities.isa,
        "features": survey.features,
        "clock": {
            "source": survey.capabilities.clock,
            "step_ticks": best.step,
            "step_seconds": best.step * best.seconds_per_tick,
            "ticks_per_cycle": best.ticks_per_cycle,
            "seconds_per_tick": best.seconds_per_tick,
            "core_frequency": best.frequency,
        },
        "counters": {
            "available": survey.capabilities.counters,
            "why_not": survey.counters or None,
        },
        "pinned_to": survey.capabilities.cpu if survey.capabilities.cpu >= 0 else None,
        "notes": survey.notes,
        "topology": survey.topology,
        "noise": survey.noise,
    }
    return msgspec.json.encode(data).decode()


def host_text(survey: Survey) -> str:
    """The survey in lines."""
    cpu, best, capabilities = survey.identity, survey.calibration, survey.capabilities
    pinned = f"CPU {capabilities.cpu}" if capabilities.cpu >= 0 else "not pinned"
    counters = ", ".join(capabilities.counters) or survey.counters or "none could be opened"
    numbers = _numbers(cpu, capabilities.isa)
    step = best.step * best.seconds_per_tick
    virtual = ", under a hypervisor" if cpu.hypervisor is Hypervisor.THERE else ""
    rows = [
        ("CPU", f"{cpu.brand} ({cpu.vendor} {numbers}{virtual})".strip()),
        (
            "microarchitecture",
            cpu.llvm or (f"unknown: {cpu.doubt}" if cpu.doubt else "unknown to this version"),
        ),
        ("features", " ".join(survey.features)),
        ("clock", f"{capabilities.clock}, step {best.step:.0f} ticks = {step * 1e9:.1f} ns"),
        ("core cycle", f"{best.ticks_per_cycle:.4f} ticks, {best.frequency / 1e9:.3f} GHz"),
        ("counters", counters),
        ("pinning", f"{pinned} of {len(survey.topology.usable)} usable"),
        ("noise", f"{survey.noise.verdict}: {'; '.join(survey.noise.reasons)}"),
    ]
    if survey.noise.remedies:
        rows.append(("what to do", "; ".join(survey.noise.remedies)))
    rows += [("note", EMULATED)] if cpu.emulated else []
    rows += [("note", note) for note in survey.notes]
    return "\n".join(_row(name, text) for name, text in rows)


def _numbers(cpu: Identity, isa: str) -> str:
    """What tells CPUs apart, in the words of its manuals."""
    known = instruction_set(isa).identity
    return known.format(family=cpu.family, model=cpu.model, stepping=cpu.stepping)


def _row(name: str, text: str) -> str:
    return textwrap.fill(text, 100, initial_indent=f"{name:18}", subsequent_indent=" " * 18)


# --- events and what they counted --------------------------------------------------------------------


def events_json(events: Sequence[NamedEvent], why: str) -> str:
    """Events with the reason why some cannot be counted."""
    rows = [
        {
            "name": e.name,
            "source": e.source,
            "code": e.code,
            "of_core": e.of_core,
            "why_not": e.why_not or None,
        }
        for e in events
    ]
    data = {"schema_version": SCHEMA_VERSION, "events": rows, "core_counters": why or None}
    return msgspec.json.encode(data).decode()


def events_text(events: Sequence[NamedEvent], why: str) -> str:
    """A line per event that can be counted, by where it comes from; a line for those that cannot."""
    lines: list[str] = []
    for source, some in groupby(events, key=lambda event: event.source):
        every = list(some)
        there = [event for event in every if not event.why_not]
        lines += aligned([(e.name, source, e.code.partition("=")[2]) for e in there], (0, 1, 2))
        lines += _refused(source, [event for event in every if event.why_not])
    if not any(event.of_core and not event.why_not for event in events):
        lines.append(f"events of the core: none ({why or 'none could be opened'})")
    return "\n".join(lines)


def _refused(source: str, events: Sequence[NamedEvent]) -> list[str]:
    if not events:
        return []
    names = ", ".join(event.name for event in events)
    return [f"not here ({source}): {names}: {events[0].why_not}"]


def counted_json(found: CountedProcess) -> str:
    """What was counted of a process."""
    return msgspec.json.encode({"schema_version": SCHEMA_VERSION, **msgspec.to_builtins(found)}).decode()


def counted_text(found: CountedProcess) -> str:
    """A line per event."""
    how = "until it ended" if found.ended else "and it goes on"
    lines = [f"process {found.process}: counted for {found.seconds:.3f} s, {how}"]
    rows = []
    for count in found.counts:
        shared = "" if count.share >= _ALWAYS else f"   (counted {count.share:.0%} of the time, scaled)"
        number = f"{count.value:,.0f}".replace(",", " ")
        rows.append((number, f"{count.name}{_unit(count.name)}{shared}"))
    return "\n".join([*lines, *aligned(rows, (1,), "  ")])


def _unit(name: str) -> str:
    return " in ns" if name.endswith("-clock") else ""
