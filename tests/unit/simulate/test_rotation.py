"""Ports that take operations in turn: how many each got does not count."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.model.machine import EVENLY, GROUPED, IDEAL, ROUND_ROBIN, STATIC
from cyclescope.simulate.engine import Engine, Layout
from tests.support.made.cores import independent, loop, steady, unary

BOTH, FIRST = independent((0, 1)), independent((0,))
IN_TURN = Layout(width=8, ports=2, policy=EVENLY, rotating=0b11)


def ports(layout, *templates, iterations=1):
    engine = Engine(layout)
    body = loop(engine, *((one,) for one in templates))
    return [operations[0][1] for operations in engine.trace(body, iterations).operations]


def test_the_port_that_was_left_out_for_longest_is_next_however_many_operations_it_got():
    """The first port has three operations, and gets the last one nevertheless."""
    dealt = (FIRST, FIRST, FIRST, BOTH, BOTH)
    for policy in (STATIC, ROUND_ROBIN, GROUPED, EVENLY):
        assert ports(msgspec.structs.replace(IN_TURN, policy=policy), *dealt) == [0, 0, 0, 1, 0]
    assert ports(msgspec.structs.replace(IN_TURN, rotating=0), *dealt) == [0, 0, 0, 1, 1]
    assert ports(msgspec.structs.replace(IN_TURN, rotating=0b01), *dealt) == [0, 0, 0, 1, 1]


def test_ports_for_which_none_waited_when_the_cycle_began_come_first():
    """Six for the first port keep it busy: both operations of the next cycles go to the other one."""
    narrow = msgspec.structs.replace(IN_TURN, width=2)
    assert ports(narrow, FIRST, FIRST, FIRST, FIRST, FIRST, FIRST, BOTH, BOTH)[6:] == [1, 1]


def test_only_where_ports_are_chosen_at_dispatch_are_they_taken_in_turn():
    crowded = [(one,) for one in (FIRST, BOTH, FIRST, BOTH)]
    assert steady(msgspec.structs.replace(IN_TURN, policy=IDEAL), *crowded).cycles == 2
    assert ports(msgspec.structs.replace(IN_TURN, policy=IDEAL), FIRST, FIRST, BOTH) == [0, 0, 1]


@pytest.mark.parametrize(("entries", "most"), [(4, 6.5), (8, 4.5), (64, 2.1)])
def test_as_many_chains_overlap_as_there_is_room_for_in_front_of_the_ports(entries, most):
    """Four operations of three cycles each: with more room in the schedulers more rounds of it overlap."""
    queues = ((0b01, entries // 2), (0b10, entries // 2))
    engine = Engine(msgspec.structs.replace(IN_TURN, queues=queues))
    chain = [(unary(3.0, 0, 1), source, source + 1) for source in range(4)]
    found = engine.run(loop(engine, *chain))
    assert most / 2 < found.cycles <= most


def test_a_loop_on_ports_in_turn_comes_again():
    layout = msgspec.structs.replace(IN_TURN, queues=((0b01, 16), (0b10, 16)))
    for times in range(1, 4):  # whatever got how many
        assert steady(layout, *((one,) for one in (BOTH, *times * (FIRST,), BOTH))).cycles >= 1 + times / 2
