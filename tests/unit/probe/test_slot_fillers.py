"""What fills loops so that slots are their limit: whether NOPs share them, and what takes one each."""

from __future__ import annotations

import math
import random

import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.isa.table import load_table
from cyclescope.probe import slots
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Model, Probe, ProbeCase, ProbeVerdict, Readings, Unresolved
from cyclescope.probe.run import ask
from cyclescope.simulate.draw import draw_machine
from cyclescope.simulate.front_end import FrontEnd
from tests.support.made.probed import EVEN_RUNS, NOISE, ODD_RUNS, forms_of, shared_slots

SEED = random.SystemRandom().randrange(1 << 30)
CORES = 12
POINTS = {isa: tuple(slots.slot_points(isa)) for isa in slots.FILLERS}


@pytest.mark.parametrize(("differ", "told"), [(0.0, False), (0.025, False), (0.06, True), (-0.06, True)])
def test_nops_share_slots_where_their_order_counts(differ, told):
    assert slots.nops_share(Readings(shared_slots(6.0, 6.0, 6.0, 6.0, differ=differ), {})) is told


def test_what_was_always_disturbed_says_nothing():
    """One order that does is enough, where the others show nothing."""
    found = shared_slots(6.0, 6.0, 6.0, 6.0, differ=0.0)
    for point in [point for point in POINTS["x86-64"] if point.part.startswith(ODD_RUNS)][:3]:
        found[point.part, point.x] = Interval(-math.inf, 2.0, is_steady=False)
    with pytest.raises(Unresolved, match="undisturbed"):
        slots.nops_share(Readings(found, {}))
    first = next(point for point in POINTS["x86-64"] if point.part.startswith(ODD_RUNS))
    found[first.part, first.x] = Interval(-math.inf, 0.9, is_steady=False)
    assert slots.nops_share(Readings(found, {})), "it takes no more than that"
    found[first.part, first.x] = Interval(-math.inf, 2.0, is_steady=False)
    last = [point for point in POINTS["x86-64"] if point.part.startswith(ODD_RUNS)][-1]
    found[last.part, last.x] = Interval(1.1, 1.2)
    assert slots.nops_share(Readings(found, {}))


def test_two_pairs_of_units_are_enough():
    found = shared_slots(6.0, 6.0, 6.0, 6.0)
    parts = [point.part for point in POINTS["x86-64"] if point.part.startswith("units")]
    found[parts[-1], 0] = Interval(-math.inf, 1.0, is_steady=False)
    assert slots.rate_of_units("x86-64", Readings(found, {})).value == pytest.approx(6.0, abs=0.1)
    found[parts[-2], 0] = Interval(-math.inf, 1.0, is_steady=False)
    with pytest.raises(Unresolved, match="no mixes agree"):
        slots.rate_of_units("x86-64", Readings(found, {}))


@pytest.mark.parametrize(
    ("rates", "nops", "slots_found"),
    [
        ((6.0, 6.0, 6.0, 6.0), 12.0, 6.0),
        ((6.0, 6.1, 5.9, 6.0), 12.0, 6.0),
        ((6.0, 6.0, 5.0, 6.0), 12.0, 6.0),  # two units share ports
        ((6.0, 6.0, 4.0, 4.0), 12.0, None),  # three ports of two units, two of the third: by chance both 6
        ((6.0, 6.0, 6.0, 6.3), 12.0, None),
        ((6.0, 5.0, 5.0, 5.0), 12.0, None),
        ((2.0, 2.0, 2.0, 2.0), 5.0, None),  # NOPs that are more than twice as fast
        ((6.0, 6.0, 6.0, 6.0), 8.0, 6.0),
    ],
)
def test_slots_are_what_mixes_of_units_agree_on(rates, nops, slots_found):
    readings = Readings(shared_slots(*rates, nops=nops), {})
    if slots_found is None:
        with pytest.raises(Unresolved, match="no mixes agree"):
            slots.rate_of_units("x86-64", readings)
    else:
        assert slots.rate_of_units("x86-64", readings).value == pytest.approx(slots_found, abs=0.1)


def _told(case, readings):
    return ProbeVerdict(slots.nops_share(readings))


@pytest.mark.parametrize(
    "front_end",
    [FrontEnd(), FrontEnd(pairs=True), FrontEnd(trails=True), FrontEnd(pairs=True, trails=True)],
    ids=["alone", "pairs", "trails", "both"],
)
def test_drawn_cores_whose_nops_share_slots(front_end):
    """On most cores, where units allow to see it, and on no other."""
    isa = "x86-64"
    probe = Probe("slots", "?", Model.RATIO, lambda _: [ProbeCase("?", POINTS[isa])], _told, ())
    told = 0
    for number in range(CORES):
        machine = draw_machine(SEED + number, forms_of([probe], isa), ports=12)
        backend = SimulatedBackend(machine, noise=NOISE, front_end=front_end)
        (asked,) = ask([probe], backend, load_table(isa))
        (fact,) = asked.facts
        assert fact.is_resolved, f"seed {SEED}: {fact}"
        told += bool(fact.answer)
    assert told == 0 if front_end == FrontEnd() else told > CORES // 2, f"seed {SEED}: {told}"


def test_units_come_evenly_and_write_what_nothing_reads():
    for isa, fillers in slots.FILLERS.items():
        assert len(slots.in_turn(fillers.units, 24)) == 24
        for point in POINTS[isa]:
            if point.part.startswith("units"):
                names = [line.form for line in point.lines]
                assert len({names.count(name) for name in names}) == 1


def test_orders_have_the_same_instructions():
    for points in POINTS.values():
        parts = {point.part: point for point in points}
        for odd in [part for part in parts if part.startswith(ODD_RUNS)]:
            one, other = parts[odd], parts[odd.replace(ODD_RUNS, EVEN_RUNS)]
            assert sorted(one.lines) == sorted(other.lines)
            assert one.lines != other.lines
