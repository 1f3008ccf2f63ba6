"""What asks for a second look at latencies."""

from __future__ import annotations

import pytest

from cyclescope.infer.timing.laws import is_through_memory, may_be_delayed
from cyclescope.infer.timing.results import EXACT, UPPER_BOUND, Latency
from cyclescope.isa.dataflow import pairs
from cyclescope.isa.table import load_table


def latency(value, kind=EXACT, **fields):
    return Latency("op1", "op1", value, value, kind, 0.01, **fields)


@pytest.mark.parametrize(
    ("value", "expected"), [(0.0, False), (1.0, False), (1.3, True), (2.0, True), (3.0, False), (5.0, False)]
)
def test_what_cuts_a_chain_may_delay_a_short_one(value, expected):
    assert may_be_delayed(latency(value)) is expected


def test_a_bound_tells_no_short_chain():
    assert not may_be_delayed(latency(2.0, UPPER_BOUND))
    assert not may_be_delayed(Latency("op1", "op1", None, None, None, None, reason="why"))


def test_pairs_through_memory():
    form = load_table("x86-64")["ADD (M64, R64)"]
    asked = {
        (pair.source.name, pair.target.name) for pair in pairs(form) if is_through_memory(pair, latency(5.0))
    }
    assert {("op1.data", "op1.data"), ("op2", "op1.data"), ("op1.address", "op1.data")} <= asked
    assert ("op2", "flags.CF") not in asked
    assert not any(is_through_memory(p, latency(9.0, values={"fast": 7.0, "slow": 9.0})) for p in pairs(form))
