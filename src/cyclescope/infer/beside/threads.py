"""One kernel on several CPUs at once: how long it takes there, and alone."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import msgspec

from cyclescope.backend.base import OK, Backend, Effort, Sample
from cyclescope.errors import MeasurementError
from cyclescope.isa.table import load_table
from cyclescope.kernel.kernel import CANARY, Kernel
from cyclescope.measure.bench import STUDENT, Places, nowhere, usable
from cyclescope.measure.sampling import once
from cyclescope.probe.beside.sharing import addition
from cyclescope.probe.code import DEPENDENT, Assembler, written

_REPEATS = 24  # of the kernel in a batch: the threads run beside each other for some milliseconds at least
_KNOWN = 4  # of the chain of additions in a batch
_COPIES = 80  # additions in it: what the end of a loop takes is little beside them
_CLEAN = 8  # samples between clean canaries that are enough: the others are beside neighbours, then
_ALONE = Effort(want=_CLEAN, target=20_000.0)
# So few tries that none waits for a quiet core, which the other threads would never let it be.
_TOGETHER = msgspec.structs.replace(_ALONE, maximum=2 * _CLEAN - 1)
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


class Batch(msgspec.Struct, frozen=True):
    """Samples of a kernel, and of additions each of which waits for the one before, taken together."""

    samples: list[Sample]
    known: list[Sample]


def time_threads(
    backends: Sequence[Backend], kernel: Kernel, rounds: int, places: Places = nowhere
) -> list[ThreadReading]:
    """Time a kernel on every backend, one after the other and all at once, so many rounds.

    Raises UnsupportedInstruction or MeasurementError for code that does not run.
    """
    watched = msgspec.structs.replace(kernel, flags=kernel.flags | CANARY)
    chain = _chain(backends[0].capabilities().isa)
    alone: list[list[Batch]] = [[] for _ in backends]
    together: list[list[Batch]] = [[] for _ in backends]
    for number in range(rounds):
        for own, backend in zip(alone, backends, strict=True):
            _submit(backend, watched, chain, _ALONE, number)
            own.append(_batch(backend, places))
        for backend in backends:
            _submit(backend, watched, chain, _TOGETHER, number)
        for own, backend in zip(together, backends, strict=True):
            own.append(_batch(backend, places))
    return [
        ThreadReading(backend.capabilities().cpu, *reading(one), *reading(all_of_them))
        for backend, one, all_of_them in zip(backends, alone, together, strict=True)
    ]


def _chain(isa: str) -> Kernel:
    """Additions that take a cycle each."""
    return Assembler(load_table(isa)).kernel(written(isa, *[addition(isa)] * _COPIES), DEPENDENT | CANARY)


def _submit(backend: Backend, kernel: Kernel, chain: Kernel, effort: Effort, seed: int) -> None:
    kernels = [kernel] * _REPEATS + [chain] * _KNOWN
    backend.submit(kernels, msgspec.structs.replace(effort, seed=seed + 1))


def _batch(backend: Backend, places: Places) -> Batch:
    rows = backend.collect()
    samples = [sample for row in rows[:_REPEATS] for sample in row]
    broken = once([sample for sample in samples if not sample.usable])
    if broken is not None:
        usable(broken, backend.capabilities().isa, places(0, broken.instruction))
    return Batch(samples, [sample for row in rows[_REPEATS:] for sample in row])


def reading(batches: Sequence[Batch]) -> tuple[float, float]:
    """The median of the samples beside clean canaries, else of all, and how far it may be off.

    What disturbs lasts longer than a batch, so that samples of one are no more than one reading; where it
    never rests it slows the clock as well, which additions that take a cycle show. Raises MeasurementError
    where there are too few.
    """
    clean = sum(sample.status == OK for batch in batches for sample in batch.samples) >= _CLEAN
    by_batch = [_cycles(batch.samples, clean) for batch in batches]
    middle, within = median_of([value for values in by_batch for value in values])
    medians = [statistics.median(values) for values in by_batch if values]
    known = [value / _COPIES for batch in batches for value in _cycles(batch.known, clean)]
    off = abs(statistics.median(known) - 1) if known else 0.0
    return middle, math.hypot(within, between(medians), off * middle)


def _cycles(samples: Sequence[Sample], clean: bool) -> list[float]:
    return [s.cycles for s in samples if (s.status == OK or not clean) and not math.isnan(s.cycles)]


def between(medians: Sequence[float]) -> float:
    """How far the middle of so many readings may be off, by Student's distribution; 0 of one."""
    if len(medians) < 2:
        return 0.0
    quantile = STUDENT[min(len(medians), len(STUDENT) + 1) - 2]
    return quantile * statistics.stdev(medians) / math.sqrt(len(medians))


def median_of(values: Sequence[float]) -> tuple[float, float]:
    """The median and how far it may be off. Raises MeasurementError where there are too few."""
    if len(values) < _CLEAN:
        raise MeasurementError("too few readings of a thread", "{cpu} can choose another CPU")
    low, middle, high = statistics.quantiles(values, n=4)
    return middle, _NOTCH * (high - low) / math.sqrt(len(values))
