"""Comparing two machine models."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.model.comparison.agreement import Match, Quantity, Tolerance, compare
from cyclescope.model.machine import EXTRACTED, Core, FormCost, MachineModel, Operation, Provenance

FORM = "IMUL (R64, R64)"

TWO_STATES = {
    "latencies": {"op1->op1": 2.0},
    "ranges": {"op1->op1": (1.0, 2.0)},
    "with_room": {"op1->op1": 1.0},
}


def machine(**cost):
    found = FormCost(**cost)
    return MachineModel("m", "x86-64", Provenance(EXTRACTED), Core(4), ("0", "1", "2"), {FORM: found})


def verdicts(first, second, quantity, **tolerance):
    found = compare(machine(**first), machine(**second), Tolerance(**tolerance))
    return [c.verdict for c in found.comparisons if c.quantity is quantity]


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [(1.0, 1.04, Match.EQUAL), (1.0, 1.06, Match.DIFFERENT), (1.0, None, Match.FIRST_ONLY),
     (None, 2.0, Match.SECOND_ONLY)],
)  # fmt: skip
def test_throughput(first, second, verdict):
    assert verdicts({"throughput": first}, {"throughput": second}, Quantity.THROUGHPUT) == [verdict]


def test_the_tolerance_decides():
    sides = {"throughput": 1.0}, {"throughput": 1.2}
    assert verdicts(*sides, Quantity.THROUGHPUT, relative=0.2) == [Match.EQUAL]
    assert verdicts(*sides, Quantity.THROUGHPUT, relative=0.1) == [Match.DIFFERENT]


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ({"latencies": {"op1->op1": 3.0}}, {"latencies": {"op1->op1": 3.05}}, Match.EQUAL),
        ({"latencies": {"op1->op1": 3.0}}, {"latencies": {"op1->op1": 4.0}}, Match.DIFFERENT),
        ({"latencies": {"op1->op1": 3.0}}, {"ranges": {"op1->op1": (1.0, 5.0)}}, Match.INSIDE),
        ({"latencies": {"op1->op1": 6.0}}, {"ranges": {"op1->op1": (1.0, 5.0)}}, Match.DIFFERENT),
        ({"ranges": {"op1->op1": (1.0, 5.0)}}, {"ranges": {"op1->op1": (1.0, 5.0)}}, Match.EQUAL),
        ({"ranges": {"op1->op1": (1.0, 2.0)}}, {"ranges": {"op1->op1": (4.0, 5.0)}}, Match.DIFFERENT),
        ({"latencies": {"op1->op1": 3.0}}, {}, Match.FIRST_ONLY),
        (TWO_STATES, {"latencies": {"op1->op1": 1.0}}, Match.INSIDE),
        (TWO_STATES, {"latencies": {"op1->op1": 2.0}}, Match.INSIDE),
        (TWO_STATES, TWO_STATES, Match.EQUAL),
        (TWO_STATES, {"latencies": {"op1->op1": 3.0}}, Match.DIFFERENT),
    ],
)
def test_latency(first, second, verdict):
    assert verdicts(first, second, Quantity.LATENCY) == [verdict]


def test_ports_are_compared_only_where_there_are_as_many_operations():
    two, one = (Operation((0, 1), 2),), (Operation((0, 1), 1),)
    assert verdicts({"operations": two}, {"operations": one}, Quantity.PORTS) == []
    assert verdicts({"operations": two}, {"operations": one}, Quantity.OPERATIONS) == [Match.DIFFERENT]
    assert verdicts({"operations": one}, {"operations": (Operation((1, 2), 1),)}, Quantity.PORTS) == [
        Match.EQUAL
    ]
    wide = (Operation((0, 1, 2), 1),)
    assert verdicts({"operations": one}, {"operations": wide}, Quantity.PORTS) == [Match.DIFFERENT]


def test_ports_tell_a_throughput_where_none_was_measured():
    ports = {"operations": (Operation((0, 1), 1),), "slots": 1.0}
    assert verdicts(ports, {"throughput": 0.5}, Quantity.THROUGHPUT) == [Match.EQUAL]


def test_forms_of_one_side_are_named_and_the_farthest_differences_come_first():
    first = machine(latencies={"op1->op1": 3.0, "op2->op1": 3.0}, throughput=1.0)
    second = machine(latencies={"op1->op1": 30.0, "op2->op1": 5.0}, throughput=1.0)
    more = msgspec.structs.replace(second, forms={**second.forms, "NOP": FormCost(throughput=0.2)})
    found = compare(first, more)
    assert found.second_only == ("NOP",)
    assert [c.pair for c in found.differences()] == ["op1->op1", "op2->op1"]
    assert found.counts()[Quantity.LATENCY] == {Match.DIFFERENT: 2}
    assert found.counts(["NOP"])[Quantity.LATENCY] == {}
