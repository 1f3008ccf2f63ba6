"""The store: what goes in comes out, wrong files are refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import msgspec
import pytest

from cyclescope.errors import StoreError
from cyclescope.measure.database import SCHEMA_VERSION
from cyclescope.measure.merge import merge_files
from cyclescope.measure.record import NOISY
from cyclescope.measure.store import Store
from cyclescope.model.facts import CoreAnswer, Fact
from tests.support.files.stores import HERE, THERE, experiment, filled, measurement, opening, spoil

# --- what goes in comes out ---------------------------------------------------------------------


def test_a_session_says_what_share_of_its_samples_was_rejected(store):
    store.note_samples({"accepted": 6, "rejected": 2, "disturbed": 1})
    store.note_samples({"accepted": 4, "rejected": 3, "disturbed": 0})
    assert store.sessions()[-1]["samples"] == {"accepted": 10, "rejected": 5, "disturbed": 1}
    store.write([(experiment(), measurement())])  # a session is written with its first measurement
    store.begin_session("later", {})
    store.note_samples({"accepted": 1, "rejected": 1, "disturbed": 1})
    assert [s["samples"]["accepted"] for s in store.sessions()] == [10, 1]


def test_an_empty_file_becomes_a_store_and_is_none_to_read(tmp_path):
    path = tmp_path / "s.sqlite"
    path.touch()
    with pytest.raises(StoreError, match="is empty"):
        Store(path, HERE, readonly=True)
    Store(path, HERE).close()
    Store(path, HERE, readonly=True).close()


def test_events_are_those_of_the_newest_session_that_says(tmp_path):
    """Sessions of probes count others."""
    with closing(Store(tmp_path / "s.sqlite", HERE)) as opened:
        assert opened.events() == ()
        for told, expected in ({"events": ["p0", "p1"]}, 2), ({"asked": {}}, 2), ({"events": ["p0"]}, 1):
            opened.begin_session("now", told)
            opened.write([(experiment(), measurement())])
            assert len(opened.events()) == expected
        opened.begin_session("now", {"events": []})
        opened.write([(experiment(), measurement())])
        assert opened.events() == ()


def test_a_measurement_comes_back(store):
    store.write([(experiment(), measurement())])
    (record,) = store.records(["ADD"])
    assert (record.form, record.source, record.target, record.variant) == ("ADD", "op1", "op2", "plain")
    assert (record.cycles, record.spread, record.verdict) == (1.0, 0.25, "ok")
    assert (record.count, record.links, record.exceptions) == (2, ("a", "b"), 2)
    assert record.per_instance == 0.5


def test_rows_of_other_forms_that_a_damaged_index_leads_to(tmp_path):
    """A name is in the table and in the index, and either can be damaged: only what was asked for comes."""
    name, damaged = b"FORM (R64, M64)", b"FORM (R64, M64\0"
    rows = [(experiment(form=name.decode(), variant=variant), measurement()) for variant in "abc"]
    path = filled(tmp_path / "a.sqlite", *rows)
    data = path.read_bytes()
    told = 0
    for n in range(data.count(name)):
        parts = data.split(name)
        hurt = tmp_path / f"{n}.sqlite"
        hurt.write_bytes(name.join(parts[: n + 1]) + damaged + name.join(parts[n + 1 :]))
        with closing(Store(hurt, readonly=True)) as opened:
            for found in (opened.records([name.decode()]), opened.records_of(("latency",), [name.decode()])):
                assert {record.form for record in found} <= {name.decode()}
            told += any("index" in row.reason for row in opened.unreadable)
    assert told, "one of them is that of the index"


@pytest.mark.parametrize(
    "read", [lambda s: s.facts(), lambda s: list(s.records()), lambda s: s.readings(("a",))]
)
def test_lengths_in_a_damaged_store_are_more_than_there_is_memory(store, monkeypatch, read):
    class Enormous:
        text_factory = str

        def execute(self, *_):
            raise MemoryError

    monkeypatch.setattr(store, "database", Enormous())
    monkeypatch.setattr(store._rows, "_database", Enormous())
    with pytest.raises(StoreError, match="no memory is enough for it"):
        read(store)


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
    assert store.done() == store.done(but=("throughput",)) == {("ADD", "latency", "op1", "op2", "plain")}
    assert store.done(but=("throughput", "latency")) == set()


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
    spoil(path, "UPDATE meta SET value = ? WHERE key = 'version'", str(SCHEMA_VERSION + 1))
    assert "update cyclescope" in opening(path, readonly)


@BOTH
def test_a_store_of_an_older_version(path, readonly):
    filled(path)
    spoil(path, "UPDATE meta SET value = '0' WHERE key = 'version'")
    assert "measure again" in opening(path, readonly)


@BOTH
@pytest.mark.parametrize(("key", "told"), [("version", "has version none"), ("machine", "machine (None)")])
def test_a_store_whose_origin_is_no_text(path, readonly, key, told):
    filled(path)
    spoil(path, f"UPDATE meta SET value = x'ff31' WHERE key = '{key}'")
    assert told in opening(path, readonly)


def test_a_store_of_another_machine(path):
    filled(path, (experiment(), measurement()), machine=THERE)
    said = opening(path, readonly=False)
    assert THERE in said
    assert HERE in said
    with closing(Store(path, readonly=True)) as store:
        assert (store.machine, store.count()) == (THERE, 1)


def test_a_missing_store_is_not_made_by_reading(path):
    assert "cyclescope.measure_forms()" in opening(path, readonly=True)
    assert not path.exists()


def test_an_empty_file_becomes_a_store(path):
    path.touch()
    filled(path, (experiment(), measurement()))
    with closing(Store(path, HERE, readonly=True)) as store:
        assert store.count() == 1


def test_a_creation_that_was_killed_left_nothing(path, monkeypatch):
    monkeypatch.setattr("cyclescope.measure.database.SCHEMA", "CREATE TABLE meta (key); CREATE nonsense")
    with pytest.raises(StoreError):
        Store(path, HERE)
    monkeypatch.undo()
    filled(path, (experiment(), measurement()))
    with closing(Store(path, HERE, readonly=True)) as store:
        assert store.count() == 1


# --- instruction set, emulators -----------------------------------------------------------------


def test_a_store_knows_its_instruction_set(tmp_path):
    path = tmp_path / "s.sqlite"
    for more in ({"isa": "riscv64"}, {"isa": "aarch64"}, {}):  # the first one decides
        with closing(Store(path, HERE, **more)) as opened:
            assert opened.isa == "riscv64"
    merge_files([path], tmp_path / "merged.sqlite")
    with closing(Store(tmp_path / "merged.sqlite", readonly=True)) as merged:
        assert merged.isa == "riscv64"


def test_stores_of_the_first_versions_are_of_x86_64(tmp_path):
    path = filled(tmp_path / "s.sqlite")
    spoil(path, "DELETE FROM meta WHERE key = 'isa'")
    with closing(Store(path, HERE)) as opened:
        assert opened.isa == "x86-64"


def test_one_emulated_session_is_enough(tmp_path):
    with closing(Store(tmp_path / "s.sqlite", HERE)) as opened:
        for conditions, emulated in ({}, False), ({"emulated": False}, False), ({"emulated": True}, True):
            opened.begin_session("now", conditions)
            assert opened.emulated == emulated
            opened.write_legality([("ADD", "ok")])
            assert opened.emulated == emulated
        opened.begin_session("later", {"emulated": False})
        assert opened.emulated


# --- facts ---------------------------------------------------------------------------------------


def fact(subject, answer=CoreAnswer.ELIMINATED, probe="moves"):
    return Fact(probe, subject, answer, 0.0, 0.01, "cycles", "high")


def test_facts_come_back_and_a_shorter_run_leaves_the_others(store):
    assert store.facts() == []
    store.write_probe("moves", [fact("a"), fact("b")], [(experiment(quantity="probe"), measurement())])
    store.write_probe("moves", [fact("b", CoreAnswer.EXECUTED)], [])
    store.write_probe("idioms", [fact("a", CoreAnswer.ZERO, "idioms")], [])
    assert store.facts() == [fact("a", CoreAnswer.ZERO, "idioms"), fact("a"), fact("b", CoreAnswer.EXECUTED)]
    assert store.has("probe")
    store.clear()
    assert store.facts() == []


def test_facts_merge(tmp_path):
    for name, answer in (("one", CoreAnswer.ELIMINATED), ("two", CoreAnswer.EXECUTED)):
        with closing(Store(tmp_path / name, HERE)) as opened:
            opened.write_probe("moves", [fact("a", answer)], [(experiment(quantity="probe"), measurement())])
    merge_files([tmp_path / "one", tmp_path / "two"], tmp_path / "both")
    with closing(Store(tmp_path / "both", readonly=True)) as both:
        assert both.facts() == [fact("a", CoreAnswer.ELIMINATED)]


def test_names_in_a_schema_that_are_no_text(store, path):
    """SQLite's message names the table, and Python cannot read the message."""
    store.write([(experiment(), measurement())])
    store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA writable_schema = ON")
        bad = "UPDATE sqlite_master SET name = CAST(x'ff6162' AS TEXT), sql = 'none' WHERE name = 'link'"
        database.execute(bad)
    for readonly in (True, False):
        assert "a name in its schema is no text" in opening(path, readonly)


def test_damaged_facts_are_left_out(store):
    store.write_probe("moves", [fact("a")], [])
    store.write_probe("idioms", [fact("a", probe="idioms")], [])
    with store.database as db:
        db.execute("UPDATE fact SET value = 'nonsense' WHERE probe = 'moves'")
    assert [one.probe for one in store.facts()] == ["idioms"]
    assert [(one.what, one.key) for one in store.unreadable] == [("fact", "moves")]


@pytest.mark.parametrize(("cycles", "read"), [(-2.0, 0), (-1.1, 0), (-0.9, 1), (-0.1, 1)])
def test_less_than_nothing_was_disturbed_and_is_left_out(store, cycles, read):
    store.write([(experiment(), msgspec.structs.replace(measurement(), cycles=cycles, verdict=NOISY))])
    assert len(list(store.records())) == read
    assert len(store.unreadable) == 1 - read
