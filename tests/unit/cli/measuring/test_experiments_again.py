"""`cyclescope store verify`, and `compare` of experiments."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from cyclescope.errors import BackendUnavailable

FAILURE, USAGE = 1, 2


@pytest.fixture
def spoiled(store):
    """A store whose times are those of another machine."""
    with closing(sqlite3.connect(store)) as database, database:
        database.execute("UPDATE measurement SET cycles = 3 * cycles")
    return store


def test_a_store_agrees_with_its_own_machine(cyclescope, machine, store):
    done = cyclescope("store", "verify", store, "--sample", "20")
    assert done.code == 0, done.err
    assert "agrees with this machine" in done.out
    data = json.loads(cyclescope("store", "verify", store, "--sample", "20", "--json").out)
    assert data["agrees"] is True
    assert len(data["experiments"]) == 20
    other = json.loads(cyclescope("store", "verify", store, "--sample", "20", "--seed", "1", "--json").out)
    assert [one["id"] for one in other["experiments"]] != [one["id"] for one in data["experiments"]]


def test_other_times_are_noticed(cyclescope, machine, spoiled):
    done = cyclescope("store", "verify", spoiled, "--sample", "20")
    assert done.code == FAILURE
    assert "farthest apart" in done.out
    assert "does not agree" in done.error


def test_only_a_machine_of_the_same_kind_tells(cyclescope, machine, store):
    with closing(sqlite3.connect(store)) as database, database:
        database.execute("UPDATE meta SET value = 'another machine' WHERE key = 'machine'")
    done = cyclescope("store", "verify", store)
    assert done.code == FAILURE
    assert "is of another machine" in done.error


def test_a_store_with_nothing_to_repeat(cyclescope, machine, store):
    with closing(sqlite3.connect(store)) as database, database:
        database.execute("UPDATE measurement SET verdict = 'noisy'")
    assert "no stable measurement" in cyclescope("store", "verify", store).error


def test_the_same_experiments_on_a_simulated_core(cyclescope, store):
    done = cyclescope("compare", store, "simulated:znver4", "--form", "imul", "--json")
    assert done.code == 0, done.err
    data = json.loads(done.out)
    assert sum(data["counts"]["latency"].values()) > 3
    assert {one["form"].split()[0] for one in data["experiments"]} == {"IMUL"}
    text = cyclescope("compare", store, "simulated:znver4", "--form", "imul").out
    assert "equal of compared" in text
    assert {"operations", "slots", "ports"} == set(data["usage"]["counts"])
    assert "ports, given as many micro-operations" in text
    text = cyclescope("compare", store, "simulated:zen5", "--form", "imul").out
    assert text.splitlines()[0].endswith(", costs, ports and buffers of znver4, another core")


def test_a_page_of_the_same_experiments(cyclescope, store, tmp_path):
    done = cyclescope("compare", store, "simulated:znver4", "--html", tmp_path / "page.html")
    assert done.code == 0, done.err
    page = (tmp_path / "page.html").read_text()
    assert "front-end slots" in page
    assert "equal of compared" in page
    assert "--csv" in cyclescope("compare", store, "simulated:znver4", "--csv").error


def test_cpus_of_llvm_mca_have_the_names_of_machines(cyclescope, store, monkeypatch):
    asked = []

    def backend(cpu, isa):
        asked.append(cpu)
        raise BackendUnavailable("no llvm-mca")

    monkeypatch.setattr("cyclescope.backend.peers.llvm_mca.LlvmMcaBackend", backend)
    for name in ("zen5", "ZEN3", "znver4", "nosuch"):
        cyclescope("compare", store, f"mca:{name}")
    assert asked == ["znver5", "znver3", "znver4", "nosuch"]


def test_experiments_that_cannot_be_compared(cyclescope, store):
    assert cyclescope("compare", "znver4", "mca:znver4").code == USAGE
    assert cyclescope("compare", store, store, "mca:znver4").code == USAGE
    assert "names nothing" in cyclescope("compare", store, "simulated:").error


def test_several_machines_make_one_table(cyclescope, store, tmp_path):
    other = tmp_path / "other.sqlite"
    other.write_bytes(store.read_bytes())
    done = cyclescope("store", "merge", store, other, "--table", tmp_path / "table.csv")
    assert done.code == 0, done.err
    rows = (tmp_path / "table.csv").read_text().splitlines()
    assert rows[0].endswith(f"{store},{other}")
    assert len(rows) > 10
    assert "throughput" in done.out
    assert cyclescope("store", "merge", store, "--table", tmp_path / "t.csv").code == USAGE
    assert (
        cyclescope("store", "merge", store, other, "-t", tmp_path / "t", "-o", tmp_path / "o").code == USAGE
    )
