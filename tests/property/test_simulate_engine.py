"""Drawn loops on drawn cores: throughput by linear programming, and a trace that keeps its rules."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from cyclescope.model.machine import BINDINGS, IDEAL, Operation
from cyclescope.model.ports import port_throughput
from cyclescope.simulate.engine import Engine, Layout, Template, Work
from tests.support.made.cores import independent, loop

PORT_SETS = st.sets(st.integers(0, 7), min_size=1, max_size=5).map(lambda ports: tuple(sorted(ports)))


@st.composite
def mixes(draw):
    """Instructions without dependencies: some classes of operations, some instructions of each."""
    classes = draw(st.lists(PORT_SETS, min_size=1, max_size=5))
    kinds = st.lists(st.sampled_from(classes), min_size=0, max_size=3)
    slots = st.integers(1, 3)
    return draw(st.lists(st.tuples(kinds, slots), min_size=1, max_size=12))


def body_of(engine, mix, busy=1.0):
    return loop(engine, *[(independent(*ports, slots=slots, cycles=busy),) for ports, slots in mix])


def bound(mix, width):
    operations = [Operation(ports) for kinds, _ in mix for ports in kinds]
    return max(sum(slots for _, slots in mix) / width, port_throughput(operations))


@given(mix=mixes(), width=st.integers(2, 8))
def test_ideal_binding_is_as_fast_as_ports_and_slots_allow(mix, width):
    engine = Engine(Layout(width, 8, policy=IDEAL))
    found = engine.run(body_of(engine, mix))
    least = bound(mix, width)
    assert 0.999 * least <= found.cycles <= 1.03 * least + 1e-9
    assert abs(sum(found.operations) - sum(len(kinds) for kinds, _ in mix)) <= 1e-9 + (not found.exact) * 0.1


@given(mix=mixes(), policy=st.sampled_from([one for one in BINDINGS if one != IDEAL]))
def test_no_binding_is_faster_than_ports_and_slots_allow(mix, policy):
    engine = Engine(Layout(4, 8, policy=policy))
    assert engine.run(body_of(engine, mix)).cycles >= 0.999 * bound(mix, 4)


@given(mix=mixes(), busy=st.sampled_from((2.0, 3.5, 7.0)))
def test_unpipelined_units_are_counted_with_their_time(mix, busy):
    engine = Engine(Layout(8, 8, reorder_buffer=512))
    found = engine.run(body_of(engine, mix, busy))
    operations = [Operation(ports, 1, busy) for kinds, _ in mix for ports in kinds]
    least = max(sum(slots for _, slots in mix) / 8, port_throughput(operations))
    assert 0.999 * least <= found.cycles <= 1.05 * least + 1e-9


# --- the trace ------------------------------------------------------------------------------------


@st.composite
def instructions(draw):
    """An instruction with up to two sources, a target, and up to two operations, and its registers."""
    sources = draw(st.integers(0, 2))
    after = tuple(draw(st.lists(st.sampled_from((0.0, 2.0, None)), min_size=sources, max_size=sources)))
    latencies = tuple((float(draw(st.integers(1, 6))),) for _ in range(sources))
    ports = draw(st.lists(PORT_SETS, max_size=2))
    work = tuple(
        Work(sum(1 << p for p in set_), draw(st.sampled_from((1.0, 3.0))), 1, after) for set_ in ports
    )
    base = 0.0 if sources else 1.0
    template = Template(float(draw(st.integers(1, 2))), (base,), latencies, work)
    return (template, *[draw(st.integers(0, 5)) for _ in range(sources + 1)])


@given(
    rows=st.lists(instructions(), min_size=1, max_size=8),
    policy=st.sampled_from(BINDINGS),
    in_order=st.booleans(),
    entries=st.integers(4, 40),
)
@settings(max_examples=150)
def test_a_trace_keeps_the_rules(rows, policy, in_order, entries):
    engine = Engine(Layout(4, 8, entries, in_order=in_order, policy=policy, queues=((0b1111, 6),)))
    trace = engine.trace(loop(engine, *rows), 6)
    assert len(trace.instructions) == 6 * len(rows)
    dispatched = [row[0] for row in trace.instructions]
    retired = [row[2] for row in trace.instructions]
    assert dispatched == sorted(dispatched)
    assert retired == sorted(retired)
    busy: dict[int, int] = {}
    written: dict[int, int] = {}
    issued_before = 0
    for n, (times, operations) in enumerate(zip(trace.instructions, trace.operations, strict=True)):
        template, *places = rows[n % len(rows)]
        assert times[0] < times[1] <= times[2]
        assert dispatched[n] >= (retired[n - entries] if n >= entries else 0)
        for (issued, port), op in zip(operations, template.work, strict=True):
            assert times[0] < issued < times[1]
            assert op.ports >> port & 1
            for cycle in range(issued, issued + int(op.cycles)):
                assert (port, cycle) not in busy
                busy[port, cycle] = n
            for place, after in zip(places, op.after, strict=False):
                assert after is None or issued >= written.get(place, 0) + after
            if in_order:
                assert issued >= issued_before
        issued_before = max([issued_before, *(issued for issued, _ in operations)])
        for place, (latency,) in zip(places, template.latencies, strict=False):
            assert times[1] >= written.get(place, 0) + latency
        arrivals = [written.get(p, 0) + lat for p, (lat,) in zip(places, template.latencies, strict=False)]
        written[places[-1]] = max([times[0] + 1 + template.base[0], *arrivals])  # at the earliest
