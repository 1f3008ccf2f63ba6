"""Cores that are drawn by a number."""

from __future__ import annotations

import pytest

from cyclescope.errors import UsageError
from cyclescope.session.probes import simulated_core


def test_numbers_of_thirty_one_bits_draw_a_core():
    largest = "drawn:2147483647"
    assert simulated_core(largest, []) == simulated_core(largest, []) != simulated_core("drawn:7", [])


@pytest.mark.parametrize("name", ["drawn:2147483648", "drawn:-1", "drawn:", "drawn:x"])
def test_other_numbers_do_not(name):
    with pytest.raises(UsageError, match="is no drawn core"):
        simulated_core(name, [])
