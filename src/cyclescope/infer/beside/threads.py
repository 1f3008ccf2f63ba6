"""One kernel on several CPUs at once: how long it takes there, and alone."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import msgspec

from cyclescope.backend.base import OK, Backend, Effort, Sample
from cyclescope.errors import MeasurementError
from cyclescope.kernel.kernel import CANARY, Kernel
from cyclescope.measure.bench import Places, nowhere, usable
from cyclescope.measure.sampling import once

_REPEATS = 24  # of the kernel in a batch: the threads run beside each other for some milliseconds at least
_EFFORT = Effort(rounds=2, want=8, target=20000.0)
_NOTCH = 1.57  # times the range of the middle half over the root of the number: 95 of 100 medians are within


class ThreadReading(msgspec.Struct, frozen=True):
    """Cycles per unit of a body on one CPU, alone and while the others run it as well, with errors."""

    cpu: int
    alone: float
    alone_error: float
    together: float
    together_error: float

    @property
    def slowdown(self) -> float:
        """Times as long as alone."""
        return self.together / self.alone

    @property
    def slowdown_error(self) -> float:
        """How far that may be off."""
        parts = (self.alone_error / self.alone, self.together_error / self.together)
        return self.slowdown * math.hypot(*parts)


def time_threads(
    backends: Sequence[Backend], kernel: Kernel, rounds: int, places: Places = nowhere
) -> list[ThreadReading]:
    """Time a kernel on every backend, one after the other and all at once, so many rounds.

    No sample waits for a quiet core, which the other threads would never let it be. Raises
    UnsupportedInstruction or MeasurementError for code that does not run.
    """
    plain = msgspec.structs.replace(kernel, flags=kernel.flags & ~CANARY)
    alone: list[list[float]] = [[] for _ in backends]
    together: list[list[float]] = [[] for _ in backends]
    for number in range(rounds):
        for own, backend in zip(alone, backends, strict=True):
            _submit(backend, plain, number)
            own.extend(_cycles(backend, places))
        for backend in backends:
            _submit(backend, plain, number)
        for own, backend in zip(together, backends, strict=True):
            own.extend(_cycles(backend, places))
    return [
        ThreadReading(backend.capabilities().cpu, *median_of(one), *median_of(all_of_them))
        for backend, one, all_of_them in zip(backends, alone, together, strict=True)
    ]


def _submit(backend: Backend, kernel: Kernel, seed: int) -> None:
    backend.submit([kernel] * _REPEATS, msgspec.structs.replace(_EFFORT, seed=seed + 1))


def _cycles(backend: Backend, places: Places) -> list[float]:
    samples = [sample for row in backend.collect() for sample in row]
    broken = once([sample for sample in samples if not sample.usable])
    if broken is not None:
        usable(broken, backend.capabilities().isa, places(0, broken.instruction))
    return [sample.cycles for sample in samples if _is_reading(sample)]


def _is_reading(sample: Sample) -> bool:
    return sample.status == OK and not math.isnan(sample.cycles)


def median_of(values: Sequence[float]) -> tuple[float, float]:
    """The median and how far it may be off. Raises MeasurementError where there are too few."""
    if len(values) < _REPEATS:
        raise MeasurementError("too few readings of a thread", "{cpu} can choose another CPU")
    low, middle, high = statistics.quantiles(values, n=4)
    return middle, _NOTCH * (high - low) / math.sqrt(len(values))
