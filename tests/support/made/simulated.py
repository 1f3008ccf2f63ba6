"""A backend that answers with the cycles of a simulated core of known truth, noise included."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from cyclescope.backend.base import (
    OK,
    SIGNAL,
    UNCLEAN,
    Calibration,
    Capabilities,
    Effort,
    Outcome,
    Sample,
)
from cyclescope.errors import BackendUnavailable
from cyclescope.kernel.kernel import CANARY, Kernel
from tests.support.code.decoded import body
from tests.support.code.flow import period
from tests.support.made.truth import Truth

SIGILL, SIGFPE = 4, 8


class Noise(NamedTuple):
    """What disturbs samples.

    `jitter` is the relative standard deviation of every sample; `burst` the chance that a neighbour
    slows a throughput kernel down by up to `slower`, `leak` the chance that the canaries miss it;
    `step` the clock's step in cycles, against the length of the measured region.
    """

    jitter: float = 0.0
    burst: float = 0.0
    slower: float = 2.0
    leak: float = 0.1
    step: float = 0.0


QUIET = Noise()
LOUD = Noise(jitter=0.0015, burst=0.35, step=32.0)


class SimulatedBackend:
    """Kernels on the core of a truth.

    `dies_after` kernels the backend is gone (BackendUnavailable); `watch` is called with every batch;
    forms whose iced-x86 opcode is in `faulting` raise SIGFPE when timed, not when tried once.
    """

    def __init__(
        self,
        truth: Truth,
        noise: Noise = QUIET,
        dies_after: int | None = None,
        faulting: Sequence[str] = (),
        watch: Callable[[Sequence[Kernel]], None] = lambda kernels: None,
    ) -> None:
        self.truth = truth
        self.noise = noise
        self.dies_after = dies_after
        self.faulting = frozenset(faulting)
        self.watch = watch
        self.measured = 0
        self.probed = 0
        self.closed = False
        self._known: dict[tuple[bytes, int], tuple[float, object]] = {}
        self._queue: deque[tuple[list[Kernel], Effort]] = deque()

    # --- the protocol ----------------------------------------------------------------------------

    def capabilities(self) -> Capabilities:
        return Capabilities("x86-64", "simulated core", 0, "simulated")  # stands in for a machine

    def calibrate(self) -> Calibration:
        return Calibration(1.0, max(self.noise.step, 1.0), 100.0, 1 - self.noise.burst, 0.0, 1e-9)

    def submit(self, kernels: Sequence[Kernel], effort: Effort) -> None:
        self._alive()
        self.watch(kernels)
        self._queue.append((list(kernels), effort))

    def collect(self) -> list[list[Sample]]:
        kernels, effort = self._queue.popleft()
        self._alive()
        draw = random.Random(effort.seed + 7919 * self.measured)
        self.measured += len(kernels)
        return [[self._sample(k, effort, draw) for _ in range(effort.rounds)] for k in kernels]

    def probe(self, kernels: Sequence[Kernel]) -> list[Outcome]:
        self._alive()
        self.probed += len(kernels)
        return [Outcome(OK) if self._executes(k) else Outcome(SIGNAL, SIGILL) for k in kernels]

    def close(self) -> None:
        self.closed = True

    # --- samples ---------------------------------------------------------------------------------

    def _alive(self) -> None:
        if self.dies_after is not None and self.measured >= self.dies_after:
            raise BackendUnavailable("the simulated core is gone")

    def _executes(self, kernel: Kernel) -> bool:
        return all(self.truth.executes(ins) for ins in body(kernel.code))

    def cycles(self, kernel: Kernel) -> float:
        """Cycles per unit of a kernel without any noise."""
        key = (kernel.code, id(kernel.state))
        known = self._known.get(key)
        if known is None:
            cycles = period(self.truth, kernel.code, kernel.state).cycles
            known = self._known[key] = cycles, kernel.state  # the state keeps its id
        return known[0]

    def _sample(self, kernel: Kernel, effort: Effort, draw: random.Random) -> Sample:
        if not self._executes(kernel):
            return Sample(0.0, 0.0, SIGNAL, SIGILL)
        if any(ins.code in self.faulting for ins in body(kernel.code)):
            return Sample(0.0, 0.0, SIGNAL, SIGFPE)
        cycles = self.cycles(kernel)
        status, rejected = OK, 0
        if kernel.flags & CANARY and draw.random() < self.noise.burst:
            cycles *= draw.uniform(1.05, self.noise.slower)
            caught = draw.random() >= self.noise.leak
            status, rejected = (UNCLEAN, effort.maximum) if caught else (OK, 0)
        cycles *= 1 + draw.gauss(0.0, self.noise.jitter)
        cycles += self._grain(cycles, effort, draw)
        spread = self.noise.jitter * cycles
        return Sample(cycles, spread, status, accepted=effort.want, rejected=rejected)

    def _grain(self, cycles: float, effort: Effort, draw: random.Random) -> float:
        """A coarse clock's error: a step, averaged over the samples, shared by all units."""
        share = self.noise.step * draw.uniform(-0.5, 0.5) / effort.want
        return cycles * share / effort.target
