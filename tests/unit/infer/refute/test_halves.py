"""Halves of ports that are dealt out by turns: what mixes of made-up accesses show."""

from __future__ import annotations

import random
from types import SimpleNamespace

import msgspec
import pytest

from cyclescope.infer.machine_model import core_of_mixes
from cyclescope.infer.refute.calibration import Verdicts
from cyclescope.infer.refute.halves import Dealing, DealtMix, dealt_by_turns, mix_by_halves, undecided_halves
from cyclescope.model.calibration import ClaimCalibration
from cyclescope.model.machine import Core, FormCost, Halves, Operation
from cyclescope.model.ports import port_throughput

SETS = {"load": (0, 1, 2, 3), "store": (1, 0), "vector": (2, 3), "add": (4, 5)}
PORTS = {"s": (0, 1, 2, 3), "t": (0, 1), "v": (2, 3), "a": (4, 5)}
FOUND = Halves((0, 1), (2, 3))
CORE = Core(8.0, whole=True)


def mix(order, cycles, least):
    return DealtMix(costs(order), cycles, least)


def costs(order, spare=0.0):
    """Instructions of one slot; those that access memory with spare ones behind them."""
    some = (PORTS.get(kind, ()) for kind in order)
    return tuple(FormCost(1.0, (Operation(p),) if p else (), spare=spare * (len(p) > 0)) for p in some)


def dealing(mixes, core=CORE):
    return Dealing(mixes, [*SETS.values()], core)


def found(*mixes):
    return dealt_by_turns(dealing(mixes))


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


def test_of_ways_that_hold_the_one_that_mixes_miss_least_is_taken():
    """Four of twenty take 12 % less; with some astray none would be more than 10 % off, and all be a few."""
    assert found(*[mix("ssv", 1.0, 0.75)] * 16, *[mix("ssv", 0.88, 0.75)] * 4) == FOUND


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


@pytest.mark.parametrize("late", [0, 1, 2])
@pytest.mark.parametrize("width", [6.0, 8.0])
def test_how_late_the_last_one_is_known_is_found(late, width):
    """Drawn mixes on cores of which it is known: what one of these ways makes of them, and 3 % of noise."""
    core, draw = Core(width, whole=True), random.Random(late)
    known = msgspec.structs.replace(FOUND, late=late)
    mixes = []
    for _ in range(240):
        forms = costs("".join(draw.choice("ssvtnn") for _ in range(draw.randint(3, 7))), spare=1.0)
        least = max(len(forms) / width, port_throughput(op for one in forms for op in one.operations))
        cycles = max(least, mix_by_halves(forms, known, core)) * draw.uniform(0.97, 1.03)
        mixes.append(DealtMix(forms, cycles, least))
    assert dealt_by_turns(dealing(mixes, core)) == known
    free = [msgspec.structs.replace(one, cycles=one.least) for one in mixes]
    assert dealt_by_turns(dealing(free, core)) is None, "no core that gives what is free has halves"


def test_the_better_of_two_orders_counts():
    assert mix_by_halves(costs("sv"), FOUND, CORE) == pytest.approx(0.5)
    assert mix_by_halves(costs("ssvv"), FOUND, CORE) == pytest.approx(1.5)


def test_few_mixes_that_say_nothing_against_it_leave_it_open():
    """Which of two halves keeps its own is open, too, as long as no mix tells."""
    swapped = Halves((2, 3), (0, 1))
    assert undecided_halves(dealing([])) == [FOUND, swapped]
    few = [msgspec.structs.replace(one, astray=0.0) for one in undecided_halves(dealing(two_loads(19)))]
    assert few == [FOUND, swapped]
    assert undecided_halves(dealing(two_loads(20))) == [swapped]
    assert undecided_halves(dealing(two_loads(0, 4))) == [swapped]


def test_the_way_that_mixes_miss_least_is_asked_for_though_they_prove_another():
    """With an eighth astray ten more tell, and are 7 % off; without they are 6 % off, and tell nothing."""
    few = [*two_loads(15), *[mix("svsv", 1.06, 1.0)] * 10]
    assert found(*few).astray == 0.125
    assert FOUND in undecided_halves(dealing(few))


def test_a_core_has_the_halves_of_the_classes_that_mixes_told():
    ports = SimpleNamespace(structure=SimpleNamespace(sets=SETS))
    told = Verdicts(0, {}, {}, ClaimCalibration(), halves=("store", "vector", 0.125))
    assert core_of_mixes(ports, told)["halves"] == Halves((0, 1), (2, 3), 0.125)
    late = msgspec.structs.replace(told, halves=("store", "vector", 0.0), halves_late=1)
    assert core_of_mixes(ports, late)["halves"] == Halves((0, 1), (2, 3), late=1)
    gone = msgspec.structs.replace(told, halves=("store", "none any more", 0.125))
    assert "halves" not in core_of_mixes(ports, gone)
