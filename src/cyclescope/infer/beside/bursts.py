"""Copies of code that run once after a reading of the clock, as nanoBench times them.

Two numbers of copies run in turn, and their difference counts. Marks in the code pause and resume the clock
and the counters; a pair of marks alone is timed in the same rounds, and its cost is subtracted.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from typing import Protocol

import msgspec

from cyclescope.backend.base import Backend, BurstEffort, BurstSample, Sample
from cyclescope.errors import UsageError
from cyclescope.isa.registry import instruction_set
from cyclescope.kernel.kernel import Kernel
from cyclescope.measure.bench import IN_AREAS, PAUSE, Places, nowhere, settled_of, usable
from cyclescope.measure.record import STABLE
from cyclescope.measure.sampling import Measurement, once

PAUSES, RESUMES = (bytes.fromhex(f"043f81c2b113b5{last}") for last in ("f0", "e0"))  # nanoBench's
MOST_MEASUREMENTS = 2048  # of a length
MEASUREMENTS = 200  # in all rounds, unless told otherwise
_INSTRUCTIONS, _BYTES = 600, 5000  # in the shorter length: what large reorder buffers and caches of code hold
_MARKED = 100  # copies of code with marks at most: each is some hundred bytes more elsewhere
_FEWEST = 8  # copies of long code: fewer would be within a reorder buffer
# Core cycles of a measurement: a step of a coarse clock is 0.1 % of them, and few are interrupted. Marks read
# the clock hundreds of times in a run, at one phase where they are as far apart as its steps: more meet all.
_TARGET = 5e4
_MARKED_MEASUREMENTS = 10  # times as many
_TRIPS, _CODE_BYTES = 0xFFFFFFFF, 0xE0000  # of a counter; of copies


_IN_TURN = "write .quad 0xF0B513B1C2813F04 and .quad 0xE0B513B1C2813F04 in turn"


class BurstPlan(msgspec.Struct, frozen=True):
    """How copies that run once are timed, in nanoBench's words; `unroll` 0: as many as fit."""

    unroll: int = 0
    loop: int = 0
    warm_up: int = 5
    initial_warm_up: int = 0
    basic: bool = False
    offset: int = 0
    measurements: int = MEASUREMENTS
    drain: bool = False

    def kept(self, isa: str) -> str:
        """Registers that code may not name, as a regular expression."""
        registers = instruction_set(isa).registers
        return f"{registers.marks}|{registers.counter}" if self.loop else registers.marks


class Before(msgspec.Struct, frozen=True):
    """Code that comes before the copies: once, in every run, and in every run behind the first read."""

    one_time: bytes = b""
    init: bytes = b""
    late: bytes = b""


class Burst(msgspec.Struct, frozen=True):
    """Code to time in copies: what the runner gets, how, and how many pairs of marks a copy has."""

    kernel: Kernel
    effort: BurstEffort
    pairs: int = 0

    @property
    def marks_alone(self) -> Burst:
        """The same number of copies of a pair of marks and nothing else."""
        kernel = msgspec.structs.replace(self.kernel, code=PAUSES + RESUMES, setup=b"", instructions=1)
        return Burst(kernel, msgspec.structs.replace(self.effort, one_time=0, late=0))

    @property
    def twice(self) -> Burst:
        """Twice as many copies."""
        return Burst(
            self.kernel, msgspec.structs.replace(self.effort, unroll=2 * self.effort.unroll), self.pairs
        )


class TimedBurst(msgspec.Struct, frozen=True):
    """What copies took: cycles per copy, what a pair of marks costs, all measurements of both lengths.

    `mark` was taken out once per pair; it is 0 without marks. `beside` are cycles of all copies that pass
    beside what no copies take, or of what these take that waits for copies if it is below 0; it is 0 where
    no copies are not what is taken out.
    """

    measured: Measurement
    mark: float
    samples: tuple[BurstSample, ...]
    burst: Burst
    beside: float = 0.0

    @property
    def measurements(self) -> int:
        """Of each length."""
        return sum(len(one.longer) for one in self.samples)

    def summed(self, kind: str) -> float:
        """Cycles per copy by nanoBench's ways: `min`, `median`, `max`, `avg` of the middle three fifths."""
        return _difference(self.samples, kind, self.burst.effort) - self.burst.pairs * self.mark


class BurstBackend(Backend, Protocol):
    """A backend that times copies."""

    def burst(self, kernel: Kernel, effort: BurstEffort) -> BurstSample:
        """One round."""


def pairs_of_marks(code: bytes) -> int:
    """How many pairs of marks code has, which pause and resume in turn. Raises UsageError for others."""
    found = [code[n : n + 8] for n in range(len(code) - 7) if code[n : n + 8] in (PAUSES, RESUMES)]
    for number, mark in enumerate(found):
        if mark == RESUMES and number % 2 == 0:
            raise UsageError(f"mark {number + 1} of the code resumes what no mark paused", _IN_TURN)
        if mark == PAUSES and number % 2:
            raise UsageError(f"mark {number + 1} of the code pauses what is paused", _IN_TURN)
    if len(found) % 2:
        raise UsageError(f"mark {len(found)} of the code pauses, and none resumes", _IN_TURN)
    return len(found) // 2


def has_marks(code: bytes) -> bool:
    """Whether code has a mark."""
    return PAUSES in code or RESUMES in code


def burst_of(kernel: Kernel, before: Before, plan: BurstPlan) -> Burst:
    """Copies of the code of a kernel. Raises UsageError for marks outside of it or without another."""
    if any(map(has_marks, (before.one_time, before.init, before.late))):
        raise UsageError("a mark stands in code that is not counted", "write marks in the code itself")
    pairs = pairs_of_marks(kernel.code)
    unroll = plan.unroll or _usual(kernel, pairs)
    if unroll * len(kernel.code) > _CODE_BYTES or plan.loop > _TRIPS:
        raise UsageError(f"{unroll} copies of {len(kernel.code)} bytes are too many", "unroll less")
    code = before.one_time + before.late + kernel.code
    if max(len(code), len(before.init)) > 0xFFFF:
        raise UsageError(f"{len(code)} bytes of code are too many", "{init} can have some of it")
    wanted = min(plan.measurements * (_MARKED_MEASUREMENTS if pairs else 1), MOST_MEASUREMENTS)
    effort = BurstEffort(
        wanted, unroll, plan.loop, plan.warm_up, plan.initial_warm_up, plan.basic, plan.offset,
        len(before.one_time), len(before.late), _TARGET, plan.drain,
    )  # fmt: skip
    made = msgspec.structs.replace(kernel, code=code, setup=before.init, instructions=1, flags=0)
    return Burst(made, effort, pairs)


def _usual(kernel: Kernel, pairs: int) -> int:
    copies = min(_INSTRUCTIONS // max(kernel.instructions, 1), _BYTES // max(len(kernel.code), 1))
    return max(min(copies, _MARKED) if pairs else copies, _FEWEST)


def time_bursts(
    backend: BurstBackend, bursts: Sequence[Burst], rounds: int, places: Places = nowhere
) -> list[TimedBurst]:
    """Time pieces of code in turn, in at least so many rounds.

    Raises UnsupportedInstruction or MeasurementError for code that does not run.
    """
    isa = backend.capabilities().isa
    if backend.capabilities().emulated:
        once_each = [_emulated(backend, burst) for burst in bursts]
        _check(once_each, isa, places)
        return once_each
    found = [_Rounds(burst) for burst in bursts]
    while True:
        for one in found:
            one.add(backend, rounds)
        timed = [_timed(one, rounds) for one in found]
        _check(timed, isa, places)
        done = [one for one in timed if one is not None]
        if len(done) == len(bursts):
            return done
        time.sleep(PAUSE)


class _Rounds:
    """Rounds of a burst: its own, and of the marks and twice the copies that it is compared with."""

    def __init__(self, burst: Burst) -> None:
        self.burst = burst
        self.own: list[BurstSample] = []
        self.marks: list[BurstSample] = []
        self.twice: list[BurstSample] = []

    def add(self, backend: BurstBackend, rounds: int) -> None:
        """One more of each."""
        burst = self.burst
        self.own.append(_round(backend, burst, rounds))
        if burst.pairs and self.own[-1].usable:
            self.marks.append(_round(backend, burst.marks_alone, rounds))
        if burst.effort.basic and self.own[-1].usable:
            self.twice.append(_round(backend, burst.twice, rounds))


def _round(backend: BurstBackend, burst: Burst, rounds: int) -> BurstSample:
    each = math.ceil(burst.effort.measurements / rounds)
    return backend.burst(burst.kernel, msgspec.structs.replace(burst.effort, measurements=each))


def _check(timed: Sequence[TimedBurst | None], isa: str, places: Places) -> None:
    for number, one in enumerate(timed):
        if one is not None:
            usable(one.measured, isa, places(number, one.measured.instruction), IN_AREAS)


def _emulated(backend: BurstBackend, burst: Burst) -> TimedBurst:
    """Once, which says whether it runs."""
    sample = backend.burst(burst.kernel, msgspec.structs.replace(burst.effort, measurements=1))
    measured = once([_told(sample, burst.effort)])
    assert measured is not None
    return TimedBurst(measured, 0.0, (sample,), burst)


def _timed(found: _Rounds, rounds: int) -> TimedBurst | None:
    """What the rounds so far say, None where more may say more."""
    timed = _without_marks(found, rounds)
    if timed is None or not timed.measured.usable or not found.burst.effort.basic:
        return timed
    return _with_beside(timed, found, rounds)


def _with_beside(timed: TimedBurst, found: _Rounds, rounds: int) -> TimedBurst | None:
    """With the error that copies have which begin and end beside what no copies take.

    What passes there is in twice as many copies only once, too: the two differ by half of it.
    """
    burst = found.burst
    twice = _judged(found.twice, burst.twice, rounds)
    if twice is None:
        return None
    if not twice.usable:  # as where so many do not fit
        return msgspec.structs.replace(timed, measured=twice)
    missing = 2 * (twice.cycles - _difference(found.own, "avg", burst.effort))
    spread = math.hypot(timed.measured.spread, missing, 2 * twice.spread)
    measured = msgspec.structs.replace(timed.measured, spread=spread)
    return msgspec.structs.replace(timed, measured=measured, beside=missing * burst.effort.copies)


def _without_marks(found: _Rounds, rounds: int) -> TimedBurst | None:
    """Rounds are judged with what marks cost: of a difference nearly nothing may be left."""
    own, burst = found.own, found.burst
    measured = _judged(own, burst, rounds)
    if measured is None or not measured.usable or not burst.pairs:
        return None if measured is None else TimedBurst(measured, 0.0, tuple(own), burst)
    alone = _judged(found.marks, burst.marks_alone, rounds)
    if alone is None:
        return None
    costs = alone.counters or (0.0,) * len(measured.counters)
    counters = tuple(value - burst.pairs * cost for value, cost in zip(measured.counters, costs, strict=True))
    left = msgspec.structs.replace(
        measured, cycles=measured.cycles - burst.pairs * alone.cycles, counters=counters,
        spread=math.hypot(measured.spread, burst.pairs * alone.spread),
        rounds=tuple(value - burst.pairs * alone.cycles for value in measured.rounds),
    )  # fmt: skip
    if measured.verdict == STABLE != alone.verdict:
        left = msgspec.structs.replace(left, verdict=alone.verdict, error=alone.error)
    return TimedBurst(left, alone.cycles, tuple(own), burst)


def _judged(samples: Sequence[BurstSample], burst: Burst, rounds: int) -> Measurement | None:
    """Rounds of copies, marks and all; those that broke say why at once."""
    broken = [one for one in samples if not one.usable]
    told = [_told(one, burst.effort) for one in broken[:1] or samples]
    return settled_of(told, 0.0, rounds, 1)


def _told(one: BurstSample, effort: BurstEffort) -> Sample:
    """A round as one sample of cycles per copy."""
    return Sample(
        _difference([one], "avg", effort), 0.0, one.status, one.detail, one.accepted, one.rejected, 0,
        one.address, one.instruction, tuple(value / effort.copies for value in one.counters), one.disturbed,
    )  # fmt: skip


def _difference(samples: Sequence[BurstSample], kind: str, effort: BurstEffort) -> float:
    shorter = [value for one in samples for value in one.shorter]
    longer = [value for one in samples for value in one.longer]
    return (aggregate(kind, longer) - aggregate(kind, shorter)) / effort.copies


def aggregate(kind: str, values: Sequence[float]) -> float:
    """nanoBench's ways to sum up: of its mean the lowest and the highest fifth are left out."""
    ordered = sorted(values)
    fifth = len(ordered) // 5
    if kind == "avg":
        return statistics.mean(ordered[fifth : len(ordered) - fifth])
    return {"min": ordered[0], "max": ordered[-1], "median": ordered[len(ordered) // 2]}[kind]
