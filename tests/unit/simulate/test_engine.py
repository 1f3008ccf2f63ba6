"""The engine against steady states computed by hand."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.errors import BackendUnavailable, UsageError
from cyclescope.model.machine import BINDINGS, EVENLY, GROUPED, IDEAL, ROUND_ROBIN, STATIC, Operation
from cyclescope.model.ports import port_throughput
from cyclescope.simulate import engine as engine_module
from cyclescope.simulate.engine import Body, Engine, Layout, Template, Work
from tests.support.made.cores import cycles, independent, loop, producer, steady, unary, work

WIDE = Layout(width=8, ports=4)

# --- latency --------------------------------------------------------------------------------------


@pytest.mark.parametrize("latency", [1, 3, 20, 2000])
def test_a_chain_takes_its_latency(latency):
    assert cycles(WIDE, (unary(latency, 0), 0, 0)) == latency


def test_latencies_of_a_chain_add_up_also_where_they_are_no_whole_cycles():
    assert cycles(WIDE, (unary(2.5, 0), 0, 1), (unary(3.5, 1), 1, 0)) == 6


def test_pairs_have_their_own_latencies():
    pairs = Template(1, (0, 0), ((4, 1), (2, 3)), (work(0, feeds=3, after=(0, -2)),))
    assert cycles(WIDE, (pairs, 0, 9, 0, 8)) == 4
    assert cycles(WIDE, (pairs, 9, 0, 0, 8)) == 2
    assert cycles(WIDE, (pairs, 9, 0, 8, 0)) == 3


def test_what_is_written_again_starts_anew():
    chain = unary(5, 0)
    assert cycles(WIDE, (producer(1, 1), 0), (chain, 0, 0), (chain, 0, 0)) == 2  # two on port 0


def test_two_iterations_share_a_value_that_is_read_before_it_is_written():
    assert cycles(WIDE, (unary(3, 0), 0, 1), (unary(4, 1), 1, 2), (unary(5, 2), 2, 0)) == 12


def test_a_late_operation_makes_its_result_late():
    # each round trip waits for both: the second operation on port 0 issues a cycle after the first
    double = Template(1, (0,), ((3,),), (work(0, after=(0,)), work(0, after=(0,))))
    assert cycles(WIDE, (double, 0, 0)) == 4
    slack = Template(1, (0,), ((3,),), (work(0, after=(0,)), work(0, after=(0,), slack=1)))
    assert cycles(WIDE, (slack, 0, 0)) == 3


def test_a_load_that_waits_for_its_port_delays_only_what_comes_by_it():
    # sources: the address, and a register that is added; eight loads on one port, each for its own chain
    load = work(3, feeds=1, after=(0, None), early=True)
    add = Template(1, (0,), ((5,), (1,)), (load, work(0, 1, 2, feeds=1, after=(4, 0))))
    body = [(add, 9, n, n) for n in range(8)]
    assert cycles(WIDE, *body) == 8
    assert cycles(WIDE, *[(add, 9, 0, 0)] * 8) == 8  # one chain of one cycle each


# --- ports ----------------------------------------------------------------------------------------

MIXES = [
    [(0,)],
    [(0, 1)],
    [(0,), (0, 1)],
    [(0, 1), (0,), (1,)],
    [(0, 1), (1, 2), (2, 0)],
    [(0, 1), (1, 2), (2, 3), (0, 3), (0, 1, 2, 3)],
    [(0, 1, 2, 3), (0, 1), (0, 1), (0,)],
]


@pytest.mark.parametrize("mix", MIXES, ids=str)
def test_ideal_binding_reaches_what_the_ports_allow(mix):
    bound = port_throughput(Operation(ports) for ports in mix)
    assert cycles(WIDE, *[(independent(ports),) for ports in mix]) == pytest.approx(bound, rel=0.001)
    assert cycles(WIDE, (independent(*mix),)) == pytest.approx(bound, rel=0.001)


@pytest.mark.parametrize("busy", [1, 4, 4.5, 13])
def test_an_unpipelined_unit_is_busy_as_long_as_it_says(busy):
    assert cycles(WIDE, (independent((0,), cycles=busy),)) == busy
    assert cycles(WIDE, (independent((0, 1), cycles=busy),)) == busy / 2


@pytest.mark.parametrize("policy", BINDINGS)
def test_a_port_may_take_several_operations_a_cycle(policy):
    layout = Layout(width=4, ports=1, policy=policy)
    assert cycles(layout, (independent((0,), cycles=0.5),)) == 0.5


def test_round_robin_ignores_the_load():
    mix = [(independent((0, 1)),), (independent((0,)),)]
    assert cycles(Layout(8, 2, policy=IDEAL), *mix) == 1
    assert cycles(Layout(8, 2, policy=STATIC), *mix) == 1
    assert cycles(Layout(8, 2, policy=ROUND_ROBIN), *mix) == 1.5


def test_even_binding_knows_how_many_each_port_got():
    """Of ports that others use alone it leaves those out; which port it is says the count, not the load."""
    two, one = [(independent((0, 1)),), (independent((0,)),)], (independent((0,)),)
    assert cycles(Layout(8, 2, policy=EVENLY), *two) == 1
    assert cycles(Layout(8, 3, policy=EVENLY), *[(independent((0, 1, 2)),)] * 2, one) == 1
    chain = Template(1, (0.0,), ((1.0,),), (work(0, 1, 2, 3, feeds=1, after=(0,)),))
    read = Template(1, (), ((),), (work(0, 1, 2, 3, feeds=0, after=(0,)),))
    idle = Template(1, (), (), (work(0, 1, 2, 3, feeds=0),))
    for policy, many, wanted in ((IDEAL, 3, 1.25), (EVENLY, 3, 2), (EVENLY, 2, 1), (EVENLY, 1, 1)):
        core = Engine(Layout(8, 4, policy=policy))
        body = loop(core, (chain, 0, 0), (read, 0), *[(idle,)] * many)
        assert core.run(body).cycles == pytest.approx(wanted), (policy, many)


def taken(layout, *instructions):
    """Cycles of a loop whose state may come back or not."""
    engine = Engine(layout)
    return engine.run(loop(engine, *instructions)).cycles


def test_single_ports_get_one_operation_in_a_cycle_of_dispatch():
    """Three for two ports next to each other take two cycles: the third waits for the second one."""
    narrow, wide = [(independent((1, 2)),)] * 3, [(independent((0, 1, 2, 3)),)] * 3
    double = (independent((0, 1, 2, 3), (0, 1, 2, 3)),)
    for single, mixed, doubled in ((0, 1.5, 0.75), (0b1111, 2, 1)):
        layout = Layout(width=6, ports=4, policy=EVENLY, single=single)
        assert taken(layout, *narrow, *wide) == pytest.approx(mixed, rel=0.01)
        assert taken(layout, double, wide[0]) == pytest.approx(doubled, rel=0.01)
        assert taken(layout, *wide) == pytest.approx(0.75)
    late = Layout(width=6, ports=4, single=0b1111)  # where ports are chosen at issue nothing is
    assert taken(late, *narrow, *wide) == pytest.approx(1.5)


def test_an_instruction_waits_for_the_cycle_in_which_all_its_operations_find_single_ports():
    """Of two operations for one port that is left neither goes there, nor do both."""
    one, double = (independent((0, 1, 2, 3)),), (independent((0, 1, 2, 3), (0, 1, 2, 3)),)
    layout = Layout(width=8, ports=4, policy=EVENLY, single=0b1111)
    assert taken(layout, one, double, double) == pytest.approx(3 / 2)  # 1 2, 2 1, 2 2
    assert taken(layout, one, one, one, double) == pytest.approx(4 / 3)  # 1 1 1, 2 1 1, 1 2 1, 1 1 2
    assert taken(Layout(width=8, ports=4, policy=EVENLY), one, double, double) == pytest.approx(5 / 4)


@pytest.mark.parametrize("policy", BINDINGS)
def test_what_has_more_operations_than_single_ports_is_dispatched(policy):
    layout = Layout(width=6, ports=3, policy=policy, single=0b111)
    many = (independent(*[(0,)] * 3, *[(1, 2)] * 4),)
    assert taken(layout, many) == pytest.approx(3, rel=0.01)
    assert taken(layout, many, (independent((0,)),)) == pytest.approx(4, rel=0.01)


def test_even_binding_comes_again():
    """A port that only some may use gets ever more: what others may use is all that is compared."""
    mix = [(independent((0, 1)),), (independent((2,), (2,)),), (independent((0,)),)]
    assert steady(Layout(8, 3, policy=EVENLY), *mix).exact


@pytest.mark.parametrize(("policy", "issued", "port"), [(IDEAL, 11, 1), (STATIC, 20, 0)])
def test_static_binding_is_final(policy, issued, port):
    """An operation that waits for its source was sent to a port that is busy when it could issue."""
    core = Engine(Layout(width=8, ports=2, policy=policy))
    busy = independent((0,), cycles=19)
    other = independent((1,))
    waiting = Template(1, (), ((),), (work(0, 1, feeds=0, after=(0,)),))
    body = loop(core, (producer(10), 0), (other,), (waiting, 0), (busy,))
    # at dispatch port 1 has one more operation than port 0; `busy` goes to port 0 and starts first
    assert core.trace(body, 1).operations == ((), ((1, 1),), ((issued, port),), ((1, 0),))


def test_a_group_is_dispatched_as_a_whole():
    """A chain that fills the reorder buffer lets others in when there is room for a group, not one by one."""
    chained = Template(1, (0.0,), ((1.0,),), (work(0, 1, feeds=1, after=(0,)),))
    entries = 8  # of which a group of four has to be free
    alone = Layout(width=4, ports=2, reorder_buffer=entries, policy=STATIC)
    whole = msgspec.structs.replace(alone, policy=GROUPED)
    dispatched = []
    for layout in (alone, whole):
        core = Engine(layout)
        body = loop(core, (chained, 1, 1))
        dispatched.append([cycle for cycle, *_ in core.trace(body, 24).instructions])
    groups = [[cycles.count(cycle) for cycle in sorted(set(cycles))] for cycles in dispatched]
    assert set(groups[0][2:-1]) == {1}
    assert set(groups[1][2:-1]) == {4}


@pytest.mark.parametrize(("waiting", "port"), [(3, 0), (4, 0), (5, 1), (8, 1)])
def test_ports_that_are_loaded_much_more_are_left_out(waiting, port):
    """Of a group, different ports get an operation each, unless one has five more to do than the other."""
    core = Engine(Layout(width=12, ports=2, policy=GROUPED))
    late = Template(1, (), ((),), (work(0, feeds=0, after=(0,)),))
    first = independent((1,))
    body = loop(core, (producer(40), 0), *[(late, 0)] * waiting, *[(independent(slots=1),)] * (11 - waiting),
                (first,), (independent((0, 1)),), *[(independent(slots=1),)] * 10)  # fmt: skip
    found = core.trace(body, 1).operations
    assert found[13][0][1] == port


def test_counters_say_what_each_port_did():
    found = steady(WIDE, (independent((0,), (0, 1)),), (independent((3,), cycles=2),))
    assert sum(found.operations) == pytest.approx(3)
    assert found.operations[3] == 1
    assert found.operations[2] == 0
    assert found.operations[0] + found.operations[1] == pytest.approx(2)


# --- the front end --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("width", "slots", "expected"), [(4, 1, 0.25), (6, 1, 1 / 6), (4, 3, 0.75), (5.5, 1, 2 / 11)]
)
def test_the_front_end_limits_what_needs_no_port(width, slots, expected):
    assert cycles(Layout(width=width, ports=1), (independent(slots=slots),)) == pytest.approx(
        expected, rel=1e-3
    )


def test_slots_may_be_fractions():
    assert cycles(Layout(4, 1), (independent(slots=1.5),), (independent(slots=0),)) == pytest.approx(0.375)


def test_microcode_has_its_cycles_to_itself():
    short, long = independent(), independent(slots=2)
    alone = independent(slots=2, microcoded=True)
    assert cycles(Layout(4, 1), (short,), (long,)) == 0.75
    assert cycles(Layout(4, 1), (short,), (alone,)) == 2
    assert cycles(Layout(4, 1), (alone,)) == 1


# --- buffers --------------------------------------------------------------------------------------


def test_the_reorder_buffer_limits_what_is_in_flight():
    """32 results that take 100 cycles each from the cycle after dispatch on."""
    layout = Layout(width=8, ports=1, reorder_buffer=32)
    assert cycles(layout, (producer(100), 0)) == 101 / 32
    large = Template(4, (100.0,), (), (), entries=4)
    assert cycles(layout, (large, 0)) == 101 / 8


def test_load_and_store_buffers_limit_what_is_in_flight():
    load, store = producer(50, loads=1), producer(50, stores=2)
    assert cycles(Layout(8, 1, load_buffer=10), (load, 0)) == pytest.approx(5.1)
    assert cycles(Layout(8, 1, store_buffer=10), (store, 0)) == pytest.approx(10.2)
    assert cycles(Layout(8, 1, store_buffer=10), (load, 0)) == 51 / 256


@pytest.mark.parametrize("policy", BINDINGS)
def test_a_full_scheduler_stops_the_front_end(policy):
    """Four operations wait 30 cycles for a value, then share a port; the fifth waits for an entry with
    its value already on the way: five in 31 cycles.
    """
    waiting = Template(1, (), ((),), (work(0, feeds=0, after=(0,)),))
    body = [(producer(30), 0), (waiting, 0)]
    assert cycles(Layout(8, 2, 4096, policy=policy, queues=((1, 4),)), *body) == 31 / 5
    assert cycles(Layout(8, 2, 4096, policy=policy, queues=((2, 4),)), *body) == 1


def test_an_instruction_larger_than_a_queue_gets_through():
    assert cycles(Layout(8, 1, queues=((1, 2),)), (independent((0,), (0,), (0,), (0,)),)) >= 4
    assert cycles(Layout(8, 1, reorder_buffer=4), (independent(slots=6, entries=6),)) >= 0.75


# --- memory ---------------------------------------------------------------------------------------

STORE = Template(1, (0,), ((2,),), (work(0, after=(0,)),), stores=1)
LOAD = Template(1, (0,), ((3,),), (work(1, after=(None,)),), loads=1)
BOTH_WAYS = [(STORE, 0, -1), (LOAD, -2, 0)]


@pytest.mark.parametrize(
    ("stored", "loaded", "expected"),
    [
        ((64, 8), (64, 8), 5),
        ((64, 8), (68, 4), 5),
        ((64, 4), (60, 8), 5),
        ((64, 8), (72, 8), 1),
        ((64, 8), (56, 8), 1),
        ((-64, 8), (-60, 4), 5),
    ],
)
def test_a_load_waits_for_the_stores_it_overlaps(stored, loaded, expected):
    assert cycles(WIDE, *BOTH_WAYS, accesses=(*stored, *loaded)) == expected


def test_a_load_is_served_by_the_last_store_that_covers_it():
    slow = Template(1, (0,), ((40,),), (work(0, after=(0,)),), stores=1)
    between = (producer(1, 2), 1)
    body = [(slow, 0, -1), between, (STORE, 1, -1), (LOAD, -2, 0)]
    assert cycles(WIDE, *body, accesses=(64, 8, 64, 8)) == 2  # two stores on port 0
    half = [(slow, 0, -1), between, (STORE, 1, -3), (LOAD, -2, 0)]
    assert cycles(WIDE, *half, accesses=(64, 8, 64, 8, 64, 4)) == 43


# --- in order -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("in_order", "expected"), [(False, 1), (True, 5)])
def test_in_order_cores_stop_at_the_first_that_has_to_wait(in_order, expected):
    layout = Layout(width=4, ports=3, in_order=in_order)
    body = [(producer(5, 0), 0), (unary(1, 1), 0, 1), (independent((2,)),)]
    assert cycles(layout, *body) == expected


@pytest.mark.parametrize("policy", BINDINGS)
def test_in_order_cores_use_all_ports(policy):
    layout = Layout(width=2, ports=2, in_order=True, policy=policy)
    assert cycles(layout, (independent((0, 1)),)) == 0.5
    assert cycles(layout, (independent((0,), cycles=3),)) == 3


# --- the trace ------------------------------------------------------------------------------------


def test_the_trace_has_every_step():
    core = Engine(Layout(width=1, ports=2))
    body = loop(core, (producer(4, 0), 0), (unary(2, 1), 0, 1))
    found = core.trace(body, 2)
    # dispatched one a cycle; ready a cycle later; complete with the value; retired in order
    assert found.instructions == ((0, 5, 5), (1, 7, 7), (2, 7, 7), (3, 9, 9))
    assert found.operations == (((1, 0),), ((5, 1),), ((3, 0),), ((7, 1),))


# --- what cannot be -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "layout",
    [
        Layout(width=0, ports=2),
        Layout(width=4, ports=0),
        Layout(width=4, ports=65),
        Layout(width=4, ports=2, policy="best"),
        Layout(width=4, ports=2, reorder_buffer=0),
    ],
)
def test_impossible_cores_are_refused(layout):
    with pytest.raises(UsageError):
        Engine(layout)


@pytest.mark.parametrize("words", [(1,), (-1,), (0, 0), (0, -1, 0), ()])
def test_impossible_bodies_are_refused(words):
    core = Engine(WIDE)
    core.add(unary(1, 0))
    with pytest.raises(UsageError):
        core.run(Body(words))


@pytest.mark.parametrize("ports", [0, 1 << 4])
def test_operations_need_a_port_of_the_core(ports):
    core = Engine(WIDE)
    number = core.add(Template(1, (), (), (Work(ports, 1, 0, ()),)))
    with pytest.raises(UsageError):
        core.run(Body((number,)))


def test_a_missing_engine_says_how_to_get_one(monkeypatch, tmp_path):
    monkeypatch.setenv("CYCLESCOPE_CORE", str(tmp_path / "none.so"))
    with pytest.raises(BackendUnavailable, match=r"none\.so is missing.*pip install"):
        engine_module._library.__wrapped__()
    (tmp_path / "none.so").write_text("no library")
    with pytest.raises(BackendUnavailable, match="cannot be loaded"):
        engine_module._library.__wrapped__()


@pytest.mark.parametrize(("needed", "cycles"), [(0.0, 7 / 8), (1.0, 7 / 8), (2.0, 1.0)])
def test_an_instruction_waits_for_a_cycle_with_as_many_slots_as_it_needs(needed, cycles):
    plain = Template(1.0, (), (), ())
    engine = Engine(Layout(8.0, 1))
    one, other = engine.add(msgspec.structs.replace(plain, needed=needed)), engine.add(plain)
    assert engine.run(Body([one, *6 * [other]])).cycles == pytest.approx(cycles, rel=0.01)
