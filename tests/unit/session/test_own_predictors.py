"""What the simulated core's average is worth beside bounds that say the same more exactly."""

from __future__ import annotations

import pytest

from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.model.library import llvm_model
from cyclescope.session.predictors import Analytic, Simulated
from tests.support.code.blocks import of_code


@pytest.mark.parametrize(("off", "told"), [(1.004, 1.0), (0.996, 1.0), (1.006, 1.006), (1.05, 1.05)])
def test_an_average_next_to_the_greatest_bound_is_that_bound(monkeypatch, off, told):
    """Averages of runs that end somewhere would order blocks that take the same time."""
    model, block = llvm_model("znver3"), of_code(bytes.fromhex("480fafc0480fafc9"))  # two imul
    (bound,) = Analytic(model).answers([block])
    monkeypatch.setattr(Predictor, "simulated", lambda *_, **__: off * bound.cycles)
    (found,) = Simulated(model).answers([block])
    assert found.cycles == pytest.approx(told * bound.cycles)
