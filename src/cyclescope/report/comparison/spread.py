"""The spread between machines as CSV, and in a few lines."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from cyclescope.model.comparison.agreement import Quantity
from cyclescope.report.tables import table
from cyclescope.session.spread import SpreadValue

_SHOWN = 10
_HEAD = ("", "on several machines", "equal", "different", "on one machine only")


def spread_csv(values: Sequence[SpreadValue], names: Sequence[str]) -> str:
    """A row per value: the median, the least, the most and the spread of all machines, then each."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["form", "quantity", "pair", "machines", "median", "least", "most", "spread", *names])
    for one in values:
        numbers = (len(one.known), one.middle, min(one.known), max(one.known), round(one.spread, 6))
        each = ("" if value is None else value for value in one.values)
        writer.writerow([one.form, one.quantity.value, one.pair, *numbers, *each])
    return stream.getvalue()


def spread_text(values: Sequence[SpreadValue]) -> str:
    """How many values agree, and those farthest apart."""
    rows = [_row(quantity, values) for quantity in (Quantity.THROUGHPUT, Quantity.LATENCY)]
    lines = [table([_HEAD, *rows], words=1).rstrip()]
    apart = sorted(
        (one for one in values if not one.agrees),
        key=lambda one: (-one.spread / max(one.middle, 1), one.form),
    )
    if apart:
        lines += ["", "farthest apart for their size (cycles):"]
        found = [
            (one.form, one.pair or one.quantity.value, " ".join(map(_cell, one.values)))
            for one in apart[:_SHOWN]
        ]
        lines.append(table([("form", "", "each machine"), *found], words=3).rstrip())
    return "\n".join(lines)


def _row(quantity: Quantity, values: Sequence[SpreadValue]) -> tuple[str, ...]:
    some = [one for one in values if one.quantity is quantity]
    several = [one for one in some if len(one.known) > 1]
    equal = sum(one.agrees for one in several)
    counts = (len(several), equal, len(several) - equal, len(some) - len(several))
    return quantity.value, *map(str, counts)


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
