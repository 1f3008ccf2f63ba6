"""Passes over basic blocks and the verdicts: constants are met from both sides."""

from __future__ import annotations

import pytest

from cyclescope.backend.base import DIED, HANG, NOT_RUN, PAGES, SIGNAL, TOO_LONG, UNCLEAN, BlockEffort
from cyclescope.kernel.kernel import Kernel
from cyclescope.measure.bench import default_state
from cyclescope.measure.blocks import (
    BATCH,
    CLEAN,
    DISTURBED_BLOCK,
    FAILED,
    MOST_PASSES,
    NONLINEAR,
    PASSES,
    UNSTABLE,
    agreeing,
    judged,
    time_blocks,
)
from tests.support.made.simulated_blocks import sample


class Scripted:
    """Answers the passes over each block in turn, the last one for ever."""

    def __init__(self, *answers):
        self.answers = answers
        self.asked = []

    def blocks(self, kernels, effort):
        self.asked.append([kernel.code[0] for kernel in kernels])
        done = [sum(code in asked for asked in self.asked[:-1]) for code in self.asked[-1]]
        each = (self.answers[code] for code in self.asked[-1])
        return [one[min(n, len(one) - 1)] for one, n in zip(each, done, strict=True)]


def kernels(count):
    return [Kernel(bytes([n]), 1, default_state(0)) for n in range(count)]


# --- verdicts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cycles", "verdict"),
    [
        ((2.0, 2.039), CLEAN),
        ((2.0, 2.041), UNSTABLE),
        ((0.25, 0.2549), CLEAN),  # the clock's grain, more than 2 %
        ((0.15, 0.1551), UNSTABLE),
        ((2.0,), UNSTABLE),
        ((2.0, 3.0, 2.01), CLEAN),
    ],
)
def test_two_passes_have_to_agree(cycles, verdict):
    assert judged([sample(c) for c in cycles]).verdict == verdict


@pytest.mark.parametrize(
    ("cycles", "linearity", "verdict"),
    [
        (3.0, 1.049, CLEAN), (3.0, 1.051, NONLINEAR), (3.0, 0.951, CLEAN), (3.0, 0.949, NONLINEAR),
        (0.05, 1.09, CLEAN), (0.05, 1.11, NONLINEAR),
    ],
)  # fmt: skip
def test_halves_of_the_copies_have_to_take_the_same(cycles, linearity, verdict):
    assert judged([sample(cycles, linearity=linearity)] * 2).verdict == verdict


def test_the_value_is_of_the_passes_that_agree():
    found = judged([sample(c) for c in (2.00, 2.50, 2.02, 2.01)])
    assert (found.cycles, found.verdict) == (2.01, CLEAN)
    assert found.spread == pytest.approx(0.02)
    assert found.passes == (2.00, 2.50, 2.02, 2.01)


def test_of_two_sets_the_larger_counts_and_of_equal_ones_the_faster():
    assert [s.cycles for s in agreeing([sample(c) for c in (1.0, 1.0, 2.0, 2.0, 2.0)])] == [2.0] * 3
    assert [s.cycles for s in agreeing([sample(c) for c in (2.0, 1.0, 2.0, 1.0)])] == [1.0] * 2


def test_disturbed_passes_have_no_say():
    assert judged([sample(1.0), sample(9.0, UNCLEAN), sample(1.0)]).verdict == CLEAN
    found = judged([sample(1.0, UNCLEAN)] * 3)
    assert (found.verdict, found.cycles) == (DISTURBED_BLOCK, 0.0)


@pytest.mark.parametrize(
    ("status", "detail", "address", "words"),
    [
        (SIGNAL, 11, 0, "near 0, one that is not canonical"),
        (SIGNAL, 11, 0x60000000, "that it cannot have"),
        (SIGNAL, 8, 0, "divides by zero"),
        (SIGNAL, 4, 0, "does not execute"),
        (SIGNAL, 31, 0, "system call"),
        (SIGNAL, 7, 0, "not aligned"),
        (SIGNAL, 17, 0, "signal 17"),
        (HANG, 14, 0, "within a second"),
        (DIED, 9, 0, "kills"),
        (PAGES, 0, 0, "too many pages"),
        (TOO_LONG, 0, 0, "too long"),
        (NOT_RUN, 0, 0, "not run"),
    ],
)
def test_what_does_not_run_has_its_reason(status, detail, address, words):
    found = judged([sample(0.0, status, detail=detail, address=address)])
    assert found.verdict == FAILED
    assert words in found.reason


# --- passes ----------------------------------------------------------------------------------------


def test_clean_blocks_get_the_usual_passes_and_doubtful_ones_more():
    steady, late, never = [sample(1.0)], [sample(float(n)) for n in (1, 2, 3, 4, 4)], []
    never = [sample(float(2**n)) for n in range(20)]
    backend = Scripted(steady, late, never)
    found = time_blocks(backend, kernels(3))
    assert [one.verdict for one in found] == [CLEAN, CLEAN, UNSTABLE]
    passes = [sum(number in asked for asked in backend.asked) for number in range(3)]
    assert passes == [PASSES, PASSES + 2, MOST_PASSES]


def test_failures_are_not_tried_again():
    backend = Scripted([sample(0.0, SIGNAL, detail=4)])
    time_blocks(backend, kernels(1))
    assert len(backend.asked) == PASSES


def test_blocks_go_in_batches_and_progress_ends_with_all():
    told = []
    backend = Scripted(*[[sample(1.0)]] * (BATCH + 5))
    time_blocks(backend, kernels(BATCH + 5), report=lambda done, of: told.append((done, of)))
    assert [len(asked) for asked in backend.asked] == [BATCH, 5] * PASSES
    assert told[-1][0] == told[-1][1] == PASSES * (BATCH + 5)


def test_a_sample_is_a_hundred_calls_of_usual_copies():
    entered, copies, a_cycle = 200, 1200, 3  # cycles, instructions, and how many of them a usual block has
    calls = BlockEffort().target / (entered + copies / a_cycle)
    assert 60 < calls < 200, "the first of them take longer; native/blocks.c makes a hundred at most"


def test_passes_have_orders_of_their_own():
    seeds = []

    class Noting(Scripted):
        def blocks(self, kernels, effort):
            seeds.append(effort.seed)
            return super().blocks(kernels, effort)

    time_blocks(Noting([sample(1.0)]), kernels(1), BlockEffort(seed=5))
    assert len(set(seeds)) == PASSES
