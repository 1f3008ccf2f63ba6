"""From samples of several rounds to one value with an error and a verdict.

Every experiment is measured in at least two rounds, whose kernels differ in length and place, and which have
memory of their own: on some physical pages some cores access it more slowly. Rounds
that agree within 2 % give their mean; otherwise the experiment comes back later, until the lowest
cluster of values holds two thirds of at least three rounds, and one of each length and place. Where
these differ by themselves, or ten rounds are spent, the lowest cluster seen at least twice is kept
and the value marked unstable.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import isnan

import msgspec

from cyclescope.backend.base import (
    NOT_RUN,
    OK,
    USABLE,
    Backend,
    Effort,
    Sample,
    failure,
    second_rate,
)
from cyclescope.kernel.kernel import CANARY
from cyclescope.measure.plan import Experiment
from cyclescope.measure.record import (
    FAILED,
    LESS_THAN_NOTHING,
    NOISY,
    STABLE,
    UNSTABLE,
    RoundNoise,
    Unsettled,
)

AGREE = 0.02  # relative: rounds that differ by less are the same but for the noise
GRAIN = 0.0005  # cycles: below this, two values are the same; 0.4 % of the fastest instruction
CHAIN_GRAIN = 0.04  # cycles per instance of a chain: by so little short ones differ by their length and place
HICCUPS = 0.1  # share of rounds that a hiccup of the clock makes faster, or one: disturbance makes none so
_ROUNDS = 2
MOST_ROUNDS = 10
_BATCH = 2000
_FIRST = 8  # times smaller is the first batch, and each one after it twice as large: the backend soon begins
_AHEAD = 2  # batches that it has while one is made: it waits for none that takes longer to make than to run
_MISSED = 3  # visits without a run that say nothing of a kernel
CROWDED = 0.5  # share of samples beside neighbours: above, more of the same only takes time
CROWDED_ROUNDS, CROWDED_TRIES = 4, 100  # rounds and tries then: a third of a full run's at most
REMEMBERED = 200  # samples as which what was before counts in the share: some seconds
SECOND_TIME = 100  # of so many experiments one is measured again: how far do two times differ?
_SPACING = 4  # batches between two visits of an experiment
EMULATED_EFFORT = Effort(rounds=1, want=1, maximum=1, target=200.0)  # times that mean nothing are taken once

PLACED, DISAGREE, DISTURBED, NO_SAMPLE, TWO_RATES = Unsettled
PASSING = (DISTURBED, DISAGREE, NO_SAMPLE)  # reasons that another time may not have


class Measurement(msgspec.Struct, frozen=True):
    """Cycles per unit of a kernel's body, or why there are none.

    `verdict` is `ok`, `unstable` (rounds disagree), `noisy` (no two clean rounds agree) or `failed`, `error`
    why it is not `ok`. `spread` is
    how far off it may be: 95 of 100 independent readings are within twice of it; of one that is not `ok`,
    from its cycles to the slowest round. `rounds` are the values of all rounds, `exceptions` the
    floating-point exceptions raised. Of the `rejected` samples, `disturbed` ran beside a canary that was
    not clean. `instruction` is the offset in setup and body of what broke, or -1.
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
    disturbed: int = 0
    instruction: int = -1

    @property
    def usable(self) -> bool:
        """Whether there is a value."""
        return self.verdict != FAILED


def agree(a: float, b: float, within: float = AGREE, grain: float = GRAIN) -> bool:
    """Whether two values are the same within the noise."""
    return abs(a - b) <= max(within * max(abs(a), abs(b)), grain)


def low_cluster(values: Sequence[float], within: float = AGREE, grain: float = GRAIN) -> list[float]:
    """The lowest values that agree with a second one; all that agree with the lowest of such a pair."""
    ordered = sorted(values)
    for position, value in enumerate(ordered[:-1]):
        if agree(value, ordered[position + 1], within, grain):
            return [v for v in ordered[position:] if agree(value, v, within, grain)]
    return ordered[:1]


def summarise(
    samples: Sequence[Sample], places: int = _ROUNDS, within: float = AGREE, error: float = AGREE,
    most: int = MOST_ROUNDS, grain: float = GRAIN,
) -> Measurement | None:  # fmt: skip
    """The measurement, or None where more rounds are needed.

    Rounds go around `places`: number n and n + `places` are of the same length and place. `error` is what
    two rounds differ by at most in 95 of 100 cases, relative; after `most` rounds there is a verdict. `grain`
    is what they may differ by in any case, in cycles.
    """
    if not samples:
        return None
    if (found := _agreeing(samples, places, within, error, grain)) is not None:
        return _with_rates(found, samples)
    accepted = sum(s.accepted for s in samples)
    rejected = sum(s.rejected for s in samples)
    broken = next((s for s in samples if s.status not in USABLE), None)
    if broken is not None:
        return _broken(broken, accepted, rejected)
    verdict, chosen, reason = _judge(samples, places, within, most, grain)
    if verdict is None:
        return None
    rounds = tuple(round(s.cycles, 4) for s in samples)
    disturbed = sum(s.disturbed for s in samples)
    if not chosen:
        return Measurement(0.0, 0.0, FAILED, accepted, rejected, rounds, 0, NO_SAMPLE, (), disturbed)
    value = sum(chosen) / len(chosen)
    every = [s for s in samples if _is_reading(s)]
    slowest = max(s.cycles for s in [s for s in every if s.status == OK] or every)
    spread = _error(chosen, error) if verdict == STABLE else slowest - min(chosen)
    found = Measurement(
        value, spread, verdict, accepted, rejected, rounds, samples[-1].exceptions, reason,
        samples[-1].counters, disturbed,
    )  # fmt: skip
    return _with_rates(found, samples)


def _with_rates(found: Measurement, samples: Sequence[Sample]) -> Measurement:
    """A measurement that is not `ok` where there is a second rate: its spread reaches to that."""
    if found.verdict != STABLE or (other := second_rate(samples)) <= found.cycles:
        return found
    return msgspec.structs.replace(found, verdict=UNSTABLE, error=TWO_RATES, spread=other - found.cycles)


def _agreeing(
    samples: Sequence[Sample], places: int, within: float, error: float, grain: float
) -> Measurement | None:
    """The measurement of rounds that are clean and agree, as most do: what `_judge` would say, but sooner."""
    values: list[float] = []
    accepted = rejected = disturbed = 0
    for s in samples:
        if s.status != OK:
            return None
        values.append(s.cycles)
        accepted += s.accepted
        rejected += s.rejected
        disturbed += s.disturbed
    rounds = tuple([round(value, 4) for value in values])
    values.sort()
    if len(values) < max(places, 2) or values[0] <= 0 or not agree(values[0], values[-1], within, grain):
        return None
    return Measurement(
        sum(values) / len(values), _error(values, error), STABLE, accepted, rejected, rounds,
        samples[-1].exceptions, "", samples[-1].counters, disturbed,
    )  # fmt: skip


def _broken(sample: Sample, accepted: int, rejected: int) -> Measurement:
    error, place = failure(sample), sample.instruction
    return Measurement(0.0, 0.0, FAILED, accepted, rejected, (), error=error, instruction=place)


def _error(chosen: Sequence[float], error: float) -> float:
    """Half of what another mean of as many rounds differs by at most in 95 of 100 cases."""
    usual = error * sum(chosen) / len(chosen)
    return max(usual, max(chosen) - min(chosen)) / 2 / math.sqrt(len(chosen))


def once(samples: Sequence[Sample]) -> Measurement | None:
    """What a single sample of an emulator says: whether the kernel runs."""
    if not samples:
        return None
    sample = samples[0]
    if sample.status not in USABLE:
        return _broken(sample, 0, 0)
    cycles, spread = (0.0 if isnan(x) else max(x, 0.0) for x in (sample.cycles, sample.spread))
    return Measurement(cycles, spread, NOISY, sample.accepted, 0, (), sample.exceptions)


def _judge(
    samples: Sequence[Sample], places: int, within: float, most: int, grain: float
) -> tuple[str | None, list[float], str]:
    """Verdict, the rounds that make the value, why it is not `ok`; no verdict where rounds are missing."""
    every = [(number % places, s.status, s.cycles) for number, s in enumerate(samples) if _is_reading(s)]
    clean = [(place, cycles) for place, status, cycles in every if status == OK]
    values = [cycles for _, cycles in clean]
    cluster = low_cluster(values, within, grain) if len(values) > 1 else []
    settled = set(cluster)
    missing = set(range(places)) - {place for place, cycles in clean if cycles in settled}
    most_of_all = len(cluster) == len(samples) or len(cluster) >= max(3, len(values) * 2 / 3)
    faster = sum(value < min(cluster) for value in values) if cluster else 0
    if len(cluster) >= 2 and not missing and most_of_all and faster <= max(1, HICCUPS * len(values)):
        return STABLE, cluster, ""
    if len(cluster) >= 2 and any(_repeats(clean, place, within, grain) for place in missing):
        return UNSTABLE, cluster, PLACED  # not by chance: more rounds would say the same
    if len(samples) < most:
        return None, [], ""
    if len(cluster) >= 2:
        return UNSTABLE, cluster, DISAGREE
    some = values or [cycles for _, _, cycles in every]
    return NOISY, low_cluster(some, within, grain), DISAGREE if len(values) > 1 else DISTURBED


def _is_reading(sample: Sample) -> bool:
    """Whether there is one: a difference of two times of which the lesser was disturbed is none."""
    return sample.cycles > LESS_THAN_NOTHING


def _repeats(clean: Sequence[tuple[int, float]], place: int, within: float, grain: float) -> bool:
    """Whether the rounds of a length and place agree with each other."""
    own = [cycles for at, cycles in clean if at == place]
    return len(own) >= 2 and len(low_cluster(own, within, grain)) * 3 >= len(own) * 2


def rejections(accepted: int, rejected: int, disturbed: int) -> str:
    """What share of the samples was rejected, and how much of it for a neighbour, in words."""
    tried = accepted + rejected
    if not tried:
        return "no samples yet"
    return f"{rejected / tried:.0%} of samples rejected, {disturbed / tried:.0%} beside neighbours"


def _apart(a: float, b: float) -> float:
    """What two values differ by, relative."""
    return abs(a - b) / max(a, b, GRAIN)


class _Visit:
    __slots__ = ("before", "experiment", "missed", "ready", "samples")

    def __init__(self, experiment: Experiment, before: Measurement | None = None, ready: int = 0) -> None:
        self.experiment = experiment
        self.before = before  # what it took, if it is measured again to see how far two times differ
        self.missed = 0  # visits in which it was not run
        self.samples: list[Sample] = []
        self.ready = ready

    def add(self, samples: Sequence[Sample]) -> None:
        """Take samples; a backend that did not come to a kernel is asked for it again, but not for ever.

        All of a visit or none: the place of a sample among them says which length of the body it is of.
        """
        missed = NOT_RUN in [sample.status for sample in samples]
        self.missed += missed
        if not missed or self.missed > _MISSED:
            self.samples += samples


class Sampler:
    """Feeds a backend with batches and settles the experiments one by one.

    `wanted` is asked before every new batch whether to go on with new experiments; experiments in
    flight are always finished. None has a verdict before so many rounds as `least`.
    """

    def __init__(
        self, backend: Backend, effort: Effort | None = None, batch: int = _BATCH, least: int = _ROUNDS
    ) -> None:
        self._least = least
        self._backend = backend
        self._effort = effort or Effort(rounds=_ROUNDS)
        self._once = backend.capabilities().emulated
        if self._once:
            self._effort = EMULATED_EFFORT
        self._batch = batch
        self._number = self._settled = 0
        self._noise = {flag: RoundNoise(AGREE) for flag in (True, False)}  # of sequences, and of chains
        self.rejected = self.accepted = self.disturbed = 0
        self._company = 0.0  # share of samples beside neighbours, of late

    @property
    def counts(self) -> dict[str, int]:
        """Samples so far: accepted, rejected, and of these beside a neighbour."""
        return {"accepted": self.accepted, "rejected": self.rejected, "disturbed": self.disturbed}

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
            if len(flying) > _AHEAD or not batch:
                yield self._collect(flying.popleft(), again)

    def _next_batch(
        self, source: Iterator[Experiment], again: deque[_Visit], wanted: Callable[[], bool], busy: bool
    ) -> list[_Visit]:
        self._number += 1
        most = min(self._batch, max(1, self._batch // _FIRST) << (self._number - 1))
        batch = self._due(again, force=False)
        if wanted():
            for experiment in source:
                batch.append(_Visit(experiment))
                if len(batch) >= most:
                    break
        if not batch and all(visit.before is not None for visit in again):
            again.clear()  # what is left tells nobody anything
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
        if self._is_crowded:
            effort = msgspec.structs.replace(effort, maximum=min(effort.maximum, CROWDED_TRIES))
        self._backend.submit([v.experiment.kernel for v in batch], effort)

    def _collect(self, batch: list[_Visit], again: deque[_Visit]) -> list[tuple[Experiment, Measurement]]:
        answers = self._backend.collect()
        self._meet([samples for visit, samples in zip(batch, answers, strict=True) if not visit.samples])
        settled = []
        for visit, samples in zip(batch, answers, strict=True):
            measurement = self._judged(visit, samples)
            if measurement is None:
                visit.ready = self._number + _SPACING
                again.append(visit)
                continue
            self.accepted += measurement.accepted
            self.rejected += measurement.rejected
            self.disturbed += measurement.disturbed
            if visit.before is not None:
                self._compare(visit, visit.before, measurement)
                continue
            settled.append((visit.experiment, measurement))
            self._settled += 1
            if self._settled % SECOND_TIME == 0 and not self._once:
                again.append(_Visit(visit.experiment, measurement, self._number + _SPACING))
        return settled

    def _compare(self, visit: _Visit, first: Measurement, again: Measurement) -> None:
        if first.verdict == STABLE == again.verdict:
            rounds = min(len(first.rounds), len(again.rounds))
            self._noise_of(visit).note_times(_apart(first.cycles, again.cycles), rounds)

    def _noise_of(self, visit: _Visit) -> RoundNoise:
        return self._noise[bool(visit.experiment.kernel.flags & CANARY)]

    @property
    def _is_crowded(self) -> bool:
        """Whether neighbours disturb most of what is measured: then what is noisy is told so earlier."""
        return self._company > CROWDED

    def _meet(self, answers: Sequence[Sequence[Sample]]) -> None:
        """Learn from first visits how much is disturbed: others are made because they were."""
        every = (s for row in answers for s in row)
        shares = [s.disturbed and s.disturbed / max(s.accepted + s.rejected, 1) for s in every]
        if shares:
            weight = len(shares) / (len(shares) + REMEMBERED)
            self._company += weight * (sum(shares) / len(shares) - self._company)

    def _judged(self, visit: _Visit, samples: Sequence[Sample]) -> Measurement | None:
        noise = self._noise_of(visit)
        if not visit.samples and visit.before is None:
            values = [s.cycles for s in samples[:2] if s.status == OK]
            if len(values) == 2 and agree(*values):
                noise.note_rounds(_apart(*values))
        visit.add(samples)
        if self._once:
            return once(visit.samples)
        if len(visit.samples) < self._least and all(sample.usable for sample in visit.samples):
            return None
        most = max(CROWDED_ROUNDS if self._is_crowded else MOST_ROUNDS, self._least)
        chain = not visit.experiment.kernel.flags & CANARY
        grain = CHAIN_GRAIN * visit.experiment.count if chain else GRAIN
        rounds = self._effort.rounds
        return summarise(visit.samples, rounds, error=noise.error, most=most, grain=grain)
