"""The runner's own sampling, compiled with a core whose every time is known, and its neighbour."""

from __future__ import annotations

import itertools
import os
import subprocess

import pytest

from cyclescope.backend.base import OK, UNCLEAN, Sample, second_rate
from cyclescope.backend.loops import LONGER_TRIPS
from cyclescope.kernel.kernel import CANARY, FAST, WATCHED
from tests.support.code.sampled import CHAIN, NOPS, WIDE, samples, wide

STORES = "amaa"  # a chain through memory, of eight cycles
FORWARDED, FORWARDING = "mm", 10  # cycles, of which a neighbour takes none
STORED = 8  # cycles of a chain through memory, in all trips but the first ones
UPDATES, UPDATE = "u", 7  # cycles of one, but in short loops
ALUS = "c" * 6
NEAR = ("nnnnnnnn", "n", "cccccc", "ccccccnn", "ccnn", "cccn", "nnnnn", "cn", "nnn")


@pytest.fixture
def looks(program):
    """Shares of looks at a loop of nothing that find it undisturbed: without a neighbour, and beside it."""

    def run(**options):
        environment = os.environ | {name: str(value) for name, value in ({"LOOPS": LOOKS} | options).items()}
        done = subprocess.run(
            [program, "1", "1", "1"], check=True, capture_output=True, text=True, env=environment, timeout=60
        )
        return map(float, done.stdout.splitlines()[-1].split())

    return run


def truth(body, width=8):
    return max(len(body) / width, body.count("c") / 6, body.count("a"))


# --- near the dispatch width ------------------------------------------------------------------------


@pytest.mark.parametrize("counters", [0, 1])
@pytest.mark.parametrize("width", [2, 3, 4, 5, 6, 7, 8, 10])
def test_loops_near_the_width_are_read_right(core, width, counters):
    found = core(*wide(*NEAR), WIDTH=width, COUNTERS=counters, target=50000.0, want=12)
    assert found.beats >= samples(found), "each sample is a sign of life"
    assert found.nop == pytest.approx(1 / width, rel=1e-4)
    assert {r.status for r in found.readings} == {OK}
    off = [r.cycles / truth(NEAR[r.kernel], width) - 1 for r in found.readings]
    assert max(map(abs, off)) < 0.005


def test_a_table_s_shorter_regions_are_right_within_a_percent(core):
    found = core(*wide(*NEAR), COUNTERS=0)
    off = [r.cycles / truth(NEAR[r.kernel]) - 1 for r in found.readings]
    assert max(map(abs, off)) < 0.01


def test_two_lengths_of_short_loops_are_wrong_here(core):
    """The fake core does what real ones do: without it, the tests above show nothing."""
    found = core((NOPS, 0), (ALUS, 0))
    assert max(abs(r.cycles - 1) for r in found.readings) > 0.02


def test_both_regions_are_one_long_loop(core):
    found = core(*wide("n", NOPS, "n" * 1000, "n" * 5000), (CHAIN, 0), (CHAIN, CANARY))
    lengths = {}
    for reading in found.readings:
        lengths.setdefault(reading.kernel, []).append(reading)
    for number, instructions in ((0, 1), (1, 8)):
        assert all(r.short_units == r.long_units for r in lengths[number])
        assert {r.long_units * instructions for r in lengths[number]} == {400, 304 if number else 300}
        assert all(r.trips % LONGER_TRIPS == 0 and r.trips >= 30 for r in lengths[number])
    assert {r.long_units for r in lengths[2]} == {3, 1} or {r.long_units for r in lengths[2]} == {1}
    assert {r.long_units for r in lengths[3]} == {1}
    assert all(r.long_units > 3 * r.short_units for r in lengths[4])  # a chain: two lengths
    assert {r.long_units for r in lengths[5]} == {100, 75}


def test_what_is_kept_decoded_is_kept_for_few_and_many_trips(core):
    """A core that kept it for one of two copies of a loop would seem to decode in less than no time."""
    found = core(*wide("dddddddd", "ddnnnnnn"), rounds=8)
    assert [r.cycles for r in found.readings] == pytest.approx([1.0] * 16, rel=0.02)


@pytest.mark.parametrize("within", [0, 1])
@pytest.mark.parametrize("cold", [0, 300])
def test_what_entering_a_kernel_takes_is_no_part_of_it(core, cold, within):
    """A kernel that did not run last is entered more slowly; few trips are read after other code."""
    found = core(*wide(NOPS, ALUS), (CHAIN, 0), COLD=cold, COUNTERS=0, WITHIN=within, rounds=20)
    by_kernel = [[r.cycles for r in found.readings if r.kernel == number] for number in range(3)]
    assert [sum(cycles) / len(cycles) for cycles in by_kernel] == pytest.approx([1.0] * 3, rel=0.005)


@pytest.mark.parametrize("slower", [1.15, 1.5])
def test_a_reading_is_of_one_state_of_the_core(core, slower):
    """The ways into a loop leave the core in one of two states; a difference of both is of neither."""
    found = core(("ssssssss", WIDE), STATES=slower, rounds=80, COUNTERS=0)
    good = [r.cycles for r in found.readings if r.status == OK]
    assert len(good) > 50
    assert all(min(abs(cycles - 1), abs(cycles - slower)) < 0.02 for cycles in good)
    assert min(good) < 1.02 and max(good) > slower - 0.02


def test_states_that_hardly_differ_are_noise(core):
    found = core(("ssssssss", WIDE), STATES=1.045, rounds=80)
    assert {r.status for r in found.readings} == {OK}


@pytest.mark.parametrize(("body", "judged"), [("s" * 7 + "mmm", True), ("s" * 5 + "m" * 5, False)])
def test_what_slow_code_takes_at_first_is_no_state(core, body, judged):
    """Buffers take the first of it at another rate: of 2.5 cycles per instruction, but not of 1.5."""
    found = core((body, WIDE), STATES=1.2, rounds=80, target=50000.0)
    assert (UNCLEAN in {r.status for r in found.readings}) is judged


@pytest.mark.parametrize(("body", "slower"), [("ssssssss", 1.3), ("ssssssss", 1.1), ("s" * 5 + "m" * 5, 1.3)])
def test_a_second_rate_is_told(core, body, slower):
    """Half of the times that the loop is entered it is slower: both rates are right."""
    found = core((body, WIDE), STATES=slower, ENTRIES=50, rounds=80, want=12, target=50000.0, COUNTERS=0)
    good = [r for r in found.readings if r.status == OK]
    told = [r for r in good if r.other]
    assert len(told) > 0.5 * len(good) > 30
    assert sum(abs(r.other / r.cycles / slower - 1) < 0.005 for r in told) > 0.9 * len(told)


@pytest.mark.parametrize(
    "noise",
    [
        {"SLOWER": 1.3, "PERIOD": 0.0006, "FROM": 0.5, "UNTIL": 1.0},
        {"SLOWER": 2, "UNEVEN": 1.7, "CHAINED": 0.04, "PERIOD": 0.003, "FROM": 1 / 6, "UNTIL": 1},
        {"EVICTED": 120},
        {"JITTER": 60},
        {"AWAY": 4000},
        {"STATES": 1.3},
    ],
)
def test_noise_is_no_second_rate(core, noise):
    """Neighbours, interrupts, what entering takes, and one rate for each way in."""
    found = core(*wide(NOPS, ALUS, "s" * 8), rounds=100, want=12, target=50000.0, COUNTERS=0, **noise)
    rounds: dict[int, list[float]] = {}
    for r in found.readings:
        rounds.setdefault(r.kernel, []).append(r.other)
    pairs = [pair for others in rounds.values() for pair in itertools.combinations(others[:40], 2)]
    assert sum(second_rate([Sample(1.0, 0.0, OK, other=o) for o in pair]) > 0 for pair in pairs) == 0
    assert sum(r.other > 0 for r in found.readings) < 0.005 * len(found.readings)


def test_what_entering_takes_is_looked_at_more_than_once(core):
    """The first time is cold. What decoding takes longer in the first trip is no state of the core either."""
    found = core(("d" * 8, WIDE), COLD=300, COUNTERS=0, rounds=40)
    assert {r.status for r in found.readings} == {OK}


def test_the_end_of_a_loop_is_a_slot(core):
    for width in (4, 6, 8):
        assert core(WIDTH=width).loop_end == pytest.approx(1 / width, rel=1e-4)


# --- the clock ------------------------------------------------------------------------------------


def test_what_entering_the_clock_s_own_chains_takes_is_no_part_of_it(core):
    """After other code each is entered more slowly, now and then; of both the second of two runs counts."""
    found = core((CHAIN, 0), COUNTERS=0, EVICTED=30, rounds=40, want=12, target=20000.0)
    cycles = [r.cycles for r in found.readings]
    assert sum(cycles) / len(cycles) == pytest.approx(1.0, abs=0.001)


def test_a_counter_of_cycles_counts_them(core):
    assert core(COUNTERS=1).ticks == 1.0
    assert core(COUNTERS=0).ticks == pytest.approx(0.7, rel=0.002)


def test_a_frequency_that_changes_is_followed(core):
    """By a percent and a half every millisecond."""
    found = core((CHAIN, 0), *wide(NOPS, ALUS), COUNTERS=0, WANDER=0.015, rounds=40, want=12, target=20000.0)
    off = sorted(abs(r.cycles - 1) for r in found.readings)
    assert off[int(0.9 * len(off))] < 0.006


@pytest.mark.parametrize("hiccup", [165, 20000])
def test_a_chain_that_something_interrupts_does_not_count(core, hiccup):
    """Every fifth long one takes so many cycles more: four steps of the clock, or an interrupt."""
    found = core((CHAIN, 0), COUNTERS=0, HICCUP=hiccup, rounds=160, want=12, target=20000.0)
    off = sorted(abs(r.cycles - 1) for r in found.readings)
    assert off[int(0.9 * len(off))] < 0.0025


def test_the_clock_is_known_though_others_take_the_cpu_between_two_looks(core):
    """For a millisecond: what was timed before is too old to tell the frequency."""
    found = core((CHAIN, 0), COUNTERS=0, AWAY=4e6, rounds=160, want=6, target=20000.0)
    assert all(abs(r.cycles - 1) < 0.01 for r in found.readings)


def test_a_frequency_that_jumps_is_followed_where_the_clock_is_fine(core):
    """By up to eight percent every millisecond, which is a quarter of the samples of a reading."""
    bodies = (CHAIN, 0), ("aaa", 0), *wide(NOPS, ALUS, "n")
    found = core(*bodies, COUNTERS=0, STEP=2, WANDER=0.04, rounds=40, want=6)
    off = sorted(abs(r.cycles / truth(bodies[r.kernel][0]) - 1) for r in found.readings)
    assert off[int(0.95 * len(off))] < 0.004
    assert off[-1] < 0.01
    assert sum(r.status == OK for r in found.readings) > 0.98 * len(off)


def test_what_nearly_counts_cycles_is_rounded_to_them(core):
    assert core(RATE=1.008).ticks == 1.0
    assert core(RATE=1.015).ticks == pytest.approx(1.015, abs=0.003)


def test_canaries_are_as_long_as_the_clock_needs(core):
    """A thousand cycles, or fifty steps of a coarse clock, and the entry."""
    assert 1100 < core(COUNTERS=1).canary < 1400
    assert 1900 < core(COUNTERS=0).canary < 2500


def test_a_width_is_a_whole_number_but_for_the_end_of_a_loop(core):
    assert core(SLOWER=1.025).nop == 0.125
    assert core(SLOWER=1.05).nop == pytest.approx(0.125 * 1.05 * 321 / 320, rel=0.005)
    wider = core(WIDTH=18)
    assert (wider.nop, wider.loop_end) == (pytest.approx(321 / 320 / 18, rel=0.01), 0.0)  # no core is so wide


def test_half_a_core_is_no_base_for_all_of_it(core):
    """Of 5.6 slots, which is no whole width, a neighbour leaves four, which is one, and known then."""
    assert core(COUNTERS=0, STEP=2, WIDTH=5.6, SLOWER=1.4).nop == 0.25
    found = core(*wide(NOPS), COUNTERS=0, STEP=2, WIDTH=5.6, NOP=0.25, rounds=40)
    assert found.nop == pytest.approx(321 / 320 / 5.6, rel=0.01)
    assert {r.status for r in found.readings} == {OK}
    assert core(COUNTERS=0, STEP=2, WIDTH=5.6, NOP=0.19).nop == pytest.approx(321 / 320 / 5.6, rel=0.01)
    assert core(COUNTERS=0, STEP=2, WIDTH=4.3, NOP=0.25).nop == 0.25  # as if the clock's chain were slowed


# --- the neighbour ----------------------------------------------------------------------------------


@pytest.mark.parametrize("uneven", [0.4, 0.9, 1.7])
def test_beside_an_uneven_neighbour_what_is_accepted_is_right(core, uneven):
    """Busy for five sixths of the time, now more, now less: the clock's own chain is slower by up to 4 %."""
    bodies = wide(NOPS, ALUS, "cn")
    found = core(
        *bodies, COUNTERS=0, STEP=2, WANDER=0.02, SLOWER=2, UNEVEN=uneven, CHAINED=0.04, PERIOD=0.003,
        FROM=1 / 6, UNTIL=1, rounds=40,
    )  # fmt: skip
    assert found.canary == pytest.approx(core(*bodies, COUNTERS=0, STEP=2).canary, rel=0.01)
    good = [r for r in found.readings if r.status == OK]
    off = sorted(abs(r.cycles / truth(bodies[r.kernel][0]) - 1) for r in good)
    assert len(good) > 0.5 * len(found.readings)
    assert off[int(0.95 * len(off))] < 0.015


@pytest.mark.parametrize("counters", [0, 1])
@pytest.mark.parametrize("slower", [1.08, 1.3, 2.0])
def test_what_a_neighbour_slows_is_rejected(core, slower, counters):
    """In bursts of 300 us, half of the time."""
    found = core(
        *wide(NOPS, ALUS, "cn"), rounds=50, SLOWER=slower, PERIOD=0.0006, FROM=0.5, UNTIL=1.0,
        COUNTERS=counters,
    )  # fmt: skip
    good = [r for r in found.readings if r.status == OK]
    wrong = [r for r in good if abs(r.cycles / truth((NOPS, ALUS, "cn")[r.kernel]) - 1) > 0.03]
    assert len(good) > 0.9 * len(found.readings)
    assert len(wrong) < 0.02 * len(good)
    assert sum(r.disturbed for r in found.readings) > 50  # and what was waited for
    assert found.asked > 5


def test_beside_a_neighbour_that_never_rests_nothing_is_accepted(core):
    """The core was known before; everything is slow alike, so no quantile could tell."""
    for slower in (1.04, 1.3, 2.0):
        found = core(*wide(NOPS, ALUS), SLOWER=slower, NOP=0.125)
        assert {r.status for r in found.readings} == {UNCLEAN}
        assert found.clean < 0.02
        assert found.asked > 0
        assert found.beats > samples(found) + found.asked, "waiting is no hang"
        assert {r.rejected for r in found.readings} == {32}  # sixteen before the wait and after it


LOOKS = 500


@pytest.mark.parametrize(
    ("slower", "seen"), [(1.02, False), (1.045, True), (1.3, True), (2.0, True)]
)  # a third more and less than is let through
def test_a_neighbour_slows_a_loop_of_nothing(looks, slower, seen):
    """In bursts of 300 us, half of the time: what branches take says so, and nothing else does."""
    quiet, beside = looks(SLOWER=slower, PERIOD=0.0006, FROM=0.5, UNTIL=1.0)
    assert quiet > 0.98
    assert (beside < 0.02) if seen else (beside > 0.98)


@pytest.mark.parametrize("slower", [1.1, 1.3, 1.9])
def test_a_loop_of_nothing_takes_whole_cycles_on_a_core_that_is_never_quiet(looks, slower):
    _, beside = looks(SLOWER=slower)
    assert beside < 0.02


@pytest.mark.parametrize("noise", [{"SLOWER": 1.019}, {"EVICTED": 120, "COUNTERS": 0}])
def test_noise_of_two_percent_is_no_neighbour(core, noise):
    """Nor a canary that a kernel has pushed out: it takes so many cycles more, until it runs again."""
    found = core(*wide(NOPS, ALUS), NOP=0.125, rounds=20, **noise)
    assert {(r.status, r.disturbed) for r in found.readings} == {(OK, 0)}


def test_on_another_cpu_it_goes_on(core):
    found = core(*wide(NOPS, ALUS), SLOWER=1.5, NOP=0.125, MOVES=1)
    assert [r.status for r in found.readings] == [OK] * len(found.readings)
    assert {round(r.cycles, 2) for r in found.readings} == {1.0}


@pytest.mark.parametrize("moves", [2, 16])
def test_the_next_cpu_may_have_a_neighbour_too(core, moves):
    """It is left as soon: to wait there for a twentieth of a second finds no better one."""
    found = core(*wide(NOPS, ALUS), SLOWER=1.5, NOP=0.125, MOVES=moves)
    assert [r.status for r in found.readings] == [OK] * len(found.readings)
    assert found.asked == moves
    assert 0.0015 * (moves - 1) < found.seconds < 0.003 * moves


def test_a_wait_ends(core):
    """The first takes a twentieth of a second, the next ones half of the one before."""
    found = core(*wide(*[NOPS] * 20), SLOWER=1.5, NOP=0.125, rounds=2)
    assert 0.08 < found.seconds < 0.16
    quiet = core(*wide(*[NOPS] * 20), SLOWER=1.5, NOP=0.125, rounds=2, UNTIL=0.04)
    assert {r.status for r in quiet.readings} == {OK}


def test_what_waits_for_itself_does_not_wait_for_a_quiet_core(core):
    found = core((CHAIN * 2, 0), ("aaan", 0), SLOWER=1.5, NOP=0.125)
    assert {(r.status, r.disturbed) for r in found.readings} == {(OK, 0)}
    assert {(r.kernel, round(r.cycles, 1)) for r in found.readings} == {(0, 2.0), (1, 3.0)}
    assert found.seconds < 0.005


def test_what_waits_for_itself_is_seen_to_be_indifferent(core):
    """As `bench` does not know what it times: a few clean samples show that the others are as good."""
    few = {"SLOWER": 2.0, "PERIOD": 0.002, "FROM": 0.05, "UNTIL": 1.0, "NOP": 0.125}
    found = core((CHAIN, WIDE), rounds=20, want=12, target=20000.0, **few)
    assert sum(r.status == OK for r in found.readings) > 15
    assert {round(r.cycles, 2) for r in found.readings} == {1.0}


@pytest.mark.parametrize("step", [2, 26])
@pytest.mark.parametrize("chained", [0.02, 0.08])
def test_the_clock_s_chain_is_none_beside_a_neighbour(core, chained, step):
    """It is slower by so much: what it does not slow was read as shorter by as much, and as sure."""
    options = {"SLOWER": 1.5, "CHAINED": 2 * chained, "PERIOD": 0.002, "FROM": 0.3, "NOP": 0.125}
    found = core((FORWARDED, WATCHED), rounds=160, want=12, target=20000.0, COUNTERS=0, STEP=step, **options)
    off = sorted(abs(r.cycles / FORWARDING - 1) for r in found.readings if r.status == OK)
    assert len(off) > 80
    assert off[int(0.9 * len(off))] < 0.005
    assert off[-1] < 0.03, "one in two hundred by two per cent, whatever the seed"


def test_a_chain_beside_a_neighbour_that_never_rests(core):
    """It is not clean, and that is known soon."""
    found = core((CHAIN, WATCHED), ("aaan", WATCHED), SLOWER=1.5, NOP=0.125)
    assert {r.status for r in found.readings} == {UNCLEAN}
    assert {r.rejected for r in found.readings} == {32}


def test_a_chain_through_memory_beside_a_neighbour(core):
    """Its samples are those between clean canaries, or it is not clean."""
    options = {"SLOWER": 1.5, "STORED": 0.3, "PERIOD": 0.002, "FROM": 0.2, "NOP": 0.125}
    plain = core((STORES, 0), rounds=20, **options)
    assert {r.status for r in plain.readings} == {OK}
    assert max(r.cycles for r in plain.readings) > 8.4, "the neighbour slows it down"
    watched = core((STORES, WATCHED), rounds=20, **options)
    clean = [r.cycles for r in watched.readings if r.status == OK]
    assert len(clean) > 10
    assert clean == pytest.approx([8.0] * len(clean), rel=0.02)


def test_a_chain_is_one_long_loop(core):
    """A short loop may take another time: the difference of two lengths would be neither."""
    options = {"rounds": 4, "target": 20000.0}
    (long, *rest), short = core((UPDATES, WATCHED), **options).readings, core((UPDATES, 0), **options)
    assert [r.cycles for r in (long, *rest)] == pytest.approx([UPDATE] * 4, rel=0.005)
    assert {(r.short_units, r.long_units) for r in (long, *rest)} == {(100, 100), (75, 75)}
    assert min(r.cycles for r in short.readings) > 1.1 * UPDATE
    lengths = {(r.short_units, r.long_units) for r in core((UPDATES, WATCHED | FAST)).readings}
    assert lengths == {(r.short_units, r.long_units) for r in short.readings}, "short loops are asked for"


@pytest.mark.parametrize("body", ["w", "w" * 90])
def test_what_the_first_trips_of_a_chain_take_is_no_part_of_it(core, body):
    """A chain so long that two and six trips would take the time: both have those in which a core learns."""
    found = core((body, WATCHED), rounds=4).readings
    assert [r.cycles for r in found] == pytest.approx([STORED * len(body)] * 4, rel=0.002)
    assert {r.trips for r in found} == {8 * LONGER_TRIPS}, "and no more than that"


def test_the_end_of_a_chain_s_loop_is_hidden(core):
    found = core((CHAIN, WATCHED), WIDTH=2, target=20000.0)
    assert [r.cycles for r in found.readings] == pytest.approx([1.0] * 4, rel=0.002)
