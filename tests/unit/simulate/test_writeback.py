"""Ports that write one result in a cycle: operations wait for a cycle of their own."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.model.machine import EVENLY, IDEAL, Core, FormCost, Operation, Scheduler, Wakeup, Writeback
from cyclescope.model.ports import port_set
from cyclescope.session.machines import load_model
from cyclescope.simulate.cost import template
from cyclescope.simulate.engine import Engine, Layout, Template, layout_of
from cyclescope.simulate.units import BROUGHT, Units, result_of, usual_results
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
    assert issued(msgspec.structs.replace(PORT, policy=IDEAL), *results) == starts


@pytest.mark.parametrize(("writing", "cycle"), [(0b00, 2), (0b11, 5)])
def test_such_ports_are_got_at_dispatch_where_others_are_chosen_at_the_start(writing, cycle):
    """The third has got the port that the first keeps busy for long, as many wait for either."""
    slow, plain = (Template(1, (), (), (work(0, 1, cycles=busy, feeds=0),)) for busy in (4.0, 1.0))
    engine = Engine(Layout(width=3, ports=2, writing=writing))
    body = loop(engine, (slow,), (plain,), (plain,))
    assert [operations[0][0] for operations in engine.trace(body, 1).operations] == [1, 1, cycle]


def test_no_operation_waits_for_results_on_ports_with_negative_patience():
    layout = msgspec.structs.replace(PORT, policy=IDEAL, patience=-1)
    assert issued(layout, LONG, LONG, SHORT, LONG) == [1, 2, 3, 4]


@pytest.mark.parametrize(("entries", "queues", "patience"), [(0, (), 2), (8, ((1, 8), (4, 8), (3, 6)), -1)])
def test_where_room_in_front_of_ports_is_known_operations_wait_for_that_alone(entries, queues, patience):
    others = (Scheduler("general", (0, 1), 6),) if entries else ()
    core = Core(4, writeback=Writeback((0, 2), 2, entries=entries), binding=IDEAL, schedulers=others)
    layout = layout_of(core, 3)
    assert (layout.writing, layout.queues, layout.patience) == (0b101, queues, patience)


def test_ports_that_announce_results_are_got_when_operations_start():
    layout = msgspec.structs.replace(PORT, policy=IDEAL, announcing=1)
    assert issued(layout, LONG, 0, SHORT) == [1, 2, 3]


@pytest.mark.parametrize(("patience", "starts"), [(0, [1, 2, 5, 6]), (1, [1, 2, 5, 6]), (2, [1, 2, 5, 4])])
def test_younger_operations_start_before_one_that_waits_in_as_many_cycles_as_it_has_patience(
    patience, starts
):
    """The third finds no room in cycles 3 and 4; the fourth could start in cycle 4."""
    layout = msgspec.structs.replace(PORT, patience=patience)
    assert issued(layout, LONG, LONG, SHORT, LONG) == starts
    lost = msgspec.structs.replace(PORT, policy=IDEAL, writing=0, losing=1)  # it has got its port in vain
    assert issued(lost, LONG, LONG, SHORT, LONG) == [1, 2, 5, 6]
    assert issued(msgspec.structs.replace(lost, losing=0), LONG, LONG, SHORT, LONG) == [1, 2, 3, 4]


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


def test_what_vector_units_send_takes_the_place_of_a_result_of_one_cycle():
    """It holds up neither longer operations nor those that write none, and no port is taken for it."""
    engine = Engine(msgspec.structs.replace(PORT, width=2))
    for results, starts in (
        ((BROUGHT, SHORT), [1, 2]),
        ((BROUGHT, LONG), [1, 1]),
        ((BROUGHT, 0), [1, 1]),
        ((BROUGHT, BROUGHT), [1, 2]),
        ((SHORT, BROUGHT), [1, 2]),
    ):
        body = loop(engine, *making(*results))
        assert [operations[0][0] for operations in engine.trace(body, 1).operations] == starts, results


def test_ports_are_dealt_without_looking_at_what_vector_units_send():
    layout = Layout(width=4, ports=2, policy=EVENLY, writing=3)
    engine = Engine(layout)
    both = [
        (Template(1, (), (), (work(0, 1, feeds=0, result=cycles),)),)
        for cycles in (BROUGHT, SHORT, BROUGHT, SHORT)
    ]
    rows = engine.trace(loop(engine, *both), 1).operations
    assert [operations[0][1] for operations in rows] == [0, 0, 1, 1]


def test_what_vector_units_send_is_known_by_its_registers_and_ports(table):
    vector, general, load = Operation((2,)), Operation((0, 1)), Operation((3,))
    units = Units(frozenset({(3,)}), frozenset(), {(0, 1): 1}, (0, 1))
    for form, operations, brought in (
        ("PMOVMSKB (R64, XMM)", (general,), True),
        ("CVTTSD2SI (R32, M64)", (load, general, vector), True),
        ("POPCNT (R32, M32)", (load, general), False),
        ("PINSRB (XMM, R32, I8)", (general, vector), False),
        ("ADD_01 (R64, R64)", (general,), False),
    ):
        assert units.brings(table[form], general, operations) == brought, form
    assert not units.brings(table["PMOVMSKB (R64, XMM)"], vector, (vector,))
    assert not msgspec.structs.replace(units, crossed=()).brings(
        table["PMOVMSKB (R64, XMM)"], general, (general,)
    )


def test_flags_alone_are_no_result_that_a_port_writes(table):
    machine = load_model("znver3")
    core = msgspec.structs.replace(machine.core, binding=EVENLY, writeback=Writeback((0, 1, 2, 3), 4))
    units = Units.of(msgspec.structs.replace(machine, core=core))
    for form, results in (("CMP_39 (R64, R64)", {0}), ("SUB_29 (R64, R64)", {1})):
        made = template(table[form], machine.forms[form], core, units)
        assert {operation.result for operation in made.work} == results, form
    lost = msgspec.structs.replace(machine.core, wakeup=Wakeup((0, 1, 2, 3), one_result=True))
    made = template(
        table["CMP_39 (R64, R64)"], machine.forms["CMP_39 (R64, R64)"], lost,
        Units.of(msgspec.structs.replace(machine, core=lost)),
    )  # fmt: skip
    assert {operation.result for operation in made.work} == {
        1
    }  # where ports are lost to results, these are some


def test_operations_of_a_form_that_ask_in_vain_take_as_long_as_was_measured(table):
    """One alone does not: what others lose by it, and it by others, the core does by itself."""
    machine = load_model("znver3")
    (add,) = machine.forms["ADD_01 (R64, R64)"].operations
    core = msgspec.structs.replace(machine.core, wakeup=Wakeup(add.ports))
    units = Units.of(msgspec.structs.replace(machine, core=core))
    name, form = port_set(add.ports, machine.ports), table["BTS (R64, R64)"]
    for count, taken, cycles in ((2.0, 2.5, {1.25}), (2.0, 1.9, {1.0}), (1.0, 2.5, {1.0})):
        operations = (Operation(add.ports[:2], count),)
        cost = FormCost(count, operations, {"op1->op1": count}, resources={name: taken})
        assert {operation.cycles for operation in template(form, cost, core, units).work} == cycles
        assert {operation.cycles for operation in template(form, cost, core, Units.of(machine)).work} == {1.0}
