"""From samples of several rounds to one value with a spread and a verdict.

Every experiment is measured in at least two rounds of different lengths. Rounds that agree within
2 % give their mean; otherwise the experiment comes back later, until the lowest cluster of values
holds two thirds of at least three rounds, or ten rounds are spent: then the lowest cluster seen at
least twice is kept and the value marked unstable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import isnan

import msgspec

from cyclescope.backend.base import OK, SIGNALS, STATUS_NAMES, USABLE, Backend, Effort, Sample
from cyclescope.measure.plan import Experiment

AGREE = 0.02
GRAIN = 0.004  # cycles: below this, two values are the same
ROUNDS = 2
MOST_ROUNDS = 10
BATCH = 2000
SPACING = 4  # batches between two visits of an experiment

EMULATED = Effort(rounds=1, want=1, maximum=1, target=200.0)  # times that mean nothing are taken once

STABLE, UNSTABLE, NOISY, FAILED = "ok", "unstable", "noisy", "failed"


class Measurement(msgspec.Struct, frozen=True):
    """Cycles per unit of a kernel's body, or the error.

    `verdict` is `ok`, `unstable` (rounds disagree), `noisy` (no clean samples) or `failed`;
    `rounds` are the values of all rounds, `exceptions` the floating-point exceptions raised.
    """

    cycles: float
    spread: float
    verdict: str
    accepted: int
    rejected: int
    rounds: tuple[float, ...]
    exceptions: int = 0
    error: str = ""
    counters: tuple[float, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether there is a value."""
        return self.verdict != FAILED


def agree(a: float, b: float) -> bool:
    """Whether two values are the same within the noise."""
    return abs(a - b) <= max(AGREE * max(abs(a), abs(b)), GRAIN)


def low_cluster(values: Sequence[float]) -> list[float]:
    """The lowest values that agree with a second one; all within 2 % of the lowest such pair."""
    ordered = sorted(values)
    for position, value in enumerate(ordered[:-1]):
        if agree(value, ordered[position + 1]):
            return [v for v in ordered[position:] if agree(value, v)]
    return ordered[:1]


def failure(sample: Sample) -> str:
    """What went wrong, in words."""
    name = STATUS_NAMES[sample.status]
    if sample.status == 1:
        where = f" at {sample.address:#x}" if sample.detail in (7, 11) else ""
        return SIGNALS.get(sample.detail, f"signal {sample.detail}") + where
    return name


def summarise(samples: Sequence[Sample]) -> Measurement | None:
    """The measurement, or None where more rounds are needed."""
    if len(samples) == ROUNDS == 2 and (at_once := _agreed(*samples)):
        return at_once
    broken = next((s for s in samples if s.status not in USABLE), None)
    accepted = sum(s.accepted for s in samples)
    rejected = sum(s.rejected for s in samples)
    if broken is not None:
        return Measurement(0.0, 0.0, FAILED, accepted, rejected, (), error=failure(broken))
    rounds = tuple(round(s.cycles, 4) for s in samples)
    clean = [s.cycles for s in samples if s.status == OK]
    verdict, chosen = _judge(clean, [s.cycles for s in samples if s.cycles == s.cycles], len(samples))
    if verdict is None:
        return None
    if not chosen:
        return Measurement(0.0, 0.0, FAILED, accepted, rejected, rounds, error="no sample at all")
    value = sum(chosen) / len(chosen)
    spread = max(chosen) - min(chosen) if verdict == STABLE else max(clean or chosen) - min(chosen)
    return Measurement(
        value, spread, verdict, accepted, rejected, rounds, samples[-1].exceptions,
        counters=samples[-1].counters,
    )  # fmt: skip


def once(samples: Sequence[Sample]) -> Measurement:
    """What a single sample of an emulator says: whether the kernel runs."""
    sample = samples[0]
    if sample.status not in USABLE:
        return Measurement(0.0, 0.0, FAILED, 0, 0, (), error=failure(sample))
    cycles, spread = (0.0 if isnan(x) else x for x in (sample.cycles, sample.spread))
    return Measurement(cycles, spread, NOISY, sample.accepted, 0, (), sample.exceptions)


def _agreed(first: Sample, second: Sample) -> Measurement | None:
    """Two clean rounds that agree: nearly all that there is to measure."""
    if first.status != OK or second.status != OK or not agree(first.cycles, second.cycles):
        return None
    return Measurement(
        (first.cycles + second.cycles) / 2, abs(first.cycles - second.cycles), STABLE,
        first.accepted + second.accepted, first.rejected + second.rejected,
        (round(first.cycles, 4), round(second.cycles, 4)), second.exceptions, counters=second.counters,
    )  # fmt: skip


def _judge(clean: list[float], every: list[float], rounds: int) -> tuple[str | None, list[float]]:
    cluster = low_cluster(clean) if len(clean) > 1 else []
    if len(cluster) >= 3 and len(cluster) * 3 >= len(clean) * 2:
        return STABLE, cluster
    if rounds < MOST_ROUNDS:
        return None, []
    if len(cluster) >= 2:
        return UNSTABLE, cluster
    return NOISY, low_cluster(clean or every)


class _Visit:
    __slots__ = ("experiment", "ready", "samples")

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.samples: list[Sample] = []
        self.ready = 0


class Sampler:
    """Feeds a backend with batches and settles the experiments one by one.

    `wanted` is asked before every new batch whether to go on with new experiments; experiments in
    flight are always finished.
    """

    def __init__(self, backend: Backend, effort: Effort | None = None, batch: int = BATCH) -> None:
        self._backend = backend
        self._effort = effort or Effort(rounds=ROUNDS)
        self._once = backend.capabilities().emulated
        if self._once:
            self._effort = EMULATED
        self._batch = batch
        self._number = 0
        self.rejected = self.accepted = 0

    def measure(
        self, experiments: Iterable[Experiment], wanted: Callable[[], bool] = lambda: True
    ) -> Iterator[list[tuple[Experiment, Measurement]]]:
        """Batches of settled experiments, in the order they settle."""
        source = iter(experiments)
        again: deque[_Visit] = deque()
        flying: deque[list[_Visit]] = deque()
        while True:
            batch = self._next_batch(source, again, wanted, bool(flying))
            if batch:
                self._submit(batch)
                flying.append(batch)
            if not flying:
                return
            if len(flying) > 1 or not batch:
                yield self._collect(flying.popleft(), again)

    def _next_batch(
        self,
        source: Iterator[Experiment],
        again: deque[_Visit],
        wanted: Callable[[], bool],
        busy: bool,
    ) -> list[_Visit]:
        self._number += 1
        batch = self._due(again, force=False)
        if wanted():
            for experiment in source:
                batch.append(_Visit(experiment))
                if len(batch) >= self._batch:
                    break
        if not batch and not busy:
            batch = self._due(again, force=True)
        return batch

    def _due(self, again: deque[_Visit], force: bool) -> list[_Visit]:
        batch: list[_Visit] = []
        while again and len(batch) < self._batch and (force or again[0].ready <= self._number):
            batch.append(again.popleft())
        return batch

    def _submit(self, batch: list[_Visit]) -> None:
        effort = msgspec.structs.replace(self._effort, seed=self._number)
        self._backend.submit([v.experiment.kernel for v in batch], effort)

    def _collect(self, batch: list[_Visit], again: deque[_Visit]) -> list[tuple[Experiment, Measurement]]:
        answers = self._backend.collect()
        settled = []
        for visit, samples in zip(batch, answers, strict=True):
            visit.samples += samples
            measurement = once(visit.samples) if self._once else summarise(visit.samples)
            if measurement is None:
                visit.ready = self._number + SPACING
                again.append(visit)
                continue
            self.accepted += measurement.accepted
            self.rejected += measurement.rejected
            settled.append((visit.experiment, measurement))
        return settled
