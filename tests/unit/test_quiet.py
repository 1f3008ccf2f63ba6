"""Failures of tests of real times are told from neighbours: the judge, and what it decides."""

from __future__ import annotations

import pytest

from tests.conftest import pytest_pyfunc_call
from tests.support.programs import quiet
from tests.unit.test_selection import item

PAIR = 10.0, 10.0  # filled, waited


def test_a_machine_is_alone_where_what_fills_the_core_is_as_quick_as_ever():
    assert quiet.share_alone([PAIR] * 100, 2000.0) == (1.0, 1.0)
    assert quiet.share_alone([PAIR] * 100, 4000.0)[0] == 0.5, "it waited for the CPU half of the time"
    shared = [PAIR] * 50 + [(15.0, 10.0)] * 50
    assert quiet.share_alone(shared, 2250.0)[0] == pytest.approx(1000 / 2250)
    assert quiet.share_alone([(15.0, 10.0)] * 100, 2500.0, 1.0) == (0, 1.0), "it was quicker at other times"


def test_a_few_samples_that_are_too_quick_are_not_the_machine():
    assert quiet.share_alone([(8.0, 10.0), *[PAIR] * 99], 2000.0)[0] == pytest.approx(0.99, abs=0.01)


def called(test, monkeypatch, share, markers=("hardware",)):
    """How a test ends on a machine that is left alone for that share of the time."""
    monkeypatch.setattr(quiet, "undisturbed", lambda: share)
    around = pytest_pyfunc_call(item(*markers))
    next(around)
    try:
        test()
    except Exception as error:
        around.throw(error)


def fails():
    raise AssertionError("far off")


def test_only_what_fails_beside_neighbours_is_skipped(monkeypatch):
    with pytest.raises(pytest.skip.Exception, match=r"left alone 20% of the time"):
        called(fails, monkeypatch, 0.2)
    with pytest.raises(AssertionError, match="far off"):
        called(fails, monkeypatch, 0.8)
    with pytest.raises(AssertionError, match="far off"):
        called(fails, monkeypatch, 0.2, markers=())
    with pytest.raises(ZeroDivisionError):
        called(lambda: 1 / 0, monkeypatch, 0.2)


def test_a_loud_machine_is_waited_for_some_minutes(monkeypatch):
    monkeypatch.setattr("tests.conftest.ENOUGH", -1.0)
    with pytest.raises(pytest.skip.Exception, match="after"):
        called(fails, monkeypatch, 0.2)
