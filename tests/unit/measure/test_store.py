"""The store: what goes in comes out, wrong files are refused, one writer at a time, merging."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from cyclescope.errors import StoreError, UsageError
from cyclescope.kernel.kernel import Kernel
from cyclescope.measure import database
from cyclescope.measure.bench import default_state
from cyclescope.measure.merge import merge_files
from cyclescope.measure.plan import Experiment
from cyclescope.measure.sampling import Measurement
from cyclescope.measure.store import VERSION, Store

HERE, THERE = "this machine", "that machine"
SOURCE = str(Path(__file__).parents[3] / "src")


def experiment(form="ADD", variant="plain", code=b"\x90", level=0, **more):
    kernel = Kernel(code, 1, default_state(level), b"\xcc", 3)
    parts = {"quantity": "latency", "source": "op1", "target": "op2", "count": 2, "links": ("a", "b")} | more
    return Experiment(form=form, variant=variant, kernel=kernel, **parts)


def measurement(cycles=1.0, verdict="ok", **more):
    return Measurement(cycles, 0.25, verdict, 12, 3, (1.0, 1.5), 2, "", (4.0,), **more)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.sqlite"


@pytest.fixture
def store(path):
    with closing(Store(path, HERE)) as opened:
        opened.begin_session("now", {"cpu": 1})
        yield opened


def filled(path, *pairs, machine=HERE, session="a session"):
    with closing(Store(path, machine)) as opened:
        opened.begin_session(session, {"name": session})
        opened.write(pairs)
        opened.write_legality([("ADD", "ok"), (path.stem, "SIGILL")])
    return path


def spoil(path, statement, *values):
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement, values)


# --- what goes in comes out ---------------------------------------------------------------------


def test_a_measurement_comes_back(store):
    store.write([(experiment(), measurement())])
    (record,) = store.records(["ADD"])
    assert (record.form, record.source, record.target, record.variant) == ("ADD", "op1", "op2", "plain")
    assert (record.cycles, record.spread, record.verdict) == (1.0, 0.25, "ok")
    assert (record.count, record.links, record.exceptions) == (2, ("a", "b"), 2)
    assert record.per_instance == 0.5


def test_evidence_has_the_kernel_and_its_conditions(store):
    store.write([(experiment(code=b"\x48\x90"), measurement())])
    (evidence,) = store.evidence("ADD")
    assert (evidence.code, evidence.setup, evidence.flags) == (b"\x48\x90", b"\xcc", 3)
    assert (evidence.accepted, evidence.rejected, evidence.rounds) == (12, 3, (1.0, 1.5))
    assert evidence.conditions == {"cpu": 1}


def test_a_kernel_runs_again_from_the_same_state(store):
    asked = [experiment(form, level=level).kernel for form, level in (("A", 0), ("B", 3))]
    pairs = [(experiment("A", level=0), measurement()), (experiment("B", level=3), measurement())]
    store.write(pairs)
    for form, kernel in zip("AB", asked, strict=True):
        (record,) = store.records([form])
        _, found = store.kernel(record.id)
        assert (found.code, found.setup, found.flags) == (kernel.code, kernel.setup, kernel.flags)
        assert found.state.packed == kernel.state.packed


def test_measuring_again_replaces(store):
    store.write([(experiment(), measurement(1.0))])
    store.write([(experiment(), measurement(2.0))])
    assert [record.cycles for record in store.records()] == [2.0]
    assert store.count() == 1
    assert store.done() == {("ADD", "latency", "op1", "op2", "plain")}


def test_what_was_written_is_there_for_readers_at_once(store, path):
    store.write([(experiment(), measurement())])
    with closing(Store(path, readonly=True)) as reader:
        assert reader.count() == 1


def test_fresh_forgets_everything(store):
    store.write([(experiment(), measurement())])
    store.write_legality([("ADD", "ok")])
    store.write_links({"k": b"{}"})
    store.clear()
    assert (store.count(), store.legality(), store.links(), store.sessions()) == (0, {}, {}, [])
    store.write([(experiment(), measurement())])
    assert store.evidence("ADD")[0].code == b"\x90"


def test_a_write_that_fails_takes_everything_back(store):
    good, bad = (experiment("A"), measurement()), (experiment("B"), measurement(cycles=None))
    with pytest.raises(StoreError):
        store.write([good, bad])
    assert store.count() == 0
    store.write([good])
    (record,) = store.records()
    assert store.kernel(record.id)[1].state.packed == good[0].kernel.state.packed


def test_links_and_their_chains_are_written_together(store):
    chain = (experiment("r>r", quantity="link"), measurement())
    with pytest.raises(StoreError):
        store.write_links({"r>r": b"{}", "bad": b"\xff"}, [chain])
    assert (store.count(), store.links()) == (0, {})
    store.write_links({"r>r": b"{}"}, [chain])
    assert (store.count(), store.links()) == (1, {"r>r": b"{}"})


def test_an_unknown_measurement(store):
    with pytest.raises(StoreError, match="no measurement 7"):
        store.kernel(7)


# --- files that are no store of ours ------------------------------------------------------------


def opening(path, readonly):
    with pytest.raises(StoreError) as error:
        Store(path, HERE, readonly=readonly).close()
    assert str(path) in error.value.message
    assert error.value.remedy
    return str(error.value)


BOTH = pytest.mark.parametrize("readonly", [False, True])


@BOTH
def test_random_bytes(path, readonly):
    path.write_bytes(bytes(range(256)) * 20)
    assert "damaged or no store" in opening(path, readonly)
    assert path.read_bytes() == bytes(range(256)) * 20


@BOTH
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_truncated_store(path, readonly, share):
    filled(path, *[(experiment(f"F{n}"), measurement()) for n in range(300)])
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(StoreError, match="damaged"), closing(Store(path, HERE, readonly=readonly)) as store:
        list(store.records())


def test_nonsense_inside(path):
    filled(path, (experiment(), measurement()))
    spoil(path, "UPDATE measurement SET kernel = x'00', rounds = 'many'")
    with closing(Store(path, HERE, readonly=True)) as store:
        (record,) = store.records()
        for read in (lambda: store.kernel(record.id), lambda: store.evidence("ADD")):
            with pytest.raises(StoreError, match="damaged"):
                read()


def test_a_session_that_is_no_json(path):
    filled(path)
    spoil(path, "UPDATE session SET conditions = '{'")
    with closing(Store(path, HERE, readonly=True)) as store, pytest.raises(StoreError, match="damaged"):
        store.sessions()


@BOTH
@pytest.mark.parametrize("tables", [["x"], ["meta"], ["meta", "measurement"]])
def test_a_database_of_another_program(path, readonly, tables):
    for name in tables:
        spoil(path, f"CREATE TABLE {name} (a INTEGER)")
    assert "no cyclescope store" in (said := opening(path, readonly)) or "no store" in said


@BOTH
def test_a_store_of_a_newer_version(path, readonly):
    filled(path)
    spoil(path, "UPDATE meta SET value = ? WHERE key = 'version'", str(VERSION + 1))
    assert "update cyclescope" in opening(path, readonly)


@BOTH
def test_a_store_of_an_older_version(path, readonly):
    filled(path)
    spoil(path, "UPDATE meta SET value = '0' WHERE key = 'version'")
    assert "measure again" in opening(path, readonly)


def test_a_store_of_another_machine(path):
    filled(path, (experiment(), measurement()), machine=THERE)
    said = opening(path, readonly=False)
    assert THERE in said
    assert HERE in said
    with closing(Store(path, readonly=True)) as store:
        assert (store.machine, store.count()) == (THERE, 1)


def test_a_missing_store_is_not_made_by_reading(path):
    assert "cyclescope measure" in opening(path, readonly=True)
    assert not path.exists()


def test_an_empty_file_becomes_a_store(path):
    path.touch()
    filled(path, (experiment(), measurement()))
    with closing(Store(path, HERE, readonly=True)) as store:
        assert store.count() == 1


def test_a_creation_that_was_killed_left_nothing(path, monkeypatch):
    monkeypatch.setattr("cyclescope.measure.store._SCHEMA", "CREATE TABLE meta (key); CREATE nonsense")
    with pytest.raises(StoreError):
        Store(path, HERE)
    monkeypatch.undo()
    filled(path, (experiment(), measurement()))


# --- where nothing can be written ---------------------------------------------------------------


def test_a_readonly_file(path, monkeypatch):
    """The superuser may write any file, so the database is opened for reading instead."""
    filled(path, (experiment(), measurement()))
    before = path.read_bytes()
    connect = database._connect
    monkeypatch.setattr(database, "_connect", lambda path, how: connect(path, "mode=ro"))
    assert "cannot be written" in opening(path, readonly=False)
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_made(path):
    path.write_bytes(b"")
    assert "cannot be written" in opening(path / "below" / "store.sqlite", readonly=False)


def test_a_readonly_folder_can_be_read(path, monkeypatch):
    """SQLite wants files next to one in WAL mode, which cannot be made there."""
    filled(path, (experiment(), measurement()))
    connect, asked = database._connect, []

    def unable(path, how):
        asked.append(how)
        if how == "mode=ro":
            raise sqlite3.OperationalError("unable to open database file")
        return connect(path, how)

    monkeypatch.setattr(database, "_connect", unable)
    with closing(Store(path, HERE, readonly=True)) as store:
        assert store.count() == 1
    assert asked == ["mode=ro", "immutable=1"]


def test_no_room_on_the_disk(store):
    store.write([(experiment(), measurement())])
    pages = store.database.execute("PRAGMA page_count").fetchone()[0]
    store.database.execute(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(StoreError, match="no room left"):
        store.write([(experiment(f"F{n}"), measurement()) for n in range(500)])
    assert [record.form for record in store.records()] == ["ADD"]


# --- one writer ---------------------------------------------------------------------------------


def test_a_second_writer_is_refused_and_readers_are_welcome(store, path):
    store.write([(experiment(), measurement())])
    assert "in use" in opening(path, readonly=False)
    with closing(Store(path, HERE, readonly=True)) as reader:
        assert reader.count() == 1
    store.write([(experiment("SUB"), measurement())])
    assert store.count() == 2


def test_the_next_writer_comes_after_the_first(path):
    for _ in range(3):
        filled(path)
    assert not Path(f"{path}-lock").exists()


def test_a_killed_writer_leaves_the_store_free(path):
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from cyclescope.measure.store import Store\n"
        f"store = Store(Path({str(path)!r}), {HERE!r})\n"
        "store.write_legality([('ADD', 'ok')])\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, env={"PYTHONPATH": SOURCE})
    assert done.returncode == -9
    with closing(Store(path, HERE)) as store:
        assert store.legality() == {"ADD": "ok"}


def test_a_lock_removed_under_a_waiting_writer_is_taken_anew(path, monkeypatch):
    first = database.WriterLock(path)
    flock = database.fcntl.flock

    def slow(file, how):
        monkeypatch.setattr(database.fcntl, "flock", flock)
        first.release()  # between opening the file and locking it
        flock(file, how)

    monkeypatch.setattr(database.fcntl, "flock", slow)
    second = database.WriterLock(path)
    with pytest.raises(StoreError):
        database.WriterLock(path)
    second.release()


def test_a_file_system_without_locks_is_no_obstacle(path, monkeypatch):
    def unsupported(file, how):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(database.fcntl, "flock", unsupported)
    filled(path, (experiment(), measurement()))


# --- merging ------------------------------------------------------------------------------------


def test_merging_takes_what_is_missing_or_better(tmp_path):
    one = filled(
        tmp_path / "one.sqlite",
        (experiment("A"), measurement(1.0)),
        (experiment("B"), measurement(2.0, "unstable")),
        (experiment("C"), measurement(3.0, "unstable")),
    )
    two = filled(
        tmp_path / "two.sqlite",
        (experiment("A"), measurement(10.0)),
        (experiment("B", level=2), measurement(20.0)),
        (experiment("C"), measurement(30.0, "noisy")),
        (experiment("D"), measurement(40.0)),
        session="other",
    )
    before = two.read_bytes()
    assert merge_files([two], one) == [(two, 2)]
    assert two.read_bytes() == before
    with closing(Store(one, HERE, readonly=True)) as store:
        assert {r.form: r.cycles for r in store.records()} == {"A": 1.0, "B": 20.0, "C": 3.0, "D": 40.0}
        assert store.legality() == {"ADD": "ok", "one": "SIGILL", "two": "SIGILL"}
        (taken,) = store.evidence("B")
        assert taken.conditions == {"name": "other"}
        assert taken.state == default_state(2).packed


def test_merging_twice_changes_nothing(tmp_path):
    one = filled(tmp_path / "one.sqlite", (experiment("A"), measurement()))
    out = tmp_path / "out.sqlite"
    assert merge_files([one], out) == [(one, 1)]
    assert merge_files([one, one], out) == [(one, 0), (one, 0)]
    with closing(Store(out, HERE, readonly=True)) as store:
        assert len(store.sessions()) == 1


def refused(sources, output, kind=StoreError):
    with pytest.raises(kind) as error:
        merge_files(sources, output)
    return str(error.value)


def test_stores_of_two_machines_do_not_merge(tmp_path):
    one = filled(tmp_path / "one.sqlite", (experiment(), measurement()))
    two = filled(tmp_path / "two.sqlite", machine=THERE)
    assert "one machine" in refused([one, two], tmp_path / "out.sqlite")
    assert not (tmp_path / "out.sqlite").exists()
    before = two.read_bytes()
    assert "another machine" in refused([one], two)
    assert two.read_bytes() == before


def test_a_store_does_not_merge_into_itself(tmp_path, monkeypatch):
    one = filled(tmp_path / "one.sqlite", (experiment(), measurement()))
    monkeypatch.chdir(tmp_path)
    assert "both" in refused([one], Path("one.sqlite"), UsageError)


def test_a_missing_source(tmp_path):
    one = filled(tmp_path / "one.sqlite")
    assert "no store at" in refused([one, tmp_path / "none"], tmp_path / "out.sqlite")
    assert not (tmp_path / "out.sqlite").exists()


def test_a_damaged_source_is_the_one_named(tmp_path):
    many = [(experiment(f"F{n}"), measurement()) for n in range(400)]
    one = filled(tmp_path / "one.sqlite", *many)
    whole = one.read_bytes()
    one.write_bytes(whole[:8192] + bytes(len(whole) - 8192))
    out = filled(tmp_path / "out.sqlite", (experiment("A"), measurement()))
    said = refused([one], out)
    assert "one.sqlite is damaged" in said
    with closing(Store(out, HERE, readonly=True)) as store:
        assert store.count() == 1


def test_a_source_that_a_program_writes_can_be_merged(tmp_path):
    one = tmp_path / "one.sqlite"
    with closing(Store(one, HERE)) as writer:
        writer.write([(experiment(), measurement())])
        assert merge_files([one], tmp_path / "out.sqlite") == [(one, 1)]
