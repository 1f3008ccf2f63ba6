"""How far a prediction may be off, by what its bound rests on and where the model is from."""

from __future__ import annotations

import pytest

from cyclescope.analyze.predict.prediction import FRONT_END, IN_ORDER, LOOP_CARRIED, PORTS, SCHEDULED
from cyclescope.analyze.predict.uncertainty import interval
from cyclescope.model.machine import DRAWN, EXTRACTED, MEASURED


@pytest.mark.parametrize(
    ("kind", "bound", "expected"),
    [
        (EXTRACTED, PORTS, (8 / 3, 6.0)),
        (EXTRACTED, "resources", (8 / 3, 6.0)),
        (EXTRACTED, "units", (8 / 3, 6.0)),
        (EXTRACTED, FRONT_END, (4.0, 6.0)),
        (EXTRACTED, LOOP_CARRIED, (8 / 3, 6.0)),
        (EXTRACTED, "locked", (8 / 3, 6.0)),
        (EXTRACTED, IN_ORDER, (8 / 3, 6.0)),
        (EXTRACTED, "taken_branches", (4.0, 4.0)),
        (EXTRACTED, "stores", (4.0, 4.0)),
        (MEASURED, PORTS, (3.96, 4.12)),
        (MEASURED, FRONT_END, (4.0, 4.0)),
        (MEASURED, LOOP_CARRIED, (3.96, 4 / 0.99)),
        (MEASURED, SCHEDULED, (4 / 1.03, 4.12)),
        (EXTRACTED, SCHEDULED, (8 / 3, 6.0)),
        (DRAWN, SCHEDULED, (4.0, 4.0)),
        (DRAWN, PORTS, (4.0, 4.0)),
        (DRAWN, FRONT_END, (4.0, 4.0)),
        (DRAWN, LOOP_CARRIED, (4.0, 4.0)),
    ],
)
def test_a_bound_of_four_cycles(kind, bound, expected):
    assert interval(kind, {bound: 4.0}, {}, 4.0, 4.0) == pytest.approx(expected)


def test_what_is_proved_of_a_bound_replaces_its_number():
    assert interval(DRAWN, {LOOP_CARRIED: 4.0}, {LOOP_CARRIED: (3.0, 5.0)}, 4.0, 4.0) == (3.0, 5.0)


@pytest.mark.parametrize(("kind", "least"), [(EXTRACTED, 2.0), (MEASURED, 4.0), (DRAWN, 2.0)])
def test_what_was_asked_of_the_core_itself_counts_for_the_least(kind, least):
    """Elsewhere the least goes down to the lower bound, which leaves out what is assumed."""
    assert interval(kind, {PORTS: 2.0, "stores": 4.0}, {}, 2.0, 4.0)[0] == least


@pytest.mark.parametrize(
    ("kind", "expected"), [(EXTRACTED, (3.0, 7.5)), (MEASURED, (3.0, 5.0)), (DRAWN, (3.0, 5.0))]
)
def test_slots_that_are_measured_or_drawn_are_exact(kind, expected):
    """Those of LLVM are never less than the core's, often more."""
    assert interval(kind, {FRONT_END: 4.0}, {FRONT_END: (3.0, 5.0)}, 4.0, 4.0) == pytest.approx(expected)
