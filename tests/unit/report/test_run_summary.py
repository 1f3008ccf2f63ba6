"""The summary of a run says how far its numbers are to be trusted, and what it does not tell."""

from __future__ import annotations

from contextlib import closing

import pytest

from cyclescope.infer.kept import timings
from cyclescope.measure.store import Store
from cyclescope.remarks.ports import NoPorts
from cyclescope.report.summary import Tally, summary_text
from tests.support.files.damage import FORMS, change


@pytest.fixture
def path(complete, tmp_path):
    path = tmp_path / "store.sqlite"
    path.write_bytes(complete.read_bytes())
    return path


def summary(path, table, finished=True):
    with closing(Store(path, readonly=True)) as store:
        tally = Tally(timings(store, table, [table[name] for name in FORMS]))
        return summary_text(store, tally, finished, None).splitlines()


def test_throughputs_of_a_core_that_was_disturbed_all_the_time_are_not_trusted(path, table):
    assert f"throughputs: confidence {len(FORMS)} high, 0 medium, 0 low" in summary(path, table)
    change(path, ("UPDATE measurement SET verdict = 'noisy' WHERE quantity = 'throughput'",))
    assert f"throughputs: confidence 0 high, 0 medium, {len(FORMS)} low" in summary(path, table)


def test_a_run_without_ports_says_so_where_they_were_asked_for(path, table):
    note = f"note: no port usage: {NoPorts.NO_FILLER.value}"
    assert note not in summary(path, table)
    change(path, ("DELETE FROM measurement WHERE quantity = 'ports'",))
    assert note in summary(path, table)
    assert note not in summary(path, table, finished=False)
    change(
        path, ("UPDATE session SET conditions = json_set(conditions, '$.asked.what', json('[\"latency\"]'))",)
    )
    assert note not in summary(path, table)
