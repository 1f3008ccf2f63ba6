"""One kernel on several CPUs: what it takes alone and beside the others, played by backends that know."""

from __future__ import annotations

import random
import statistics

import pytest

from cyclescope.backend.base import OK, SIGNAL, UNCLEAN, Capabilities, Sample
from cyclescope.errors import MeasurementError, UnsupportedInstruction
from cyclescope.infer.beside.threads import Batch, between, median_of, reading, time_threads
from cyclescope.kernel.kernel import CANARY, FAST, Kernel
from cyclescope.measure.bench import CodePlace, default_state

SEED = random.SystemRandom().randrange(1 << 30)
KERNEL = Kernel(b"\x90", 1, default_state(0), b"", CANARY | FAST)


class Shared:
    """A unit that backends share: who is asked while another one is under way takes longer."""

    def __init__(self, slower):
        self.slower, self.running, self.most = slower, 0, 0


class Thread:
    """A backend on one CPU of a core; `disturbs` says by how much neighbours slow its clock in a batch."""

    def __init__(self, cpu, unit, status=OK, detail=0, disturbs=lambda: 0.0):
        self.cpu, self.unit, self.status, self.detail = cpu, unit, status, detail
        self.draw, self.asked, self.disturbs = random.Random(cpu), [], disturbs

    def capabilities(self):
        return Capabilities("x86-64", "", self.cpu, "")

    def submit(self, kernels, effort):
        self.unit.running += 1
        self.asked.append((kernels, effort))

    def collect(self):
        kernels, effort = self.asked[-1]
        assert all(kernel.flags & CANARY for kernel in kernels)
        self.unit.most = max(self.unit.most, self.unit.running)
        factor = self.unit.slower if self.was_shared() else 1.0
        slow = self.disturbs()
        status = UNCLEAN if slow and self.status == OK else self.status
        slower = 1 + 0.7 * slow  # additions are slowed as well
        read = [3.0 * factor / (1 + slow) if one.code == KERNEL.code else 80.0 / slower for one in kernels]
        return [
            [Sample(cycles * self.draw.gauss(1, 0.002), 0, status, self.detail) for _ in range(effort.rounds)]
            for cycles in read
        ]

    def was_shared(self):
        """Whether others were under way since all were idle."""
        was = self.unit.most
        self.unit.running -= 1
        if not self.unit.running:
            self.unit.most = 0
        return was > 1


@pytest.mark.parametrize("slower", [1.0, 1.5, 2.0])
def test_how_much_longer_than_alone(slower):
    unit = Shared(slower)
    found = time_threads([Thread(cpu, unit) for cpu in (0, 2, 5)], KERNEL, 3)
    assert [one.cpu for one in found] == [0, 2, 5]
    for one in found:
        assert one.alone == pytest.approx(3.0, abs=3 * one.alone_error)
        assert one.slowdown == pytest.approx(slower, abs=3 * one.slowdown_error)
        assert 0 < one.slowdown_error < 0.01


@pytest.mark.parametrize("always", [False, True], ids=["now and then", "always"])
def test_two_errors_hold_the_truth_beside_neighbours(always):
    """They slow the clock more than code: of a Zen 3's IMUL in a chain 2.93 to 2.99 cycles were read."""
    draw, held, runs, errors = random.Random(SEED), 0, 100, list[float]()
    for _ in range(runs):
        some = lambda: draw.uniform(0.005, 0.02) if always or draw.random() < 0.5 else 0.0  # noqa: E731
        found = time_threads([Thread(cpu, Shared(1.0), disturbs=some) for cpu in (0, 1)], KERNEL, 5)
        values = [(one.alone, one.alone_error) for one in found]
        values += [(one.together, one.together_error) for one in found]
        errors += [error for _, error in values]
        held += sum(abs(value - 3.0) <= 2 * error for value, error in values)
    assert held >= 0.95 * 4 * runs, f"seed {SEED}: {held} of {4 * runs}"
    assert statistics.median(errors) < (0.1 if always else 0.02), f"seed {SEED}"


def test_samples_beside_clean_canaries_count_alone():
    """Eight of them are enough; of seven all count, and the error says how far off the additions are."""
    clean, unclean = Sample(3.0, 0, OK), Sample(2.9, 0, UNCLEAN)
    known = [Sample(80.0, 0, OK)] * 4 + [Sample(78.0, 0, UNCLEAN)] * 20
    assert reading([Batch([clean] * 8 + [unclean] * 40, known)]) == (3.0, 0.0)
    value, error = reading([Batch([clean] * 7 + [unclean] * 41, known)])
    assert (value, error) == (2.9, pytest.approx(2.9 * 2 / 80))


def test_what_rounds_differ_by_is_an_error():
    """By Student's distribution: of two readings 12.7 times what their mean is off by, of ten 2.26 times."""
    assert between([3.0]) == 0.0
    assert between([3.0, 3.1]) == pytest.approx(12.706 * 0.05)
    assert between([3.0, 3.1] * 5) == pytest.approx(2.262 * 0.0527 / 10**0.5, rel=0.01)


def test_errors_hold_nine_of_ten_medians():
    """Half of it would hold six, twice as much all; bounds are ten standard deviations away."""
    draw, held, runs = random.Random(SEED), 0, 2000
    for _ in range(runs):
        value, error = median_of([draw.gauss(3, 0.1) for _ in range(48)])
        held += abs(value - 3) <= error
    assert 0.75 < held / runs < 0.98, f"seed {SEED}"


def test_threads_are_beside_each_other_for_millions_of_cycles():
    """Some milliseconds at least, so that it matters little that they are asked one after the other."""
    thread = Thread(0, Shared(1))
    time_threads([thread], KERNEL, 1)
    for kernels, effort in thread.asked:
        cycles = len(kernels) * effort.rounds * effort.want * effort.target
        assert 6e6 < cycles < 9.5e6
        additions = sum(kernel.code != KERNEL.code for kernel in kernels)
        assert 0.1 < additions / len(kernels) < 0.2, "some are known, and most are what is asked"


def test_no_sample_waits_while_others_run():
    """A runner waits behind sixteen canaries that fail; what is timed alone may."""
    thread = Thread(0, Shared(1))
    time_threads([thread], KERNEL, 1)
    alone, together = (effort.maximum for _, effort in thread.asked)
    assert together == 16 - 1, "as many as come before that"
    assert alone > 16


@pytest.mark.parametrize(("number", "told"), [(7, False), (8, True)])
def test_a_median_needs_some_readings(number, told):
    values = [3.0] * number
    if told:
        assert median_of(values) == (3.0, 0.0)
    else:
        with pytest.raises(MeasurementError, match="too few readings"):
            median_of(values)


def test_code_that_does_not_run():
    outside = lambda number, offset: CodePlace("it", "outside")  # noqa: E731 - where registers are set
    with pytest.raises(UnsupportedInstruction, match=r"execute it: SIGILL$"):
        time_threads([Thread(0, Shared(1), SIGNAL, 4)] * 2, KERNEL, 1, outside)
    with pytest.raises(MeasurementError, match="SIGSEGV at 0x0 at byte -1"):
        places = lambda number, offset: CodePlace("it", f"at byte {offset}")  # noqa: E731
        time_threads([Thread(0, Shared(1), SIGNAL, 11)] * 2, KERNEL, 1, places)
