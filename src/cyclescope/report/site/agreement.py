"""How far machines agree, as a page of its own or of a site: tables, plots, the largest differences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from cyclescope.model.comparison.agreement import Agreement, Comparison, Match, Quantity, Tolerance
from cyclescope.model.machine import MEASURED, MachineModel
from cyclescope.report.comparison.agreement import (
    AGREEMENT_HEAD,
    REASON_HEAD,
    count_rows,
    extension_rows,
    reach_text,
    reason_rows,
)
from cyclescope.report.pages.axes import MARGIN, SIDE, Scale
from cyclescope.report.pages.rendering import ours, rendered
from cyclescope.report.site.pages import TEMPLATES
from cyclescope.report.words import borrowers, counted, escaped
from cyclescope.session.subjects import Subject

LEAST = 0.1  # cycles: what takes less is drawn there, as 0 has no place on the scale
POINTS = 3000  # of a drawing, those of most values
REASONS = 8  # that are listed of forms that only one has
_DRAWN = (Quantity.THROUGHPUT, Quantity.LATENCY)
Found = Sequence[tuple[MachineModel, Agreement]]


class _Point(NamedTuple):
    """`x` and `y` in pixels from the axes, `size` the radius."""

    x: float
    y: float
    size: float
    title: str
    differs: bool


def agreement_page(first: Subject, found: Found, tolerance: Tolerance, most: int) -> str:
    """A page of its own."""
    names = ", ".join(other.name for other, _ in found)
    title = f"{first.model.name} and {names}"
    sections = agreement_sections(first, found, most)
    style = ours(TEMPLATES / "site.css")
    return rendered(TEMPLATES, "comparison_page.html", title=title, sections=sections, style=style,
                    tolerance=tolerance, linked=False, side=SIDE, margin=MARGIN)  # fmt: skip


def agreement_part(first: Subject, found: Found, tolerance: Tolerance, most: int) -> str:
    """The part of a site, whose differences lead to cards."""
    sections = agreement_sections(first, found, most)
    return rendered(TEMPLATES, "comparison.html", sections=sections, tolerance=tolerance, linked=True,
                    side=SIDE, margin=MARGIN)  # fmt: skip


def agreement_sections(first: Subject, found: Found, most: int) -> list[dict[str, Any]]:
    """What the templates show, one section per other machine."""
    return [_section(first, other, agreement, most) for other, agreement in found]


def _section(first: Subject, other: MachineModel, agreement: Agreement, most: int) -> dict[str, Any]:
    differences = agreement.differences()
    here, there = first.model.name, other.name
    shared = len(first.model.forms) - len(agreement.first_only)
    by_extension = extension_rows(first.model, agreement)
    only_here = _counted(f"{there} has no cost of it" for _ in agreement.first_only)
    only_there = _counted(_why(first, name) for name in agreement.second_only)
    return {
        "name": there,
        "first": here,
        "borrowed": [escaped(line) for line in borrowers((first.model, other))],
        "measured": MEASURED in (first.model.provenance.kind, other.provenance.kind),
        "shared": counted(shared, "form"),
        "tables": [
            ("quantity", AGREEMENT_HEAD[1:], list(count_rows(agreement.counts()))),
            ("extension (throughput and latency)", AGREEMENT_HEAD[1:], list(by_extension)),
            ("what explains the differences", REASON_HEAD[1:], list(reason_rows(agreement))),
        ],
        "unmatched": [(f"only in {here}", only_here), (f"only in {there}", only_there)],
        "plots": [_plot(quantity, agreement.comparisons) for quantity in _DRAWN],
        "different": len(differences),
        "differences": [_cells(one) for one in differences[:most]],
    }


def _cells(one: Comparison) -> tuple[str, ...]:
    what, reason = one.pair or one.quantity.value, one.reason or ""
    return one.form, what, reach_text(one.first), reach_text(one.second), reason


def _counted(reasons: Iterable[str]) -> list[tuple[str, int]]:
    """How often each, the most frequent first, the rest as one."""
    ranked = Counter(reasons).most_common()
    rest = sum(number for _, number in ranked[REASONS:])
    return ranked[:REASONS] + ([("other reasons", rest)] if rest else [])


def _why(first: Subject, name: str) -> str:
    """Why a machine has no cost of a form."""
    timing = first.timings.get(name)
    if timing is None:
        return f"{first.model.name} has no cost of it"
    return timing.status if timing.status != "ok" else "it has no value"


# --- drawings ----------------------------------------------------------------------------------------


def _plot(quantity: Quantity, comparisons: Iterable[Comparison]) -> dict[str, Any]:
    """The second machine's values over the first one's, on one logarithmic scale; ranges by their most."""
    values: dict[tuple[float, float, bool], list[str]] = {}
    for one in comparisons:
        if one.quantity is quantity and one.first and one.second:
            differs = one.verdict is Match.DIFFERENT
            key = (round(one.first[1], 2), round(one.second[1], 2), differs)
            values.setdefault(key, []).append(one.form)
    ends = [max(value, LEAST) for x, y, _ in values for value in (x, y)] or [1.0]
    scale = Scale(min(ends) / 1.2, max(ends) * 1.2)
    ranked = sorted(values.items(), key=lambda item: -len(item[1]))
    return {
        "name": quantity.value,
        "points": [_point(key, forms, scale) for key, forms in ranked[:POINTS]],
        "left_out": len(ranked) - len(ranked[:POINTS]),
        "ticks": list(scale.ticks()),
    }


def _point(key: tuple[float, float, bool], forms: Sequence[str], scale: Scale) -> _Point:
    x, y, differs = key
    title = f"{counted(len(forms), 'value')}: {x:g} and {y:g} cycles, as of {escaped(forms[0])}"
    size = round(1.5 + math.log10(len(forms)) * 1.5, 1)
    across, up = (scale.at(max(value, LEAST)) for value in (x, y))
    return _Point(across, round(SIDE - up, 1), size, title, differs)
