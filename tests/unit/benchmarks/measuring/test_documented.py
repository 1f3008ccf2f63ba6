"""Readings of documented examples: which are other numbers."""

from __future__ import annotations

import pytest

from benchmarks.measuring.documented import EVERY, EXAMPLES, Documented, Read


@pytest.mark.parametrize(
    ("cycles", "is_off"),
    [(2.0, False), (2.015, False), (1.985, False), (2.025, True), (1.975, True), (None, False)],
)
def test_within_one_percent(cycles, is_off):
    assert Read(Documented("nop", 2.0, EVERY, "nobody"), cycles, 0.0, "ok").is_off is is_off


def test_every_example_is_of_this_core_or_of_all():
    assert len({(one.code, one.options) for one in EXAMPLES}) == len(EXAMPLES)
    assert all(one.cycles > 0 and one.source for one in EXAMPLES)
