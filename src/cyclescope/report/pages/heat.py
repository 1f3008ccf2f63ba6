"""Grids of combinations, each cell coloured by its value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cyclescope.model.facts import Fact
from cyclescope.probe.question import GridPlace
from cyclescope.report.words import printable

_FEWEST = 4  # cells: fewer are read as fast in the table
_MOST = 60  # percent of colour: text has to be readable on it


class HeatCell(NamedTuple):
    """What is written in a cell, its colour in percent, and what it says when pointed at."""

    text: str
    heat: int
    told: str


class HeatMap(NamedTuple):
    """A grid: its title, columns, and rows of cells, None where nothing was asked."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell | None, ...]], ...]


def heat_maps(facts: Iterable[Fact], places: Mapping[str, GridPlace]) -> Iterable[HeatMap]:
    """One per title that has enough cells."""
    grids: dict[str, list[tuple[GridPlace, Fact]]] = {}
    for fact in facts:
        if place := places.get(fact.subject):
            grids.setdefault(place.title, []).append((place, fact))
    return (_map(title, grid) for title, grid in grids.items() if len(grid) >= _FEWEST)


def _map(title: str, grid: Sequence[tuple[GridPlace, Fact]]) -> HeatMap:
    heat = _heats([fact for _, fact in grid])
    cells = {
        (place.row, place.column): HeatCell(
            _text(fact), heat[fact.subject], printable(f"{fact.subject}: {_told(fact)}")
        )
        for place, fact in grid
    }
    columns = tuple(dict.fromkeys(place.column for place, _ in grid))
    rows = dict.fromkeys(place.row for place, _ in grid)
    return HeatMap(
        printable(title), tuple(map(printable, columns)),
        tuple((printable(row), tuple(cells.get((row, column)) for column in columns)) for row in rows),
    )  # fmt: skip


def _heats(facts: Sequence[Fact]) -> Mapping[str, int]:
    """From the least to the most value, or from one answer to the other; none where errors meet."""
    answers = list(dict.fromkeys(fact.answer for fact in facts if fact.is_resolved))
    values = {fact.subject: fact.value for fact in facts if fact.value is not None}
    if not values:
        values = {fact.subject: float(answers.index(fact.answer)) for fact in facts if fact.is_resolved}
    elif _are_the_same(facts):
        return {fact.subject: 0 for fact in facts}
    low, high = min(values.values(), default=0.0), max(values.values(), default=0.0)
    parts = {subject: (value - low) / (high - low or 1.0) for subject, value in values.items()}
    return {fact.subject: round(_MOST * parts.get(fact.subject, 0.0)) for fact in facts}


def _are_the_same(facts: Sequence[Fact]) -> bool:
    """Whether one value is within the errors of all."""
    known = [(fact.value, fact.error or 0.0) for fact in facts if fact.value is not None]
    return max(value - error for value, error in known) <= min(value + error for value, error in known)


def _text(fact: Fact) -> str:
    if not fact.is_resolved:
        return "?"
    return str(fact.answer) if fact.value is None else f"{round(fact.value, 1) + 0.0:g}"


def _told(fact: Fact) -> str:
    if not fact.is_resolved:
        return f"not resolved, {fact.reason}"
    return str(fact.answer) if fact.value is None else f"{fact.value:.2f} ± {fact.error or 0:.2f} {fact.unit}"
