"""Of several looks at the same the lowest ones count, if they are as sure as the others."""

from __future__ import annotations

import pytest

from cyclescope.infer.likelihood.noise import SMALLEST_ERROR, Look
from cyclescope.infer.ports.evidence import lowest


@pytest.mark.parametrize(("error", "counts"), [(2.0, True), (2.9, True), (3.1, False), (5.0, False)])
def test_a_reading_beside_surer_ones_tells_nothing(error, counts):
    surest = 4 * SMALLEST_ERROR
    sure, vague = Look(1.0, surest), Look(0.6, error * surest)
    assert lowest([sure, vague]) == [vague if counts else sure]


@pytest.mark.parametrize(("beyond", "counts"), [(0.07, True), (0.11, True), (0.13, False), (0.2, False)])
def test_readings_that_noise_parts_count_together(beyond, counts):
    least, other = Look(1.0, SMALLEST_ERROR), Look(1.0 + beyond, SMALLEST_ERROR)
    assert lowest([other, least]) == ([other, least] if counts else [least])
