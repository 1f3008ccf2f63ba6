"""What a run and its results are divided into, and how much of it is told: both sides of each limit."""

from __future__ import annotations

from contextlib import closing
from types import SimpleNamespace

import pytest

from cyclescope.backend.base import OK, Outcome
from cyclescope.infer.campaign import Campaign
from cyclescope.infer.gaps import Gaps
from cyclescope.infer.machine_model import model_of
from cyclescope.infer.readout import Readout
from cyclescope.infer.timing.second_looks import latency_questions
from cyclescope.kernel.kernel import Kernel
from cyclescope.kernel.state import MachineState
from cyclescope.kernel.variant import Kind
from cyclescope.measure.plan import LATENCY, THROUGHPUT, Experiment, Planner
from cyclescope.measure.record import STABLE
from cyclescope.measure.rows import Unreadable
from cyclescope.measure.sampling import Measurement, Sampler
from cyclescope.measure.store import Store
from tests.support.files.damage import change, fill
from tests.support.files.records import IMUL, chain, stream, timing

KERNEL = Kernel(b"\x90", 1, MachineState((0,) * 16))


@pytest.fixture
def store(tmp_path):
    with closing(Store(tmp_path / "store.sqlite", "core")) as opened:
        yield opened


# --- trying which forms run --------------------------------------------------------------------------


class Trying:
    """A backend that executes everything, and keeps how many kernels it was given at once."""

    def __init__(self):
        self.batches = []

    def probe(self, kernels):
        self.batches.append(len(kernels))
        return [Outcome(OK)] * len(kernels)


@pytest.mark.parametrize(("forms", "batches"), [(500, [500]), (501, [500, 1])])
def test_forms_are_tried_five_hundred_at_a_time(table, store, forms, batches):
    """Each answer tells how far it is, after a tenth of a second."""
    backend, told = Trying(), []
    run = Campaign(table, backend, store, told.append)
    run.find_legal([table["IMUL (R64, R64)"]] * forms)
    assert backend.batches == batches
    assert [(one.done, one.total) for one in told] == [(n * 500, forms) for n in range(len(batches))]


@pytest.mark.parametrize(("cycles", "filled"), [(1100.0, True), (1990.0, True), (2010.0, False)])
def test_chains_of_slow_forms_are_not_filled(table, tmp_path, cycles, filled):
    """It takes as many instructions as the form has cycles: thousands are beyond caches of code."""
    path = tmp_path / "store.sqlite"
    for _ in range(2):
        fill(path, table, (THROUGHPUT, LATENCY), ("IMUL (R64, R64)",))
        change(
            path, ("UPDATE measurement SET cycles = ? * count, rounds = '' WHERE form GLOB 'IMUL*'", cycles)
        )
    with closing(Store(path, readonly=True)) as store:
        found = {record.kind for record in store.records_of((LATENCY,))}
    assert (Kind.FILLED in found) is filled


@pytest.mark.parametrize(("steps", "count"), [(1, 7), (2, 10)])
def test_filled_chains_are_three_instructions_longer_than_what_hides_them(table, steps, count):
    """And longer ones by three more, so that noise of a ninth of a cycle in each is seen."""
    first = timing(IMUL, chain(4.0), stream(16.0))  # an instance in four cycles
    asked = latency_questions(Planner(table, lambda form: True), table[IMUL], first, steps)
    assert [e.links.count("r>r") for e in asked if e.variant == Kind.FILLED] == [count]


def test_what_a_filled_chain_tells_is_asked_of_a_longer_one(table, tmp_path):
    path = tmp_path / "store.sqlite"
    fill(path, table, (THROUGHPUT, LATENCY), ("IMUL (R64, R64)",))
    with closing(Store(path, readonly=True)) as store:
        assert not any(record.kind is Kind.LONGER for record in store.records_of((LATENCY,)))
    change(path, ("UPDATE measurement SET cycles = 16.0 * count, rounds = '' WHERE form GLOB 'IMUL*'",))
    for _ in range(2):  # asked once
        fill(path, table, (THROUGHPUT, LATENCY), ("IMUL (R64, R64)",))
        with closing(Store(path, readonly=True)) as store:
            found = {(r.source, r.target, r.variant): r.cycles for r in store.records_of((LATENCY,))}
        longer = found["op1", "op1", "filled longer"] - found["op1", "op1", "filled"]
        assert longer == pytest.approx(3.0, abs=0.1)


def test_what_is_undecided_is_measured_eight_times(table, tmp_path):
    """Of a latency that is no whole number, and then no more."""
    path = tmp_path / "store.sqlite"
    fill(path, table, (THROUGHPUT, LATENCY), ("IMUL (R64, R64)",))
    off = "UPDATE measurement SET cycles = 3.3 * count, rounds = '' WHERE form GLOB 'IMUL*'"
    change(path, (off + " AND source = 'op1'",))
    for _ in range(2):
        fill(path, table, (THROUGHPUT, LATENCY), ("IMUL (R64, R64)",))
        with closing(Store(path, readonly=True)) as store:
            again = [r for r in store.records_of((LATENCY,)) if r.look.again]
        assert {(r.source, len(r.rounds)) for r in again} == {("op1", 8)}
        assert len({r.key for r in again}) == len(again)


def test_undecided_chains_run_four_times_as_long(table, tmp_path, monkeypatch):
    """What chains through memory take at first is a smaller part of it."""
    made = []

    def sampler(backend, effort=None, **options):
        made.append((effort, options.get("least")))
        return Sampler(backend, effort, **options)

    for module in ("campaign", "ahead.later"):
        monkeypatch.setattr(f"cyclescope.infer.{module}.Sampler", sampler)
    fill(tmp_path / "store.sqlite", table, (THROUGHPUT, LATENCY), ("IMUL (R64, R64)",))
    assert [effort.target for effort, least in made if least == 8] == [20000.0]
    assert made[0] == (None, None)


# --- reading results -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("forms", "told"), [(500, [0, 500]), (501, [0, 500, 501])])
def test_results_are_read_five_hundred_forms_at_a_time(table, store, forms, told):
    """Each part tells how far it is."""
    done = []
    some = list(table)[:forms]
    found = list(Readout(store, table, forms=some).each(lambda now, total: done.append(now)))
    assert (done, len(found)) == (told, forms)


@pytest.mark.parametrize(
    ("rows", "shown", "more"), [(1, 1, False), (7, 7, False), (8, 8, False), (9, 8, True)]
)
def test_eight_damaged_rows_are_told_one_by_one(rows, shown, more):
    unreadable = [Unreadable("measurement", key, "F", "cycles is 'abc'") for key in range(rows)]
    (said,) = Gaps().notes(SimpleNamespace(unreadable=unreadable, stopped=lambda: False))
    note = said.text
    assert note.startswith(f"{rows} damaged")
    assert note.count("cycles is 'abc'") == shown
    assert ("; ..." in note) is more


@pytest.mark.parametrize(("sessions", "told"), [(7, 7), (8, 8), (9, 8), (20, 8)])
def test_a_model_tells_the_conditions_of_the_last_eight_runs(table, store, sessions, told):
    """Models are files that people read: a store may have hundreds."""
    for number in range(sessions):
        asked = {"what": [THROUGHPUT], "forms": 1}
        store.begin_session(f"2026-01-01T{number:02}:00:00+00:00", {"asked": asked})
        store.write_legality([("NOP", "ok")])
    experiment = Experiment("NOP", THROUGHPUT, "", "", "plain x16", KERNEL, 16, ())
    store.write([(experiment, Measurement(4.0, 0.0, STABLE, 6, 0, (4.0,)))])
    store.end_session()
    readout = Readout(store, table, forms=[table["NOP"]])
    model = model_of(readout, readout.each())
    notes = [note for note in model.provenance.notes if note.startswith("measured 2026")]
    assert len(notes) == told
    assert notes[-1].startswith(f"measured 2026-01-01T{sessions - 1:02}")
