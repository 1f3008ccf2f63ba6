"""Merging stores: what is missing or better is taken, what does not belong is refused."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from cyclescope.errors import StoreError, UsageError
from cyclescope.measure.bench import default_state
from cyclescope.measure.merge import Merged, by_machine, merge_files
from cyclescope.measure.store import Store
from tests.support.files.stores import HERE, THERE, experiment, filled, measurement


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
    assert merge_files([two], one) == [Merged(two, 2)]
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
    assert merge_files([one], out) == [Merged(one, 1)]
    assert merge_files([one, one], out) == [Merged(one, 0), Merged(one, 0)]
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
        assert merge_files([one], tmp_path / "out.sqlite") == [Merged(one, 1)]


def test_stores_of_several_machines_are_sorted(tmp_path):
    """One file per machine, named as its default store; what is merged again changes nothing."""
    sources = [
        filled(tmp_path / "one.sqlite", (experiment(), measurement())),
        filled(tmp_path / "two.sqlite", (experiment("SUB"), measurement())),
        filled(tmp_path / "three.sqlite", (experiment(), measurement()), machine=THERE),
    ]
    folder = tmp_path / "machines"
    groups = by_machine(sources, folder)
    names = ["this-machine.sqlite", "that-machine.sqlite"]
    assert groups == [(folder / names[0], sources[:2]), (folder / names[1], sources[2:])]
    for _ in range(2):
        for target, some in groups:
            merge_files(some, target)
        counts = [_count(target) for target, _ in groups]
        assert counts == [2, 1]


def _count(path):
    with closing(Store(path, readonly=True)) as store:
        return store.count()
