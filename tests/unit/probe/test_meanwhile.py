"""Probes that a thread of their own asks."""

from __future__ import annotations

import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.errors import BackendUnavailable
from cyclescope.isa.table import load_table
from cyclescope.model.facts import CODE_LINES, STACK_ENGINE
from cyclescope.probe.catalogue import chosen
from cyclescope.probe.meanwhile import AskedMeanwhile
from cyclescope.probe.run import ask
from cyclescope.session.machines import load_model

CORE = "skylake"
PROBES = chosen((STACK_ENGINE, CODE_LINES))


def simulated():
    return SimulatedBackend(load_model(CORE))


def test_it_finds_what_is_found_without_a_thread():
    table = load_table("x86-64")
    found = list(AskedMeanwhile(PROBES, simulated(), table).each())
    assert [one.probe.name for one in found] == [STACK_ENGINE, CODE_LINES]
    assert [one.facts for one in found] == [one.facts for one in ask(PROBES, simulated(), table)]


def test_what_goes_wrong_is_raised_where_answers_are_taken(monkeypatch):
    def nothing(self):
        raise BackendUnavailable("the runner is gone")

    monkeypatch.setattr(SimulatedBackend, "collect", nothing)
    with pytest.raises(BackendUnavailable, match="gone"):
        list(AskedMeanwhile(PROBES, simulated(), load_table("x86-64")).each())
