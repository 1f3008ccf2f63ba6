"""Ports that write one result in a cycle: operations wait for a cycle of their own."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.model.machine import EVENLY, IDEAL, FormCost, Operation
from cyclescope.simulate.engine import Engine, Layout, Template
from cyclescope.simulate.units import result_of, usual_results
from tests.support.made.cores import loop, work

LONG, SHORT = 3, 1  # cycles to the result
PORT = Layout(width=1, ports=1, policy=EVENLY, writing=1)


def making(*results):
    """Instructions of one operation each, all on port 0: one is dispatched in each cycle."""
    return [(Template(1, (), (), (work(0, feeds=0, result=cycles),)),) for cycles in results]


def issued(layout, *results):
    engine = Engine(layout)
    body = loop(engine, *making(*results))
    return [operations[0][0] for operations in engine.trace(body, 1).operations]


@pytest.mark.parametrize(
    ("results", "starts"),
    [
        ((LONG, 0, SHORT), [1, 2, 4]),  # would come with the result of the first
        ((LONG, SHORT), [1, 2]),
        ((LONG, 0, 0, SHORT), [1, 2, 3, 4]),
        ((LONG, LONG, LONG), [1, 2, 3]),
        ((LONG, LONG, SHORT), [1, 2, 5]),
        ((LONG, 0, 0), [1, 2, 3]),  # of what is not known to make any result nothing is said
    ],
)
def test_an_operation_waits_whose_result_would_come_with_another_one(results, starts):
    assert issued(PORT, *results) == starts
    without = msgspec.structs.replace(PORT, writing=0)
    assert issued(without, *results) == list(range(1, len(results) + 1))
    assert issued(msgspec.structs.replace(PORT, policy=IDEAL), *results) == issued(without, *results)


@pytest.mark.parametrize(("patience", "starts"), [(0, [1, 2, 5, 6]), (1, [1, 2, 5, 6]), (2, [1, 2, 5, 4])])
def test_younger_operations_start_before_one_that_waits_in_as_many_cycles_as_it_has_patience(
    patience, starts
):
    """The third finds no room in cycles 3 and 4; the fourth could start in cycle 4."""
    layout = msgspec.structs.replace(PORT, patience=patience)
    assert issued(layout, LONG, LONG, SHORT, LONG) == starts


def test_a_loop_with_results_that_wait_comes_again():
    engine = Engine(msgspec.structs.replace(PORT, width=4, patience=3))
    found = engine.run(loop(engine, *making(LONG, SHORT, SHORT, LONG)))
    assert found.exact
    assert found.cycles >= 4


def test_operations_make_results_as_most_do_that_are_alone_on_their_ports():
    fast, slow, pair = (Operation((0, 1)),), (Operation((1,)),), (Operation((0, 1)), Operation((1,)))
    costs = [
        FormCost(1, fast, {"op1->op1": 1.0}),
        FormCost(1, fast, {"op1->op1": 1.0, "op2->op1": 0.0}),
        FormCost(1, fast, {"op1->op1": 5.0}),
        FormCost(1, slow, {"op1->op1": 3.0, "op2->op1": 4.0}),
        FormCost(1, pair, {"op1->op1": 9.0}),
    ]
    usual = usual_results(costs)
    assert usual == {(0, 1): 1, (1,): 3}
    assert [result_of(op, costs[4], usual) for op in pair] == [1, 3]
    assert result_of(fast[0], costs[2], usual) == 5
    assert result_of(Operation((2,)), FormCost(1, (Operation((2,)),)), usual) == 0
