"""Predictions as a page: one HTML file, for one machine or several side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cyclescope.analyze.predict.prediction import InstructionCost, NotPredicted, Prediction
from cyclescope.report.pages.rendering import rendered
from cyclescope.report.predictions.graph import svg
from cyclescope.report.predictions.markdown import CostTable, chains
from cyclescope.report.predictions.text import WORDS, bound_words, no_bounds, summary_lines
from cyclescope.report.words import borrowing, counted, listed, plain, with_lender

_TEMPLATES = Path(__file__).parent / "templates"


class _Bound(NamedTuple):
    """`aside` is what the loop may be faster than; `percent` is of the greatest bound."""

    what: str
    cycles: str
    percent: int
    aside: bool


class _Row(NamedTuple):
    """An instruction; its ports' cells with how full each is, from 0 to 1."""

    leading: list[str]
    text: str
    remarks: str
    ports: list[tuple[str, str]]
    cp: str
    lcd: str
    classes: str


def page(found: Prediction) -> str:
    """The report as HTML in one file, with the drawing of the dependencies."""
    found = plain(found)
    title = " ".join(filter(None, (found.source, found.name, "on", found.machine)))
    return render(
        "page.html", title=title, where=summary_lines(found)[1], compared=None, sections=[_section(found)]
    )


def comparison_page(found: Sequence[Prediction | NotPredicted]) -> str:
    """The reports of several machines, one after the other, with all bounds side by side at the top."""
    found = [plain(one) for one in found]
    known = [one for one in found if isinstance(one, Prediction)]
    first = known[0]
    cycles = sorted(one.cycles for one in known)
    ends = " to ".join(dict.fromkeys(f"{one:.2f}" for one in (cycles[0], cycles[-1])))
    names = listed([one.machine for one in found])
    return render(
        "page.html",
        title=" ".join(filter(None, (first.source, first.name, "on", names))),
        where=summary_lines(first)[1],
        heading=f"{ends} cycles per iteration on {counted(len(known), 'machine')}",
        compared={
            "machines": [with_lender(one.machine, one.borrowed) for one in found],
            "rows": _compared(found),
        },
        sections=[_problem(one) if isinstance(one, NotPredicted) else _section(one) for one in found],
    )


def render(template: str, **values: Any) -> str:
    """A template with these values; all of them are escaped."""
    return rendered(_TEMPLATES, template, **values)


def _compared(found: Sequence[Prediction | NotPredicted]) -> list[tuple[str, list[str]]]:
    """Per bound the cycles on every machine; nothing where a machine does not have it."""
    known = [one for one in found if isinstance(one, Prediction)]
    names = dict.fromkeys(name for one in known for name in one.alone)
    rows = [("expected", [_of(one, lambda p: p.cycles) for one in found])]
    rows += [(WORDS[name], [_of(one, lambda p, n=name: p.alone.get(n)) for one in found]) for name in names]
    rows.append(("(critical path of one iteration)", [_of(one, lambda p: p.cp) for one in found]))
    return rows


def _of(one: Prediction | NotPredicted, value: Any) -> str:
    return "" if isinstance(one, NotPredicted) else _cycles(value(one))


def _cycles(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _problem(found: NotPredicted) -> dict[str, str]:
    return {"machine": found.machine, "borrowed": _borrowed(found), "problem": found.problem}


def _section(found: Prediction) -> dict[str, Any]:
    """What the template shows of one machine."""
    from markupsafe import Markup

    table = CostTable(found)
    origin, _, answer, *facts = summary_lines(found)
    cycles, _, bound = answer.partition(" ")
    count = len(table.head) - len(table.ports) - 3  # in front of the ports, CP, LCD and the instruction
    return {
        "machine": found.machine, "problem": "", "borrowed": _borrowed(found), "answer": cycles,
        "bound": bound, "origin": origin, "facts": facts, "notes": found.notes, "bounds": _bounds(found),
        "leading": table.head[:count],
        "ports": table.ports, "rows": [_row(table, row, count) for row in found.instructions],
        "sums": [_sums(cells[count - 1 :]) for cells in table.sums], "chains": chains(found),
        "graph": Markup(svg(found)),  # noqa: S704 - which escapes what it draws
    }  # fmt: skip


def _sums(cells: list[str]) -> tuple[str, list[str]]:
    """What is summed, and the sums in the order of a page: CP and LCD before the ports."""
    name, *ports, path, carried, _ = cells
    return name, [path, carried, *ports]


def _borrowed(found: Prediction | NotPredicted) -> str:
    """What of a machine is another core's, to be said before its number."""
    return " and ".join(f"({borrowing(one)})" for one in found.borrowed)


def _bounds(found: Prediction) -> list[_Bound]:
    most = max(found.alone.values(), default=0.0) or 1.0
    alone = ((bound_words(found, name), cycles) for name, cycles in found.alone.items())
    rows = [_Bound(words, f"{c:.2f}", round(100 * c / most), False) for words, c in alone]
    return rows + [_Bound(f"({words})", f"{cycles:.2f}", 0, True) for words, cycles in no_bounds(found)]


def _row(table: CostTable, row: InstructionCost, count: int) -> _Row:
    cells = table.cells(row)
    names = (("critical", row.critical_path), ("carried", row.loop_carried))
    remarks = [*row.remarks, *(["UNKNOWN, left out"] if row.ignored else [])]
    used = cells[count : count + len(table.ports)]
    return _Row(
        leading=cells[:count],
        text=" ".join(row.text.split()),
        remarks=f"[{', '.join(remarks)}]" if remarks else "",
        ports=[(cell, f"{table.shade(row, p):.2f}") for p, cell in zip(table.ports, used, strict=True)],
        cp=_cycles(row.critical_path),
        lcd=_cycles(row.loop_carried),
        classes=" ".join(name for name, on in names if on is not None),
    )
