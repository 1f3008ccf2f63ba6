"""Asking a core: the kernels of probes through the sampling of measurements, and what comes out of them."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from cyclescope.backend.base import Backend, Effort
from cyclescope.errors import BackendUnavailable
from cyclescope.isa.table import Table
from cyclescope.kernel.kernel import CANARY, Kernel
from cyclescope.measure.plan import Experiment, Key
from cyclescope.measure.sampling import Measurement, Sampler
from cyclescope.model.facts import Fact
from cyclescope.probe.code import Assembler
from cyclescope.probe.interval import Interval
from cyclescope.probe.looks import LOOK_PAUSE, Looks, look
from cyclescope.probe.pairs import LEAST_RUNNING, NO_PAIRS, CpuPair, CpuPairs, OtherCpu, running
from cyclescope.probe.placing import agreed, doubted
from cyclescope.probe.question import (
    GridPlace,
    Point,
    Probe,
    ProbeCase,
    ProbeVerdict,
    Readings,
    Unresolved,
)
from cyclescope.probe.turns import Pausing, finished, in_turns
from cyclescope.remarks.probing import NoPairs, NotAsked, Unclear, UnclearPair
from cyclescope.remarks.remark import NOTHING, Remark
from cyclescope.remarks.run import Asking

PROBING = "probe"  # quantity of a store's measurements
_EFFORT = Effort(rounds=4, want=8, target=20000.0)  # four lengths and places of each loop
HURRY = 80.0  # seconds of the two minutes that a hurry has: then nothing is begun, or looked at a third time.
# A look that is under way then took up to 14 more where eight programs shared two CPUs.
PAIRS_HURRY = 10.0  # seconds that questions about pairs of CPUs, which come last, have in any hurry


class ProbeReading(NamedTuple):
    """The reading of a point: its place `x` in a sweep, the kernel, and what it took."""

    x: int
    experiment: Experiment
    measurement: Measurement


class Asked(msgspec.Struct, frozen=True):
    """A probe that was run: facts, the measurements that they rest on, and places of subjects in grids.

    `counted` are the events that the measurements have counts of, in their order.
    """

    probe: Probe
    facts: tuple[Fact, ...]
    rows: tuple[ProbeReading, ...]
    places: Mapping[str, GridPlace] = {}
    counted: tuple[str, ...] = ()

    @property
    def measured(self) -> list[tuple[Experiment, Measurement]]:
        """The measurements with their experiments."""
        return [(row.experiment, row.measurement) for row in self.rows]


class _Core(NamedTuple):
    """What is asked, and the CPU beside it; `pause` are seconds between looks, `until` ends a hurry.

    `counted` are the events that samples count.
    """

    sampler: Sampler
    assembler: Assembler
    emulated: bool
    pause: float
    until: float
    counted: tuple[str, ...] = ()
    beside: OtherCpu | None = None

    @property
    def is_late(self) -> bool:
        """Whether the time of a hurry is over."""
        return time.monotonic() > self.until


def ask(
    probes: Iterable[Probe], backend: Backend, table: Table, quick: bool = False, effort: Effort = _EFFORT,
    pairs: CpuPairs = NO_PAIRS,
) -> Iterator[Asked]:  # fmt: skip
    """Run probes: while kernels of one are let rest, others are asked.

    `quick` leaves out cases, and pairs, that are no hurry's, and ends after `HURRY`.
    """
    known, listed = backend.capabilities(), list(probes)
    pause, until = LOOK_PAUSE if known.real_time else 0.0, time.monotonic() + HURRY if quick else math.inf
    counted = known.counters[1:]  # cycles are the first, and no event of a sample
    core = _Core(Sampler(backend, effort), Assembler(table), known.emulated, pause, until, counted)
    early = {
        probe.name: _of_pairs(probe, _chosen(probe, table.isa, quick), core, effort, pairs, quick).facts
        for probe in (listed if len({probe.of_pairs for probe in listed}) > 1 else ())
        if probe.of_pairs and probe.more is None
    }
    for of_pairs, some in groupby(listed, lambda probe: probe.of_pairs):
        with_cases = [(probe, _chosen(probe, table.isa, quick)) for probe in some]
        if of_pairs:
            core = core._replace(until=max(core.until, time.monotonic() + PAIRS_HURRY))
            for probe, cases in with_cases:
                found = _of_pairs(probe, cases, core, effort, pairs, quick)
                facts = doubted(agreed(early.get(probe.name, ()), found.facts), pairs.doubt)
                yield msgspec.structs.replace(found, facts=facts)
        else:
            yield from in_turns(_asked(probe, cases, core) for probe, cases in with_cases)


def _chosen(probe: Probe, isa: str, quick: bool) -> list[ProbeCase]:
    return [case for case in probe.cases(isa) if case.is_quick or not quick]


def _of_pairs(
    probe: Probe, cases: Sequence[ProbeCase], core: _Core, effort: Effort, pairs: CpuPairs, quick: bool
) -> Asked:
    """Every case of every pair of CPUs."""
    if pairs.why_none:
        return _unasked(probe, cases, pairs.why_none)
    found = [
        _of_one_pair(probe, [_of_pair(one, pair) for one in cases], core, effort, pair)
        for pair in pairs.asked(quick)
    ]
    facts = tuple(fact for asked in found for fact in asked.facts)
    places = {subject: place for asked in found for subject, place in asked.places.items()}
    return Asked(probe, facts, tuple(row for asked in found for row in asked.rows), places)


def _of_one_pair(
    probe: Probe, cases: Sequence[ProbeCase], core: _Core, effort: Effort, pair: CpuPair
) -> Asked:
    """Its cases; without memory in common, or without one of the two, it has no answers, but others have."""
    try:
        with pair.open() as (backend, other):
            own = core._replace(sampler=Sampler(backend, effort), beside=other)
            return finished(_asked(probe, cases, own))
    except BackendUnavailable as why:
        return _unasked(probe, cases, NoPairs.AS_SAID.of(why.message))


def _unasked(probe: Probe, cases: Iterable[ProbeCase], why: Remark, unfinished: bool = False) -> Asked:
    facts = (Fact(probe.name, one.subject, reason=why.text, unfinished=unfinished) for one in cases)
    return Asked(probe, tuple(facts), ())


def _of_pair(case: ProbeCase, pair: CpuPair) -> ProbeCase:
    """A case of one pair."""
    subject = f"{case.subject}, CPU {pair.one} and {pair.other}"
    place = GridPlace(case.subject, f"CPU {pair.one}", f"CPU {pair.other}")
    return msgspec.structs.replace(case, subject=subject, place=place)


def _asked(probe: Probe, cases: Sequence[ProbeCase], core: _Core) -> Pausing[Asked]:
    if core.is_late:
        return _unasked(probe, cases, Asking.NO_TIME.of(), unfinished=True)
    points = [case.points for case in cases]
    experiments: list[_Made] = []
    looks: dict[Key, Looks] = {}
    for _ in range(probe.stages):
        new = [
            made for case, some in zip(cases, points, strict=True)
            for made in _experiments(probe, case, some, core.assembler)
        ]  # fmt: skip
        looks |= yield from _looks(core, new)
        experiments += new
        cases = [_with(case, some) for case, some in zip(cases, points, strict=True)]
        points = [() if core.emulated else _wanted(probe, case, looks) for case in cases]
        if not any(points) or core.is_late:
            break
    facts = tuple(
        _fact(probe, case, looks, core.emulated, bool(missing) and core.is_late)
        for case, missing in zip(cases, points, strict=True)
    )
    rows = (ProbeReading(one.x, one.experiment, looks[one.key].measurement) for one in experiments)
    places = {case.subject: case.place for case in cases if case.place is not None}
    return Asked(probe, facts, tuple(rows), places, core.counted)


def _with(case: ProbeCase, points: tuple[Point, ...]) -> ProbeCase:
    """A case with more points."""
    known = {(point.part, point.x) for point in case.points}
    new = tuple(point for point in points if (point.part, point.x) not in known)
    return msgspec.structs.replace(case, points=(*case.points, *new))


def _wanted(probe: Probe, case: ProbeCase, looks: Mapping[Key, Looks]) -> tuple[Point, ...]:
    """Points that the readings so far ask for and that are not known; none where one does not run."""
    if probe.more is None:
        return ()
    settled = {(point.part, point.x) for point, seen in _seen(probe, case, looks) if seen.is_settled}
    try:
        wanted = tuple(probe.more(case, _readings(probe, case, looks)))
    except Unresolved:
        return ()
    return tuple(point for point in wanted if (point.part, point.x) not in settled)


class _Made(NamedTuple):
    """The experiment of a point, at its place, and the kernel that runs beside it."""

    x: int
    experiment: Experiment
    beside: Kernel | None

    @property
    def key(self) -> Key:
        """Of the experiment."""
        return self.experiment.key


_Same = tuple[bytes, bytes, int, int]  # equal settings share a state


def _looks(core: _Core, made: Sequence[_Made]) -> Pausing[dict[Key, Looks]]:
    """What was seen of every experiment; kernels that several cases compare with are looked at once."""
    groups: dict[_Same | None, dict[object, _Made]] = {}
    for one in made:
        groups.setdefault(_same(one.beside), {}).setdefault(_kernel_of(one), one)
    seen: dict[object, Looks] = {}
    for group in groups.values():
        different = list(group.values())
        found = yield from _look(core, [one.experiment for one in different], different[0].beside)
        seen |= {_kernel_of(one): looks for one, looks in zip(different, found, strict=True)}
    return {one.key: seen[_kernel_of(one)] for one in made}


def _look(core: _Core, experiments: Sequence[Experiment], kernel: Kernel | None) -> Pausing[Sequence[Looks]]:
    """Look at kernels, while another one runs beside them."""
    looking = look(core.sampler, experiments, core.emulated, core.pause, core.until)
    if core.beside is None or kernel is None:
        return (yield from looking)
    with running(core.beside, kernel) as share:
        found = finished(looking)
    if share() < LEAST_RUNNING and not core.emulated:
        for one in found:
            one.refuse(UnclearPair.BUSY.of())
    return found


def _kernel_of(made: _Made) -> tuple[_Same | None, _Same | None]:
    return _same(made.experiment.kernel), _same(made.beside)


def _same(kernel: Kernel | None) -> _Same | None:
    """What kernels have in common that are the same."""
    return None if kernel is None else (kernel.code, kernel.setup, kernel.flags, id(kernel.state))


def _experiments(
    probe: Probe, case: ProbeCase, points: Iterable[Point], assembler: Assembler
) -> Iterator[_Made]:
    for point in points:
        kernel = assembler.kernel(point.lines, point.flags, point.setting, point.setup)
        part, variant = point.part, _variant(point)
        made = Experiment(probe.name, PROBING, case.subject, part, variant, kernel, point.count)
        other = assembler.kernel(point.beside, point.flags & ~CANARY, point.setting) if point.beside else None
        yield _Made(point.x, made, other)


def _variant(point: Point) -> str:
    return f"x{point.x}"


def _seen(probe: Probe, case: ProbeCase, looks: Mapping[Key, Looks]) -> Iterator[tuple[Point, Looks]]:
    """The points of a case with their looks."""
    for point in case.points:
        yield point, looks[probe.name, PROBING, case.subject, point.part, _variant(point)]


def _readings(probe: Probe, case: ProbeCase, looks: Mapping[Key, Looks]) -> Readings:
    found: dict[tuple[str, int], Interval] = {}
    missing: dict[tuple[str, int], Remark] = {}
    for point, seen in _seen(probe, case, looks):
        if seen.failed is None:
            taken = seen.read(point.varies, point.chance)
            found[point.part, point.x] = taken.scaled(1 / point.count)
        else:
            missing[point.part, point.x] = _told(seen.failed.error)
    return Readings(found, missing)


def _told(error: str) -> Remark:
    return Asking.NOT_EXECUTED.of() if error == "SIGILL" else Unclear.AS_SAID.of(error)


def _fact(
    probe: Probe, case: ProbeCase, looks: Mapping[Key, Looks], emulated: bool, is_cut_short: bool
) -> Fact:
    readings = _readings(probe, case, looks)
    try:
        if emulated:
            for point in case.points:
                readings.get(point.part, point.x)  # what does not run comes first
            raise Unresolved(Asking.EMULATED.of())
        verdict = _bounded(probe.judge(case, readings))
    except Unresolved as why:
        if is_cut_short or any(seen.is_cut_short for _, seen in _seen(probe, case, looks)):
            said = Asking.NO_TIME.of().text
            return Fact(probe.name, case.subject, reason=said, detail=why.reason.text, unfinished=True)
        return Fact(probe.name, case.subject, reason=why.reason.text, detail=why.detail.text)
    value, unit = verdict.value, verdict.unit or probe.unit
    return Fact(
        probe.name, case.subject, verdict.answer, None if value is None else round(value.value, 3),
        None if value is None else round(value.error, 3), unit if value else "", verdict.confidence,
    )  # fmt: skip


def _bounded(verdict: ProbeVerdict) -> ProbeVerdict:
    """A verdict whose value is known from both sides. Raises Unresolved for others."""
    if verdict.value is not None and not math.isfinite(verdict.value.error):
        raise Unresolved(Unclear.ALWAYS_DISTURBED.of())
    return verdict


def why_none(probe: Probe, isa: str) -> Remark:
    """Why a probe has no cases on an instruction set, nothing where it has some."""
    if any(True for _ in probe.cases(isa)):
        return NOTHING
    return probe.why_not.get(isa) or NotAsked.UNWRITTEN.of(isa)


def resolved(facts: Sequence[Fact]) -> int:
    """How many have an answer."""
    return sum(fact.is_resolved for fact in facts)
