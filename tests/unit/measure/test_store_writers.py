"""Writing a store: where nothing can be written, and one writer at a time."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from cyclescope.errors import StoreError
from cyclescope.measure import database
from cyclescope.measure.database import open_readonly
from cyclescope.measure.plan import LATENCY
from cyclescope.measure.store import Store
from tests.support.files.stores import HERE, experiment, filled, measurement, opening
from tests.support.programs.processes import environment

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


def test_batches_are_not_waited_for_until_the_disk_has_them(store):
    """Of a store that is made anew and is kept in a log (WAL), which stays whole without."""
    told = {
        name: store.database.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous")
    }
    assert told == {"journal_mode": "wal", "synchronous": 1}


def test_a_store_knows_what_came_and_went_since_it_was_opened(path):
    filled(path, *[(experiment(f"F{n}"), measurement()) for n in range(5)])
    with closing(Store(path, HERE)) as store:
        assert store.changes.measured == set()
        store.write([(experiment("F4"), measurement())])  # the last one, in its place
        assert store.changes.measured == {("F4", LATENCY)}
        store.forget([experiment(form).key for form in ("F2", "F3", "F4")])
        assert store.changes.measured == {(form, LATENCY) for form in ("F2", "F3", "F4")}
        store.write(
            [(experiment(form), measurement()) for form in ("new", "newer")]
        )  # with numbers of others
        store.database.execute("UPDATE measurement SET cycles = 3.0 WHERE form = 'F0'")
        assert store.changes.measured == {
            (form, LATENCY) for form in ("F0", "F2", "F3", "F4", "new", "newer")
        }
    with closing(Store(path, HERE)) as store:
        assert store.changes.measured == set()


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
    done = subprocess.run([sys.executable, "-c", code], check=False, env=environment())
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
    with pytest.raises(StoreError, match="in use"):
        database.WriterLock(path)
    second.release()
    assert not Path(f"{path}-lock").exists()


def test_a_file_system_without_locks_is_no_obstacle(path, monkeypatch):
    def unsupported(file, how):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(database.fcntl, "flock", unsupported)
    filled(path, (experiment(), measurement()))
    with closing(Store(path, HERE, readonly=True)) as store:
        assert store.count() == 1


WRITER = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("CREATE TABLE kept (x)")
db.execute("PRAGMA cache_size = 2")
db.execute("BEGIN")
db.execute("CREATE TABLE lost (x)")
for _ in range(2000):
    db.execute("INSERT INTO lost VALUES (?)", ("x" * 500,))
print("writing", flush=True)
time.sleep(60)
"""


def test_what_a_killed_writer_had_not_finished_is_undone_for_a_reader(tmp_path):
    path = tmp_path / "a.sqlite"
    with subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE) as writer:
        assert writer.stdout.readline() == b"writing\n"
        writer.kill()
    assert Path(f"{path}-journal").exists()
    with closing(open_readonly(path)) as database:
        assert [name for (name,) in database.execute("SELECT name FROM sqlite_master")] == ["kept"]
