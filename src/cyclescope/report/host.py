"""A host in words."""

from __future__ import annotations

import textwrap

import msgspec

from cyclescope.host.identity import Identity
from cyclescope.isa.registry import instruction_set
from cyclescope.measure.survey import Survey
from cyclescope.report.card import EMULATED

SCHEMA_VERSION = 1


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
    virtual = ", under a hypervisor" if cpu.hypervisor else ""
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
