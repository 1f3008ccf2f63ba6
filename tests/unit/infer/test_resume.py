"""Campaigns that are interrupted: nothing is lost, nothing is repeated, the results are the same."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from cyclescope.errors import BackendUnavailable
from cyclescope.infer.campaign import Campaign, Request
from cyclescope.measure.sampling import Sampler
from cyclescope.measure.store import Store
from tests.support.code.forms import chosen
from tests.support.made.comparison import MACHINE
from tests.support.made.simulated import SimulatedBackend
from tests.support.made.truth import Truth

BATCH = 120


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Batches so small that a campaign of some forms has many."""
    monkeypatch.setattr(Sampler.__init__, "__defaults__", (None, BATCH, 2))


@pytest.fixture(scope="module")
def forms(table):
    return tuple(chosen(table)[::3])


def without_errors(timing):
    """The values: how far off they may be is learned anew by every session."""
    throughput = timing.throughput and msgspec.structs.replace(timing.throughput, spread=0.0)
    latencies = tuple(msgspec.structs.replace(latency, spread=0.0) for latency in timing.latencies)
    return msgspec.structs.replace(timing, throughput=throughput, latencies=latencies)


class Bench:
    """Campaigns on one core, with what was timed how often."""

    def __init__(self, table, truth, forms, path):
        self.table, self.truth, self.forms, self.path = table, truth, forms, path
        self.kernels = Counter()
        self.probed = 0

    def run(self, dies_after=None, **request):
        backend = SimulatedBackend(self.truth, dies_after=dies_after, watch=self._watch)
        store = Store(self.path, MACHINE)
        try:
            campaign = Campaign(self.table, backend, store)
            return campaign.run(Request(self.forms, **request), {"turn": 1})
        finally:
            self.probed += backend.probed
            store.close()

    def _watch(self, kernels):
        self.kernels.update((k.code, k.state.packed, k.flags) for k in kernels)

    @property
    def timings(self):
        store = Store(self.path, MACHINE)
        try:
            found = Campaign(self.table, SimulatedBackend(self.truth), store).results(self.forms)
            return [without_errors(timing) for timing in found]
        finally:
            store.close()

    @property
    def done(self):
        store = Store(self.path, MACHINE, readonly=True)
        try:
            return {r: (r.cycles, r.verdict) for r in store.records()}
        finally:
            store.close()


@pytest.fixture(scope="module")
def undisturbed(table, forms, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sampler.__init__, "__defaults__", (None, BATCH, 2))
        bench = Bench(table, Truth(1), forms, tmp_path_factory.mktemp("undisturbed") / "store.sqlite")
        assert bench.run()
        yield bench


@pytest.fixture
def bench(table, forms, tmp_path):
    return Bench(table, Truth(1), forms, tmp_path / "store.sqlite")


@pytest.mark.parametrize("batches", [0, 2, pytest.param(5, marks=pytest.mark.slow)])
def test_a_backend_that_dies_loses_nothing_written(bench, undisturbed, batches):
    with pytest.raises(BackendUnavailable):
        bench.run(dies_after=batches * BATCH + 1)
    before = bench.done
    assert bench.run()
    assert before.items() <= bench.done.items()
    assert bench.timings == undisturbed.timings


def test_what_was_finished_is_not_repeated(bench, undisturbed):
    for batches in (2, 3, 4):
        with pytest.raises(BackendUnavailable):
            bench.run(dies_after=batches * BATCH)
    assert bench.run()
    once = undisturbed.kernels
    in_flight = 2 * 3 * BATCH  # at most two batches when the backend dies
    assert sum(bench.kernels.values()) <= sum(once.values()) + in_flight
    assert bench.timings == undisturbed.timings


def test_a_second_run_measures_nothing(bench):
    assert bench.run()
    kernels, probed = bench.kernels.total(), bench.probed
    assert bench.run()
    assert bench.kernels.total() == kernels
    assert bench.probed == probed


def test_every_experiment_is_in_the_store_once(undisturbed):
    keys = [(r.form, r.quantity, r.source, r.target, r.variant) for r in undisturbed.done]
    assert len(keys) == len(set(keys)) > 1000


def test_a_budget_ends_a_run_that_another_one_finishes(bench, undisturbed, monkeypatch):
    """Time stands still but for a second per batch."""
    clock = iter(range(10**6))
    monkeypatch.setattr("cyclescope.infer.campaign.time.monotonic", lambda: next(clock))
    runs = 0
    while not bench.run(budget=9.0):
        runs += 1
        assert runs < 100
    assert runs > 2
    assert bench.timings == undisturbed.timings


def test_progress_reaches_the_end(table, forms, tmp_path):
    told = []
    store = Store(tmp_path / "s", MACHINE)
    Campaign(table, SimulatedBackend(Truth(1)), store, told.append).run(Request(forms), {})
    store.close()
    measuring = [p for p in told if p.stage == "measuring"]
    assert [p.done for p in measuring] == sorted(p.done for p in measuring)
    assert measuring[-1].done == measuring[-1].total > 30
    assert measuring[-1].failed == 0
