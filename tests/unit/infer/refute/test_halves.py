"""Halves of ports that are dealt out by turns: what mixes of made-up accesses show."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest

from cyclescope.infer.machine_model import core_of_mixes
from cyclescope.infer.refute.calibration import Verdicts
from cyclescope.infer.refute.halves import ClassHalves, DealtMix, by_halves, dealt_by_turns, undecided_halves
from cyclescope.model.calibration import ClaimCalibration
from cyclescope.model.machine import Halves, Operation

SETS = {"load": (0, 1, 2, 3), "store": (1, 0), "vector": (2, 3), "add": (4, 5)}
PORTS = {"s": (0, 1, 2, 3), "t": (0, 1), "v": (2, 3), "a": (4, 5)}
FOUND = Halves((0, 1), (2, 3))


def mix(order, cycles, least):
    return DealtMix(tuple((Operation(PORTS[kind]),) for kind in order), cycles, least)


def found(*mixes):
    return dealt_by_turns(mixes, SETS.values())


def two_loads(right, wrong=0):
    """Two loads with one of vectors take a cycle by turns, three quarters at least."""
    return [mix("ssv", 1.0, 0.75)] * right + [mix("ssv", 0.75, 0.75)] * wrong


@pytest.mark.parametrize(("right", "wrong", "is_found"), [
    (15, 5, True), (14, 6, False), (19, 0, False), (20, 0, True), (300, 100, True), (299, 101, False),
])  # fmt: skip
def test_twenty_mixes_of_which_three_in_four_take_it(right, wrong, is_found):
    assert found(*two_loads(right, wrong)) == (FOUND if is_found else None)


def test_halves_that_hold_where_some_go_astray_are_found_if_they_mostly_hold_without():
    """Of twenty mixes twelve take what all in turn would, eight a little less."""
    assert found(*[mix("ssv", 0.98, 0.75)] * 12, *[mix("ssv", 0.85, 0.75)] * 8).astray == 0.25


def test_what_takes_the_same_in_any_case_tells_nothing():
    assert found(*[mix("svv", 1.0, 1.0)] * 99, *[mix("ssv", 1.0, 0.95)] * 99) is None


def test_the_half_that_keeps_its_own_is_told_from_the_other():
    """A store beside two loads of vectors is dealt as a load is; one that kept its half would not wait."""
    stores = [mix("tsvv", 1.5, 1.0)] * 30
    assert found(*two_loads(30), *stores) == FOUND
    assert found(*[mix("sst", 1.0, 0.75)] * 30, *[mix("vstt", 1.5, 1.0)] * 30) == Halves((2, 3), (0, 1))


@pytest.mark.parametrize(("cycles", "astray"), [(1.0, 0.0), (1.14, 0.125), (1.25, 0.25), (1.53, 0.5)])
def test_the_share_that_goes_astray_is_the_eighth_that_explains_most(cycles, astray):
    """A load between two of vectors waits for them so often; two side by side do not say how often."""
    lone = [mix("svsv", cycles, 1.0)] * 30
    assert found(*two_loads(30), *lone).astray == astray


def test_the_better_of_two_orders_counts():
    forms = [(Operation(PORTS[kind]),) for kind in "sv"]
    assert by_halves(forms, FOUND) == pytest.approx(0.5)
    assert by_halves(forms[:1] * 2 + forms[1:] * 2, FOUND) == pytest.approx(1.5)


def test_few_mixes_that_say_nothing_against_it_leave_it_open():
    """Which of two halves keeps its own is open, too, as long as no mix tells."""
    swapped = Halves((2, 3), (0, 1))
    assert undecided_halves([], SETS.values()) == [FOUND, swapped]
    few = [msgspec.structs.replace(one, astray=0.0) for one in undecided_halves(two_loads(19), SETS.values())]
    assert few == [FOUND, swapped]
    assert undecided_halves(two_loads(20), SETS.values()) == [swapped]
    assert undecided_halves(two_loads(0, 4), SETS.values()) == [swapped]


def test_a_core_has_the_halves_of_the_classes_that_mixes_told():
    ports = SimpleNamespace(structure=SimpleNamespace(sets=SETS))
    told = Verdicts(0, {}, {}, ClaimCalibration(), halves=ClassHalves("store", "vector", 0.125, 1))
    assert core_of_mixes(ports, told)["halves"] == Halves((0, 1), (2, 3), 0.125, 1)
    gone = msgspec.structs.replace(told, halves=ClassHalves("store", "none any more", 0.125))
    assert "halves" not in core_of_mixes(ports, gone)
