"""A loop on the simulated core, watched: who waits for whom, where the time goes, what would save some."""

from __future__ import annotations

import random
from itertools import pairwise

import msgspec
import pytest

from cyclescope.analyze.cost.instruction import PlacedCosts
from cyclescope.analyze.depend.graph import build
from cyclescope.analyze.depend.standing import Standings
from cyclescope.analyze.predict.by_simulation import Simulation
from cyclescope.analyze.predict.causes import DISPATCHING, PORTS_TAKEN, RESULT_LATE
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.analyze.predict.sensitivity import (
    DEPENDENCIES_GONE,
    FRONT_END_GONE,
    LATENCY_LESS,
    PORT_TWICE,
    PORTS_GONE,
)
from cyclescope.analyze.predict.watched import filled_iterations, shown_iterations, window_iterations
from cyclescope.model.limits import WIDTH
from cyclescope.model.machine import IDEAL, Operation, Scheduler
from cyclescope.simulate.engine import Layout
from tests.support.code.blocks import block, changed, measured, toy

CHAIN = "imul rax, rbx; mov [rsi], rcx; nop"
THREE_ON_A = "imul rax, rbx, 3; imul rcx, rbx, 5; imul rdx, rbx, 7"


def seen(text, machine=None, **core):
    return Predictor(machine or toy(**core)).predict(block(text), watch=True).simulation


def shares(found, kind):
    return sum(share.cycles for share in found.shares if share.kind == kind)


def test_a_chain_takes_the_time_of_its_latency():
    found = seen(CHAIN)
    first = found.shares[0]
    assert (first.kind, first.instruction) == (RESULT_LATE, 0)
    assert first.cycles == pytest.approx(3, abs=0.05)
    best = found.gains[0]
    assert best.kind == DEPENDENCIES_GONE
    less = next(gain for gain in found.gains if gain.kind == LATENCY_LESS)
    assert (less.instruction, less.cycles, less.saved) == (
        0,
        pytest.approx(2, abs=0.02),
        pytest.approx(1, abs=0.02),
    )


def test_a_full_port_takes_the_time_of_those_that_wait_for_it():
    found = seen(THREE_ON_A)
    assert shares(found, PORTS_TAKEN) == pytest.approx(3, abs=0.1)
    assert {share.ports for share in found.shares if share.kind == PORTS_TAKEN} == {("a",)}
    twice = next(gain for gain in found.gains if gain.kind == PORT_TWICE)
    assert (twice.port, twice.cycles) == ("a", pytest.approx(1.5, abs=0.03))
    assert next(gain for gain in found.gains if gain.kind == PORTS_GONE).cycles == pytest.approx(
        0.75, abs=0.03
    )


def test_a_front_end_takes_what_nothing_else_does():
    found = seen("nop; " * 7 + "nop")
    assert shares(found, DISPATCHING) == pytest.approx(2, abs=0.05)
    assert [gain.kind for gain in found.gains] == [FRONT_END_GONE]


def test_shares_are_all_of_the_time():
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201 - to repeat it
    drawn = random.Random(seed)
    pieces = ["imul rax, rbx", "add rcx, rax", "mov rdx, [rsi]", "mov [rdi], rdx", "add [rdi+8], rcx", "nop",
              "vaddpd ymm0, ymm1, ymm0", "vmulpd ymm2, ymm0, ymm0", "imul rbp, rbx, 3"]  # fmt: skip
    for _ in range(12):
        text = "; ".join(drawn.choices(pieces, k=drawn.randrange(1, 12)))
        found = seen(text, reorder_buffer=64, schedulers=(Scheduler("all", (0, 1, 2), 16),))
        whole = sum(share.cycles for share in found.shares)
        assert whole == pytest.approx(found.cycles, rel=0.05, abs=0.05), text
        assert all(0 <= gain.cycles < found.cycles + 0.01 for gain in found.gains), text


@pytest.mark.parametrize("entries", [2, 4])
def test_the_way_back_goes_through_a_scheduler_that_is_always_full(entries):
    """From entry to entry, thousands of times."""
    found = seen("imul rbp, rbx, 3; " * 200 + "nop", schedulers=(Scheduler("all", (0, 1, 2), entries),))
    assert sum(share.cycles for share in found.shares) == pytest.approx(200)


def test_bounds_that_are_not_simulated_leave_nothing_to_gain_beneath():
    """Loads and stores to different chunks: a bound of the prediction alone."""
    machine = toy()
    predictor = Predictor(machine)
    one = block(THREE_ON_A)
    bounds = predictor.bounds(one)
    bounds.deciding["stores"] = 2.9
    found = predictor.watched(bounds, range(3))
    assert min(gain.cycles for gain in found.gains) >= 2.9


@pytest.mark.parametrize(("resource", "least"), [("pa", 1.5), ("what limits imul", 2.9)])
def test_ports_of_shared_resources_are_simulated_and_units_are_not(resource, least):
    """Three multiplications fill the resource for as long as their port, or a little less."""
    forms = {
        name: msgspec.structs.replace(cost, resources={resource: 2.9 / 3})
        for name, cost in toy().forms.items()
    }
    machine = msgspec.structs.replace(toy(), forms=forms, resources={resource: 1.0})
    twice = [gain.cycles for gain in seen(THREE_ON_A, machine).gains if gain.kind == PORT_TWICE]
    assert twice == [pytest.approx(least, abs=0.03)]


def test_rows_say_what_each_instruction_waited_for():
    found = seen("imul rax, rbx; add rcx, rax")
    late = next(row for row in found.rows if (row.iteration, row.instruction) == (0, 1))
    (op,) = late.operations
    assert (op.waited_for.instruction, op.waited_for.iteration, op.waited_for.by) == (0, 0, "op2")
    assert op.ports == ("a", "b", "c") and op.port in op.ports
    assert (late.dispatched, op.ready, op.issued, late.completed) == (0, 4, 4, 5)
    second = next(row for row in found.rows if (row.iteration, row.instruction) == (1, 0))
    assert second.operations[0].waited_for.iteration == 0


def test_rows_say_what_had_no_room():
    found = seen(CHAIN, reorder_buffer=8)
    refused = [row for row in found.rows if row.refused_since is not None]
    assert refused and {row.buffer for row in refused} == {"reorder buffer"}
    assert all(row.refused_since < row.dispatched for row in refused)
    queue = seen("imul rax, rbx; imul rcx, rax, 3", schedulers=(Scheduler("all", (0, 1, 2), 4),))
    assert {row.buffer for row in queue.rows} - {""} == {"scheduler"}


def test_buffers_and_registers_in_use():
    found = {one.name: one for one in seen(CHAIN, reorder_buffer=30, store_buffer=64).occupancy}
    assert found["reorder buffer"].most == found["reorder buffer"].room == 30
    assert found["store buffer"].mean == pytest.approx(10, abs=1)
    assert found["store buffer"].room == 64
    assert found["general registers"].mean == pytest.approx(10, abs=1)
    assert found["flags"].mean == pytest.approx(10, abs=1)
    assert "load buffer" not in found


def test_loops_of_any_length_have_rows_to_read():
    assert [shown_iterations(length) for length in (1, 6, 40, 41, 80, 400, 401, 5000)] == [
        10,
        10,
        10,
        9,
        5,
        1,
        1,
        1,
    ]


def test_what_is_looked_at_begins_with_full_buffers():
    layout = Layout(4.0, 5, reorder_buffer=224)
    assert [filled_iterations(layout, length) for length in (1, 10, 1000)] == [449, 45, 1]
    assert [window_iterations(length) for length in (1, 10, 250, 251, 2000)] == [2000, 200, 8, 8, 8]


def test_blocks_that_are_too_long_say_so():
    with pytest.raises(Exception, match="more than 2000 instructions are not simulated"):
        seen("nop; " * 2000 + "nop")


def test_a_prediction_is_the_same_whether_it_is_watched():
    one = block(CHAIN)
    watched = Predictor(toy()).predict(one, watch=True)
    assert msgspec.structs.replace(watched, simulation=None) == Predictor(toy()).predict(one)


def test_the_latencies_of_so_many_instructions_are_asked():
    """Ten in a ring, each with a tenth of the time."""
    ring = "; ".join(
        f"imul {b}, {a}, 3"
        for a, b in pairwise(["rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "rax"])
    )
    found = seen(ring)
    assert len([gain for gain in found.gains if gain.kind == LATENCY_LESS]) == 8
    assert found.cycles == 30


def test_a_front_end_without_a_limit_is_as_wide_as_any():
    found = seen("nop; " * 7 + "nop", reorder_buffer=4096)
    assert found.gains[0].cycles == pytest.approx(8 / WIDTH.most, rel=0.1)


@pytest.mark.parametrize(("floor", "told"), [(2.98, True), (2.988, False)])
def test_a_two_hundredth_of_the_time_is_worth_telling(floor, told):
    predictor = Predictor(toy())
    bounds = predictor.bounds(block(THREE_ON_A))
    bounds.deciding["stores"] = floor
    assert bool(predictor.watched(bounds, range(3)).gains) is told


def test_an_average_is_that_of_four_thousand_instructions_here_too():
    costs = PlacedCosts(toy(width=0.61803))
    loop = Simulation(costs, IDEAL).loop(build(block("nop").instructions, Standings(costs)))
    found = loop.steady()
    assert not found.exact
    assert found.simulated_instructions == pytest.approx(4000, rel=0.01)


UNIT = "what limits division"


def divided(more=""):
    """Divisions, of one operation in a cycle, that keep a unit busy for four."""
    machine = changed(
        measured(),
        DIVPS_XMM_XMM={"operations": (Operation((0,)),), "resources": {UNIT: 4.0}, "throughput": 4.0},
    )
    predictor = Predictor(msgspec.structs.replace(machine, resources={UNIT: 1.0}))
    found = predictor.bounds(block("divps xmm0, xmm1; movaps xmm0, xmm2" + more))
    return predictor.watched(found, range(len(found.costs)))


def test_units_that_are_no_ports_are_in_the_simulated_core():
    found = divided()
    assert found.cycles == pytest.approx(4)
    assert found.ports[UNIT] == pytest.approx(1)
    assert UNIT in {port for row in found.rows for op in row.operations for port in op.ports}
    assert divided(more="; divps xmm3, xmm1; movaps xmm3, xmm2").cycles == pytest.approx(8)


def test_a_form_that_is_slower_than_its_ports_keeps_a_unit_busy():
    machine = changed(measured(), DIVPS_XMM_XMM={"operations": (Operation((0,)),), "throughput": 4.0})
    predictor = Predictor(machine)
    found = predictor.bounds(block("divps xmm0, xmm1; movaps xmm0, xmm2"))
    assert found.deciding["units"] == pytest.approx(4)
    assert predictor.watched(found, range(2)).cycles == pytest.approx(4)
