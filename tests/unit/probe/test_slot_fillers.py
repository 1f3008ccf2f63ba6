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
    assert slots.rate_of_slots("x86-64", Readings(found, {})).value == pytest.approx(6.0, abs=0.1)
    found[parts[-2], 0] = Interval(-math.inf, 1.0, is_steady=False)
    with pytest.raises(Unresolved, match="no mixes agree"):
        slots.rate_of_slots("x86-64", Readings(found, {}))


@pytest.mark.parametrize(
    ("rates", "nops", "slots_found"),
    [
        ((6.0, 6.0, 6.0, 6.0), 12.0, 6.0),
        ((6.0, 6.1, 5.9, 6.0), 12.0, 6.0),
        ((6.0, 6.0, 5.0, 6.0), 12.0, 6.0),  # two units share ports
        ((6.0, 6.0, 4.0, 6.0), 12.0, None),  # four ports of two units, three of the third: so, too
        ((6.0, 6.0, 4.2, 6.0), 12.0, 6.0),
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
            slots.rate_of_slots("x86-64", readings)
    else:
        assert slots.rate_of_slots("x86-64", readings).value == pytest.approx(slots_found, abs=0.1)


MOVE = "MOV_89 (R64, R64)"


def moving(alone=8.0, among=8.0, nops=16.0, units=4.0, other=1.0):
    """Readings where units limit all mixes to different rates; of moves alone, and among the first unit."""
    found = shared_slots(5.0, units, 3.0, 2.0, nops=nops)
    for point in slots.move_points("x86-64"):
        found[point.part, point.x] = Interval(0.999 / other, 1.001 / other)
    parts = [point.part for point in slots.move_points("x86-64") if point.part.startswith(MOVE)]
    for part, each in zip(parts, (alone, among, 6.0, 5.0), strict=True):
        found[part, 0] = Interval(0.999 / each, 1.001 / each)
    return Readings(found, {})


@pytest.mark.parametrize(
    ("readings", "is_told"),
    [
        ({}, True),
        ({"among": 7.8}, True),
        ({"among": 7.4}, False),  # units limit it, or moves alone have another limit
        ({"among": 8.6}, False),
        ({"alone": 0.97, "among": 0.97, "nops": 1.9, "units": 0.9}, False),  # units execute them
        ({"nops": 18.0}, False),
        ({"units": 9.0}, False),
        ({"other": 8.5}, False),
    ],
)
def test_moves_that_no_unit_executes_fill_loops_where_units_are_too_few(readings, is_told):
    found = moving(**readings)
    if is_told:
        assert slots.filling("x86-64", found) == MOVE
        assert slots.rate_of_slots("x86-64", found, MOVE).value == pytest.approx(8.0, rel=0.02)
    else:
        with pytest.raises(Unresolved, match="no mixes agree"):
            slots.rate_of_slots("x86-64", found, MOVE)


@pytest.mark.parametrize(("rate", "is_told"), [(0.9, False), (1.2, True), (2.2, True)])
def test_what_waits_for_each_other_and_passes_faster_than_units_is_executed_by_none(rate, is_told):
    found = Readings(
        {(p, x): Interval(0.999 / rate, 1.001 / rate) for p, x in moving()._found}
        | {("NOPs alone", 0): Interval(0.999 / 2 / rate, 1.001 / 2 / rate)}, {}
    )  # fmt: skip
    if is_told:
        assert slots.rate_of_slots("x86-64", found, MOVE).value == pytest.approx(rate, rel=0.02)
    else:
        with pytest.raises(Unresolved):
            slots.rate_of_slots("x86-64", found, MOVE)


def test_moves_are_asked_for_only_where_nops_share_slots_and_units_are_too_few():
    asked = lambda found: [point.part for point in slots.among("x86-64", found, lambda _: ())]  # noqa: E731
    units = shared_slots(6.0, 6.0, 6.0, 6.0)
    assert asked(Readings(units, {})) == []
    assert asked(Readings(shared_slots(6.0, 6.0, 6.0, 6.0, differ=0.0), {})) == []
    assert len(asked(Readings(shared_slots(5.0, 4.0, 3.0, 2.0), {}))) == 4 * len(
        slots.FILLERS["x86-64"].moves
    )


@pytest.mark.parametrize("isa", list(slots.FILLERS))
def test_moves_wait_for_the_move_before(isa):
    """And units among them, one to three, write what no move reads."""
    for move in slots.FILLERS[isa].moves:
        there, back = (text.partition(": ")[2].replace("z", "").split()[:2] for text in move)
        assert there == back[::-1] == ["f", "e"]
    for point in slots.move_points(isa):
        moves = [line for line in point.lines if line.form == point.part.partition(" among")[0]]
        others = [line for line in point.lines if line not in moves]
        if " among " in point.part:
            assert (len(others), len(moves)) == (3, 9)
            assert {line.registers[0] for line in others}.isdisjoint(
                n for line in moves for n in line.registers
            )


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
