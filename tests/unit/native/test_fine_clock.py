"""A clock that is finer than what a core repeats, on a core whose every time is known."""

from __future__ import annotations

import random
import re

import pytest

from cyclescope.backend.base import OK, UNCLEAN
from tests.support.code.emulated import NATIVE
from tests.support.code.sampled import CHAIN, NOPS, samples, wide

ALUS = "c" * 6
FINE = {"COUNTERS": 0, "STEP": 2}
TIMES = {CHAIN: 1.0, "aaa": 3.0, NOPS: 1.0, ALUS: 1.0, "n": 1 / 8, "cn": 0.25}  # at a width of 8


@pytest.fixture
def seed():
    """Of the fake core's own chance."""
    seed = random.randrange(1, 1 << 30)
    print(f"seed {seed}")  # noqa: T201 - to repeat it
    return seed


def off(found, bodies):
    """How far readings are off, as a share, the least first."""
    return sorted(abs(r.cycles / TIMES[bodies[r.kernel]] - 1) for r in found.readings)


@pytest.mark.parametrize("wander", [0.0, 0.02])
@pytest.mark.parametrize("jitter", [6, 12])
def test_hardly_a_sample_is_lost(core, jitter, wander, seed):
    """To ask the clock takes so many cycles more or less, twice at either end."""
    bodies = CHAIN, "aaa", NOPS, ALUS, "n"
    kernels = (CHAIN, 0), ("aaa", 0), *wide(NOPS, ALUS, "n")
    found = core(*kernels, **FINE, JITTER=jitter, WANDER=wander, rounds=40, SEED=seed)
    assert {r.status for r in found.readings} == {OK}
    assert sum(r.rejected for r in found.readings) < 0.17 * samples(found)
    assert sum(r.disturbed for r in found.readings) < 0.05 * samples(found)
    assert off(found, bodies)[int(0.9 * len(found.readings))] < 0.008


@pytest.mark.parametrize("slower", [1.08, 1.3, 2.0])
def test_what_a_neighbour_slows_is_rejected(core, slower, seed):
    """In bursts of 300 us, half of the time."""
    bodies = NOPS, ALUS, "cn"
    bursts = {"SLOWER": slower, "PERIOD": 0.0006, "FROM": 0.5, "UNTIL": 1.0}
    found = core(*wide(*bodies), **FINE, **bursts, JITTER=12, rounds=50, SEED=seed)
    good = [r for r in found.readings if r.status == OK]
    wrong = [r for r in good if abs(r.cycles / TIMES[bodies[r.kernel]] - 1) > 0.03]
    assert len(good) > 0.9 * len(found.readings)
    assert len(wrong) < 0.02 * len(good)


def test_a_neighbour_that_takes_little_and_never_rests_is_seen(core, seed):
    """What the clock scatters by hides no neighbour that takes 4.5 % of what fills the front end."""
    found = [
        core(*wide(NOPS, ALUS), **FINE, JITTER=12, SLOWER=1.045, NOP=0.125, rounds=10, SEED=seed + number)
        for number in range(5)
    ]
    assert {r.status for one in found for r in one.readings} == {UNCLEAN}


def test_a_core_that_scatters_by_thirty_cycles_can_be_measured(core, seed):
    found = [core(*wide(NOPS, ALUS), **FINE, JITTER=28, rounds=40, SEED=seed + n) for n in range(7)]
    shares = sorted(sum(r.rejected for r in one.readings) / samples(one) for one in found)
    assert shares[3] < 0.3, shares


def test_a_frequency_that_jumps_is_followed_beside_every_sample(core, seed):
    """By up to eight per cent every millisecond: a chain that is long enough tells it from the scatter."""
    bodies = CHAIN, "aaa", NOPS, ALUS
    kernels = (CHAIN, 0), ("aaa", 0), *wide(NOPS, ALUS)
    for number in range(4):
        found = core(*kernels, **FINE, JITTER=12, WANDER=0.04, rounds=150, SEED=seed + number)
        assert off(found, bodies)[-1] < 0.011


@pytest.mark.parametrize("evicted", [36, 82])
def test_a_chain_that_is_entered_later_is_no_other_frequency(core, evicted, seed):
    """Each second time, behind a kernel that took the place of its decoded instructions."""
    bodies = CHAIN, "aaa", NOPS, ALUS
    kernels = (CHAIN, 0), ("aaa", 0), *wide(NOPS, ALUS)
    found = core(*kernels, **FINE, JITTER=3, EVICTED=evicted, rounds=40, SEED=seed)
    assert {r.status for r in found.readings} == {OK}
    assert sum(r.rejected for r in found.readings) < 0.1 * samples(found)
    assert off(found, bodies)[-1] < 0.011


def test_what_a_neighbour_changes_is_no_scatter_of_the_clock(core, seed):
    """Uneven, by up to a fifth: of the canaries that it slows by less than 5 % some pass, and no others.
    How many meet its quick moments depends on its pace."""
    options = FINE | {"SLOWER": 1.2, "NOP": 0.125, "JITTER": 3, "rounds": 4, "SEED": seed}
    clean = sorted(core(*wide(NOPS), **options, UNEVEN=0.5 + pace / 7).clean for pace in range(21))
    assert clean[10] < 0.2, clean


def test_all_that_is_known_of_the_clock_outlives_a_worker():
    """What one has calibrated, the next one finds: half of the canaries looked disturbed without it."""
    kept = re.search(r"struct shared \{.*?\n\};", (NATIVE / "worker.h").read_text(), re.DOTALL)
    known = re.findall(r"^    (?:double|uint32_t|struct calibration) (\w+);", kept[0], re.MULTILINE)
    assert {"calibration", "scale", "grain", "moment", "entry"} <= set(known)
    supervisor = (NATIVE / "supervisor.c").read_text()
    for name in known:
        assert f"shared->{name} = clock_kept.{name};" in supervisor, name
        assert f"clock_kept.{name} = shared->{name};" in supervisor, name


@pytest.mark.parametrize(("own", "lost"), [(20, 0.2), (40, 0.3), (60, 0.42)])
def test_kernels_that_scatter_by_more_than_canaries_lose_few_samples(core, own, lost, seed):
    """To enter one takes so many cycles more or less, ten times what the clock and a canary scatter by."""
    bodies = CHAIN, "aaa", NOPS, ALUS, "n"
    kernels = (CHAIN, 0), ("aaa", 0), *wide(NOPS, ALUS, "n")
    found = core(*kernels, **FINE, OWN=own, rounds=40, SEED=seed)
    assert {r.status for r in found.readings} == {OK}
    assert sum(r.rejected for r in found.readings) < lost * samples(found)
    assert off(found, bodies)[int(0.9 * len(found.readings))] < 0.01


@pytest.mark.parametrize("own", [20, 60, 200])
def test_what_enters_a_kernel_is_in_no_sample_of_code_that_reads_the_clock(core, own, seed):
    """And it scatters as little as a canary does."""
    bodies = CHAIN, "aaa", NOPS, ALUS, "n"
    kernels = (CHAIN, 0), ("aaa", 0), *wide(NOPS, ALUS, "n")
    found = core(*kernels, **FINE, OWN=own, WITHIN=1, rounds=40, SEED=seed)
    assert {r.status for r in found.readings} == {OK}
    assert sum(r.rejected for r in found.readings) < 0.1 * samples(found)
    assert off(found, bodies)[int(0.9 * len(found.readings))] < 0.005


def test_what_goes_on_behind_the_code_is_waited_for(core, seed):
    """A flush leaves the core at once, and takes its time."""
    found = core(*wide("ffnnnnnn"), **FINE, WITHIN=1, rounds=40, SEED=seed)
    assert [r.cycles for r in found.readings] == pytest.approx([101.0] * 40, rel=0.01)


def test_few_samples_do_not_say_what_a_kernel_scatters_by(core, seed):
    """Before there are ten, those count that differ by no more than canaries do."""
    found = core((CHAIN, 0), ("aaa", 0), **FINE, OWN=40, rounds=200, SEED=seed)
    early = [r for r in found.readings if r.accepted + r.rejected < 10]
    assert len(early) < 0.15 * len(found.readings)
