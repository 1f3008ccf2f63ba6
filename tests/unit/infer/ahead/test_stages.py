"""Stages of the port step: what they ask is found out in time."""

from __future__ import annotations

import math
from contextlib import closing

import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.infer.campaign import Campaign, Request
from cyclescope.infer.ports.experiments import PortCampaign
from cyclescope.infer.workload import AMONG, FORMS_ALONE, MEMORY, PORTS_AGAIN
from cyclescope.measure.plan import LATENCY, THROUGHPUT, Planner
from cyclescope.measure.ports import PORTS
from cyclescope.measure.sampling import Sampler
from cyclescope.measure.store import Store
from cyclescope.session.machines import load_model

CORE = "skylake"


class Noted(SimulatedBackend):
    """How many questions were found when batches were submitted."""

    def __init__(self):
        super().__init__(load_model(CORE))
        self.found = 0
        self.submitted = []

    def submit(self, kernels, effort):
        self.submitted.append(self.found)
        super().submit(kernels, effort)


@pytest.mark.parametrize(
    ("stage", "meanwhile"), [(AMONG, True), (MEMORY, True), (PORTS_AGAIN, True), (FORMS_ALONE, False)]
)
def test_questions_form_by_form_are_found_while_the_first_are_answered(
    table, tmp_path, monkeypatch, stage, meanwhile
):
    backend = Noted()
    monkeypatch.setattr(Sampler.__init__, "__defaults__", (None, 80, 2))
    with closing(Store(tmp_path / "store.sqlite", "GenuineIntel-6-85-0 skylake")) as store:
        ports = PortCampaign(table, backend, store, Planner(table, lambda form: True))
        forms = [form for form in table if form.mnemonic == "ADD"]

        def questions():
            for form in forms:
                backend.found += 1
                yield ports.plans.alone(form)

        assert ports.settle(stage, questions(), math.inf)
        assert len(store.done()) == backend.found == len(forms) > 40
    assert (backend.submitted[0] < len(forms)) == meanwhile


@pytest.mark.parametrize("quantities", [(THROUGHPUT, PORTS), (LATENCY, PORTS)])
def test_throughputs_are_asked_for_once(table, tmp_path, monkeypatch, quantities):
    """Those of the forms by the stage before, and for ports only if that one did not."""
    asked = []
    plan = Planner.throughput

    def noted(self, form, *rest):
        asked.append(form.id)
        return plan(self, form, *rest)

    monkeypatch.setattr(Planner, "throughput", noted)
    monkeypatch.setattr(PortCampaign, "run", lambda *rest: False)
    forms = tuple(form for form in table if form.id.startswith("SETBE"))
    with closing(Store(tmp_path / "store.sqlite", "GenuineIntel-6-85-0 skylake")) as store:
        Campaign(table, SimulatedBackend(load_model(CORE)), store).run(
            Request(forms, frozenset(quantities)), {}
        )
        assert {form.id for form in forms} <= {record.form for record in store.records_of((THROUGHPUT,))}
    assert all(asked.count(form.id) == 1 for form in forms)
