"""Progress is told by time: against the seconds that the stages of a full run took."""

from __future__ import annotations

import pytest

from cyclescope.infer import workload
from cyclescope.infer.workload import Workload
from cyclescope.measure.plan import LATENCY, THROUGHPUT
from cyclescope.measure.ports import PORTS

EVERYTHING = frozenset({THROUGHPUT, LATENCY, PORTS})
# Seconds of a full run beside other programs, in the order of its stages.
TOOK = {
    workload.TRYING: 1.0, workload.LINKS: 1.0, workload.MEASURING: 60.0, workload.SECOND: 45.0,
    workload.THROUGHPUTS: 0.1, workload.ALONE: 3.0, workload.ORDER: 0.1, workload.WIDTHS: 0.3,
    workload.SLOTS: 16.0, workload.SECOND_SLOTS: 8.0, workload.CLASSES: 1.0, workload.BETWEEN: 1.5,
    workload.AMONG: 24.0, workload.MEMORY: 3.0, workload.AGAIN: 43.0, workload.HIDDEN: 2.0,
    workload.FRESH: 4.0, workload.DOUBTED: 2.0, workload.CHECKED: 1.0, workload.CORE_FACTS: 10.0,
    workload.MODEL: 5.0,
}  # fmt: skip


LONG = [stage for stage, seconds in TOOK.items() if seconds > 6]


def told(stage):
    """The share of all that a stage is told to take."""
    return Workload(EVERYTHING, True).share(stage, 1, 1) - Workload(EVERYTHING, True).share(stage, 0, 1)


@pytest.mark.parametrize("stage", LONG)
def test_long_stages_are_told_as_they_are(stage):
    """Within a sixth of their time."""
    assert told(stage) == pytest.approx(TOOK[stage] / sum(TOOK.values()), rel=1 / 6)


def test_short_stages_are_alike():
    """All of them together take what they take, within a third."""
    short = [stage for stage in TOOK if stage not in LONG]
    assert len({round(told(stage), 6) for stage in short}) == 1
    took = sum(TOOK[stage] for stage in short) / sum(TOOK.values())
    assert sum(map(told, short)) == pytest.approx(took, rel=1 / 3)


def test_stages_of_what_is_not_measured_take_no_time():
    run = Workload(frozenset({THROUGHPUT}))
    assert run.share(workload.AMONG, 1, 1) == 0.0
    assert run.share(workload.MEASURING, 1, 2) == pytest.approx(0.5, abs=0.02)
    assert run.share(workload.MODEL, 1, 1) == 1.0


def test_progress_never_falls():
    run = Workload(EVERYTHING)
    run.share(workload.SLOTS, 1, 1)
    assert run.share(workload.LINKS, 1, 1) == run.share(workload.SLOTS, 0, 1)
