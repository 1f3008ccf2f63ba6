"""Results that are kept beside a store: read while it stays as it is, made again else."""

from __future__ import annotations

import os
import shutil
from contextlib import closing

import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.errors import StoreError
from cyclescope.infer import host_model, kept, machine_model
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
        return kept.timings(store, table, [table[name] for name in names])


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


OTHERS = (*FORMS[1:], "PADDB (MM, MM)", "POR (MM, MM)")  # the last two were never run
DISTURBED = "UPDATE measurement SET cycles = 1.3 * cycles, verdict = 'unstable', error = 'rounds disagree'"
LINKS = (
    (f"{DISTURBED} WHERE quantity = 'link' AND form = 'r>r'",),
    ("UPDATE link SET value = replace(value, '\"value\":1.0', '\"value\":1.3') WHERE key = 'r>r'",),
)
DOUBTS = '{"claims":0,"refuted":{},"units":{},"calibration":{},"doubted":{"IMUL (R64, R64)":"low"}}'


@pytest.fixture(scope="module")
def known(complete, tmp_path_factory):
    """A finished run with what is kept of it; latencies of a form and a throughput were disturbed."""
    path = tmp_path_factory.mktemp("known") / "store.sqlite"
    shutil.copy2(complete, path)
    some = f"form = '{FORMS[0]}' AND quantity = 'latency' OR form = '{FORMS[1]}' AND quantity = 'throughput'"
    change(path, (f"{DISTURBED} WHERE {some}",))
    host_model.stored_model(path)
    return path


@pytest.fixture
def again(known, tmp_path):
    """A copy of it."""
    for file in known.parent.glob("store.*"):
        shutil.copy2(file, tmp_path)
    return tmp_path / known.name


def from_scratch(path, table, names=(FORMS[0], *OTHERS)):
    """What the readings of a store make, whatever is kept beside it."""
    with closing(Store(path, readonly=True)) as store:
        forms = [table[name] for name in names]
        return list(Readout(store, table, known_machine(store.machine), forms).timings())


def measured(path, table, names, during=lambda store: None, whole=True):
    """What a run says of its forms."""
    request = Request(tuple(table[name] for name in names), frozenset(("throughput", "latency")))
    backend, store, run = campaign(path, table)
    with backend, store:
        assert run.run(request, {})
        during(run.store)
        return host_model.results_of(run, request, whole)


@pytest.mark.parametrize(
    ("names", "stays"),
    [
        pytest.param(FORMS[:1], True, id="latencies are read better"),
        pytest.param(FORMS[2:4], True, id="nothing is new"),
        pytest.param(FORMS[1:2], False, id="a throughput that ports rest on"),
        pytest.param(OTHERS[-2:-1], False, id="another form"),
    ],
)
def test_no_result_is_kept_that_would_be_another_now(again, table, names, stays):
    every = (FORMS[0], *OTHERS)
    before = kept.kept_results(again, every)
    found = measured(again, table, names)
    now = from_scratch(again, table)
    assert found == [timing for timing in now if timing.id in names]
    assert kept.kept_results(again, every) == (now if stays else None)
    differ = {timing.id for timing, old in zip(now, before, strict=True) if timing != old}
    assert differ <= ({FORMS[0]} if stays else {*every})
    assert bool(differ) == (names != FORMS[2:4])


def test_no_result_is_kept_that_rests_on_other_links(path, table):
    change(path, *LINKS)
    host_model.stored_model(path)
    before = kept.kept_results(path, FORMS)
    assert measured(path, table, FORMS[:1]) == from_scratch(path, table, FORMS[:1])
    assert from_scratch(path, table, FORMS) != before
    assert kept.kept_results(path, FORMS) is None


def test_what_is_renewed_asks_no_ports(again, table, monkeypatch):
    monkeypatch.setattr(Readout, "approach", property(refuse))
    assert measured(again, table, FORMS[:1])[0].ports


def test_ports_that_have_to_be_told_anew_are_left_out_where_they_are_not_wanted(again, table, monkeypatch):
    monkeypatch.setattr(Readout, "approach", property(refuse))
    (found,) = measured(again, table, FORMS[1:2], whole=False)
    assert found.ports is None
    monkeypatch.undo()
    (now,) = from_scratch(again, table, FORMS[1:2])
    assert now.ports
    assert (found.throughput, found.latencies) == (now.throughput, now.latencies)


def _claims(store):
    store.write_note("mixes", DOUBTS)


def _fewer_pairs(store):
    with store.database:
        store.database.execute("DELETE FROM measurement WHERE quantity = 'pairs' AND id % 2")


def _stopped(store):
    store.begin_session("later", {})
    store.write_legality([("NONE", "ok")])


def _of_no_program(store):
    file = kept.results_file(store.path)
    file.write_bytes(file.read_bytes().replace(kept.program().encode(), b"0" * len(kept.program())))


@pytest.mark.parametrize("during", [_claims, _fewer_pairs, _stopped, _of_no_program])
def test_nothing_is_renewed_where_more_than_readings_of_forms_has_changed(again, table, during):
    measured(again, table, FORMS[:1], during)
    assert kept.kept_results(again, FORMS) is None


def test_nothing_is_renewed_that_was_of_another_state(again, table):
    os.utime(again, (100, 100))
    measured(again, table, FORMS[:1])
    assert kept.kept_results(again, FORMS) is None


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
