"""Events of `bench`: those that were asked for, and those that counted something."""

from __future__ import annotations

import pytest

from cyclescope.measure.record import STABLE
from cyclescope.measure.sampling import Measurement
from cyclescope.report.bench import Counted


@pytest.mark.parametrize(
    ("value", "printed"),
    [(0.0, False), (0.0049, False), (-0.0049, False), (0.0051, True), (-0.0051, True), (2.0, True)],
)
def test_empty_events_are_left_out_where_that_is_asked_for(value, printed):
    """Those of two copies that print 0.00; what was not counted stays, since nobody knows."""
    measured = Measurement(2.0, 0.0, STABLE, 1, 0, (2.0,), counters=(6.0, 2 * value))
    asked, opened = ("A", "B", "C"), ("A", "B")
    every = [("A", 3.0), ("B", value), ("C", None)]
    assert Counted(asked, opened).values(measured, 2) == every
    kept = [one for one in every if one[0] != "B" or printed]
    assert Counted(asked, opened, full_only=True).values(measured, 2) == kept
