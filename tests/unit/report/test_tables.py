"""One printer of tables: columns are as wide as their cells, and no other code makes columns."""

from __future__ import annotations

import ast
from pathlib import Path

import cyclescope
from cyclescope.report.tables import aligned, table

REPORT = Path(cyclescope.__file__).parent / "report"
DIGITS = {"pages/core_card.py", "pages/core_summary.py"}  # have as many digits as errors or units tell


def test_words_begin_and_numbers_end_below_each_other():
    rows = [("form", "cycles", "why"), ("IMUL", "3.00", ""), ("A", "12.00", "flags")]
    assert aligned(rows, (0, 2)) == ["form  cycles  why", "IMUL    3.00", "A      12.00  flags"]
    assert table([row[:2] for row in rows], 1).splitlines() == [
        "  form  cycles",
        "  IMUL    3.00",
        "  A      12.00",
    ]


def test_no_rows_are_no_lines():
    assert aligned([], (0,)) == []


def test_letters_are_as_wide_as_a_terminal_shows_them():
    assert aligned([("日本", "1"), ("a\u0301bc", "2")], (0,)) == ["日本  1", "a\u0301bc   2"]


def computed_widths(source: str) -> list[int]:
    """Lines in which a text is made as wide as a number says."""
    specs = (node.format_spec for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FormattedValue))
    return [
        spec.lineno
        for spec in specs
        if spec is not None and any(isinstance(part, ast.FormattedValue) for part in spec.values)
    ]


def test_nothing_else_makes_columns():
    found = {
        name: lines
        for path in sorted(REPORT.rglob("*.py"))
        if (name := str(path.relative_to(REPORT))) not in DIGITS
        if (lines := computed_widths(path.read_text()))
    }
    assert found == {}


def test_columns_are_seen():
    assert computed_widths('line = f"{name:{width}}  {cycles:.2f}"') == [1]
    assert computed_widths('line = f"{cycles:.2f}"') == []
