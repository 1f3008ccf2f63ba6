"""From samples to values: clusters, verdicts, and when an experiment comes back."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyclescope.backend.base import HANG, NOT_RUN, OK, SIGNAL, UNCLEAN, Capabilities, Sample
from cyclescope.kernel.kernel import Kernel
from cyclescope.kernel.state import MachineState
from cyclescope.measure.plan import LATENCY, Experiment
from cyclescope.measure.record import FAILED, NOISY, STABLE, UNSTABLE
from cyclescope.measure.sampling import (
    AGREE,
    CROWDED_ROUNDS,
    DISAGREE,
    DISTURBED,
    MOST_ROUNDS,
    PLACED,
    RoundNoise,
    Sampler,
    agree,
    low_cluster,
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


# --- values that are the same -------------------------------------------------------------------


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


@pytest.mark.parametrize("count", [2, 4, 8])
def test_the_error_is_less_for_more_rounds(count):
    found = summarise([clean(4.0)] * count, error=0.01)
    assert found.spread == pytest.approx(4.0 * 0.01 / 2 / count**0.5)


def test_why_a_reading_is_not_ok():
    disturbed = [unclean(4.0 + n) for n in range(MOST_ROUNDS)]
    assert summarise(disturbed).error == DISTURBED
    assert summarise([clean(4.0 * 1.1**n) for n in range(MOST_ROUNDS)]).error == DISAGREE
    assert summarise([clean(4.0)] * 2).error == ""


def test_the_noise_of_a_session_is_learned_from_its_rounds():
    noise = RoundNoise()
    assert noise.error == AGREE  # until it is known
    for n in range(1, 101):
        noise.note([clean(1.0), clean(1.0 + n / 10000)])
    assert noise.error == pytest.approx(0.0095, rel=0.01)
    noise.note([clean(1.0), clean(3.0)])  # no noise: something else
    noise.note([clean(1.0), unclean(1.02)])
    assert noise.error == pytest.approx(0.0095, rel=0.01)


@pytest.mark.parametrize("sigma", [0.0005, 0.002, 0.004])
def test_independent_readings_differ_by_twice_their_error_in_one_of_twenty_cases(sigma):
    draw = random.Random(7)
    answers = Answers(lambda number, turn: clean(3.0 * (1 + draw.gauss(0.0, sigma))))
    first, second = ([m for _, m in settle(answers, 250, batch=50)[0]] for _ in range(2))
    first, second = first[50:], second[50:]  # the session knows its noise now
    apart = [abs(a.cycles - b.cycles) / max(a.spread, b.spread) for a, b in zip(first, second, strict=True)]
    assert sum(ratio > 2 for ratio in apart) <= 0.09 * len(apart)
    assert sum(ratio > 1 for ratio in apart) >= 0.15 * len(apart)  # nor is it twice what is needed


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


# --- many experiments ---------------------------------------------------------------------------


def experiments(count):
    return [
        Experiment(f"form {n}", LATENCY, "a", "b", "", Kernel(n.to_bytes(2, "little"), 1, STATE), 1)
        for n in range(count)
    ]


def number_of(kernel):
    return int.from_bytes(kernel.code, "little")


class Answers:
    """A backend whose samples a function of (experiment number, round) gives."""

    def __init__(self, answer):
        self.answer = answer
        self.rounds = {}
        self.batches = []
        self.tries = []  # allowed per round, by batch
        self.most_flying = 0
        self._flying = []

    def capabilities(self):
        return Capabilities("x86-64", "answers", 0, "none")

    def submit(self, kernels, effort):
        self.batches.append([number_of(k) for k in kernels])
        self.tries.append(effort.maximum)
        self._flying.append((kernels, effort))
        self.most_flying = max(self.most_flying, len(self._flying))

    def collect(self):
        kernels, effort = self._flying.pop(0)
        return [[self._one(number_of(k)) for _ in range(effort.rounds)] for k in kernels]

    def _one(self, number):
        turn = self.rounds.get(number, 0)
        self.rounds[number] = turn + 1
        return self.answer(number, turn)


def settle(answers, count, batch=4, wanted=lambda: True):
    sampler = Sampler(answers, batch=batch)
    return [pair for found in sampler.measure(experiments(count), wanted) for pair in found], sampler


def test_every_experiment_settles_once():
    settled, _ = settle(Answers(lambda number, turn: clean(float(number + 1))), 10)
    assert [e.form for e, _ in settled] == [f"form {n}" for n in range(10)]
    assert [m.cycles for _, m in settled] == [float(n + 1) for n in range(10)]


def test_one_batch_is_under_way_while_the_next_is_prepared():
    answers = Answers(lambda number, turn: clean(1.0))
    settle(answers, 10)
    assert answers.most_flying == 2


def test_doubtful_experiments_come_back_between_new_ones():
    answers = Answers(lambda number, turn: clean(9.0 if number == 0 and turn == 0 else 4.0))
    settled, _ = settle(answers, 40)
    assert len(settled) == 40
    assert answers.rounds[0] == 4
    visits = [n for n, batch in enumerate(answers.batches) if 0 in batch]
    assert len(visits) == 2
    assert visits[1] - visits[0] >= 4  # not in the same bad millisecond


def test_experiments_that_never_agree_end_after_ten_rounds():
    answers = Answers(lambda number, turn: clean(4.0 * 1.1**turn))
    settled, _ = settle(answers, 3)
    assert {m.verdict for _, m in settled} == {NOISY}
    assert set(answers.rounds.values()) == {MOST_ROUNDS}


def test_a_failure_is_not_repeated():
    answers = Answers(lambda number, turn: Sample(0.0, 0.0, SIGNAL, 4))
    settled, _ = settle(answers, 3)
    assert set(answers.rounds.values()) == {2}
    assert {m.error for _, m in settled} == {"SIGILL"}


def test_when_no_more_is_wanted_what_flies_is_finished():
    asked = iter([True, True, False])
    answers = Answers(lambda number, turn: clean(9.0 if turn == 0 else 4.0))
    settled, _ = settle(answers, 100, wanted=lambda: next(asked, False))
    assert len(settled) == 8
    assert {m.verdict for _, m in settled} == {STABLE}


def test_samples_are_counted():
    _, sampler = settle(
        Answers(lambda number, turn: Sample(1.0, 0.0, OK, accepted=6, rejected=2, disturbed=1)), 5
    )
    assert (sampler.accepted, sampler.rejected, sampler.disturbed) == (60, 20, 10)


@given(st.floats(0.2, 200.0), st.integers(0, 2**32), st.floats(1.05, 2.5))
def test_the_truth_when_two_of_three_samples_are_clean(truth, seed, slower):
    """Samples that a neighbour slowed down never look clean twice in the same place."""
    draw = random.Random(seed)

    def answer(number, turn):
        disturbed = (turn + number) % 3 == 0
        raised = truth * draw.uniform(slower, 2 * slower) if disturbed else truth
        return clean(raised * (1 + draw.uniform(-0.004, 0.004)))

    settled, _ = settle(Answers(answer), 6)
    assert len(settled) == 6
    for _, measurement in settled:
        assert measurement.cycles == pytest.approx(truth, rel=0.02)
        assert measurement.verdict == STABLE


def test_what_was_not_run_is_asked_for_again():
    answers = Answers(lambda number, turn: Sample(0.0, 0.0, NOT_RUN) if turn < 2 else clean(4.0))
    settled, _ = settle(answers, 3)
    assert {(m.verdict, m.cycles) for _, m in settled} == {(STABLE, 4.0)}


def test_what_is_never_run_fails_in_the_end():
    settled, _ = settle(Answers(lambda number, turn: Sample(0.0, 0.0, NOT_RUN)), 3)
    assert {(m.verdict, m.error) for _, m in settled} == {(FAILED, "not run")}


# --- neighbours -------------------------------------------------------------------------------------


def beside(neighbours):
    """Answers of kernels of which so large a share of the samples is disturbed, and none is settled."""
    tries = 100
    one = Sample(1.0, 0.0, UNCLEAN, accepted=0, rejected=tries, disturbed=round(neighbours * tries))
    return Answers(lambda number, turn: one)


@pytest.mark.parametrize(("share", "rounds"), [(0.4, MOST_ROUNDS), (0.8, 4)])
def test_beside_neighbours_that_never_rest_rounds_and_tries_are_few(share, rounds):
    answers = beside(share)
    settled, _ = settle(answers, 600)
    assert {m.verdict for _, m in settled} == {NOISY}
    assert {len(m.rounds) for _, m in settled[-8:]} == {rounds}
    assert answers.tries[0] == 300
    assert answers.tries[-1] == (100 if rounds == 4 else 300)


@pytest.mark.parametrize(("kernels", "tries"), [(75, 300), (150, 100)])
def test_it_takes_some_two_hundred_samples_to_believe_in_neighbours(kernels, tries):
    """The third batch is made when the two samples of each kernel of the first are there."""
    answers = beside(1.0)
    settle(answers, 3 * kernels, batch=kernels)
    assert answers.tries[2] == tries


def test_when_neighbours_rest_all_rounds_are_there_again():
    loud = Sample(1.0, 0.0, UNCLEAN, accepted=0, rejected=100, disturbed=100)
    settled, _ = settle(Answers(lambda number, turn: loud if number < 600 else unclean(1.0)), 1200)
    rounds = {int(e.form.split()[1]): len(m.rounds) for e, m in settled}
    assert {rounds[number] for number in range(500, 600)} == {CROWDED_ROUNDS}
    assert {rounds[number] for number in range(1150, 1200)} == {MOST_ROUNDS}
