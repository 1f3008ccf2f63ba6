"""Loops that take time of their own, on simulated cores: the recipe reads through them, others do not."""

from __future__ import annotations

import random
import re
from pathlib import Path

import msgspec
import pytest

from cyclescope.backend import loops
from cyclescope.backend.loops import Loops, loop_copies, one_loop, two_lengths
from cyclescope.backend.simulated import LOUD, Noise, SimulatedBackend
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import CANARY, FAST, WATCHED, WITHOUT_LOOP, kernel_of
from cyclescope.kernel.state import MachineState
from cyclescope.measure import bench
from cyclescope.measure.record import STABLE
from cyclescope.model.machine import DRAWN, Core, FormCost, MachineModel, Operation, Provenance

SOURCE = Path(loops.__file__).parents[1] / "native/region.c"
STATE = MachineState((0,) * 16)
ADD, IMUL, NOP = "ADD_01 (R64, R64)", "IMUL (R64, R64)", "NOP"
MIXES = ((NOP,) * 8, (NOP,), (ADD,) * 6, (ADD,), (ADD, NOP), (ADD, ADD, NOP, NOP, NOP), (IMUL, NOP, NOP))


def machine(width, alus):
    costs = {
        NOP: FormCost(1, ()),
        ADD: FormCost(1, (Operation(tuple(range(alus))),), {"op1->op1": 1.0, "op2->op1": 1.0}),
        IMUL: FormCost(1, (Operation((0,)),), {"op1->op1": 3.0, "op2->op1": 3.0}),
    }
    ports = tuple("0123456789"[:alus])
    return MachineModel("small", "x86-64", Provenance(DRAWN), Core(width), ports, costs)


@pytest.fixture
def kernel(table):
    def make(forms, chain=False, flags=CANARY | FAST):
        registers = (1, 1) if chain else None
        body = [
            Instruction(table[form], () if form == NOP else registers or (n, 12))
            for n, form in enumerate(forms)
        ]
        return kernel_of(body, STATE, flags=flags)

    return make


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(bench, "PAUSE", 0.0)


def test_the_numbers_are_those_of_the_runner():
    defined = dict(re.findall(r"#define (\w+) (\d+)", SOURCE.read_text()))
    names = (
        "FEW_INSTRUCTIONS", "HUNDRED_INSTRUCTIONS", "LOOP_INSTRUCTIONS", "LOOP_BYTES", "LONGER_TRIPS",
        "PLACE_BYTES",
    )  # fmt: skip
    assert {name: str(getattr(loops, name)) for name in names} == {name: defined[name] for name in names}


def cases(seeds):
    for seed in range(seeds):
        draw = random.Random(seed)
        width = draw.randint(2, 10)
        yield seed, width, draw.randint(1, min(width, 6)), draw.choice(MIXES)


def test_bench_reads_loops_near_the_width_right_or_says_that_it_does_not(kernel, quick):
    for seed, width, alus, forms in cases(60):
        backend = SimulatedBackend(machine(width, alus), loops=Loops(seed, width))
        found = bench.time_kernel(backend, kernel(forms), 5)
        true = backend.steady(kernel(forms)).cycles
        assert found.verdict == STABLE
        assert found.cycles == pytest.approx(true, rel=0.005)


def test_beside_neighbours_and_a_coarse_clock(kernel, quick):
    wrong = 0
    for seed, width, alus, forms in cases(60):
        noise = msgspec.structs.replace(LOUD, seed=seed)
        backend = SimulatedBackend(machine(width, alus), noise=noise, loops=Loops(seed, width))
        found = bench.time_kernel(backend, kernel(forms), 5)
        off = abs(found.cycles / backend.steady(kernel(forms)).cycles - 1)
        wrong += found.verdict == STABLE and off > 0.005
        assert found.verdict != STABLE or off < 0.02
    assert wrong <= 1


def test_two_lengths_of_short_loops_read_wrong_here(kernel):
    """What the recipe is for: the difference of two lengths does not cancel what loops take."""
    off = []
    for seed, width, alus, forms in cases(60):
        core, one = Loops(seed, width), kernel(forms)
        true = SimulatedBackend(machine(width, alus)).steady(one).cycles
        few, many = two_lengths(one, true, 5000.0, 0)
        time = core.time(one, true, many) - core.time(one, true, few)
        off.append(abs(time / (many.copies * many.trips - few.copies * few.trips) / true - 1))
    assert sum(error > 0.02 for error in off) > len(off) / 3


def test_a_core_whose_loops_differ_by_place_is_told(kernel, quick):
    """Where even long loops take cycles that depend on the place, no reading is called ok."""
    backend = SimulatedBackend(machine(8, 6), loops=Loops(3, 8.0, most=20, short=500))
    found = bench.time_kernel(backend, kernel((NOP,) * 8), 5)
    assert found.verdict != STABLE
    assert found.spread > 0.01 * found.cycles


def test_a_chain_hides_its_loop(kernel):
    core = Loops(1, 4.0)
    for number in range(4):
        for flags in (0, WATCHED, WATCHED | FAST):
            chain = kernel((IMUL,), chain=True, flags=flags)
            assert core.reading(chain, 3.0, 5000.0, number) == pytest.approx(3.0)


def test_slow_kernels_have_short_loops(kernel):
    slow = kernel((IMUL,), flags=CANARY)
    shorter, longer = Loops(1, 4.0).regions(slow, 100.0, 5000.0, 0)
    assert (shorter.trips, longer.trips) == (1, loops.LONGER_TRIPS)
    assert 10 <= longer.copies <= 20
    assert loop_copies(slow, 0) == 100
    assert loop_copies(slow, 1) == 75
    assert one_loop(slow)
    assert not one_loop(kernel((IMUL,), flags=CANARY | WITHOUT_LOOP))
    assert not one_loop(kernel((IMUL,), flags=0))
    assert one_loop(kernel((IMUL,), flags=WATCHED))
    assert not one_loop(kernel((IMUL,), flags=WATCHED | FAST))
    assert not one_loop(kernel((IMUL,), flags=WATCHED | WITHOUT_LOOP))


def test_jitter_is_part_of_the_error(kernel, quick):
    """Readings of an independent second run are within twice the error in 95 of 100 cases."""
    apart = []
    for seed in range(150):
        noises = [Noise(jitter=0.002, seed=number) for number in (2 * seed, 2 * seed + 1)]
        backends = [SimulatedBackend(machine(8, 6), noise=noise, loops=Loops(seed, 8.0)) for noise in noises]
        pair = [bench.time_kernel(backend, kernel((NOP,) * 8), 5) for backend in backends]
        if all(found.verdict == STABLE for found in pair):
            apart.append(abs(pair[0].cycles - pair[1].cycles) / pair[0].spread)
    assert len(apart) > 100
    assert sum(ratio > 2 for ratio in apart) <= 0.1 * len(apart)
    assert sum(ratio > 0.5 for ratio in apart) >= 0.25 * len(apart)


def test_a_reading_that_stays_imprecise_is_not_ok(kernel, quick):
    """Rounds agree within a percent, but a noise of a percent does not average out in ten of them."""
    verdicts = []
    for seed in range(20):
        backend = SimulatedBackend(machine(8, 6), noise=Noise(jitter=0.02, seed=seed), loops=Loops(seed, 8.0))
        found = bench.time_kernel(backend, kernel((NOP,) * 8), 5)
        verdicts.append(found.verdict)
        assert found.verdict != STABLE or found.spread <= 0.005 * found.cycles
    assert verdicts.count(STABLE) < 10
