"""Bounds of blocks against other ways to the same numbers: linear programming, enumeration, simulation."""

from __future__ import annotations

from itertools import permutations

import highspy
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyclescope.analyze.cost.changes import LEAST_PROVED, MOST_PROVED
from cyclescope.analyze.depend.loop_carried import components, loop_carried, slowest_chain, slowest_cycle
from cyclescope.analyze.predict.bounds import evenly
from cyclescope.analyze.predict.by_simulation import Simulation
from cyclescope.analyze.predict.effects import EFFECTS
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.isa.table import load_table
from cyclescope.kernel.instruction import Instruction
from cyclescope.model import binding
from cyclescope.model.binding import balanced, port_bound, total
from cyclescope.model.machine import EXTRACTED, IDEAL, MEASURED, Provenance
from tests.support.code.blocks import of_code, predictor, toy

PORTS = 6
WIDTH, WINDOW = 64.0, 1024
loads = st.dictionaries(
    st.integers(1, (1 << PORTS) - 1), st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0, 7.0]), max_size=7
)


# --- ports ----------------------------------------------------------------------------------------


def optimum(work):
    """Least fullest port of any binding, by linear programming."""
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    fullest = solver.addVariable(lb=0.0, obj=1.0)
    busy = {port: [] for port in range(PORTS)}
    for ports, cycles in work.items():
        shares = {p: solver.addVariable(lb=0.0) for p in range(PORTS) if ports >> p & 1}
        solver.addConstr(sum(shares.values()) == cycles)
        for port, share in shares.items():
            busy[port].append(share)
    for shares in busy.values():
        if shares:
            solver.addConstr(sum(shares) <= fullest)
    solver.minimize()
    return solver.getInfo().objective_function_value


@given(loads)
def test_the_port_bound_is_the_optimum_of_the_linear_program(work):
    assert port_bound(work)[0] == pytest.approx(optimum(work), abs=1e-6)


@given(loads)
def test_where_there_are_too_many_unions_the_bound_is_the_same(work):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(binding, "MOST_UNIONS", 0)
        cycles, full = port_bound(work)
    assert cycles == pytest.approx(port_bound(work)[0], rel=1e-4, abs=1e-4)
    assert cycles <= port_bound(work)[0] + 1e-9
    confined = sum(load for ports, load in work.items() if ports & ~full == 0)
    assert confined == pytest.approx(cycles * full.bit_count())


@given(loads)
def test_the_set_of_full_ports_has_to_do_what_the_bound_says(work):
    cycles, full = port_bound(work)
    confined = sum(load for ports, load in work.items() if ports & ~full == 0)
    assert confined == pytest.approx(cycles * full.bit_count())


@given(loads)
def test_the_most_even_binding_reaches_the_bound_and_the_even_split_does_not_beat_it(work):
    split = balanced(work, PORTS)
    for ports, shares in split.items():
        assert sum(shares) == pytest.approx(work[ports])
        assert all(share == 0 or ports >> port & 1 for port, share in enumerate(shares))
        assert min(shares) >= 0
    bound = port_bound(work)[0]
    assert max(total(split, PORTS)) == pytest.approx(bound, rel=1e-4, abs=1e-4)
    assert max(evenly(work, PORTS)) >= bound - 1e-9


# --- cycles of graphs -----------------------------------------------------------------------------


@st.composite
def graphs(draw):
    """Edges by node; latencies from 0 on."""
    size = draw(st.integers(1, 5))
    cycles = st.sampled_from([0.0, 1.0, 2.0, 2.5, 4.0, 11.0])
    pairs = draw(st.dictionaries(st.tuples(*[st.integers(0, size - 1)] * 2), cycles, max_size=14))
    edges = {node: {} for node in range(size)}
    for (a, b), weight in pairs.items():
        edges[a][b] = weight
    return edges


def simple_cycles(edges):
    """Every cycle without a repeated node."""
    for count in range(1, len(edges) + 1):
        for path in permutations(edges, count):
            steps = list(zip(path, [*path[1:], path[0]], strict=True))
            if path[0] == min(path) and all(b in edges[a] for a, b in steps):
                yield path, sum(edges[a][b] for a, b in steps) / count


@given(graphs())
def test_the_slowest_cycle_is_the_slowest_of_all(edges):
    means = [mean for _, mean in simple_cycles(edges)]
    parts = components(edges)
    assert bool(means) == bool(parts)
    found = []
    for part in parts:
        within = {a: {b: w for b, w in edges[a].items() if b in part} for a in part}
        cycle = slowest_cycle(within)
        steps = list(zip(cycle, [*cycle[1:], cycle[0]], strict=True))
        found.append(sum(edges[a][b] for a, b in steps) / len(cycle))
    assert not means or max(found) == pytest.approx(max(means))


@given(graphs())
def test_components_are_what_reaches_itself(edges):
    def reached(node):
        seen, work = set(), list(edges[node])
        while work:
            other = work.pop()
            if other not in seen:
                seen.add(other)
                work += edges[other]
        return seen

    reach = {node: reached(node) for node in edges}
    expected = {
        tuple(sorted(b for b in edges if b in reach[a] and a in reach[b])) for a in edges if a in reach[a]
    }
    assert {tuple(part) for part in components(edges)} == expected


# --- blocks ---------------------------------------------------------------------------------------

TABLE = load_table("x86-64")
IDS = (
    "ADD_01 (R64, R64)", "IMUL (R64, R64)", "MOV_89 (R64, R64)", "ADC_11 (R64, R64)", "CMOVZ (R64, R64)",
    "CMP_39 (R64, R64)", "INC (R64)", "XCHG (R64, R64)", "VADDPD (YMM, YMM, YMM)", "MOV (R64, M64)",
    "MOV (M64, R64)", "ADD (M64, R64)", "SETB (R8l)", "SHL (R64, 1)",
)  # fmt: skip
BASE = 14  # never written
places = st.sampled_from((0, 1, 2, 3))


@st.composite
def instructions(draw):
    form = TABLE[draw(st.sampled_from(IDS))]
    slots = form.encoding.slots
    numbers = tuple(BASE if slot.part else draw(places) for slot in slots)
    offset = draw(st.sampled_from((0, 8, 16))) if form.memory >= 0 else 0
    return Instruction(form, numbers, offset).code


bodies = st.lists(instructions(), min_size=1, max_size=6).map(b"".join).map(of_code)


def unlimited():
    """The toy machine with latencies as its only limit."""
    forms = {name: msgspec.structs.replace(c, operations=()) for name, c in toy().forms.items()}
    core = msgspec.structs.replace(toy().core, width=WIDTH, reorder_buffer=WINDOW)
    return msgspec.structs.replace(toy(), forms=forms, core=core)


FREE = Predictor(unlimited())
EXTRACTED_TOY = Predictor(msgspec.structs.replace(toy(), provenance=Provenance(EXTRACTED)))
SIMULATION = Simulation(FREE.costs, IDEAL)


@settings(max_examples=400)
@given(bodies)
def test_the_loop_carried_bound_is_the_steady_state_of_a_core_without_limits(body):
    found = FREE.predict(body, simulate=False)
    steady = SIMULATION.run(FREE.graph(body.instructions))
    assert steady.cycles == pytest.approx(max(found.lcd, found.slots / WIDTH), rel=0.02)


@given(bodies)
def test_no_core_is_faster_than_the_bounds(body):
    found = predictor().predict(body)
    assert found.lower <= found.cycles <= found.upper
    assert found.upper >= max(found.alone.values())
    assert found.interval == (found.lower, found.upper)


@given(bodies)
def test_what_may_be_off_makes_the_interval_wider(body):
    found = EXTRACTED_TOY.predict(body)
    low, high = found.interval
    assert low <= found.lower
    assert high >= found.upper
    assert high >= 1.5 * found.cycles - 1e-9


def with_ranges():
    """The toy machine as if measured, its latencies known between half and twice."""
    forms = {
        name: msgspec.structs.replace(c, ranges={p: (n / 2, n * 2) for p, n in c.latencies.items()})
        for name, c in toy().forms.items()
    }
    return msgspec.structs.replace(toy(), forms=forms, provenance=Provenance(MEASURED))


MACHINES = (predictor(), EXTRACTED_TOY, Predictor(with_ranges()))


@given(bodies, st.sampled_from(MACHINES))
def test_an_estimate_has_the_numbers_of_the_prediction(body, machine):
    estimate, found = machine.estimate(body), machine.predict(body, simulate=False)
    assert (estimate.cycles, estimate.lower, estimate.bottleneck) == (
        found.cycles, found.lower, found.bottleneck,
    )  # fmt: skip
    assert estimate.interval == found.interval
    assert list(estimate.bounds.items()) == list(found.alone.items())


@given(bodies, st.sampled_from(MACHINES))
def test_proved_latencies_are_left_out_only_where_they_decide_nothing(body, machine):
    found = machine.bounds(body, simulate=False)
    least, most = (
        slowest_chain(machine.with_ends(found.graph, ends)) for ends in (LEAST_PROVED, MOST_PROVED)
    )
    assert least <= found.slowest_chain <= most
    assert found.lower >= min(least, found.cycles)
    assert (found.least_chain, found.most_chain) == (least, most)
    assert found.interval() == found.interval_with(least, max(found.evenly, default=0.0))


@given(bodies, st.sampled_from(MACHINES), st.booleans())
def test_effects_that_are_not_asked_are_none(body, machine, loop):
    found = machine.bounds(msgspec.structs.replace(body, loop=loop), simulate=False)
    for effect in EFFECTS:
        cycles = effect.of(found.situation)
        assert found.deciding.get(effect.name, 0.0) == cycles
        assert not cycles or not effect.needs or effect.needs in found.graph.traits


@given(bodies, st.sampled_from(MACHINES))
def test_the_slowest_chain_is_the_first_of_those_that_are_listed(body, machine):
    graph = machine.graph(body.instructions)
    listed = loop_carried(graph)
    assert slowest_chain(graph) == (listed[0].cycles if listed else 0.0)


@given(bodies)
def test_whole_instructions_make_no_path_shorter(body):
    found = predictor().predict(body, simulate=False)
    assert found.bounds["critical_path_fixed"] >= found.bounds["critical_path"] - 1e-9


@given(bodies, instructions())
def test_resource_bounds_do_not_fall_when_an_instruction_is_added(body, code):
    longer = of_code(b"".join(one.code for one in body) + code)
    before, after = (predictor().predict(b, simulate=False) for b in (body, longer))
    for name in ("ports", "ports_fixed", "front_end"):
        assert after.bounds[name] >= before.bounds[name] - 1e-9
    assert after.slots > before.slots


@given(bodies, st.integers(0, 6))
def test_chains_do_not_get_shorter_by_an_instruction_that_writes_nothing_they_read(body, where):
    other = Instruction(TABLE["LEA_B_D8 (R64)"], (9, 9), 8).code
    codes = [one.code for one in body]
    longer = of_code(b"".join([*codes[:where], other, *codes[where:]]))
    before, after = (predictor().predict(b, simulate=False) for b in (body, longer))
    assert after.lcd == max(before.lcd, 1.0)
    assert after.cp == max(before.cp, 1.0)
