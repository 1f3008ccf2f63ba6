"""What the stages of the port step spend on a reading, and what its rounds differ by for that."""

from __future__ import annotations

import random
from collections import deque
from statistics import fmean, pstdev

import pytest

from cyclescope.backend.base import OK, Capabilities, Effort, Sample
from cyclescope.infer.ports.experiments import _effort
from cyclescope.infer.workload import AMONG, CLASSES, FRONT_END_SLOTS, PORTS_AGAIN, SECOND_SLOTS
from cyclescope.kernel.kernel import kernel_of
from cyclescope.kernel.state import MachineState
from cyclescope.measure.plan import Experiment
from cyclescope.measure.ports import PORTS
from cyclescope.measure.sampling import Sampler

READINGS = 2000  # their scatter is known within 2 %
CYCLES, STEP = 16.0, 20.0  # of a loop, and by which the clock is off: rounds of all efforts agree


class CoarseClock:
    """Each sample is off by a part of a step of the clock; `spent` are the cycles of all samples."""

    def __init__(self):
        self.spent, self.rounds = 0.0, []
        self._draw, self._asked = random.Random(1), deque()

    def capabilities(self):
        return Capabilities("x86-64", "coarse clock", 0, "simulated")

    def submit(self, kernels, effort):
        self._asked.append((len(kernels), effort))

    def _round(self, effort):
        self.spent += effort.want * effort.target
        off = fmean(self._draw.uniform(-STEP, STEP) for _ in range(effort.want)) / effort.target
        self.rounds.append(CYCLES * (1 + off))
        return Sample(self.rounds[-1], 0.0, OK, accepted=effort.want)

    def collect(self):
        count, effort = self._asked.popleft()
        return [[self._round(effort) for _ in range(effort.rounds)] for _ in range(count)]


def taken(effort):
    """Cycles that a reading takes, and what its rounds scatter by."""
    backend, kernel = CoarseClock(), kernel_of((), MachineState(()))
    asked = [Experiment(f"FORM {n}", PORTS, "", "", "x8", kernel, 2) for n in range(READINGS)]
    settled = [found for batch in Sampler(backend, effort).measure(asked) for found in batch]
    assert {found.verdict for _, found in settled} == {"ok"}
    return backend.spent / len(settled), pstdev(backend.rounds)


@pytest.mark.parametrize(
    ("stages", "time", "error"),
    [
        ((AMONG,), 0.45, 1.9),  # whole micro-operations are told apart: half the time will do
        ((PORTS_AGAIN,), 0.675, 1.9),  # of what was doubtful, a round more
        ((FRONT_END_SLOTS, SECOND_SLOTS), 2.0, 0.43),  # one slot among fifty is a fiftieth of the loop
        ((CLASSES,), 1.8, 0.68),  # the classes are few, and all else stands on them
    ],
)
def test_a_stage_spends_on_a_reading_what_its_answers_need(stages, time, error):
    """Half or twice the samples, or cycles of one, would change one of both by a third at least."""
    usual, scatter = taken(Effort())
    for stage in stages:
        spent, off = taken(_effort(stage))
        assert spent / usual == pytest.approx(time, rel=0.25)
        assert off / scatter == pytest.approx(error, rel=0.25)
