"""What probes found, as text and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import wrap

import msgspec

from cyclescope.measure.sampling import Measurement
from cyclescope.model.facts import CoreAnswer, Fact
from cyclescope.probe.question import Probe
from cyclescope.probe.run import Asked, ProbeReading, resolved, why_none
from cyclescope.remarks.remark import LISTED
from cyclescope.report.card import EMULATED
from cyclescope.report.tables import LINE_WIDTH, aligned
from cyclescope.report.words import counted

SCHEMA_VERSION = 1
_NOT_RESOLVED = "not resolved"


def list_text(probes: Iterable[Probe], isa: str) -> str:
    """Probes with their questions, and why some have no kernels on an instruction set."""
    rows = []
    for probe in probes:
        rows.append((probe.name, probe.question))
        if why := why_none(probe, isa):
            rows.append(("", f"not here: {why}"))
        elif probe.events:
            rows.append(("", f"counts {', '.join(probe.events)}"))
    return "\n".join(aligned(rows, (0, 1)))


def list_json(probes: Iterable[Probe], isa: str) -> str:
    """The same, with models and sources."""
    data = {"schema_version": SCHEMA_VERSION, "isa": isa, "probes": [_described(p, isa) for p in probes]}
    return msgspec.json.encode(data).decode()


def _described(probe: Probe, isa: str) -> dict[str, object]:
    return {
        "name": probe.name, "question": probe.question, "model": probe.model, "sources": probe.sources,
        "why_not": why_none(probe, isa).text, "events": probe.events,
    }  # fmt: skip


def head(machine: str, emulated: bool, uncounted: Mapping[str, str]) -> str:
    """Whose core is asked, and which events of it are not counted."""
    return "\n".join([machine, *([EMULATED] if emulated else []), *uncounted_lines(uncounted)])


def uncounted_lines(uncounted: Mapping[str, str]) -> list[str]:
    """Events that are not counted, by their reasons."""
    lines = []
    for why in dict.fromkeys(filter(None, uncounted.values())):
        names = ", ".join(name for name, reason in uncounted.items() if reason == why)
        lines.append(f"{names}: n/a, {why}")
    return lines


def not_asked(asked: Asked, isa: str) -> str:
    """That a probe has no answers, and why; nothing where it has some."""
    if why := why_none(asked.probe, isa):
        return f"not asked: {why}"
    return "" if asked.facts else "not asked in a hurry"


def asked_text(asked: Asked, isa: str, everything: bool = False) -> str:
    """A probe's answers; those that are not resolved are named or, many, counted."""
    lines = ["", f"{asked.probe.name}: {asked.probe.question}"]
    if why := not_asked(asked, isa):
        return "\n".join([*lines, f"  {why}"])
    shown = [fact for fact in asked.facts if fact.is_resolved or everything]
    lines += fact_lines(shown, [event_counts(asked, fact) for fact in shown])
    open_ones = [fact for fact in asked.facts if not fact.is_resolved]
    if open_ones and not everything:
        lines += [f"  {_NOT_RESOLVED}: {told}" for told in _by_reason(open_ones)]
    return "\n".join(lines)


def _by_reason(facts: Iterable[Fact]) -> list[str]:
    """The subjects that have each reason, the most first; of many how many they are."""
    found: dict[str, list[str]] = {}
    for fact in facts:
        found.setdefault(fact.reason, []).append(fact.subject)
    ranked = sorted(found.items(), key=lambda one: -len(one[1]))
    return [
        f"{'; '.join(some)} ({why})" if len(some) <= LISTED else f"{len(some)}, --all lists them ({why})"
        for why, some in ranked
    ]


def fact_lines(facts: Sequence[Fact], counts: Sequence[str] = ()) -> list[str]:
    """One line per fact, with what was counted of each in a column of its own; what is told of a subject that
    leaves no room for it stands below.
    """
    rows = [(fact.subject, _told(fact)) for fact in facts]
    if any(counts):
        return aligned([(*row, count) for row, count in zip(rows, counts, strict=True)], (0, 1, 2), "  ")
    short = iter(aligned([row for row in rows if not _is_long(row[0])], (0, 1), "  "))
    return [line for row in rows for line in (_folded(row) if _is_long(row[0]) else [next(short)])]


def _is_long(subject: str) -> bool:
    return len(subject) > LINE_WIDTH * 3 / 4


def _folded(row: tuple[str, str]) -> list[str]:
    return [*wrap(row[0], LINE_WIDTH, initial_indent="  ", subsequent_indent="  "), f"    {row[1]}"]


def event_counts(asked: Asked, fact: Fact) -> str:
    """What the events of a probe count for a subject, part by part, from the least to the most of a sweep."""
    parts: dict[tuple[str, str], list[float]] = {}
    for row in asked.rows:
        if row.experiment.source == fact.subject:
            for name, count in _events(asked, row.measurement).items():
                parts.setdefault((name, row.experiment.target), []).append(count / row.experiment.count)
    found = []
    for event in asked.probe.events:
        some = [f"{part} {_from_to(counts)}" for (name, part), counts in parts.items() if name == event]
        found += [f"{event}: {', '.join(some)}"] if some else []
    return "; ".join(found)


def _from_to(counts: Sequence[float]) -> str:
    least, most = (f"{value:.2f}" for value in (min(counts), max(counts)))
    return least if least == most else f"{least} to {most}"


def _events(asked: Asked, measured: Measurement) -> dict[str, float]:
    """What the probe's events count for the body of a kernel."""
    if len(measured.counters) != len(asked.counted):
        return {}
    counted = dict(zip(asked.counted, measured.counters, strict=True))
    return {name: round(counted[name], 4) for name in asked.probe.events if name in counted}


def _told(fact: Fact) -> str:
    if not fact.is_resolved:
        return ": ".join(filter(None, (_NOT_RESOLVED, fact.reason, fact.detail)))
    value = (
        "" if fact.value is None else f"{round(fact.value, 2) + 0.0:.2f} {fact.unit} +-{fact.error or 0:.2f}"
    )
    name = "" if fact.answer is CoreAnswer.VALUE else str(fact.answer)
    sure = ": ".join(filter(None, (f"{fact.confidence} confidence", fact.reason)))
    return f"{', '.join(filter(None, (name, value)))}  {sure}"


def summary(asked: Sequence[Asked], path: Path | None) -> str:
    """How many questions have an answer, and where they are kept."""
    total, known = sum(len(one.facts) for one in asked), sum(resolved(one.facts) for one in asked)
    told = f"\n{counted(total, 'question')}, {known} answered"
    return told if path is None else f"{told}; kept in {path}"


def asked_json(machine: str, isa: str, asked: Iterable[Asked], uncounted: Mapping[str, str]) -> str:
    """Answers with the readings that they rest on, in cycles and events per body of the kernel."""
    data = {
        "schema_version": SCHEMA_VERSION, "machine": machine, "isa": isa,
        "uncounted": {name: why for name, why in uncounted.items() if why},
        "probes": [
            _described(one.probe, isa)
            | {"facts": [_fact(f) for f in one.facts], "readings": [_reading(one, row) for row in one.rows]}
            for one in asked
        ],
    }  # fmt: skip
    return msgspec.json.encode(data).decode()


def _fact(fact: Fact) -> dict[str, object]:
    return {
        "subject": fact.subject, "resolved": fact.is_resolved, "answer": fact.answer or None,
        "value": fact.value, "error": fact.error, "unit": fact.unit or None,
        "confidence": fact.confidence or None, "reason": fact.reason or None,
        "detail": fact.detail or None,
    }  # fmt: skip


def _reading(asked: Asked, row: ProbeReading) -> dict[str, object]:
    x, experiment, measured = row
    return {
        "subject": experiment.source, "part": experiment.target, "x": x,
        "assembly": experiment.kernel.text().splitlines(), "cycles": round(measured.cycles, 4),
        "spread": round(measured.spread, 4), "verdict": measured.verdict, "rounds": measured.rounds,
        "accepted": measured.accepted, "rejected": measured.rejected, "reason": measured.error or None,
        "events": _events(asked, measured),
    }  # fmt: skip
