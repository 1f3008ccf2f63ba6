"""Both sides of what the simulated core is given: instructions for an average, cycles of a simulation."""

from __future__ import annotations

import shutil

import pytest

from cyclescope.analyze.cost.instruction import PlacedCosts
from cyclescope.analyze.depend.graph import build
from cyclescope.analyze.depend.standing import Standings
from cyclescope.analyze.predict.by_simulation import Simulation
from cyclescope.errors import UsageError
from cyclescope.model.machine import IDEAL
from tests.support.code.blocks import block, changed, toy

pytestmark = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)


def steady(machine, text):
    costs = PlacedCosts(machine)
    return Simulation(costs, IDEAL).run(build(block(text).instructions, Standings(costs)))


def test_an_average_is_that_of_four_thousand_instructions():
    """No state of this core comes back for long: its slots never fill a whole number of cycles."""
    found = steady(toy(width=0.61803), "nop")
    assert not found.exact
    assert found.simulated_instructions == pytest.approx(4000, rel=0.01)
    assert found.cycles == pytest.approx(1 / 0.61803, rel=1e-3)


@pytest.mark.parametrize("cycles", [13_000, 24_000])
def test_simulations_of_a_hundred_million_cycles_are_run(cycles):
    """Of four thousand instructions, which take 25 000 cycles each at most."""
    late = {"latencies": {"op1->op1": cycles, "op2->op1": cycles}}
    assert steady(changed(toy(), IMUL_R64_R64=late), "imul rax, rbx").cycles == cycles


@pytest.mark.parametrize("cycles", [26_000, 49_000])
def test_longer_ones_are_not(cycles):
    late = {"latencies": {"op1->op1": float(cycles), "op2->op1": float(cycles)}}
    with pytest.raises(
        UsageError, match="instructions of so many cycles are not simulated: look at the bounds"
    ):
        steady(changed(toy(), IMUL_R64_R64=late), "imul rax, rbx")
