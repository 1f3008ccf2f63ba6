"""What probes found of a core, for the page that shows it: a table per probe, numbers as bars with errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from cyclescope.model.facts import CoreAnswer, Fact
from cyclescope.probe.catalogue import PROBES
from cyclescope.report.words import counted, escaped
from cyclescope.session.subjects import Subject

BAR_WIDTH = 100.0  # of a drawing, in its own units


class Bar(NamedTuple):
    """A number as a bar: where it ends, and from where to where its error reaches."""

    end: float
    least: float
    most: float


def cores(subjects: Sequence[Subject]) -> list[dict[str, Any]]:
    """The machines of which probes found something, and what; empty where none did."""
    found = [(one.model.name, list(_groups(one.model.facts))) for one in subjects]
    return [{"name": escaped(name), "groups": groups} for name, groups in found if groups]


def _groups(facts: Sequence[Fact]) -> Iterator[dict[str, Any]]:
    order = list(PROBES)
    ranked = sorted(facts, key=lambda fact: order.index(fact.probe) if fact.probe in PROBES else len(order))
    for name, some in groupby(ranked, key=lambda fact: fact.probe):
        every = list(some)
        known = [fact for fact in every if fact.is_resolved]
        open_ones = len(every) - len(known)
        yield {
            "name": escaped(name),
            "question": PROBES[name].question if name in PROBES else "",
            "rows": [_row(fact, known) for fact in known],
            "drawn": any(fact.value is not None for fact in known),
            "open": f"{counted(open_ones, 'subject')} not resolved" if open_ones else "",
        }


def _row(fact: Fact, known: Sequence[Fact]) -> dict[str, Any]:
    answer = "" if fact.answer is CoreAnswer.VALUE else str(fact.answer)
    value = "" if fact.value is None else f"{round(fact.value, 2) + 0.0:.2f} {fact.unit}"
    sure = ": ".join(filter(None, (fact.confidence, fact.reason)))
    error = f" ± {fact.error:.2f}" if fact.value is not None and fact.error else ""
    return {
        "subject": escaped(fact.subject), "answer": escaped(answer), "value": escaped(value + error),
        "confidence": escaped(sure), "bar": _bar(fact, known),
    }  # fmt: skip


def _bar(fact: Fact, known: Sequence[Fact]) -> Bar | None:
    """The number on the scale of all of its probe that have its unit, from 0; None where it has none."""
    if fact.value is None:
        return None
    alike = [one.value for one in known if one.value is not None and one.unit == fact.unit]
    error = fact.error or 0.0
    scale = max(*alike, fact.value + error, 0.0)
    if scale <= 0:
        return Bar(0.0, 0.0, 0.0)
    ends = (fact.value, fact.value - error, fact.value + error)
    return Bar(*(round(min(max(end, 0.0) / scale, 1.0) * BAR_WIDTH, 2) for end in ends))
