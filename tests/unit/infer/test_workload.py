"""Progress is told by time: against the seconds that the stages of a full run took."""

from __future__ import annotations

import pytest

from cyclescope.infer import workload
from cyclescope.infer.workload import Workload
from cyclescope.measure.plan import LATENCY, THROUGHPUT
from cyclescope.measure.ports import PORTS

EVERYTHING = frozenset({THROUGHPUT, LATENCY, PORTS})
# Seconds of full runs beside other programs, in the order of their stages: on a Zen 3, and on a Zen 4.
TOOK = {
    workload.TRYING: (1.0, 0.5), workload.LINKS: (1.0, 0.5), workload.MEASURING: (60.0, 105.0),
    workload.TIMED_AGAIN: (45.0, 86.0), workload.THROUGHPUTS: (0.1, 0.1), workload.FORMS_ALONE: (3.0, 3.0),
    workload.ORDER: (0.1, 0.3), workload.FRONT_END_WIDTH: (0.3, 1.7), workload.FRONT_END_SLOTS: (16.0, 8.0),
    workload.SECOND_SLOTS: (8.0, 6.0), workload.CLASSES: (1.0, 7.0), workload.BETWEEN: (1.5, 5.0),
    workload.AMONG: (24.0, 26.0), workload.MEMORY: (3.0, 14.0), workload.PORTS_AGAIN: (43.0, 59.0),
    workload.HIDDEN_RESOURCES: (2.0, 0.1), workload.FRESH: (4.0, 22.0), workload.DOUBTED: (2.0, 25.0),
    workload.CALIBRATING: (1.0, 4.0), workload.CORE_FACTS: (10.0, 25.0), workload.MODEL: (5.0, 9.0),
}  # fmt: skip


@pytest.mark.parametrize("run", [0, 1])
def test_what_is_told_is_off_by_less_than_a_tenth_of_all(run):
    told = Workload(EVERYTHING, True)
    every, took = sum(seconds[run] for seconds in TOOK.values()), 0.0
    for stage, seconds in TOOK.items():
        for tenth in range(11):
            now = (took + seconds[run] * tenth / 10) / every
            assert told.share(stage, tenth, 10) == pytest.approx(now, abs=0.1)
        took += seconds[run]


def test_stages_of_what_is_not_measured_take_no_time():
    run = Workload(frozenset({THROUGHPUT}))
    assert run.share(workload.AMONG, 1, 1) == 0.0
    assert run.share(workload.MEASURING, 1, 2) == pytest.approx(0.5, abs=0.05)
    assert run.share(workload.MODEL, 1, 1) == 1.0


def test_progress_never_falls():
    run = Workload(EVERYTHING)
    run.share(workload.FRONT_END_SLOTS, 1, 1)
    assert run.share(workload.LINKS, 1, 1) == run.share(workload.FRONT_END_SLOTS, 0, 1)
