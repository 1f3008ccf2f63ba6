"""The machine `native`."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.errors import BackendUnavailable, StoreError, UsageError
from cyclescope.infer import host_model, kept, machine_model
from cyclescope.infer.campaign import Campaign, Request
from cyclescope.infer.digest import DIGESTED, digest
from cyclescope.infer.host_model import facts_alone, stored_model, stored_results
from cyclescope.infer.scheduler import Scheduling
from cyclescope.measure.database import default_store
from cyclescope.measure.sessions import PROBE
from cyclescope.measure.store import Store
from cyclescope.model.facts import SCHEDULER, CoreAnswer, Fact
from cyclescope.model.machine import MEASURED, STATIC, Core, MachineModel, Provenance
from cyclescope.model.schema import write_model
from cyclescope.remarks.model import Origin
from cyclescope.session.machines import load_model
from tests.support.made.machine import Machine

FORMS = ("IMUL (R64, R64)", "MOV (R64, M64)", "MOV (M64, R64)")
FOUND = Fact("move-elimination", "MOV_89 (R64, R64)", CoreAnswer.ELIMINATED, 0.0, 0.1)
READ = Fact(SCHEDULER, "subject", CoreAnswer.VALUE, 1.0, 0.1)
VERSION = host_model.__version__
OUTDATED = Origin.OUTDATED.of("").text


def made(name="made", version=VERSION):
    return MachineModel(name, "x86-64", Provenance(MEASURED, version=version), Core(4), (), {})


@pytest.fixture
def host(monkeypatch, tmp_path):
    """A host without a store; models are made by hand. Returns the store's path and what was built."""
    built: list[Path] = []

    def build(path):
        built.append(path)
        return made(f"model {len(built)}")

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(host_model, "NativeBackend", Machine)
    monkeypatch.setattr(host_model, "build_file", build)
    path = default_store(Machine().capabilities().identity.machine)
    path.parent.mkdir()
    return path, built


def touch(path, seconds, text="store"):
    path.write_text(text)
    os.utime(path, (seconds, seconds))


def test_without_a_store_the_error_says_what_to_run(host):
    with pytest.raises(StoreError, match=r"run `cyclescope.measure_forms") as error:
        load_model("native")
    assert str(host[0]) in str(error.value)
    assert host_model.native_summary() is None


def test_native_is_the_model_of_the_default_store(host):
    path, built = host
    touch(path, 100)
    assert load_model("Native").name == "model 1"
    assert built == [path]


def test_it_is_kept_until_the_store_changes(host):
    path, built = host
    touch(path, 100)
    assert host_model.native_model() == host_model.native_model()
    assert len(built) == 1
    touch(path, 200)
    assert host_model.native_model().name == "model 2"
    touch(path, 50)  # another store, copied here with its time
    assert host_model.native_model().name == "model 3"


def test_changes_that_are_in_the_log_count(host):
    path, built = host
    touch(path, 100)
    host_model.native_model()
    log = path.with_name(path.name + "-wal")
    touch(log, 150, "")
    host_model.native_model()
    assert len(built) == 1  # readers leave an empty log
    touch(log, 150)
    host_model.native_model()
    assert len(built) == 2


def test_another_program_of_the_same_version_makes_it_anew(host, monkeypatch):
    path, built = host
    touch(path, 100)
    assert host_model.native_model().provenance.version == VERSION
    monkeypatch.setattr(kept, "digest", lambda: "changed")
    assert host_model.native_summary().provenance.source.endswith(OUTDATED)
    assert [host_model.native_model().name for _ in range(2)] == ["model 2"] * 2
    assert len(built) == 2
    assert host_model.native_summary().provenance.version == VERSION


def test_the_digest_is_of_code_and_tables(tmp_path):
    for name in ("infer/a.py", "isa/tables/t.json.xz", "cli/main.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text("one")
    before = digest.__wrapped__(tmp_path)
    (tmp_path / "cli/main.py").write_text("two")
    assert digest.__wrapped__(tmp_path) == before
    for name in ("infer/a.py", "isa/tables/t.json.xz"):
        (tmp_path / name).write_text("two")
        assert digest.__wrapped__(tmp_path) != before
        (tmp_path / name).write_text("one")
    (tmp_path / "infer/a.py").rename(tmp_path / "infer/b.py")
    assert digest.__wrapped__(tmp_path) != before


def test_the_digest_covers_all_that_a_model_is_made_by():
    """Everything that building loads and that tells numbers; the rest asks cores and says errors."""
    code = "import sys, cyclescope.infer.host_model; print(*(n for n in sys.modules if 'cyclescope.' in n))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    packages = {name.split(".")[1] for name in loaded.split()}
    assert set(DIGESTED) - packages <= {"simulate"}
    assert packages <= {*DIGESTED, "analyze", "backend", "errors", "garbage", "once", "probe"}


@pytest.mark.parametrize("spoil", ["damaged", "older"])
def test_what_is_kept_but_of_no_use_is_made_again(host, spoil):
    path, built = host
    touch(path, 100)
    host_model.native_model()
    kept = path.with_suffix(".model.json")
    if spoil == "damaged":
        kept.write_text("{")
    else:
        write_model(made(version="0.0.1"), kept)
    os.utime(kept, (100, 100))
    assert host_model.native_model().name == "model 2"
    assert host_model.native_model().name == "model 2"
    assert len(built) == 2


def test_where_nothing_can_be_kept_the_model_is_made_every_time(host, monkeypatch):
    path, built = host
    touch(path, 100)

    def refuse(model, part):
        part.write_text("{")
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(host_model, "write_model", refuse)
    assert [host_model.native_model().name for _ in range(2)] == ["model 1", "model 2"]
    assert list(path.parent.iterdir()) == [path]
    assert len(built) == 2


def test_the_summary_has_the_name_that_is_used(host):
    touch(host[0], 100)
    host_model.native_model()
    found = host_model.native_summary()
    assert (found.name, found.aliases, found.form_count) == ("native", ("model 1",), 0)
    assert OUTDATED not in found.provenance.source


def test_a_summary_builds_nothing(host):
    path, built = host
    touch(path, 100)
    assert host_model.native_summary().provenance.source == Origin.NO_MODEL.value
    assert not built
    host_model.native_model()
    touch(path, 200)
    assert host_model.native_summary().provenance.source.endswith(OUTDATED)
    assert len(built) == 1


def test_a_host_that_cannot_run_kernels_has_no_native_machine(host, monkeypatch):
    touch(host[0], 100)

    def nothing():
        raise BackendUnavailable("no runner")

    monkeypatch.setattr(host_model, "NativeBackend", nothing)
    assert host_model.native_summary() is None
    with pytest.raises(BackendUnavailable):
        load_model("native")


def test_other_names_are_those_of_shipped_machines():
    assert load_model("SKYLAKE").name == "skylake"
    with pytest.raises(UsageError, match="did you mean"):
        load_model("skylak")


# --- a store into which nothing but answers of probes is written --------------------------------------


@pytest.fixture
def store(table, tmp_path):
    """A store with some forms, whose results and model are kept."""
    path = tmp_path / "store.sqlite"
    with closing(SimulatedBackend(load_model("skylake"))) as backend, closing(Store(path, "made")) as opened:
        request = Request(tuple(table[name] for name in FORMS), frozenset(("throughput", "latency")))
        Campaign(table, backend, opened).run(request, {"brand": "Made by hand"})
    with closing(Store(path, readonly=True)) as opened:
        stored_results(opened)
    return path


@pytest.fixture
def builds(monkeypatch):
    """One for each model that is made anew."""
    made = []
    monkeypatch.setattr(host_model, "_made", lambda store: made.append(store) or pytest.fail("made anew"))
    return made


def asked(path, *facts):
    with closing(Store(path, "made")) as opened, facts_alone(opened):
        opened.begin_session("2026-12-31T00:00:00+00:00", {"asked": {"what": [PROBE], "forms": []}})
        for fact in facts:
            opened.write_probe(fact.probe, [fact], ())


def test_the_model_gets_the_facts_and_is_not_made_anew(store, builds):
    before = stored_model(store)
    asked(store, FOUND)
    assert stored_model(store) == msgspec.structs.replace(before, facts=(FOUND,))
    with closing(Store(store, readonly=True)) as opened:
        assert len(stored_results(opened)[0]) > len(FORMS)
    assert builds == []


def test_it_is_the_model_that_would_be_made_of_the_store(store, table):
    asked(store, FOUND)
    with closing(Store(store, readonly=True)) as opened:
        assert machine_model.build_model(opened, table).facts == stored_model(store).facts
        assert machine_model.build_model(opened, table).provenance.date == stored_model(store).provenance.date


def test_costs_are_of_the_day_when_they_were_measured(store, table):
    day = stored_model(store).provenance.date
    asked(store, FOUND)
    with closing(Store(store, readonly=True)) as opened:
        again = machine_model.build_model(opened, table).provenance
    assert day and again.date == day
    assert not any("2026-12-31" in note for note in again.notes)


def test_how_the_core_schedules_is_computed_from_other_readings_alone(store, builds, monkeypatch):
    told = []
    monkeypatch.setattr(machine_model, "scheduling_of", lambda *_: told.append(1) or Scheduling(STATIC))
    asked(store, READ)
    assert (stored_model(store).core.binding, told) == (STATIC, [1])
    asked(store, FOUND)
    assert (stored_model(store).core.binding, told) == (STATIC, [1])
    assert builds == []


def test_what_was_out_of_date_before_is_made_anew(store):
    with closing(Store(store, "made")) as opened:
        opened.write_note("something", "else")
        opened.settle()
    asked(store, FOUND)
    kept = host_model._kept_file(store)
    assert not host_model.is_current(kept, store)
    assert stored_model(store).facts == (FOUND,)


def test_a_session_that_is_broken_off_renews_nothing(store):
    def broken_off():
        with closing(Store(store, "made")) as opened, facts_alone(opened):
            opened.write_probe(FOUND.probe, [FOUND], ())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken_off()
    assert stored_model(store).facts == (FOUND,)
