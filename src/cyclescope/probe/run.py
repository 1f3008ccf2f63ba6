"""Asking a core: the kernels of probes through the sampling of measurements, and what comes out of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from cyclescope.backend.base import Backend, Effort
from cyclescope.isa.table import Table
from cyclescope.measure.plan import Experiment, Key
from cyclescope.measure.sampling import Measurement, Sampler
from cyclescope.model.facts import Fact
from cyclescope.probe.code import Assembler
from cyclescope.probe.interval import Interval
from cyclescope.probe.looks import PAUSE, Looks, look
from cyclescope.probe.question import Point, Probe, ProbeCase, Readings, Unresolved

PROBE = "probe"  # quantity of a store's measurements
STAGES = 4  # looks: three that narrow a sweep down, each by ten, are enough for a thousand places
_EFFORT = Effort(rounds=4, want=8, target=20000.0)  # four lengths and places of each loop
EMULATED = "an emulator's cycles mean nothing"


class ProbeReading(NamedTuple):
    """The reading of a point: its place `x` in a sweep, the kernel, and what it took."""

    x: int
    experiment: Experiment
    measurement: Measurement


class Asked(msgspec.Struct, frozen=True):
    """A probe that was run: facts, and the measurements that they rest on."""

    probe: Probe
    facts: tuple[Fact, ...]
    rows: tuple[ProbeReading, ...]

    @property
    def measured(self) -> list[tuple[Experiment, Measurement]]:
        """The measurements with their experiments."""
        return [(row.experiment, row.measurement) for row in self.rows]


def ask(
    probes: Iterable[Probe], backend: Backend, table: Table, quick: bool = False, effort: Effort = _EFFORT
) -> Iterator[Asked]:
    """Run probes one after the other; `quick` leaves out cases that are no hurry's."""
    sampler, assembler = Sampler(backend, effort), Assembler(table)
    known = backend.capabilities()
    emulated, pause = known.emulated, PAUSE if known.real_time else 0.0
    for probe in probes:
        yield _asked(probe, sampler, assembler, quick, emulated, pause)


def _asked(
    probe: Probe, sampler: Sampler, assembler: Assembler, quick: bool, emulated: bool, pause: float
) -> Asked:
    cases = [case for case in probe.cases(assembler.table.isa) if case.is_quick or not quick]
    points = [case.points for case in cases]
    experiments: list[tuple[int, Experiment]] = []
    looks: dict[Key, Looks] = {}
    for _ in range(STAGES):
        new = [
            made for case, some in zip(cases, points, strict=True)
            for made in _experiments(probe, case, some, assembler)
        ]  # fmt: skip
        looks |= _looks(sampler, [made for _, made in new], emulated, pause)
        experiments += new
        cases = [_with(case, some) for case, some in zip(cases, points, strict=True)]
        points = [() if emulated else _wanted(probe, case, looks) for case in cases]
        if not any(points):
            break
    facts = tuple(_fact(probe, case, _readings(probe, case, looks), emulated) for case in cases)
    rows = (ProbeReading(x, made, looks[made.key].measurement) for x, made in experiments)
    return Asked(probe, facts, tuple(rows))


def _with(case: ProbeCase, points: tuple[Point, ...]) -> ProbeCase:
    """A case with more points."""
    known = {(point.part, point.x) for point in case.points}
    new = tuple(point for point in points if (point.part, point.x) not in known)
    return msgspec.structs.replace(case, points=(*case.points, *new))


def _wanted(probe: Probe, case: ProbeCase, looks: Mapping[Key, Looks]) -> tuple[Point, ...]:
    """Points that the readings so far ask for; none where one does not run."""
    if probe.more is None:
        return ()
    try:
        return tuple(probe.more(case, _readings(probe, case, looks)))
    except Unresolved:
        return ()


def _looks(sampler: Sampler, experiments: Sequence[Experiment], once: bool, pause: float) -> dict[Key, Looks]:
    """What was seen of every experiment; kernels that several cases compare with are looked at once."""
    same: dict[tuple[bytes, bytes, int, int], Experiment] = {}
    for made in experiments:
        same.setdefault(_kernel_of(made), made)
    seen = {_kernel_of(one.experiment): one for one in look(sampler, list(same.values()), once, pause)}
    return {made.key: seen[_kernel_of(made)] for made in experiments}


def _kernel_of(made: Experiment) -> tuple[bytes, bytes, int, int]:
    kernel = made.kernel
    return kernel.code, kernel.setup, kernel.flags, id(kernel.state)  # equal settings share a state


def _experiments(
    probe: Probe, case: ProbeCase, points: Iterable[Point], assembler: Assembler
) -> Iterator[tuple[int, Experiment]]:
    for point in points:
        kernel = assembler.kernel(point.lines, point.flags, point.setting, point.setup)
        yield (
            point.x,
            Experiment(probe.name, PROBE, case.subject, point.part, _variant(point), kernel, point.count),
        )


def _variant(point: Point) -> str:
    return f"x{point.x}"


def _readings(probe: Probe, case: ProbeCase, looks: Mapping[Key, Looks]) -> Readings:
    found: dict[tuple[str, int], Interval] = {}
    missing: dict[tuple[str, int], str] = {}
    for point in case.points:
        seen = looks[probe.name, PROBE, case.subject, point.part, _variant(point)]
        if seen.failed is None:
            found[point.part, point.x] = seen.interval.scaled(1 / point.count)
        else:
            missing[point.part, point.x] = _told(seen.failed.error)
    return Readings(found, missing)


def _told(error: str) -> str:
    return "this CPU does not execute it (SIGILL)" if error == "SIGILL" else error


def _fact(probe: Probe, case: ProbeCase, readings: Readings, emulated: bool) -> Fact:
    try:
        if emulated:
            for point in case.points:
                readings.get(point.part, point.x)  # what does not run comes first
            raise Unresolved(EMULATED)
        verdict = probe.judge(case, readings)
    except Unresolved as why:
        return Fact(probe.name, case.subject, reason=why.reason, detail=why.detail)
    value, unit = verdict.value, verdict.unit or probe.unit
    return Fact(
        probe.name, case.subject, verdict.answer, None if value is None else round(value.value, 3),
        None if value is None else round(value.error, 3), unit if value else "", verdict.confidence,
    )  # fmt: skip


def why_none(probe: Probe, isa: str) -> str:
    """Why a probe has no cases on an instruction set, "" where it has some."""
    return probe.why_not.get(isa, "") if not any(True for _ in probe.cases(isa)) else ""


def resolved(facts: Sequence[Fact]) -> int:
    """How many have an answer."""
    return sum(fact.is_resolved for fact in facts)
