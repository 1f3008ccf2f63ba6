"""The solver of linear programs."""

from __future__ import annotations

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
