"""Fused pairs on cores with front ends drawn from seeds that nobody tuned on."""

from __future__ import annotations

import random

import msgspec
import pytest

from benchmarks.drawn.features import draw_front_end
from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.core.fusion import OF_OTHERS
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Readings, Unresolved
from cyclescope.simulate.front_end import FrontEnd
from tests.support.made.probed import NOISE, drawn, facts, scored, shared_slots
from tests.support.made.truths import BRANCHES, FIRSTS, fused

SEED = random.SystemRandom().randrange(1 << 30)
CORES = 4
FUSION = PROBES["fusion"]


def test_what_drawn_front_ends_fuse():
    cores = []
    for number in range(CORES):
        front_end = draw_front_end(SEED + number, FIRSTS, BRANCHES)
        machine = drawn([FUSION], SEED + number)
        backend = SimulatedBackend(machine, noise=NOISE, front_end=front_end)
        cores.append((backend, lambda subject, front_end=front_end: fused(front_end, subject)))
    score = scored(FUSION, cores)
    assert score.wrong == [], f"seed {SEED}"
    assert score.stated >= 0.8, f"seed {SEED}: {score}"


def test_what_front_ends_fuse_whose_nops_share_slots():
    """Instructions of units fill loops there, or moves, of which nearly all cores eliminate some."""
    cores = []
    for number in range(2 * CORES):
        front_end = draw_front_end(SEED + number, FIRSTS, BRANCHES)
        front_end = msgspec.structs.replace(front_end, pairs=True, trails=number % 2 > 0)
        backend = SimulatedBackend(drawn([FUSION], SEED + number), noise=NOISE, front_end=front_end)
        cores.append((backend, lambda subject, front_end=front_end: fused(front_end, subject)))
    score = scored(FUSION, cores)
    assert score.wrong == [], f"seed {SEED}"
    assert score.stated >= 0.6, f"seed {SEED}: {score}"


@pytest.mark.parametrize(
    ("seed", "front_end"), [(196506225, FrontEnd(pairs=True)), (5000214, FrontEnd(trails=True))]
)
def test_units_that_allow_as_much_as_slots_decide_nothing(seed, front_end):
    """Two units share four ports there, and the third has three: other instructions cost more than a slot."""
    drawn_end = draw_front_end(seed, FIRSTS, BRANCHES)
    front_end = msgspec.structs.replace(front_end, fuses=drawn_end.fuses, branches=drawn_end.branches)
    backend = SimulatedBackend(drawn([FUSION], seed), noise=NOISE, front_end=front_end)
    score = scored(FUSION, [(backend, lambda subject: fused(front_end, subject))])
    assert score.wrong == []
    assert score.stated >= 0.9, "moves fill loops instead"


def among_units(longer, slot=1 / 6, held=0, first=1):
    """What is said of a fused pair beside which more instructions take so much longer than a slot each.

    Among few it takes so many slots more for another reason. The first takes so many alone.
    """
    found = shared_slots(6.0, 6.0, 6.0, 6.0)
    for x in OF_OTHERS:
        for part, more in (("alone", first), ("together", 1), ("apart", 3)):
            slots = more + held * (part == "together" and x == OF_OTHERS[0])
            cycles = (x * (1 + longer * (part == "together")) + slots) * slot
            found[f"{part}, among units", x] = Interval(cycles - 0.005, cycles + 0.005)
    return FUSION.judge(next(iter(FUSION.cases("x86-64"))), Readings(found, {})).answer


def test_units_are_no_limit_where_slots_are():
    assert among_units(0.0) is CoreAnswer.FUSED
    for longer in (0.05, -0.05):
        with pytest.raises(Unresolved, match="something else than slots"):
            among_units(longer)
    with pytest.raises(Unresolved, match="no mixes agree"):
        among_units(0.0, slot=1 / 5)


def test_what_holds_a_pair_among_few_units_is_seen_among_many():
    assert among_units(0.0) is CoreAnswer.FUSED
    with pytest.raises(Unresolved):
        among_units(0.0, held=1)


def test_a_first_that_shares_the_slot_of_what_is_behind_it_tells_nothing():
    with pytest.raises(Unresolved, match="something else than slots"):
        among_units(0.0, first=0)


def test_nops_that_share_a_slot_are_no_fused_pair():
    machine = drawn([FUSION], SEED)
    found = facts(FUSION, SimulatedBackend(machine, front_end=FrontEnd(pairs=True)))
    assert {fact.answer for fact in found} <= {CoreAnswer.SEPARATE, CoreAnswer.NONE}, f"seed {SEED}"
