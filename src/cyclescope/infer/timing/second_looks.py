"""Further kernels that first results call for: longer chains, chains without cuts, the same once more."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from cyclescope.infer.timing.laws import (
    is_doubtful,
    is_through_memory,
    may_be_delayed,
    slower_than_others,
    waits_for_its_own,
)
from cyclescope.infer.timing.overwriting import filling
from cyclescope.infer.timing.results import FormTiming
from cyclescope.isa.dataflow import is_old, pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.cycle import LINK_SPACING
from cyclescope.kernel.variant import AGAIN, SECOND_LOOKS
from cyclescope.measure.plan import Experiment, Planner
from cyclescope.measure.record import Record

MOST_FILLING = 2000  # one-cycle instructions in a chain
UNDECIDED_ROUNDS = 8  # of which the mean has half of the error of two
UNDECIDED_CYCLES = 20000.0  # four times a first look: of 5000, until memory is steady is a percent


def latency_questions(planner: Planner, form: InstructionForm, timing: FormTiming) -> Iterator[Experiment]:
    """Longer chains where the throughput may be what shows, and chains that cut nothing else."""
    limit = (timing.throughput.value if timing.throughput else None) or 0.0
    for latency in timing.latencies:
        if count := filling(latency):
            yield from planner.filled_output(form, latency.source, count)
    every = pairs(form)
    latencies = [latency for latency in timing.latencies if not is_old(latency.source)]
    slow = slower_than_others(latencies, every)
    for pair, latency, slower in zip(every, latencies, slow, strict=True):
        jumps = "branch" in form.attributes  # alone, it may wait for where the one before went
        doubtful = jumps or is_doubtful(latency, limit)
        stored = is_through_memory(pair, latency)
        source, target = latency.source, latency.target
        if (doubtful or stored) and limit < MOST_FILLING:
            count = max(math.ceil(limit) + 3, LINK_SPACING if stored else 0)
            filled = planner.filled(form, source, target, count)
            yield from () if filled is None else (filled,)
        if doubtful or slower or may_be_delayed(latency):
            unbroken = planner.unbroken(form, source, target)
            yield from () if unbroken is None else (unbroken,)


def throughput_questions(planner: Planner, form: InstructionForm, timing: FormTiming) -> list[Experiment]:
    """Sequences whose destinations are overwritten, where instances may wait for those that they read."""
    return planner.independent(form) if waits_for_its_own(form, timing.throughput) else []


def is_first(record: Record) -> bool:
    """Whether a record is no second look: only the first ones raise questions, so that they end."""
    return record.kind not in SECOND_LOOKS and not record.look.again


def second_look(experiment: Experiment) -> Experiment:
    """The same once more."""
    return msgspec.structs.replace(experiment, variant=experiment.variant + AGAIN)
