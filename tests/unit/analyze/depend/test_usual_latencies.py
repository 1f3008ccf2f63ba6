"""Latencies that the model has are those of the usual form as they are: nothing else is asked about these."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.analyze.cost.instruction import PlacedCosts
from cyclescope.analyze.cost.latencies import AllEnds, CostVariant
from cyclescope.isa.table import load_table
from cyclescope.model.machine import EXTRACTED, MEASURED, Provenance
from cyclescope.session.machines import load_model

VARIANTS = (CostVariant(), CostVariant(renamed=True), CostVariant(later=3.0), CostVariant(latency=7.0))


@pytest.mark.parametrize("kind", [MEASURED, EXTRACTED])
@pytest.mark.parametrize("name", ["znver3", "neoverse-v2", "sifive-p670"])
def test_the_short_way_to_a_latency_has_its_result(name, kind, monkeypatch):
    machine = msgspec.structs.replace(load_model(name), provenance=Provenance(kind))
    costs = PlacedCosts(machine)
    forms = [form for form in list(load_table(machine.isa))[::17] if costs.cost(form)]
    placed = [costs.get(form, variant) for form in forms for variant in VARIANTS]
    assert any(AllEnds(form).is_usual for form in forms)
    monkeypatch.setattr(AllEnds, "is_usual", False)
    anew = PlacedCosts(machine)
    assert placed == [anew.get(one.form, one.variant) for one in placed]
