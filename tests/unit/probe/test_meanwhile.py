"""Probes that a thread of their own asks."""

from __future__ import annotations

import math
import threading
from contextlib import closing

import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.errors import BackendUnavailable
from cyclescope.infer.ports.experiments import PortCampaign
from cyclescope.infer.workload import AMONG, PORTS_AGAIN
from cyclescope.isa.table import load_table
from cyclescope.measure.plan import Planner
from cyclescope.measure.store import Store
from cyclescope.model.facts import CODE_LINES, STACK_ENGINE
from cyclescope.probe.catalogue import chosen
from cyclescope.probe.meanwhile import AskedMeanwhile
from cyclescope.probe.run import ask
from cyclescope.session.machines import load_model

CORE = "skylake"
PROBES = chosen((STACK_ENGINE, CODE_LINES))


def simulated():
    return SimulatedBackend(load_model(CORE))


def begun(probes):
    probes.begin()
    return list(probes.each())


def test_it_finds_what_is_found_without_a_thread():
    table = load_table("x86-64")
    found = begun(AskedMeanwhile(PROBES, simulated(), table))
    assert [one.probe.name for one in found] == [STACK_ENGINE, CODE_LINES]
    assert [one.facts for one in found] == [one.facts for one in ask(PROBES, simulated(), table)]


def test_what_goes_wrong_is_raised_where_answers_are_taken(monkeypatch):
    def nothing(self):
        raise BackendUnavailable("the runner is gone")

    monkeypatch.setattr(SimulatedBackend, "collect", nothing)
    with pytest.raises(BackendUnavailable, match="gone"):
        begun(AskedMeanwhile(PROBES, simulated(), load_table("x86-64")))


def test_nothing_is_asked_before_it_begins():
    asked = []
    probes = AskedMeanwhile(PROBES, simulated(), load_table("x86-64"))
    probes._asking = (asked.append(number) or number for number in range(2))
    assert probes.total == 2
    assert not asked
    probes.begin()
    probes.begin()  # once
    assert len(list(probes.each())) == 2
    assert asked == [0, 1]


def test_a_backend_of_one_thread_is_asked_when_answers_are_taken():
    probes = AskedMeanwhile(PROBES, simulated(), load_table("x86-64"), apart=False)
    asked_by = []
    probes._asking = (asked_by.append(threading.current_thread()) for _ in range(2))
    probes.begin()
    assert not asked_by
    list(probes.each())
    assert asked_by == [threading.current_thread()] * 2


@pytest.mark.parametrize(("stage", "times"), [(AMONG, 0), (PORTS_AGAIN, 1)])
def test_it_begins_when_ports_are_more_thought_about_than_measured(tmp_path, stage, times):
    table, backend, asked = load_table("x86-64"), simulated(), []
    with closing(Store(tmp_path / "store.sqlite", "GenuineIntel-6-85-0 skylake")) as store:
        planner = Planner(table, lambda form: True)
        ports = PortCampaign(table, backend, store, planner, meanwhile=lambda: asked.append(stage))
        assert ports.settle(stage, (), math.inf)
    assert len(asked) == times
