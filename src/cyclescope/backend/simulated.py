"""A machine model as a backend: the kernels of the hardware on a simulated core of known truth."""

from __future__ import annotations

import random
from collections import OrderedDict, deque
from collections.abc import Sequence

import msgspec

from cyclescope.backend.base import (
    NOT_RUN,
    OK,
    SIGNAL,
    UNCLEAN,
    Calibration,
    Capabilities,
    Effort,
    Outcome,
    Sample,
)
from cyclescope.backend.loops import Loops
from cyclescope.kernel.kernel import CANARY, Kernel
from cyclescope.model.library import sound
from cyclescope.model.machine import IDEAL, MachineModel
from cyclescope.simulate.engine import Steady
from cyclescope.simulate.front_end import FEATURELESS, FrontEnd
from cyclescope.simulate.passing import WAITING, Passing
from cyclescope.simulate.simulator import Simulator

SIGILL = 4
_CYCLES, UOPS = "cycles", "uops"
_KEPT = 1 << 17  # steady states remembered


class Noise(msgspec.Struct, frozen=True):
    """What disturbs samples; all 0 for none.

    `jitter` is the relative standard deviation of every sample; `burst` the chance that a neighbour
    slows a throughput kernel down by up to `slower`, `leak` the chance that the canaries miss it;
    `step` the clock's step in cycles. Equal seeds give equal samples.
    """

    jitter: float = 0.0
    burst: float = 0.0
    slower: float = 2.0
    leak: float = 0.05
    step: float = 0.0
    seed: int = 1


QUIET = Noise()
LOUD = Noise(jitter=0.0015, burst=0.35, step=32.0)


class SimulatedBackend:
    """Kernels on the core of a machine model.

    With `loops`, kernels are read as the runner reads them on a core whose loops take time; without, as if
    loops took none. With `counters`, samples have micro-operations per port as a counter would. A form that
    the model lacks raises SIGILL. A kernel that is bytes alone is not run: its status says so. Raises
    UsageError for a machine that cannot be simulated, ModelError for what no machine can be,
    BackendUnavailable where the engine is not built.
    """

    def __init__(
        self,
        machine: MachineModel,
        policy: str = IDEAL,
        noise: Noise = QUIET,
        counters: bool = False,
        loops: Loops | None = None,
        front_end: FrontEnd = FEATURELESS,
        passing: Passing = WAITING,
    ) -> None:
        self.machine = sound(machine)
        self.noise = noise
        self.loops = loops
        self.simulator = Simulator(machine, policy, front_end, passing)
        self._policy = policy
        self._counters = counters
        self._submitted: deque[tuple[tuple[Kernel, ...], Effort]] = deque()
        self._known: OrderedDict[tuple[bytes, int], tuple[Steady | None, Kernel]] = OrderedDict()
        self._answered = 0

    def capabilities(self) -> Capabilities:
        """What this backend is. As with the hardware, samples leave out the first counter."""
        ports = tuple(f"p{name}" for name in self.machine.ports)
        return Capabilities(
            self.machine.isa, f"simulated {self.machine.name}, {self._policy} port binding", 0, "simulated",
            (_CYCLES, UOPS, *ports) if self._counters else (),
            notes=("kernels without a list of instructions are not run",), real_time=False,
        )  # fmt: skip

    def calibrate(self) -> Calibration:
        """The clock counts cycles, in the steps of the noise."""
        return Calibration(1.0, max(self.noise.step, 1.0), 100.0, 1 - self.noise.burst, 0.0, 1e-9)

    def submit(self, kernels: Sequence[Kernel], effort: Effort) -> None:
        """Take a batch; it is simulated when collected."""
        self._submitted.append((tuple(kernels), effort))

    def collect(self) -> list[list[Sample]]:
        """Samples per kernel and round of the oldest batch not yet collected."""
        kernels, effort = self._submitted.popleft()
        draw = random.Random(f"{self.noise.seed} {effort.seed} {self._answered}")  # noqa: S311 - noise
        self._answered += len(kernels)
        return [self._rounds(kernel, effort, draw) for kernel in kernels]

    def probe(self, kernels: Sequence[Kernel]) -> list[Outcome]:
        """Whether the machine has the instructions of each body."""
        return [self._outcome(kernel) for kernel in kernels]

    def close(self) -> None:
        """Forget batches and results."""
        self._submitted.clear()
        self._known.clear()

    def steady(self, kernel: Kernel) -> Steady | None:
        """The steady state of a kernel's body, None for an empty one. Raises UnsupportedInstruction."""
        key = kernel.code, id(kernel.state)
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key][0]
        found = self.simulator.run(kernel.body, kernel.state) if kernel.body else None
        self._known[key] = found, kernel  # holding the kernel keeps its state's id unique
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return found

    # --- samples ---------------------------------------------------------------------------------

    def _outcome(self, kernel: Kernel) -> Outcome:
        if kernel.code and not kernel.body:
            return Outcome(NOT_RUN)
        forms = {one.form.id: one.form for one in kernel.body}  # few, of which bodies have many
        lacks = {name for name, form in forms.items() if not self.simulator.knows(form)}
        if lacks:
            number = next(n for n, one in enumerate(kernel.body) if one.form.id in lacks)
            return Outcome(SIGNAL, SIGILL, instruction=number)
        return Outcome(OK)

    def _rounds(self, kernel: Kernel, effort: Effort, draw: random.Random) -> list[Sample]:
        outcome = self._outcome(kernel)
        if outcome.status != OK:
            failed = Sample(0.0, 0.0, outcome.status, outcome.detail, instruction=outcome.instruction)
            return [failed] * effort.rounds
        steady = self.steady(kernel)
        cycles, operations = (steady.cycles, steady.operations) if steady else (0.0, ())
        counted = (sum(operations), *operations) if self._counters else ()
        rounds = [cycles] * effort.rounds
        if self.loops and steady:
            rounds = [self.loops.reading(kernel, cycles, effort.target, n) for n in range(effort.rounds)]
        return [self._sample(read, counted, kernel.flags, effort, draw) for read in rounds]

    def _sample(
        self, cycles: float, counted: tuple[float, ...], flags: int, effort: Effort, draw: random.Random
    ) -> Sample:
        """One round: neighbours, jitter and the clock's step on top of the truth."""
        noise = self.noise
        status, rejected = OK, 0
        disturbed = 0
        if flags & CANARY and noise.burst and draw.random() < noise.burst:
            cycles *= draw.uniform(1.05, noise.slower)
            if draw.random() >= noise.leak:
                status, rejected, disturbed = UNCLEAN, effort.maximum, effort.maximum
        if noise.jitter:
            cycles *= max(1 + draw.gauss(0.0, noise.jitter), 0.0)
        if noise.step:  # over a region of `target` cycles, averaged over the samples
            cycles *= 1 + noise.step * draw.uniform(-0.5, 0.5) / effort.want / effort.target
        accepted = effort.want if status == OK else 0
        spread = noise.jitter * cycles
        return Sample(
            cycles,
            spread,
            status,
            accepted=accepted,
            rejected=rejected,
            counters=counted,
            disturbed=disturbed,
        )
