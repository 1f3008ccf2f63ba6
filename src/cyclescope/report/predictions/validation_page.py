"""Predictions against measurements as a page: one HTML file, light and dark, that needs no network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from cyclescope.measure.blocks import CLEAN
from cyclescope.report.pages.axes import MARGIN, SIDE, Scale
from cyclescope.report.predictions.html import render
from cyclescope.report.predictions.validation import (
    ABLATION_HEAD,
    HEAD,
    TITLES,
    ablation_cells,
    cycles,
    group_rows,
    groups_of,
    main_predictor,
    model_words,
    percent,
    row_cells,
)
from cyclescope.report.words import printable
from cyclescope.session.validation import BlockRow, Validation, ValidationSection, bound_of, worst

MOST_POINTS = 4000  # of a drawing: more are drawn at regular distances in the list


class _Point(NamedTuple):
    x: float
    y: float
    title: str
    far: bool


class _Plot(NamedTuple):
    """A drawing: points, ticks of both axes, and how many points are left out."""

    name: str
    points: list[_Point]
    ticks: list[tuple[float, str]]
    left_out: int


def validation_page(found: Validation, most: int) -> str:
    """The report as HTML."""
    return render(
        "validation.html",
        title=f"predictions against {printable(found.machine)}",
        machine=printable(found.machine),
        model=printable(model_words(found)),
        absent=[(printable(name), printable(why)) for name, why in found.absent.items()],
        notes=[printable(note) for note in (*found.notes, *found.problems[:20])],
        sections=[_section(one, most) for one in found.sections],
        side=SIDE,
        margin=MARGIN,
    )


def _section(part: ValidationSection, most: int) -> dict[str, Any]:
    names = [one.name for one in part.predictors]
    name = main_predictor(part)
    misses = worst(part, name, most) if name else []
    return {
        "title": TITLES.get(part.notion, part.notion),
        "tried": len(part.rows),
        "clean": part.counts.get(CLEAN, 0),
        "mean": _headline(part, name),
        "main": name,
        "reasons": _reasons(part),
        "head": HEAD[1:],
        "predictors": [(row_cells(one), one.model) for one in part.predictors] if part.clean else [],
        "plots": [plot(part.clean, one) for one in names] if part.clean else [],
        "groups": [*_groups(part, names), *_ablations(part)],
        "names": names,
        "worst": [_miss(one.row, one.error, one.explanation) for one in misses],
    }


def _groups(part: ValidationSection, names: Sequence[str]) -> Iterable[Sequence[Sequence[str]]]:
    return (group_rows(title, groups, names) for title, groups in groups_of(part) if groups)


def _ablations(part: ValidationSection) -> Iterable[Sequence[Sequence[str]]]:
    """A table where somebody asked for it."""
    if part.ablations:
        yield [ABLATION_HEAD, *map(ablation_cells, part.ablations)]


def _reasons(part: ValidationSection) -> list[tuple[str, str, int]]:
    """Verdicts that are not clean, why, and how often."""
    return [(verdict, why, n) for verdict, reasons in part.reasons.items() for why, n in reasons.items()]


def _headline(part: ValidationSection, name: str) -> str:
    found = next((one.accuracy for one in part.predictors if one.name == name), None)
    return percent(found.median) if found else "-"


def _miss(row: BlockRow, error: float, explanation: str) -> dict[str, Any]:
    return {
        "text": printable(row.text), "where": printable(row.where), "measured": f"{row.timing.cycles:.2f}",
        "answers": [cycles(answer) for answer in row.answers.values()], "error": f"{error:+.0%}",
        "explanation": explanation.replace("_", " "), "bound": bound_of(row).replace("_", " "),
    }  # fmt: skip


# --- drawings --------------------------------------------------------------------------------------


def plot(rows: Sequence[BlockRow], name: str) -> _Plot:
    """Predicted over measured cycles of one predictor, both on the same logarithmic scale."""
    pairs = [(row, row.answers[name].cycles) for row in rows]
    known = [(row, cycles) for row, cycles in pairs if cycles is not None and cycles > 0]
    low, high = _ends(value for row, cycles in known for value in (row.timing.cycles, cycles))
    step = max(-(-len(known) // MOST_POINTS), 1)
    drawn = known[::step]
    scale = Scale(low, high)
    points = [_point(row, cycles, scale) for row, cycles in drawn]
    return _Plot(name, points, list(scale.ticks()), len(known) - len(drawn))


def _ends(values: Iterable[float]) -> tuple[float, float]:
    """The least and the most with some room."""
    found = list(values) or [1.0]
    return min(found) / 1.2, max(found) * 1.2


def _point(row: BlockRow, predicted: float, scale: Scale) -> _Point:
    measured = row.timing.cycles
    title = f"{measured:.2f} measured, {predicted:.2f} predicted: {printable(row.text)[:200]}"
    return _Point(scale.at(measured), scale.at(predicted), title, abs(predicted / measured - 1) > 0.1)
