"""Single ports that are chosen for the operations of a cycle together."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.model.machine import EVENLY
from cyclescope.simulate.engine import Engine, Layout
from tests.support.made.cores import independent, loop

LAYOUT = Layout(width=6, ports=4, policy=EVENLY, single=0b1111)
ALL, OUTER, INNER = (0, 1, 2, 3), (0, 3), (1, 2)


def dispatched(layout, *operations, iterations=2):
    """The cycles in which instructions of one operation each are dispatched, and their ports."""
    engine = Engine(layout)
    trace = engine.trace(loop(engine, *[(independent(ports),) for ports in operations]), iterations)
    return [cycle for cycle, *_ in trace.instructions], [ops[0][1] for ops in trace.operations]


def test_a_port_is_left_to_an_operation_that_follows_in_the_same_cycle():
    """The first of each round could take the only port of the second."""
    assert dispatched(LAYOUT, ALL, (0,), iterations=1) == ([0, 1], [0, 0])
    ahead = msgspec.structs.replace(LAYOUT, ahead=True)
    assert dispatched(ahead, ALL, (0,), iterations=1) == ([0, 0], [1, 0])
    both = msgspec.structs.replace(ahead, single=0)  # nothing waits for a port in a cycle of dispatch
    assert dispatched(both, ALL, (0,), iterations=1) == ([0, 0], [0, 0])


@pytest.mark.parametrize(("slots", "port"), [(4, 1), (5, 0), (6, 0)])
def test_what_follows_in_the_next_cycle_only_is_not_looked_at(slots, port):
    """Of six slots the first operation takes one, and another instruction all but perhaps one of the rest."""
    engine = Engine(msgspec.structs.replace(LAYOUT, ahead=True))
    body = loop(engine, (independent(ALL),), (independent(slots=slots),), (independent((0,)),))
    assert engine.trace(body, 1).operations[0][0][1] == port


def test_where_not_all_find_one_the_longest_row_of_them_does():
    """The last finds none; of what is before it all do, though the first had to leave two ports."""
    ahead = msgspec.structs.replace(LAYOUT, ahead=True)
    cycles, ports = dispatched(ahead, ALL, INNER, INNER, OUTER, OUTER, iterations=1)
    assert cycles == [0, 0, 0, 0, 1]
    assert sorted(ports[:4]) == [0, 1, 2, 3]


def test_a_loop_of_three_classes_takes_what_its_ports_allow():
    body = [(independent(ports),) for ports in (ALL, OUTER, OUTER, ALL, INNER, INNER)]
    found = []
    for ahead in (False, True):
        engine = Engine(msgspec.structs.replace(LAYOUT, ahead=ahead))
        found.append(engine.run(loop(engine, *body)).cycles)
    assert found == [pytest.approx(2), pytest.approx(1.5)]


def test_an_instruction_of_several_operations_leaves_ports_to_its_own():
    engine = Engine(msgspec.structs.replace(LAYOUT, ahead=True))
    trace = engine.trace(loop(engine, (independent(ALL, (0,)),)), 1)
    assert [port for _, port in trace.operations[0]] == [1, 0]
