"""A prediction as comma-separated values, for spreadsheets and scripts."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from cyclescope.analyze.predict.prediction import Prediction
from cyclescope.report.predictions.markdown import LAST, CostTable
from cyclescope.report.words import plain


def csv_table(found: Prediction) -> str:
    """A row for each instruction: its place, cycles on ports, critical path, slowest chain, text."""
    return regions_csv([found])


def regions_csv(found: Iterable[Prediction]) -> str:
    """The rows of several regions below one head, which has the ports of all."""
    rows = [row for one in map(plain, found) for row in _rows(one)]
    head = list(dict.fromkeys(name for row in rows for name in row if name not in LAST))
    return _written([[*head, *LAST], *([row.get(name, "") for name in (*head, *LAST)] for row in rows)])


def _rows(found: Prediction) -> Iterator[dict[str, str]]:
    table = CostTable(found)
    for row in found.instructions:
        yield {"region": found.name} | dict(zip(table.head, table.cells(row), strict=True))


def _written(rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().rstrip("\n")
