"""Last looks are taken while ports are measured, and find the same."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import closing

import msgspec
import pytest

from cyclescope.errors import Stopped
from cyclescope.infer.ahead.later import LaterLooks
from cyclescope.infer.campaign import Campaign, Request
from cyclescope.infer.ports.candidates import candidates
from cyclescope.infer.ports.experiments import PortCampaign
from cyclescope.measure.plan import LATENCY, THROUGHPUT
from cyclescope.measure.ports import PORTS
from cyclescope.measure.store import Store
from tests.support.code.forms import chosen
from tests.support.made.comparison import MACHINE
from tests.support.made.simulated import SimulatedBackend
from tests.support.made.truth import Truth

EVERYTHING = frozenset((THROUGHPUT, LATENCY, PORTS))


class Threaded(SimulatedBackend):
    """One that several threads may ask: each gets the answers to its own batches."""

    def __init__(self, *rest):
        super().__init__(*rest)
        self.own, self.lock, self.asked_apart = threading.local(), threading.Lock(), []

    def capabilities(self):
        return msgspec.structs.replace(super().capabilities(), threaded=True)

    def submit(self, kernels, effort):
        with self.lock:
            super().submit(kernels, effort)
            answer = super().collect()
        if threading.current_thread() is not threading.main_thread():
            self.asked_apart += kernels
        vars(self.own).setdefault("answers", deque()).append(answer)

    def collect(self):
        return self.own.answers.popleft()


@pytest.fixture(scope="module")
def forms(table):
    return tuple(chosen(table)[::2])


@pytest.fixture(autouse=True)
def no_ports(monkeypatch):
    """All of the run but its ports."""
    monkeypatch.setattr(PortCampaign, "run", lambda *rest: True)
    monkeypatch.setattr(Campaign, "_refute", lambda *rest: True)


def run(table, forms, backend, path):
    """What a run stores, and what it tells of forms."""
    with closing(Store(path, MACHINE)) as store:
        campaign = Campaign(table, backend, store)
        assert campaign.run(Request(forms, EVERYTHING), {})
        records = sorted((r.key, r.cycles, r.verdict) for r in store.records())
        samples = store.sessions()[-1]["samples"]
        return records, list(campaign.results(forms)), samples


def test_a_run_that_looks_later_finds_the_same(table, forms, tmp_path):
    backend = Threaded(Truth(1))
    at_once = run(table, forms, SimulatedBackend(Truth(1)), tmp_path / "at_once.sqlite")
    assert run(table, forms, backend, tmp_path / "later.sqlite") == at_once
    assert len(backend.asked_apart) > 20


def test_forms_by_which_ports_are_found_are_looked_at_before(table, forms, tmp_path, monkeypatch):
    asked = set()
    begin = LaterLooks.beside

    def noted(self, note):
        asked.update(self.asked)
        return begin(self, note)

    monkeypatch.setattr(LaterLooks, "beside", noted)
    run(table, forms, Threaded(Truth(1)), tmp_path / "store.sqlite")
    assert asked
    assert asked.isdisjoint(form.id for form in candidates(table))


def test_what_was_looked_at_is_kept_where_a_run_is_stopped(table, forms, tmp_path, monkeypatch):
    path, first, second = tmp_path / "store.sqlite", Threaded(Truth(1)), Threaded(Truth(1))

    def stopped(self, *rest):
        for thread in threading.enumerate():
            if thread.daemon and thread is not threading.current_thread():
                thread.join(60)
        raise Stopped(2)

    with monkeypatch.context() as patch:
        patch.setattr(PortCampaign, "run", stopped)
        with pytest.raises(Stopped), closing(Store(path, MACHINE)) as store:
            Campaign(table, first, store).run(Request(forms, EVERYTHING), {})
    run(table, forms, second, path)
    assert first.asked_apart
    assert not second.asked_apart


def test_with_a_time_budget_all_is_measured_in_turn(table, forms, tmp_path):
    backend = Threaded(Truth(1))
    with closing(Store(tmp_path / "store.sqlite", MACHINE)) as store:
        assert Campaign(table, backend, store).run(Request(forms, EVERYTHING, 1000.0), {})
    assert not backend.asked_apart
