"""What probes found, as text and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from cyclescope.measure.plan import Experiment
from cyclescope.measure.sampling import Measurement
from cyclescope.model.facts import CoreAnswer, Fact
from cyclescope.probe.question import Probe
from cyclescope.probe.run import Asked, resolved, why_none
from cyclescope.report.card import EMULATED
from cyclescope.report.tables import aligned
from cyclescope.report.words import counted

SCHEMA_VERSION = 1
_NOT_RESOLVED = "not resolved"


def list_text(probes: Iterable[Probe], isa: str) -> str:
    """Probes with their questions, and why some have no kernels on an instruction set."""
    rows = []
    for probe in probes:
        rows.append((probe.name, probe.question))
        rows += [("", f"not here: {why}")] if (why := why_none(probe, isa)) else []
    return "\n".join(aligned(rows, (0, 1)))


def list_json(probes: Iterable[Probe], isa: str) -> str:
    """The same, with models and sources."""
    data = {"schema_version": SCHEMA_VERSION, "isa": isa, "probes": [_described(p, isa) for p in probes]}
    return msgspec.json.encode(data).decode()


def _described(probe: Probe, isa: str) -> dict[str, object]:
    return {
        "name": probe.name, "question": probe.question, "model": probe.model, "sources": probe.sources,
        "why_not": why_none(probe, isa).text,
    }  # fmt: skip


def head(machine: str, emulated: bool) -> str:
    """Whose core is asked."""
    return f"{machine}\n{EMULATED}" if emulated else machine


def asked_text(asked: Asked, isa: str, everything: bool = False) -> str:
    """A probe's answers; those that are not resolved are counted by their reasons, or all told."""
    lines = ["", f"{asked.probe.name}: {asked.probe.question}"]
    if why := why_none(asked.probe, isa):
        return "\n".join([*lines, f"  not asked: {why}"])
    if not asked.facts:
        return "\n".join([*lines, "  not asked in a hurry"])
    shown = [fact for fact in asked.facts if fact.is_resolved or everything]
    lines += fact_lines(shown)
    open_ones = [fact for fact in asked.facts if not fact.is_resolved]
    if open_ones and not everything:
        lines.append(f"  {_NOT_RESOLVED}: {', '.join(_by_reason(open_ones))}")
    return "\n".join(lines)


def _by_reason(facts: Iterable[Fact]) -> list[str]:
    """How many subjects have which reason."""
    counts = Counter(fact.reason for fact in facts)
    return [f"{count} ({reason})" for reason, count in counts.most_common()]


def fact_lines(facts: Sequence[Fact]) -> list[str]:
    """One line per fact."""
    return aligned([(fact.subject, _told(fact)) for fact in facts], (0, 1), "  ")


def _told(fact: Fact) -> str:
    if not fact.is_resolved:
        return ": ".join(filter(None, (_NOT_RESOLVED, fact.reason, fact.detail)))
    value = (
        "" if fact.value is None else f"{round(fact.value, 2) + 0.0:.2f} {fact.unit} +-{fact.error or 0:.2f}"
    )
    name = "" if fact.answer is CoreAnswer.VALUE else str(fact.answer)
    return f"{', '.join(filter(None, (name, value)))}  {fact.confidence} confidence"


def summary(asked: Sequence[Asked], path: Path | None) -> str:
    """How many questions have an answer, and where they are kept."""
    total, known = sum(len(one.facts) for one in asked), sum(resolved(one.facts) for one in asked)
    told = f"\n{counted(total, 'question')}, {known} answered"
    return told if path is None else f"{told}; kept in {path}"


def asked_json(machine: str, isa: str, asked: Iterable[Asked]) -> str:
    """Answers with the readings that they rest on, in cycles per body of the kernel."""
    data = {
        "schema_version": SCHEMA_VERSION, "machine": machine, "isa": isa,
        "probes": [
            _described(one.probe, isa)
            | {"facts": [_fact(f) for f in one.facts], "readings": [_reading(*row) for row in one.rows]}
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


def _reading(x: int, experiment: Experiment, measured: Measurement) -> dict[str, object]:
    return {
        "subject": experiment.source, "part": experiment.target, "x": x,
        "assembly": experiment.kernel.text().splitlines(), "cycles": round(measured.cycles, 4),
        "spread": round(measured.spread, 4), "verdict": measured.verdict, "rounds": measured.rounds,
        "accepted": measured.accepted, "rejected": measured.rejected, "reason": measured.error or None,
    }  # fmt: skip
