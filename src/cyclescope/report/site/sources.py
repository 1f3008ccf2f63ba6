"""How machines were measured, or where their numbers are from: the page of a site that says it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cyclescope.report.words import borrowing, calibration_lines, counted, escaped, printable
from cyclescope.session.subjects import Subject, digest

_CONDITIONS = ("started", "cpu", "clock", "frequency", "load", "kernel", "microcode", "samples", "finished")
_FREQUENCY = 1e6  # Hz: no other number of a session's conditions is as large


def facts_of(one: Subject) -> dict[str, object]:
    """What is said of one machine: facts, notes and the sessions of its store."""
    model = one.model
    origin = model.provenance
    return {
        "name": printable(model.name),
        "facts": [(what, escaped(said)) for what, said in _facts(one) if said],
        "notes": [escaped(note) for note in (*origin.missing, *origin.notes)],
        "sessions": _sessions(one.sessions),
    }


def _facts(one: Subject) -> Iterator[tuple[str, str]]:
    model, core, origin = one.model, one.model.core, one.model.provenance
    width = model.width
    yield "from", f"{origin.source or model.name} ({origin.kind})"
    yield "date", origin.date
    yield "made by", f"version {origin.version}" if origin.version else ""
    yield "licence", origin.licence
    yield "borrowed", borrowing(model.borrowed) if model.borrowed else ""
    yield "instruction set", model.isa
    yield "forms", _forms(one)
    yield "front end", f"{width.slots:g} slots per cycle ({width.kind})" if width.slots else ""
    yield "ports", f"{len(model.ports)}: {' '.join(model.ports)}" if model.ports else "not known"
    yield "reorder buffer", f"{core.reorder_buffer} entries" if core.reorder_buffer else ""
    yield "a load takes", f"{core.load_latency:g} cycles" if core.load_latency else ""
    yield "store and load again", f"{core.forward_latency:g} cycles" if core.forward_latency else ""
    yield from (("calibration", line) for line in calibration_lines(model.calibration))
    yield "digest of the store (SHA-256)", digest(one.path) if one.path else ""


def _forms(one: Subject) -> str:
    with_values = counted(len(one.model.forms), "form")
    ran = sum(timing.status == "ok" for timing in one.timings.values())
    return f"{with_values} with values" + (f", {ran} of {len(one.timings)} run on it" if one.timings else "")


def _sessions(sessions: Sequence[Mapping[str, object]]) -> list[list[str]]:
    """A table: what is said of any session, and a line for each."""
    names = [name for name in _CONDITIONS if any(name in session for session in sessions)]
    if not names:
        return []
    return [names, *([printable(_said(session.get(name))) for name in names] for session in sessions)]


def _said(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{count} {name}" for name, count in value.items())
    if isinstance(value, bool) or value is None:
        return "yes" if value else "no" if value is False else ""
    return f"{value / 1e9:.2f} GHz" if isinstance(value, float | int) and value > _FREQUENCY else str(value)
