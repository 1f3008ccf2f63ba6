"""The page of a validation: what comes from outside is text, drawings are where they belong."""

from __future__ import annotations

import pytest

from cyclescope.measure.blocks import CLEAN, BlockTiming
from cyclescope.report.pages.axes import SIDE
from cyclescope.report.predictions.validation_page import MOST_POINTS, plot, validation_page
from cyclescope.session.predictors import BlockAnswer
from cyclescope.session.validation import BlockRow, Validation, ValidationSection

NASTY = "<script>alert(1)</script>\x1b[31m"


def row(measured, predicted, text="add rax, rbx"):
    timing = BlockTiming(measured, 0.0, 1.0, CLEAN)
    return BlockRow(text, "4801d8", "f", "unrolled", 1, timing, (), {"analytic": BlockAnswer(predicted)})


def test_points_lie_on_the_diagonal_where_predictions_are_right():
    found = plot([row(1.0, 1.0), row(10.0, 10.0), row(2.0, 4.0), row(4.0, 2.0)], "analytic")
    same, other, above, below = found.points
    assert (same.x, other.x) == (same.y, other.y)
    assert above.y > above.x and below.y < below.x
    assert [point.far for point in found.points] == [False, False, True, True]
    assert all(0 < value < SIDE for point in found.points for value in (point.x, point.y))


def test_equal_ratios_are_equal_distances():
    one, two, four = plot([row(c, c) for c in (1.0, 2.0, 4.0)], "analytic").points
    assert four.x - two.x == pytest.approx(two.x - one.x, abs=0.2)


def test_ticks_are_within_the_drawing():
    found = plot([row(0.5, 0.5), row(30.0, 30.0)], "analytic")
    assert [text for _, text in found.ticks] == ["0.5", "1", "2", "5", "10", "20"]
    assert all(0 <= at <= SIDE for at, _ in found.ticks)


def test_very_many_points_are_thinned_and_that_is_said():
    found = plot([row(1.0, 1.0)] * (MOST_POINTS + 1), "analytic")
    assert len(found.points) <= MOST_POINTS
    assert len(found.points) + found.left_out == MOST_POINTS + 1


def test_blocks_without_a_prediction_are_no_points():
    assert not plot([row(1.0, None), row(1.0, 0.0)], "analytic").points


def test_what_comes_from_outside_is_text():
    part = ValidationSection("unrolled", (row(1.0, 2.0, NASTY),), {CLEAN: 1}, {}, (), (), (), ())
    page = validation_page(Validation(NASTY, NASTY, (part,), {NASTY: NASTY}, (NASTY,), 1, (NASTY,)), 5)
    assert "<script" not in page
    assert "\x1b" not in page
