"""One kernel on several CPUs: what it takes alone and beside the others, played by backends that know."""

from __future__ import annotations

import random

import pytest

from cyclescope.backend.base import OK, SIGNAL, Capabilities, Sample
from cyclescope.errors import MeasurementError, UnsupportedInstruction
from cyclescope.infer.beside.threads import median_of, time_threads
from cyclescope.kernel.kernel import CANARY, FAST, Kernel
from cyclescope.measure.bench import CodePlace, default_state

SEED = random.SystemRandom().randrange(1 << 30)
KERNEL = Kernel(b"\x90", 1, default_state(0), b"", CANARY | FAST)


class Shared:
    """A unit that backends share: who is asked while another one is under way takes longer."""

    def __init__(self, slower):
        self.slower, self.running, self.most = slower, 0, 0


class Thread:
    """A backend on one CPU of a core."""

    def __init__(self, cpu, unit, status=OK, detail=0):
        self.cpu, self.unit, self.status, self.detail = cpu, unit, status, detail
        self.draw, self.asked = random.Random(cpu), []

    def capabilities(self):
        return Capabilities("x86-64", "", self.cpu, "")

    def submit(self, kernels, effort):
        self.unit.running += 1
        self.asked.append((kernels, effort))

    def collect(self):
        kernels, effort = self.asked[-1]
        assert not any(kernel.flags & CANARY for kernel in kernels), "no sample waits for a quiet core"
        self.unit.most = max(self.unit.most, self.unit.running)
        factor = self.unit.slower if self.was_shared() else 1.0
        return [
            [Sample(3.0 * factor * self.draw.gauss(1, 0.002), 0, self.status, self.detail)] * effort.rounds
            for _ in kernels
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
        assert 6e6 < cycles < 9e6


@pytest.mark.parametrize(("number", "told"), [(23, False), (24, True)])
def test_a_median_needs_a_couple_of_dozen_readings(number, told):
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
