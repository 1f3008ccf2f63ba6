"""Several machines of one core in one table."""

from __future__ import annotations

import csv
import io

import msgspec
import pytest

from cyclescope.errors import UsageError
from cyclescope.model.comparison.agreement import CYCLES_APART, RELATIVE, Quantity
from cyclescope.model.machine import FormCost
from cyclescope.report.comparison.spread import spread_csv, spread_text
from cyclescope.session.spread import SpreadValue, spread
from tests.support.made.models import exchanged

MUL = "IMUL (R64, R64)"


def machine(throughput, latency, **more):
    cost = FormCost(throughput=throughput, latencies={} if latency is None else {"op1->op1": latency})
    return msgspec.structs.replace(exchanged(1), forms={MUL: cost, **more})


def test_every_value_has_its_median_and_spread():
    machines = [machine(1.0, 3.0), machine(1.2, 3.0), machine(1.1, None, other=FormCost(throughput=9.0))]
    first, second, third = spread(machines)
    assert (first.quantity, first.values, first.middle) == (Quantity.THROUGHPUT, (1.0, 1.2, 1.1), 1.1)
    assert first.spread == pytest.approx(0.2)
    assert (second.pair, second.values, second.agrees) == ("op1->op1", (3.0, 3.0, None), True)
    assert third.values == (None, None, 9.0)


@pytest.mark.parametrize(
    ("quantity", "apart", "agrees"),
    [(Quantity.THROUGHPUT, 0.9 * RELATIVE, True), (Quantity.THROUGHPUT, 1.2 * RELATIVE, False),
     (Quantity.LATENCY, 0.9 * CYCLES_APART, True), (Quantity.LATENCY, 1.1 * CYCLES_APART, False)],
)  # fmt: skip
def test_what_agrees(quantity, apart, agrees):
    assert SpreadValue(MUL, quantity, "", (1.0, 1.0 + apart)).agrees is agrees


def test_text_and_csv():
    values = spread([machine(1.0, 3.0), machine(2.0, 3.0)])
    rows = list(csv.DictReader(io.StringIO(spread_csv(values, ["a", "b"]))))
    assert [(row["quantity"], row["median"], row["spread"], row["a"], row["b"]) for row in rows] == [
        ("throughput", "1.5", "1.0", "1.0", "2.0"), ("latency", "3.0", "0.0", "3.0", "3.0"),
    ]  # fmt: skip
    text = spread_text(values)
    assert "1.00 2.00" in text
    assert "3.00 3.00" not in text, "what agrees is not listed"


def test_what_has_no_spread():
    with pytest.raises(UsageError, match="one machine"):
        spread([machine(1.0, 1.0)])
    with pytest.raises(UsageError, match="several instruction sets"):
        spread([exchanged(1), exchanged(1, "aarch64")])
