"""Results that are kept beside a store: read while it stays as it is, made again else."""

from __future__ import annotations

import os
from contextlib import closing

import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.errors import StoreError
from cyclescope.infer import api, host_model, kept, machine_model
from cyclescope.infer.campaign import Campaign, Request
from cyclescope.infer.ports import timed
from cyclescope.infer.ports.builder import PortBuilder
from cyclescope.infer.ports.naming import known_machine
from cyclescope.infer.readout import Readout
from cyclescope.measure.store import Store
from cyclescope.remarks.ports import NoPorts
from cyclescope.session.machines import load_model
from tests.support.files.damage import FORMS, change


def shown(path, table, names=FORMS[:3]):
    with closing(Store(path, readonly=True)) as store:
        return api.timings(store, table, [table[name] for name in names])


def refuse(*_):
    raise AssertionError("results were made")


def test_what_is_kept_is_what_is_made(path, table, monkeypatch):
    made = shown(path, table)
    host_model.stored_model(path)
    monkeypatch.setattr(Readout, "each", refuse)
    assert shown(path, table) == made
    assert any(timing.ports for timing in made)
    with closing(Store(path, readonly=True)) as store:
        found, model = host_model.stored_results(store)
    assert model.ports
    assert [one for name in FORMS[:3] for one in found if one.id == name] == made


@pytest.mark.parametrize(
    "spoil", ["store", *(pytest.param(one, marks=pytest.mark.slow) for one in ("program", "bytes")), "forms"]
)
def test_what_is_kept_but_of_no_use_is_made_again(path, table, monkeypatch, spoil):
    made = shown(path, table)
    host_model.stored_model(path)
    file = kept.results_file(path)
    if spoil == "store":
        os.utime(path)
    if spoil == "program":
        monkeypatch.setattr(kept, "digest", lambda: "changed")
    if spoil == "bytes":
        file.write_bytes(file.read_bytes()[:-1])
        os.utime(file, ns=(kept.state_of(path),) * 2)
    if spoil == "forms":
        assert kept.kept_results(path, [*FORMS, "NONE"]) is None
        return
    assert kept.kept_results(path, FORMS) is None
    assert shown(path, table) == made


def test_results_of_a_damaged_store_are_not_kept_for_the_damage_is_to_be_told(path):
    change(path, ("UPDATE measurement SET cycles = 'x' WHERE id % 7 = 3",))
    host_model.stored_model(path)
    assert not kept.results_file(path).exists()


def test_a_store_without_a_value_leaves_nothing(path):
    """A command that fails writes nothing."""
    change(path, ("DELETE FROM measurement",), ("DELETE FROM link",))
    with pytest.raises(StoreError, match="no value of any form"):
        host_model.stored_model(path)
    assert not kept.results_file(path).exists()


def test_results_without_a_model_are_not_kept(path, monkeypatch):
    """A store may be found to be damaged when only the model reads on."""

    def fail(*_):
        raise StoreError(f"the store {path} is damaged", "")

    monkeypatch.setattr(machine_model, "model_of", fail)
    with pytest.raises(StoreError, match="damaged"):
        host_model.stored_model(path)
    assert not kept.results_file(path).exists()


def campaign(path, table):
    backend, store = SimulatedBackend(load_model("skylake")), Store(path)
    return (
        closing(backend),
        closing(store),
        Campaign(table, backend, store, known=known_machine(store.machine)),
    )


def test_the_end_of_a_run_explains_no_form_a_second_time(path, table, monkeypatch):
    expected = shown(path, table, FORMS)
    backend, store, run = campaign(path, table)
    with backend, store:
        assert run.run(Request(tuple(table[name] for name in FORMS), frozenset(("ports",))), {})
        monkeypatch.setattr(PortBuilder, "_usage", _only_unmeasured(PortBuilder._usage))
        found = host_model.results_and_model(run, [table[name] for name in FORMS])
    assert found == expected
    assert kept.kept_results(path, FORMS) == expected


def _only_unmeasured(original):
    def usage(self, form, throughput, reason):
        assert form.id not in self.facts.confined
        return original(self, form, throughput, reason)

    return usage


def test_ports_are_read_anew_where_something_was_forgotten_after_them(path, table):
    backend, store, run = campaign(path, table)
    with backend, store:
        form = table[FORMS[0]]
        assert run.run(Request((form,), frozenset(("ports",))), {})
        before = run.readout([form]).ports
        assert run.readout([form]).ports is before
        run.front_end([form])
        assert run.readout([form]).ports is not before


def test_a_run_that_was_stopped_makes_no_structure(path, table, monkeypatch):
    """Classes that were not compared fit anything: looking for the best took seconds, and once an error."""
    last = "(SELECT {}(id) FROM measurement WHERE quantity = '{}')"
    change(path, (f"DELETE FROM measurement WHERE id > {last.format('min', 'ports')}",))
    change(
        path, (f"DELETE FROM measurement WHERE quantity = 'pairs' AND id > {last.format('avg', 'pairs')}",)
    )
    monkeypatch.setattr(timed, "solve_structure", refuse)
    found = shown(path, table)
    assert {timing.ports for timing in found} == {None}
    assert {timing.ports_note for timing in found} == {NoPorts.STOPPED.value}
