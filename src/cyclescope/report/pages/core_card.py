"""What probes found as a page: answers, and curves of what was swept. One file, that needs no network."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from cyclescope.measure.record import STABLE, UNSTABLE
from cyclescope.model.facts import CoreAnswer, Fact
from cyclescope.probe.run import Asked, ProbeReading
from cyclescope.report.pages.core_summary import NO_CONDITIONS, card_lines, clock_lines
from cyclescope.report.pages.heat import HeatMap, heat_maps
from cyclescope.report.pages.rendering import rendered
from cyclescope.report.probes import event_counts, not_asked, uncounted_lines
from cyclescope.report.words import counted, printable

_TEMPLATES = Path(__file__).parent / "templates"
CURVE_WIDTH, CURVE_HEIGHT, _EDGE = 420.0, 240.0, 44.0  # pixels of a drawing, and of its axes
_HEAD = re.compile(r"(.*)(?:, (?![^(]*\))| \+ )")  # of a subject; commas between operands are none
_SWEPT = 6  # places of a part at least, else there is no curve: pairs with few and many NOPs are no sweep
_WIDE = 50.0  # the most by the least place, or time: from there on these are drawn by their logarithms
_TICKS = 5
NO_EVENTS: Mapping[str, str] = {}
_COLOURS = ("one", "two", "three", "four")  # classes of lines, in order
_IN_PLACES = dict.fromkeys(("instructions", "calls", "jumps", "trips", "branches", "targets", "pages"), 1) | {
    "KiB": 1024
}
# by an answer's unit, so many places of its sweep


class CurveLine(NamedTuple):
    """A part of a comparison: its name, colour class, and points as SVG has them."""

    name: str
    colour: str
    points: str
    dots: tuple[tuple[float, float, str], ...]


class AxisTick(NamedTuple):
    """A place of an axis in pixels, and what is written there."""

    at: float
    text: str


class Curve(NamedTuple):
    """A drawing of one subject's sweep; `marks` are places of its answers."""

    subject: str
    lines: tuple[CurveLine, ...]
    across: tuple[AxisTick, ...]
    up: tuple[AxisTick, ...]
    marks: tuple[float, ...]


class AnsweredProbe(NamedTuple):
    """A probe with rows of subject, answer and confidence or reason, its grids and its drawings.

    `counts` are what events count for each row, none where nothing was counted; `axis` is what the places
    of its sweeps count.
    """

    name: str
    question: str
    why_not: str
    rows: tuple[tuple[str, str, str], ...]
    grids: tuple[HeatMap, ...]
    curves: tuple[Curve, ...]
    counts: tuple[str, ...]
    axis: str


class _Scale:
    """From a value to pixels; by logarithm where values are far apart."""

    def __init__(self, low: float, high: float, begin: float, end: float, is_wide: bool) -> None:
        self._of = math.log if is_wide else float
        self._low, self._high = self._of(low), self._of(max(high, low * 1.000001 + 1e-9))
        self._begin, self._end, self._values = begin, end, (low, high)
        self._is_wide = is_wide

    def at(self, value: float) -> float:
        """Pixels from the drawing's left or upper side."""
        part = (self._of(value) - self._low) / (self._high - self._low)
        return round(self._begin + part * (self._end - self._begin), 1)

    def ticks(self) -> tuple[AxisTick, ...]:
        """Some round values."""
        low, high = self._values
        if self._is_wide:
            step = max(math.ceil(math.log2(high / low) / _TICKS), 1)
            first = math.ceil(math.log2(low))
            values = [2.0**n for n in range(first, math.floor(math.log2(high)) + 1, step)]
        else:
            rough = (high - low) / _TICKS or 1.0
            unit = 10 ** math.floor(math.log10(rough))
            step_size = next(unit * n for n in (1, 2, 5, 10) if unit * n >= rough)
            values = [step_size * n for n in range(math.ceil(low / step_size), int(high / step_size) + 1)]
        return tuple(AxisTick(self.at(value), _short(value)) for value in values)


def _short(value: float) -> str:
    for size, name in ((1 << 20, "Mi"), (1 << 10, "Ki")):
        if value >= 4 * size and value % size == 0:
            return f"{value / size:g} {name}"
    return f"{value:g}"


def core_card(
    machine: str, isa: str, asked: Iterable[Asked], uncounted: Mapping[str, str] = NO_EVENTS,
    conditions: Mapping[str, object] = NO_CONDITIONS,
) -> str:  # fmt: skip
    """The page: everything on one card, then probe by probe; `uncounted` are events with why they are not.

    `conditions` are what it was measured under.
    """
    every = list(asked)
    facts = [fact for one in every for fact in one.facts]
    rows = [*clock_lines(conditions), *card_lines(facts)]
    return rendered(
        _TEMPLATES,
        "core_card.html",
        title=f"what {printable(machine)} answered",
        machine=printable(machine),
        card=[(heading, list(some)) for heading, some in groupby(rows, lambda row: row.heading)],
        probes=[_answered(one, isa) for one in every],
        answered=sum(fact.is_resolved for fact in facts),
        questions=counted(len(facts), "question"),
        uncounted=[printable(line) for line in uncounted_lines(uncounted)],
        width=CURVE_WIDTH,
        height=CURVE_HEIGHT,
        edge=_EDGE,
    )


def _answered(asked: Asked, isa: str) -> AnsweredProbe:
    probe = asked.probe
    rows = tuple(_row(fact) for fact in asked.facts)
    grids, curves = heat_maps(asked.facts, asked.places), _curves(asked.facts, asked.rows)
    counts = tuple(printable(event_counts(asked, fact)) for fact in asked.facts)
    return AnsweredProbe(
        probe.name, probe.question, not_asked(asked, isa), rows, tuple(grids), tuple(curves),
        counts if any(counts) else (), probe.axis,
    )  # fmt: skip


def _row(fact: Fact) -> tuple[str, str, str]:
    if not fact.is_resolved:
        return printable(fact.subject), "not resolved", printable(fact.reason)
    name = "" if fact.answer is CoreAnswer.VALUE else str(fact.answer)
    sure = ": ".join(filter(None, (fact.confidence, printable(fact.reason))))
    return printable(fact.subject), ", ".join(filter(None, (name, _valued(fact)))), sure


def _valued(fact: Fact) -> str:
    """A value with its error; numbers of things without zeros behind the point."""
    if fact.value is None:
        return ""
    digits = ".7g" if fact.unit in _IN_PLACES else ".2f"
    value, error = round(fact.value, 2) + 0.0, round(fact.error or 0.0, 2)
    return f"{value:{digits}} ± {error:{digits}} {fact.unit}"


def _curves(facts: Sequence[Fact], rows: Sequence[ProbeReading]) -> Iterable[Curve]:
    """One per subject with a sweep, and of subjects that share their kernels one for all."""
    subjects: dict[str, list[ProbeReading]] = {}
    for row in rows:
        if row.measurement.verdict in (STABLE, UNSTABLE) and math.isfinite(row.measurement.cycles):
            subjects.setdefault(row.experiment.source, []).append(row)
    groups: dict[object, list[str]] = {}
    for subject, readings in subjects.items():
        if _places(readings) >= _SWEPT:
            groups.setdefault(_kernels(readings), []).append(subject)
    for group in groups.values():
        most = max(group, key=lambda subject: len(subjects[subject]))
        yield _curve(_title(group), [fact for fact in facts if fact.subject in group], subjects[most])


def _places(rows: Sequence[ProbeReading]) -> int:
    """How many places the part with the most of them has."""
    return max(Counter(part for part, _ in {(row.experiment.target, row.x) for row in rows}).values())


def _kernels(rows: Sequence[ProbeReading]) -> object:
    """What subjects with one curve have in common: the kernel that the sweep of each part begins with."""
    found: dict[str, tuple[int, bytes, tuple[int, int]]] = {}
    for row in rows:
        kernel, part = row.experiment.kernel, row.experiment.target
        first = (row.x, kernel.code, kernel.state.chain)
        found[part] = min(found.get(part, first), first)
    return tuple(sorted(found.items()))


def _title(subjects: Sequence[str]) -> str:
    """What subjects that share a curve are about: up to the last comma or plus where several agree."""
    heads = dict.fromkeys(found[1] if (found := _HEAD.match(subject)) else "" for subject in subjects)
    return ", ".join(heads if len(heads) < len(subjects) and "" not in heads else subjects)


def _curve(subject: str, facts: Sequence[Fact], rows: Sequence[ProbeReading]) -> Curve:
    places = sorted({row.x for row in rows if row.x > 0})
    values = {row: row.measurement.cycles / row.experiment.count for row in rows if row.x > 0}
    across = _Scale(places[0], places[-1], _EDGE, CURVE_WIDTH - 8, places[-1] > _WIDE * places[0])
    least, most = min(values.values()), max(values.values())
    is_wide = 0 < least * _WIDE < most
    up = _Scale(least if is_wide else 0.0, most or 1.0, CURVE_HEIGHT - _EDGE / 2, 10, is_wide)
    parts = list(dict.fromkeys(row.experiment.target for row in values))
    lines = []
    for part, colour in zip(parts, _COLOURS, strict=False):
        own = sorted((row.x, value) for row, value in values.items() if row.experiment.target == part)
        dots = tuple((across.at(x), up.at(max(y, 0.0)), f"{_short(x)}: {y:.2f} cycles") for x, y in own)
        lines.append(CurveLine(part, colour, " ".join(f"{x},{y}" for x, y, _ in dots), dots))
    return Curve(
        printable(subject), tuple(lines), across.ticks(), up.ticks(), tuple(_marks(facts, across, places))
    )


def _marks(facts: Sequence[Fact], across: _Scale, places: Sequence[int]) -> Iterable[float]:
    for fact in facts:
        if fact.value is not None and fact.unit in _IN_PLACES:
            place = fact.value * _IN_PLACES[fact.unit]
            if places[0] <= place <= places[-1]:
                yield across.at(place)
