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
    experiments = [made for case in cases for made in _experiments(probe, case, assembler)]
    looks = _looks(sampler, [made for _, made in experiments], emulated, pause)
    facts = tuple(_fact(probe, case, _readings(probe, case, looks), emulated) for case in cases)
    rows = (ProbeReading(x, made, looks[made.key].measurement) for x, made in experiments)
    return Asked(probe, facts, tuple(rows))


def _looks(sampler: Sampler, experiments: Sequence[Experiment], once: bool, pause: float) -> dict[Key, Looks]:
    """What was seen of every experiment; kernels that several cases compare with are looked at once."""
    same: dict[tuple[bytes, int, int], Experiment] = {}
    for made in experiments:
        same.setdefault(_kernel_of(made), made)
    seen = {_kernel_of(one.experiment): one for one in look(sampler, list(same.values()), once, pause)}
    return {made.key: seen[_kernel_of(made)] for made in experiments}


def _kernel_of(made: Experiment) -> tuple[bytes, int, int]:
    return made.kernel.code, made.kernel.flags, id(made.kernel.state)  # equal settings share a state


def _experiments(probe: Probe, case: ProbeCase, assembler: Assembler) -> Iterator[tuple[int, Experiment]]:
    for point in case.points:
        kernel = assembler.kernel(point.lines, point.flags, point.setting)
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
    value = verdict.value
    return Fact(
        probe.name, case.subject, verdict.answer, None if value is None else round(value.value, 3),
        None if value is None else round(value.error, 3), probe.unit if value else "", verdict.confidence,
    )  # fmt: skip


def why_none(probe: Probe, isa: str) -> str:
    """Why a probe has no cases on an instruction set, "" where it has some."""
    return probe.why_not.get(isa, "") if not any(True for _ in probe.cases(isa)) else ""


def resolved(facts: Sequence[Fact]) -> int:
    """How many have an answer."""
    return sum(fact.is_resolved for fact in facts)
