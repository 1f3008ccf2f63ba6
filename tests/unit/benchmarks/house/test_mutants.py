"""Constants that decide results are few."""

from __future__ import annotations

from benchmarks.lib.constants import JUDGED, counted, numbers

FEWER_THAN = 188  # numbers of inference, its ports apart, and of analysis: what can be derived needs none


def test_few_numbers_decide_results():
    found = counted(JUDGED)
    assert len(found) > 10, "all rooms were found"
    assert found.total() < FEWER_THAN


def test_numbers_of_a_module():
    found = numbers("a.py", "A, B = 2, 0\nC: float = 0.5  # what\nsmall = 3\n\ndef f(x=4): pass\n")
    assert [(place.name, place.nth, place.value) for place in found] == [("A,B", 0, 2), ("C", 0, 0.5)]
