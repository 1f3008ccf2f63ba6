"""The solver of linear programs."""

from __future__ import annotations

import pytest

from cyclescope.infer.timing.solver import solver


def test_the_solver_prints_nothing_and_solves(capfd):
    model = solver()
    model.addVar(1.5, model.getInfinity())
    model.changeColCost(0, 1.0)
    model.run()
    assert model.getInfo().objective_function_value == pytest.approx(1.5)
    assert capfd.readouterr() == ("", "")
