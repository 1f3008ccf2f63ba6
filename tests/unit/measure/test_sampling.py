"""From samples to values: clusters, verdicts, and when an experiment comes back."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyclescope.backend.base import HANG, OK, SIGNAL, UNCLEAN, Sample
from cyclescope.kernel.state import MachineState
from cyclescope.measure import sampling
from cyclescope.measure.record import FAILED, NOISY, STABLE, UNSTABLE
from cyclescope.measure.sampling import (
    AGREE,
    DISAGREE,
    DISTURBED,
    MOST_ROUNDS,
    PLACED,
    agree,
    low_cluster,
    once,
    summarise,
)

STATE = MachineState((0,) * 16)


def clean(cycles, accepted=6, rejected=0):
    return Sample(cycles, 0.0, OK, accepted=accepted, rejected=rejected)


def unclean(cycles):
    return Sample(cycles, 0.0, UNCLEAN, accepted=2, rejected=300)


def verdict(*samples, places=2):
    found = summarise(samples, places)
    return found and found.verdict


@pytest.mark.parametrize(("cycles", "kept"), [(3.5, 3.5), (-1063.3, 0.0), (math.nan, 0.0)])
def test_what_an_emulator_took_is_a_row_that_can_be_read(cycles, kept):
    found = once([clean(cycles)])
    assert (found.cycles, found.verdict) == (kept, NOISY)


# --- values that are the same -------------------------------------------------------------------


def test_a_grain_of_a_kernel_s_own():
    """A chain of a cycle that differs by hundredths of one says the same everywhere."""
    rounds = [clean(cycles) for cycles in (1.0, 1.035, 1.0, 1.03)]
    assert summarise(rounds[:2]) is None
    assert summarise(rounds).error == PLACED
    assert summarise(rounds[:2], grain=0.04).verdict == STABLE
    assert summarise(rounds[:2], grain=0.02) is None


def test_values_agree_within_two_percent_or_a_grain():
    assert agree(100.0, 101.9)
    assert not agree(100.0, 102.2)
    assert agree(0.001, 0.00149)
    assert not agree(0.001, 0.0016)
    assert not agree(0.125, 0.129)  # a NOP's time is not so near to another one's
    assert agree(100.0, 100.9, 0.01)
    assert not agree(100.0, 101.1, 0.01)


@given(st.floats(0, 1e4), st.floats(0, 1e4))
def test_agreement_is_symmetric(a, b):
    assert agree(a, b) == agree(b, a)
    assert agree(a, a)


# --- clusters -----------------------------------------------------------------------------------


def test_the_low_cluster_is_the_lowest_value_seen_twice():
    assert low_cluster([5.0, 3.0, 3.01, 9.0]) == [3.0, 3.01]
    assert low_cluster([1.0, 3.0, 3.01, 9.0]) == [3.0, 3.01]  # once is an accident
    assert low_cluster([7.0, 3.0]) == [3.0]
    assert low_cluster([4.0]) == [4.0]


@given(st.lists(st.floats(0.1, 1e3), min_size=1, max_size=20))
def test_a_low_cluster_is_made_of_values_that_agree_with_its_lowest(values):
    cluster = low_cluster(values)
    assert cluster
    assert set(cluster) <= set(values)
    assert all(agree(cluster[0], v) for v in cluster)
    below = [v for v in values if v < cluster[0]]
    assert not any(agree(a, b) for a, b in itertools.combinations(below, 2))


@given(st.lists(st.floats(0.1, 1e3), min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_a_low_cluster_does_not_depend_on_the_order(values, shuffler):
    other = values[:]
    shuffler.shuffle(other)
    assert low_cluster(values) == low_cluster(other)


# --- one experiment -----------------------------------------------------------------------------


def test_two_rounds_that_agree_are_enough():
    found = summarise([clean(4.0), clean(4.02)])
    assert (found.verdict, found.cycles) == (STABLE, pytest.approx(4.01))
    assert found.spread == pytest.approx(0.02 * 4.01 / 2 / 2**0.5)  # what any two rounds may differ by
    assert found.rounds == (4.0, 4.02)
    assert (found.accepted, found.rejected) == (12, 0)


def test_two_rounds_that_disagree_ask_for_more():
    assert summarise([clean(4.0), clean(4.2)]) is None


def test_two_thirds_of_at_least_three_rounds_settle():
    assert verdict(clean(4.0), clean(6.0), clean(4.0)) is None
    assert verdict(clean(4.0), clean(6.0), clean(4.0), clean(4.01)) == STABLE
    found = summarise([clean(4.0), clean(6.0), clean(4.0), clean(4.01)])
    assert found.cycles == pytest.approx(4.0033, abs=1e-3)


def test_ten_rounds_without_agreement_are_unstable():
    values = [4.0, 4.0, *range(10, 18)]
    found = summarise([clean(float(v)) for v in values])
    assert len(values) == MOST_ROUNDS
    assert (found.verdict, found.cycles) == (UNSTABLE, 4.0)
    assert found.spread == 13.0


def test_what_depends_on_the_place_is_not_ok():
    """Rounds go around the places of the loop: both say the same again, and something else."""
    assert summarise([clean(1.11), clean(1.14)]) is None
    found = summarise([clean(1.11), clean(1.14), clean(1.112), clean(1.141)])
    assert (found.verdict, found.error) == (UNSTABLE, PLACED)
    assert found.cycles == pytest.approx(1.111)
    assert found.spread == pytest.approx(0.031)
    assert verdict(clean(0.93), clean(1.03), clean(0.93), clean(1.03), clean(0.93)) == UNSTABLE


def test_a_value_of_one_place_alone_is_not_ok_however_often_it_is_seen():
    """Eight NOPs in a short loop: every other round says 0.93."""
    lucky = [clean(1.0) if n % 4 else clean(0.93 + n / 27) for n in range(8)]
    assert summarise(lucky, places=4) is None
    assert verdict(*lucky, clean(0.93), clean(1.0), places=4) == UNSTABLE


def test_a_disturbed_round_is_made_good_by_another_of_its_place():
    assert summarise([clean(4.0), clean(6.0), clean(4.0), clean(7.0)]) is None
    found = summarise([clean(4.0), clean(6.0), clean(4.0), clean(7.0), clean(4.0), clean(4.0)])
    assert (found.verdict, found.cycles) == (STABLE, pytest.approx(4.0))


def test_rounds_that_are_faster_than_those_that_agree_are_another_state():
    """What an update of memory stored reaches the next in 6 or in 8 cycles on a Zen 3; one is a hiccup."""
    slow = [clean(8.05), clean(8.1), clean(8.11), clean(8.15)]
    assert verdict(clean(6.37), *slow[:3]) == STABLE
    assert summarise([clean(6.37), clean(6.55), *slow]) is None
    found = summarise([clean(6.37), clean(6.55), *slow, *slow])
    assert (found.verdict, found.error) == (UNSTABLE, DISAGREE)
    assert found.cycles == pytest.approx(8.1, abs=0.05)


@pytest.mark.parametrize(("faster", "settled"), [(2, STABLE), (3, UNSTABLE)])
def test_of_many_rounds_a_tenth_may_be_hiccups(faster, settled):
    low = [clean(5.0 + 0.5 * n) for n in range(faster)]
    assert verdict(*low, *[clean(8.0)] * (24 - faster)) == settled


@pytest.mark.parametrize("count", [2, 4, 8])
def test_the_error_is_less_for_more_rounds(count):
    found = summarise([clean(4.0)] * count, error=0.01)
    assert found.spread == pytest.approx(4.0 * 0.01 / 2 / count**0.5)


def test_why_a_reading_is_not_ok():
    disturbed = [unclean(4.0 + n) for n in range(MOST_ROUNDS)]
    assert summarise(disturbed).error == DISTURBED
    assert summarise([clean(4.0 * 1.1**n) for n in range(MOST_ROUNDS)]).error == DISAGREE
    assert summarise([clean(4.0)] * 2).error == ""


def test_unclean_rounds_come_back_until_clean_ones_agree():
    assert summarise([unclean(4.0), unclean(4.0)]) is None
    assert verdict(unclean(4.0), unclean(9.0), clean(4.0), clean(4.0), clean(4.0)) == STABLE


def test_only_unclean_rounds_are_noise_with_the_lowest_value():
    found = summarise([unclean(4.0 + n) for n in range(MOST_ROUNDS)])
    assert (found.verdict, found.cycles) == (NOISY, 4.0)
    assert found.usable


def test_a_value_of_unclean_rounds_is_as_vague_as_they_are():
    assert summarise([unclean(4.0 + n) for n in range(MOST_ROUNDS)]).spread == MOST_ROUNDS - 1


@pytest.mark.parametrize("round_of", [clean, unclean])
@pytest.mark.parametrize(("cycles", "read"), [(-2.0, False), (-1.1, False), (-0.9, True), (-0.1, True)])
def test_less_than_nothing_is_no_reading(round_of, cycles, read):
    """The difference of two times of which the lesser was disturbed."""
    found = summarise([round_of(cycles), *(unclean(30.0 + 2 * n) for n in range(MOST_ROUNDS - 1))])
    assert (found.cycles == cycles) is read
    assert cycles in found.rounds


def test_rounds_that_agree_on_less_than_nothing_say_nothing():
    found = summarise([clean(-40.0)] * MOST_ROUNDS)
    assert (found.verdict, found.error) == (FAILED, "no sample at all")


@pytest.mark.parametrize(
    ("sample", "error"),
    [
        (Sample(0.0, 0.0, SIGNAL, 4), "SIGILL"),
        (Sample(0.0, 0.0, SIGNAL, 11, address=0x10), "SIGSEGV at 0x10"),
        (Sample(0.0, 0.0, SIGNAL, 99), "signal 99"),
        (Sample(0.0, 0.0, HANG), "hang"),
    ],
)
def test_one_round_that_fails_is_a_failure_with_its_reason(sample, error):
    found = summarise([clean(4.0), sample])
    assert (found.verdict, found.error, found.usable) == (FAILED, error, False)


def test_rounds_without_any_sample_fail_in_the_end():
    nothing = Sample(math.nan, math.nan, UNCLEAN)
    assert summarise([nothing] * 2) is None
    found = summarise([nothing] * MOST_ROUNDS)
    assert (found.verdict, found.error) == (FAILED, "no sample at all")


@given(st.lists(st.floats(0.1, 1e3), min_size=2, max_size=MOST_ROUNDS))
def test_a_stable_value_is_within_the_samples_that_agree(values):
    found = summarise([clean(v) for v in values])
    if found is None:
        assert len(values) < MOST_ROUNDS
    elif found.verdict == STABLE:
        near = [v for v in values if abs(v - found.cycles) <= 2 * AGREE * found.cycles + 0.004]
        assert len(near) * 3 >= 2 * len(values)


@given(st.lists(st.tuples(st.sampled_from([OK, OK, OK, UNCLEAN]), st.floats(-0.5, 9.0)), max_size=9))
def test_rounds_that_agree_are_judged_as_all_are(rounds):
    """In one pass, without a look at each length and place."""
    samples = [Sample(cycles, 0.0, status, accepted=6) for status, cycles in rounds]
    samples += [clean(s.cycles * 1.001) for s in samples]
    with pytest.MonkeyPatch.context() as patch:
        found = summarise(samples, error=0.003)
        patch.setattr(sampling, "_agreeing", lambda *_: None)
        assert summarise(samples, error=0.003) == found
