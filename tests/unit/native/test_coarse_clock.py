"""A clock whose steps are longer than a percent of its own chain, on a core whose every time is known."""

from __future__ import annotations

from statistics import fmean, median, stdev

import pytest

from cyclescope.backend.base import Effort
from tests.support.code.sampled import CHAIN, HERTZ, NOPS, samples, wide


def test_a_clock_that_is_coarse_takes_a_part_of_the_time_where_the_frequency_stays(core):
    """Its pairs of chains take 8000 cycles each: a sample of its own takes 17000 with its canaries, of which
    what brings them back takes a tenth.
    """
    found = core(*wide(NOPS), COUNTERS=0, rounds=80)
    assert found.seconds * HERTZ / samples(found) < 22000


@pytest.mark.parametrize("jump", [0.01, 0.03])
def test_a_frequency_that_jumps_is_followed_soon_where_the_clock_is_coarse(core, jump):
    """Every millisecond by up to so much twice, long before the pairs of half a millisecond agree."""
    found = core((CHAIN, 0), *wide(NOPS), COUNTERS=0, WANDER=jump, rounds=300)
    off = sorted(abs(r.cycles - 1) for r in found.readings)
    assert off[int(0.9 * len(off))] < 0.008


@pytest.mark.parametrize("width", [4, 8])
def test_the_end_of_a_loop_is_a_slot_of_hundreds(core, width):
    """A calibration in four found two where the frequency wanders by .3 % while it looks."""
    ends = [core(COUNTERS=0, WANDER=0.003, WIDTH=width, SEED=seed).loop_end for seed in range(12)]
    assert ends == [pytest.approx(1 / width)] * 12


def test_readings_are_as_often_too_long_as_too_short(core):
    """Where the frequency wanders, the least of longer times are less by more than those of shorter ones."""
    options = {"COUNTERS": 0, "WANDER": 0.003, "rounds": 40, "want": 12, "target": 50000.0}
    found = [core((CHAIN, 0), *wide(NOPS), SEED=seed, **options).readings for seed in range(4)]
    off = [r.cycles - 1 for readings in found for r in readings]
    assert abs(fmean(off)) < 0.0005


@pytest.mark.parametrize("clock", [{}, {"STEP": 2}])
def test_what_enters_a_chain_is_in_no_cycle_where_code_reads_the_clock(core, clock):
    """40 cycles more in each run of the longer one, as in some copies of a program: 0.8 % of its cycles."""
    options = {"COUNTERS": 0, "ENTERING": 40, "rounds": 80, **clock}
    found = [core((CHAIN, 0), WITHIN=within, **options) for within in (0, 1)]
    outside, inside = (median(r.cycles for r in one.readings) for one in found)
    assert inside == pytest.approx(1, rel=0.002)
    assert outside < 0.994, "the trait is there"


def test_fewer_and_longer_samples_tell_as_much_sooner(core):
    """Six of 5000 cycles, which a clock of 45 cycles a step makes 6700 of, tell no more than usual ones."""
    usual = Effort()
    efforts = ({"want": 6, "target": 5000.0}, {"want": usual.want, "target": usual.target})
    options = {"COUNTERS": 0, "RATE": 0.58, "rounds": 200}
    more, found = (core((CHAIN, 0), *wide(NOPS), **options, **effort) for effort in efforts)
    assert found.seconds < 0.92 * more.seconds
    assert _scatter(found) < 1.3 * _scatter(more)


def _scatter(answer):
    """What the readings of the chain scatter by."""
    return stdev(r.cycles for r in answer.readings if r.kernel == 0)
