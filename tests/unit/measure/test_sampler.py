"""Many experiments: when one comes back, what is never run, and what neighbours cost."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyclescope.backend.base import NOT_RUN, OK, SIGNAL, UNCLEAN, Capabilities, Sample
from cyclescope.kernel.kernel import CANARY, Kernel
from cyclescope.kernel.state import MachineState
from cyclescope.measure.plan import LATENCY, Experiment
from cyclescope.measure.record import FAILED, NOISY, STABLE, RoundNoise
from cyclescope.measure.sampling import (
    AGREE,
    CROWDED_ROUNDS,
    MOST_ROUNDS,
    SECOND_TIME,
    Sampler,
)

STATE = MachineState((0,) * 16)


def clean(cycles, accepted=6, rejected=0):
    return Sample(cycles, 0.0, OK, accepted=accepted, rejected=rejected)


def unclean(cycles):
    return Sample(cycles, 0.0, UNCLEAN, accepted=2, rejected=300)


# --- many experiments ---------------------------------------------------------------------------


def experiments(count):
    return [
        Experiment(f"form {n}", LATENCY, "a", "b", "", Kernel(n.to_bytes(2, "little"), 1, STATE), 1)
        for n in range(count)
    ]


@pytest.mark.parametrize("flags", [0, CANARY])
@pytest.mark.parametrize("count", [1, 4])
def test_chains_differ_by_hundredths_of_a_cycle_by_their_place(flags, count):
    """Per instance; a sequence that differs by as much runs at another rate."""
    kernel = Kernel(b"", 1, STATE, flags=flags)
    answers = Answers(lambda number, place: clean(count * (1.0 + 0.035 * (place % 2))))
    one = Experiment("form", LATENCY, "a", "b", "", kernel, count)
    ((_, found),) = [pair for batch in Sampler(answers).measure([one]) for pair in batch]
    assert (found.verdict == STABLE, len(found.rounds) == 2) == (not flags, not flags)


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


def test_two_batches_are_under_way_while_the_next_is_prepared():
    answers = Answers(lambda number, turn: clean(1.0))
    settle(answers, 20)
    assert answers.most_flying == 3  # until the one that was prepared is sent, and the oldest waited for


def test_the_backend_begins_with_a_small_batch():
    answers = Answers(lambda number, turn: clean(1.0))
    settle(answers, 100, batch=32)
    assert [len(batch) for batch in answers.batches] == [4, 8, 16, 32, 32, 8]


def test_doubtful_experiments_come_back_between_new_ones():
    answers = Answers(lambda number, turn: clean(9.0 if number == 0 and turn == 0 else 4.0))
    settled, _ = settle(answers, 40)
    assert len(settled) == 40
    assert answers.rounds[0] == 4
    visits = [n for n, batch in enumerate(answers.batches) if 0 in batch]
    assert len(visits) == 2
    assert visits[1] - visits[0] >= 4  # not in the same bad millisecond


@pytest.mark.parametrize("least", [2, 8, 12])
def test_no_verdict_comes_before_so_many_rounds(least):
    answers = Answers(lambda number, turn: clean(4.0))
    sampler = Sampler(answers, batch=4, least=least)
    (found,) = [measurement for batch in sampler.measure(experiments(1)) for _, measurement in batch]
    assert (found.verdict, len(found.rounds)) == (STABLE, least)


def test_what_fails_needs_no_more_rounds():
    failed = Sample(0.0, 0.0, SIGNAL)
    sampler = Sampler(Answers(lambda number, turn: failed), batch=4, least=8)
    (found,) = [measurement for batch in sampler.measure(experiments(1)) for _, measurement in batch]
    assert (found.verdict, found.rounds) == (FAILED, ())


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
    assert len(settled) == 1 + 2, "of the first two batches"
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


@pytest.mark.parametrize("sigma", [0.0005, 0.002, 0.004])
def test_independent_readings_differ_by_twice_their_error_in_one_of_twenty_cases(sigma):
    draw = random.Random(7)
    answers = Answers(lambda number, turn: clean(3.0 * (1 + draw.gauss(0.0, sigma))))
    first, second = ([m for _, m in settle(answers, 250, batch=50)[0]] for _ in range(2))
    first, second = first[50:], second[50:]  # the session knows its noise now
    apart = [abs(a.cycles - b.cycles) / max(a.spread, b.spread) for a, b in zip(first, second, strict=True)]
    assert sum(ratio > 2 for ratio in apart) <= 0.09 * len(apart)
    assert sum(ratio > 1 for ratio in apart) >= 0.15 * len(apart)  # nor is it twice what is needed


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
    """The fourth batch is made when the two samples of each kernel of the first are there."""
    answers = beside(1.0)
    settle(answers, 15 * kernels, batch=8 * kernels)
    assert len(answers.batches[0]) == kernels
    assert answers.tries[3] == tries


def test_when_neighbours_rest_all_rounds_are_there_again():
    loud = Sample(1.0, 0.0, UNCLEAN, accepted=0, rejected=100, disturbed=100)
    settled, _ = settle(Answers(lambda number, turn: loud if number < 600 else unclean(1.0)), 1200)
    rounds = {int(e.form.split()[1]): len(m.rounds) for e, m in settled}
    assert {rounds[number] for number in range(500, 600)} == {CROWDED_ROUNDS}
    assert {rounds[number] for number in range(1150, 1200)} == {MOST_ROUNDS}


# --- how far readings differ --------------------------------------------------------------------


def test_the_noise_of_a_session_is_learned_from_its_rounds():
    noise = RoundNoise(AGREE)
    assert noise.error == AGREE  # until it is known
    for n in range(1, 101):
        noise.note_rounds(n / 10000)
    assert noise.error == pytest.approx(0.0096)


@pytest.mark.parametrize(("known", "expected"), [(99, 0.001), (100, 0.004), (2000, 0.004)])
def test_what_two_times_differ_by_counts_where_it_is_more(known, expected):
    """By means of so many rounds, which differ less than rounds do."""
    noise = RoundNoise(AGREE)
    for _ in range(known):
        noise.note_times(0.002, 4)
    for _ in range(50):
        noise.note_rounds(0.001)
    assert noise.error == pytest.approx(expected)


@pytest.mark.parametrize("other", [clean(3.0), unclean(1.02)])
def test_rounds_that_do_not_agree_tell_no_noise(other):
    answers = Answers(lambda number, place: other if place == 1 else clean(1.0))
    found = [m for batch in Sampler(answers, batch=20).measure(experiments(200)) for _, m in batch]
    usual = {AGREE / 2 / count**0.5 for count in range(2, MOST_ROUNDS)}
    spreads = [m.spread for m in found if m.verdict == STABLE]
    assert len(spreads) == 200
    assert all(min(abs(spread - one) for one in usual) < 1e-9 for spread in spreads)


def test_one_of_a_hundred_is_measured_again_to_see_what_two_times_differ_by():
    """Rounds of a visit agree; those of another one, some batches later, are half a percent longer."""
    many = 150 * SECOND_TIME
    answers = Answers(lambda number, place: clean(100.0 * (1 + 0.005 * (place > 1))))
    found = [one for batch in Sampler(answers, batch=500).measure(experiments(many)) for one in batch]
    assert len({e.form for e, _ in found}) == len(found) == many, "each is told once"
    assert {m.cycles for _, m in found} == {100.0}, "by its first visit"
    again = sum(rounds > 2 for rounds in answers.rounds.values())
    assert many / 100 * 0.9 <= again <= many / 100
    assert found[0][1].spread == pytest.approx(AGREE * 100 / 2 / 2**0.5)
    assert 2 * found[-1][1].spread == pytest.approx(0.5, rel=0.01)


def test_few_experiments_are_not_measured_again():
    answers = Answers(lambda number, place: clean(1.0))
    assert (
        len([one for batch in Sampler(answers).measure(experiments(SECOND_TIME)) for one in batch])
        == SECOND_TIME
    )
    assert set(answers.rounds.values()) == {2}
