"""What every backend answers: kernels in, samples or errors out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import msgspec

from cyclescope.host.identity import Identity, as_leaves, identify
from cyclescope.kernel.kernel import Kernel

OK, SIGNAL, HANG, DIED, TOO_LONG, UNCLEAN, NOT_RUN, PAGES = range(8)
USABLE = (OK, UNCLEAN)
STATUS_NAMES = ("ok", "signal", "hang", "died", "too long", "unclean", "not run", "pages")
SIGNALS = {4: "SIGILL", 5: "SIGTRAP", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV", 31: "SIGSYS"}
_AT = " at "  # between a signal and its address


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """One round's answer for one kernel, in core cycles per unit of the body.

    Of the `rejected` tries, `disturbed` ran beside a canary that was not clean. `other` is a second rate that
    clean samples repeat, or 0.
    """

    cycles: float
    spread: float
    status: int
    detail: int = 0
    accepted: int = 0
    rejected: int = 0
    exceptions: int = 0
    address: int = 0
    instruction: int = -1
    counters: tuple[float, ...] = ()
    disturbed: int = 0
    other: float = 0.0

    @property
    def usable(self) -> bool:
        """Whether there is a value, if perhaps from too few clean samples."""
        return self.status in USABLE


class Outcome(msgspec.Struct, frozen=True, array_like=True):
    """What happened when one instruction ran once."""

    status: int
    detail: int = 0
    address: int = 0
    instruction: int = -1

    def describe(self) -> str:
        """`ok`, `SIGILL`, `SIGSEGV at 0x10`, `hang`, ..."""
        if self.status == SIGNAL:
            name = SIGNALS.get(self.detail, f"signal {self.detail}")
            return with_address(name, self.detail, self.address)
        if self.status == DIED:
            return f"killed the worker ({self.detail})"
        return STATUS_NAMES[self.status]


def with_address(name: str, signal: int, address: int) -> str:
    """A signal by name, with the address if it is about one."""
    return f"{name}{_AT}{address:#x}" if signal in (7, 11) else name


def without_address(outcome: str) -> str:
    """`SIGSEGV` of `SIGSEGV at 0x10`."""
    return outcome.partition(_AT)[0]


class Calibration(msgspec.Struct, frozen=True):
    """The clock as found: ticks per core cycle, its step in ticks, and how quiet the core is.

    `canary` is the time of the undisturbed canary in core cycles, `nop` that of one of its NOPs: the base
    that tells disturbed samples, 0 where it was never derived.
    """

    ticks_per_cycle: float
    step: float
    canary: float
    clean_share: float
    spread: float
    seconds_per_tick: float
    nop: float = 0.0

    @property
    def frequency(self) -> float:
        """Core frequency in Hz."""
        ticks = self.ticks_per_cycle * self.seconds_per_tick
        return 1 / ticks if ticks else 0.0


def failure(sample: Sample) -> str:
    """What went wrong, in words."""
    name = STATUS_NAMES[sample.status]
    if sample.status == 1:
        signal = SIGNALS.get(sample.detail, f"signal {sample.detail}")
        return with_address(signal, sample.detail, sample.address)
    return name


def second_rate(samples: Sequence[Sample]) -> float:
    """Cycles of a second rate that two rounds and a quarter of all tell alike, or 0.

    Neighbours scatter: what they make of a round is not found again within half a percent in another, where
    a rate of the core's own is. A round may not meet it: samples end when there are enough of the lesser.
    """
    told = sorted([sample.other for sample in samples if sample.other])
    for position, least in enumerate(told):
        alike = [other for other in told[position:] if other <= 1.005 * least]
        if len(alike) >= max(2, len(samples) / 4):
            return sum(alike) / len(alike)
    return 0.0


class Capabilities(msgspec.Struct, frozen=True):
    """What a backend is and can do.

    `notes` say what is missing and why, `real_time` whether its cycles are a real core's, `emulated` that
    they mean nothing at all, `threaded` that several threads may ask, each for its own batches.
    """

    isa: str
    description: str
    cpu: int
    clock: str
    counters: tuple[str, ...] = ()
    leaves: tuple[tuple[int, int, int, int, int, int], ...] = ()
    xcr0: int = 0
    notes: tuple[str, ...] = ()
    real_time: bool = True
    emulated: bool = False
    threaded: bool = False

    @property
    def identity(self) -> Identity:
        """The CPU that its leaves describe."""
        found = identify(as_leaves(self.leaves))
        return msgspec.structs.replace(found, emulated=self.emulated)


class Effort(msgspec.Struct, frozen=True):
    """How hard to measure: rounds over the batch, low-cluster samples wanted, tries, cycles.

    What two rounds differ by is inverse to the cycles, and to the square root of the samples, each of which
    has its canaries and its look at the clock: four of 7500 cycles tell as much as five of 6500, sooner.
    """

    rounds: int = 2
    want: int = 4
    maximum: int = 300
    target: float = 7500.0
    seed: int = 1


class BlockEffort(msgspec.Struct, frozen=True):
    """How hard to measure a basic block: low-cluster samples wanted, tries, core cycles of a sample.

    `pages` are those that a block may touch; `seed` is of the order. In samples of a third of the cycles the
    first calls, for which all copies' code comes from further away, are half a percent of copies' time.
    """

    want: int = 12
    maximum: int = 300
    pages: int = 64
    target: float = 60000.0
    seed: int = 1


class BlockSample(msgspec.Struct, frozen=True, array_like=True):
    """One pass over a basic block, in core cycles per copy or per trip.

    `linearity` is what the shorter half of the copies takes over what the longer one takes; `instruction`
    the offset of the faulting instruction in the block.
    """

    cycles: float
    spread: float
    linearity: float
    status: int
    detail: int = 0
    address: int = 0
    accepted: int = 0
    rejected: int = 0
    disturbed: int = 0
    pages: int = 0
    copies: int = 0
    calls: int = 0
    instruction: int = -1


class BurstEffort(msgspec.Struct, frozen=True):
    """How copies of code run once are timed, in the words of nanoBench.

    `measurements` of `unroll` copies and of twice as many (`basic`: of none and of these), in a loop of
    `loop` trips or none, `offset` bytes behind a multiple of 64, with `drain` behind a front end that holds
    none of them; runs before them: `initial_warm_up`, then `warm_up` of each length. The first `one_time`
    bytes of the kernel's code run once before all, the next `late` ones behind the first read of the clock. A
    measurement is as many runs as take `target` cycles.
    """

    measurements: int
    unroll: int
    loop: int = 0
    warm_up: int = 5
    initial_warm_up: int = 0
    basic: bool = False
    offset: int = 0
    one_time: int = 0
    late: int = 0
    target: float = 5e4
    drain: bool = False

    @property
    def copies(self) -> int:
        """Copies of the code, trips times those in the body, between the two lengths."""
        return max(self.loop, 1) * self.unroll


class BurstSample(msgspec.Struct, frozen=True, array_like=True):
    """One round of copies of code: core cycles of a run of the shorter and the longer length per measurement.

    `counters` are events of a longer run less those of a shorter; `calls` are runs per measurement.
    """

    shorter: tuple[float, ...]
    longer: tuple[float, ...]
    counters: tuple[float, ...]
    status: int
    detail: int = 0
    address: int = 0
    accepted: int = 0
    rejected: int = 0
    disturbed: int = 0
    calls: int = 0
    instruction: int = -1

    @property
    def usable(self) -> bool:
        """Whether there are values, if perhaps beside neighbours."""
        return self.status in USABLE


class Depth(msgspec.Struct, frozen=True):
    """How much differential execution tries: states per form, changes per location of a state."""

    bases: int = 6
    perturbations: int = 4
    seed: int = 1


class Observation(msgspec.Struct, frozen=True):
    """What differential execution saw of one form; sets are those of `kernel.locations`.

    `bases` are the states explored to the end, `present` the
    locations this CPU has. `depends` has every location whose change made a difference, with the set
    of outputs that changed; `unstable` outputs, which differ between equal inputs, are left out.
    """

    outcome: Outcome
    bases: int = 0
    trials: int = 0
    present: int = 0
    written: int = 0
    unstable: int = 0
    depends: tuple[tuple[int, int], ...] = ()


class Backend(Protocol):
    """Runs kernels and says how long they took."""

    def capabilities(self) -> Capabilities:
        """What this backend is."""
        ...

    def calibrate(self) -> Calibration:
        """Calibrate the clock; to be repeated every few seconds."""
        ...

    def submit(self, kernels: Sequence[Kernel], effort: Effort) -> None:
        """Start measuring a batch; batches are answered in order."""
        ...

    def collect(self) -> list[list[Sample]]:
        """Samples per kernel and round of the oldest batch not yet collected."""
        ...

    def probe(self, kernels: Sequence[Kernel]) -> list[Outcome]:
        """Run each body once, isolated."""
        ...

    def close(self) -> None:
        """Release what the backend holds."""
        ...


@runtime_checkable
class WaitingBackend(Protocol):
    """A backend that can also say whether it is still at work; optional."""

    def is_answered(self) -> bool:
        """Whether an answer has come that nobody took yet."""
        ...


class BlockBackend(Protocol):
    """A backend that can time basic blocks as they are; optional."""

    def blocks(self, kernels: Sequence[Kernel], effort: BlockEffort) -> list[BlockSample]:
        """Time each body without a loop around it, or as the loop that it is."""
        ...


class DifferBackend(Protocol):
    """A backend that can also say what an instruction depends on; optional."""

    def differ(self, kernels: Sequence[Kernel], depth: Depth) -> list[Observation]:
        """Run each body from many states, changing one location at a time."""
        ...
