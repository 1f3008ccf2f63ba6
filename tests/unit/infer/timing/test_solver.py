"""The solver of linear programs."""

from __future__ import annotations

import math
import random

import pytest

from cyclescope.infer.timing.solver import LinearProgram


def test_the_solver_prints_nothing_and_solves(capfd):
    program = LinearProgram()
    program.unknown(1.5, cost=1.0)
    assert program.solve().cost == pytest.approx(1.5)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("whole", "most"), [(False, 2.5), (True, 2.0)])
def test_whole_numbers_where_wanted(whole, most):
    program = LinearProgram()
    number = program.unknown(0, 10, cost=-1.0, whole=whole)
    program.bound(0, {number: 2.0}, 5)
    found = program.solve()
    assert found.values == [pytest.approx(most)]
    assert found.feasible


def test_costs_and_bounds_can_be_others_later():
    program = LinearProgram()
    first, second = program.unknown(1), program.unknown(2)
    program.bound(5, {first: 1.0, second: 1.0}, 5)
    program.charge({first: 1.0})
    assert program.solve().values == pytest.approx([1, 4])
    program.charge({second: 1.0})
    program.limit(first, 0, 2)
    assert program.solve().values == pytest.approx([2, 3])


def test_what_has_no_solution_is_not_feasible():
    program = LinearProgram()
    program.bound(3, {program.unknown(0, 2): 1.0}, 3)
    assert not program.solve().feasible


def test_a_search_that_was_not_through_says_what_may_be_better():
    """Thirty things of drawn values and weights, of which a third fits in."""
    draw = random.Random(3)
    weights = [[float(draw.randint(20, 60)) for _ in range(30)] for _ in range(5)]
    values = [-float(draw.randint(20, 60)) for _ in range(30)]

    def searched(nodes):
        program = LinearProgram()
        for value in values:
            program.unknown(0, 1, value, whole=True)
        for some in weights:
            program.bound(-math.inf, dict(enumerate(some)), sum(some) / 3)
        return program.solve(nodes)

    through, stopped = searched(1000), searched(0)
    assert through.bound == math.inf
    assert stopped.bound <= through.cost


def test_that_there_is_no_solution_is_found_out():
    program = LinearProgram()
    number = program.unknown(0, 1, whole=True)
    program.bound(0.25, {number: 1.0}, 0.75)
    found = program.solve(1000)
    assert not found.feasible
    assert found.bound == math.inf
