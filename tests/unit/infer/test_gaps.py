"""What a store does not tell, and what it does not pretend to tell."""

from __future__ import annotations

from contextlib import closing

import pytest

from cyclescope.infer.gaps import Gaps
from cyclescope.infer.kept import timings
from cyclescope.infer.machine_model import build_model
from cyclescope.infer.timing.latency_system import LinkLatency
from cyclescope.infer.timing.links import is_latency
from cyclescope.infer.timing.results import UNMEASURED
from cyclescope.infer.workload import Workload
from cyclescope.measure.store import Store
from tests.support.files.damage import FORMS, change, fill

DIV = "DIV (R64)"


STOPPED = ("UPDATE session SET conditions = json_remove(conditions, '$.finished')",)


def read(path, table, names=FORMS):
    """Timings by form, and what is said to be missing."""
    with closing(Store(path, readonly=True)) as store:
        found = timings(store, table, [table[name] for name in names])
        return {timing.id: timing for timing in found}, [note.text for note in Gaps(found).notes(store)]


def valued(timing):
    return {(lat.source, lat.target): lat.max for lat in timing.latencies if lat.max is not None}


def test_nothing_is_missing_in_a_finished_run(path, table):
    assert read(path, table)[1] == []


def test_a_pair_without_a_base_chain_has_a_reason(path, table):
    """Rows of links alone: neither a value nor an error."""
    change(path, ("DELETE FROM measurement WHERE quantity = 'latency' AND variant NOT GLOB '* link'",))
    found, _ = read(path, table)
    pairs = [lat for timing in found.values() for lat in timing.latencies]
    assert pairs
    assert {lat.max for lat in pairs} == {None}
    assert any(lat.reason == UNMEASURED for lat in pairs)
    assert all(lat.reason for lat in pairs)


@pytest.mark.parametrize("speed", ["fast", "slow"])
def test_half_of_a_division_is_no_latency(path, table, speed):
    """A chain with one class of values is no answer where the other has not been measured."""
    whole = valued(read(path, table)[0][DIV])
    change(path, ("DELETE FROM measurement WHERE form = ? AND variant = ?", DIV, speed), STOPPED)
    found, notes = read(path, table)
    half = valued(found[DIV])
    assert whole
    assert not half
    assert found[DIV].throughput.value is None
    reasons = {lat.reason for lat in found[DIV].latencies if lat.unfinished}
    assert any(reason.startswith(f"{UNMEASURED} to the end: 1 of 2") for reason in reasons)
    pairs = sum(lat.unfinished for lat in found[DIV].latencies)
    assert f"without a value yet: throughput of 1 form, latency of {pairs} operand pairs" in notes[0]


def test_one_of_several_sequences_is_no_throughput(path, table):
    last = "SELECT max(id) FROM measurement WHERE form = 'IMUL (R64, R64)' AND quantity = 'throughput'"
    change(path, (f"DELETE FROM measurement WHERE id = ({last})",), STOPPED)
    found, _ = read(path, table)
    throughput = found["IMUL (R64, R64)"].throughput
    assert (throughput.value, throughput.unfinished) == (None, True)
    assert "1 of" in throughput.reason


def test_ports_are_not_told_before_the_classes_are_compared(path, table):
    assert read(path, table)[0][FORMS[0]].ports
    each_alone = "quantity = 'pairs' AND variant NOT GLOB '*.*.*' AND form <> source"
    last = f"SELECT max(id) FROM measurement WHERE {each_alone}"
    change(path, (f"DELETE FROM measurement WHERE quantity = 'pairs' AND id >= ({last}) - 1",), STOPPED)
    found, notes = read(path, table)
    assert {timing.ports for timing in found.values()} == {None}
    assert "ports of 8 forms" in notes[0]
    with closing(Store(path, readonly=True)) as store:
        model = build_model(store, table)
    assert model.ports == ()
    assert any("ports of" in line for line in model.provenance.missing)


def test_ports_are_not_told_before_each_class_was_among_each(path, table):
    """Pairs alone leave so many kinds of ports that looking for a structure takes half a minute."""
    first = "SELECT id FROM measurement WHERE quantity = 'ports' ORDER BY id LIMIT 60"
    change(path, (f"DELETE FROM measurement WHERE id > (SELECT max(id) FROM ({first}))",), STOPPED)
    found, notes = read(path, table)
    assert {timing.ports for timing in found.values()} == {None}
    assert "ports of 8 forms" in notes[0]


def test_damaged_rows_are_told_and_not_used(path, table):
    change(path, ("UPDATE measurement SET cycles = 'abc' WHERE form = ? AND quantity = 'throughput'", DIV))
    found, notes = read(path, table)
    assert found[DIV].throughput.value is None
    assert "damaged rows of the store are left out (measurement" in notes[0]
    assert f"of {DIV}: cycles is 'abc'" in notes[0]


def test_damaged_rows_are_measured_again(path, table):
    before = valued(read(path, table)[0][DIV])
    change(path, ("UPDATE measurement SET cycles = 9e999 WHERE form = ?", DIV))
    assert not valued(read(path, table)[0][DIV])
    fill(path, table)
    found, notes = read(path, table)
    assert valued(found[DIV]) == before
    assert notes == []


def test_a_damaged_link_is_measured_again(path, table):
    before = valued(read(path, table)[0]["MOV (R64, M64)"])
    change(path, ("UPDATE link SET value = '{' WHERE key GLOB '*mem*' OR key = 'r>r'",))
    assert valued(read(path, table)[0]["MOV (R64, M64)"]) != before
    fill(path, table)
    assert valued(read(path, table)[0]["MOV (R64, M64)"]) == before


def test_what_was_not_asked_for_is_not_said_to_be_stopped(tmp_path, table):
    path = fill(tmp_path / "store.sqlite", table, ("throughput",))
    _, (note,) = read(path, table)
    assert note == f"either throughput or latency of {len(FORMS) - 1} forms was not asked for"


def test_a_run_that_finds_nothing_to_do_leaves_the_store_as_it_is(path, table):
    content = path.read_bytes()
    fill(path, table)
    assert path.read_bytes() == content


# --- how much of a run is done ---------------------------------------------------------------------


def test_shares_go_from_nothing_to_all():
    work = Workload({"throughput", "latency", "ports"})
    shares = [
        work.share(stage, done, 10)
        for stage in ("measuring", "second look", "classes", "classes", "ports", "model of this machine")
        for done in (0, 5, 10)
    ]
    assert shares == sorted(shares)
    assert 0 < shares[0] < 0.1
    assert shares[-1] == 1.0
    assert work.share("a stage of another core", 1, 2) == 1.0


def test_what_is_not_asked_for_takes_no_share():
    less = Workload({"throughput"}).share("measuring", 10, 10)
    more = Workload({"throughput", "latency", "ports"}).share("measuring", 10, 10)
    assert more < 0.4 < 0.85 < less


# --- links that have no latency ----------------------------------------------------------------------

LOST = ("UPDATE link SET value = json_set(value, '$.value', -3.5) WHERE key = 'nop'",)
EMULATED = ("UPDATE session SET conditions = json_set(conditions, '$.emulated', json('true'))",)


def test_a_link_that_takes_less_than_nothing_is_damage(path, table):
    change(path, LOST)
    assert "link nop: no latency" in read(path, table)[1][0]


def test_no_link_of_an_emulator_is_damage(path, table):
    for statement in (LOST, EMULATED):
        change(path, statement)
    assert read(path, table)[1] == []


@pytest.mark.parametrize("value", [-0.1, float("inf"), float("nan")])
def test_what_cannot_be_a_latency_is_not_kept_as_a_link(value):
    assert is_latency(LinkLatency(1.0, 1.0, 1.0))
    assert not is_latency(LinkLatency(value, 1.0, 1.0))


# --- values that are not there -----------------------------------------------------------------------


def test_only_values_have_a_confidence(path, table):
    change(path, ("DELETE FROM measurement WHERE form LIKE 'DIV%' AND quantity = 'throughput'",))
    found, _ = read(path, table, [*FORMS, DIV])
    assert found[DIV].throughput.value is None
    assert all(bool(t.throughput.confidence) is (t.throughput.value is not None) for t in found.values())
    change(path, ("DELETE FROM measurement WHERE form LIKE 'IMUL%' AND quantity = 'latency'",))
    pairs = [lat for t in (*found.values(), *read(path, table)[0].values()) for lat in t.latencies]
    assert {lat.max is None for lat in pairs} == {True, False}
    assert all(bool(lat.confidence) is (lat.max is not None) for lat in pairs)


def test_latencies_alone_make_a_model(path, table):
    change(path, ("DELETE FROM measurement WHERE quantity NOT IN ('latency', 'link')",))
    with closing(Store(path, readonly=True)) as store:
        model = build_model(store, table)
    assert model.forms["IMUL (R64, R64)"].latencies
    assert all(cost.throughput is None for cost in model.forms.values())
