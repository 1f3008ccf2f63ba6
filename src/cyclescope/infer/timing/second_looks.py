"""Further kernels that first results call for: longer chains, chains without cuts, the same once more."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

import msgspec

from cyclescope.infer.timing.builder import TimingBuilder
from cyclescope.infer.timing.laws import (
    is_doubtful,
    is_through_memory,
    is_undecided,
    may_be_delayed,
    slower_than_others,
    waits_for_its_own,
)
from cyclescope.infer.timing.overwriting import filling
from cyclescope.infer.timing.results import EXACT, INTERVAL, FormTiming, Latency
from cyclescope.isa.dataflow import is_old, pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.cycle import LINK_SPACING
from cyclescope.kernel.overwriting import emptied, independent
from cyclescope.kernel.variant import AGAIN, SECOND_LOOKS, Kind
from cyclescope.measure.plan import Experiment, Planner
from cyclescope.measure.record import Record
from cyclescope.remarks.timing import Cause

Ends = tuple[str, str]  # names of a pair's source and target

AT_FIRST = ("*" + AGAIN, *(f"{kind}*" for kind in SECOND_LOOKS))  # variants that first results ask for
AT_LAST = ("*" + AGAIN, str(Kind.LONGER))  # variants that are asked for at last
_STEP = 3  # one-cycle instructions by which a chain is longer than what the throughput hides
MOST_FILLING = 2000  # one-cycle instructions in a chain
UNDECIDED_ROUNDS = 8  # of which the mean has half of the error of two
UNDECIDED_CYCLES = 20000.0  # core cycles, three first looks: of 5000, until memory is steady is a percent


def latency_questions(
    planner: Planner,
    form: InstructionForm,
    timing: FormTiming,
    steps: int = 1,
    only: Collection[Ends] | None = None,
    unbroken: bool = True,
) -> Iterator[Experiment]:
    """Longer chains where the throughput may be what shows, by so many steps, and chains that cut nothing
    else, where these are asked for; `only` of some pairs.
    """
    limit = (timing.throughput.value if timing.throughput else None) or 0.0
    if only is not None and not only:
        return
    for latency in timing.latencies:
        if (count := filling(latency)) and _is_of(latency, only):
            yield from planner.filled_output(form, latency.source, count)
    every = pairs(form)
    latencies = [latency for latency in timing.latencies if not is_old(latency.source)]
    slow = slower_than_others(latencies, every)
    for pair, latency, slower in zip(every, latencies, slow, strict=True):
        if not _is_of(latency, only):
            continue
        jumps = "branch" in form.attributes  # alone, it may wait for where the one before went
        doubtful = jumps or is_doubtful(latency, limit)
        stored = is_through_memory(pair, latency)
        source, target = latency.source, latency.target
        if (doubtful or stored) and limit < MOST_FILLING:
            count = max(math.ceil(limit) + _STEP, LINK_SPACING if stored else 0) + _STEP * (steps - 1)
            filled = planner.filled(form, source, target, count)
            yield from () if filled is None else (filled,)
        if unbroken and (doubtful or slower or may_be_delayed(latency)):
            uncut = planner.unbroken(form, source, target)
            yield from () if uncut is None else (uncut,)


def _is_of(latency: Latency, only: Collection[Ends] | None) -> bool:
    return only is None or (latency.source, latency.target) in only


def last_looks(
    planner: Planner, form: InstructionForm, first: FormTiming, builder: TimingBuilder
) -> tuple[list[Experiment], list[Experiment]]:
    """What a form's first and second looks ask for, by what the first ones told: chains of pairs whose rounds
    were too few to tell a value once more, and longer ones where a filled chain tells it.
    """
    timing = builder.build("ok")
    wanted = {(lat.source, lat.target) for lat in timing.latencies if is_undecided(lat)}
    asked = (*planner.latency(form, only=wanted), *latency_questions(planner, form, first, only=wanted))
    again = [second_look(e) for e in asked]
    told = {(lat.source, lat.target) for lat in timing.latencies if _tells_a_number(lat)} & builder.filled
    more = latency_questions(planner, form, first, steps=2, only=told, unbroken=False)
    filled = [e for e in more if e.variant == Kind.FILLED]
    return again, [msgspec.structs.replace(e, variant=str(Kind.LONGER)) for e in filled]


def _tells_a_number(latency: Latency) -> bool:
    """Whether a latency is one: a chain that is cut, or a bound, needs no length to be so."""
    cut = latency.cause in (Cause.INDEPENDENT, Cause.ELIMINATED)
    return latency.kind in (EXACT, INTERVAL) and not cut


def throughput_questions(planner: Planner, form: InstructionForm, timing: FormTiming) -> list[Experiment]:
    """Sequences whose destinations are overwritten, where instances may wait for those that they read, and
    one that leaves more registers for what is in flight.
    """
    waits = waits_for_its_own(form, timing.throughput)
    return [*planner.further(form, emptied), *(planner.further(form, independent) if waits else ())]


def is_first(record: Record) -> bool:
    """Whether a record is no second look: only the first ones raise questions, so that they end."""
    return record.kind not in SECOND_LOOKS and not record.look.again


def is_last(record: Record) -> bool:
    """Whether a record is one that first and second looks together asked for."""
    return record.look.again or record.kind is Kind.LONGER


def second_look(experiment: Experiment) -> Experiment:
    """The same once more."""
    return msgspec.structs.replace(experiment, variant=experiment.variant + AGAIN)
