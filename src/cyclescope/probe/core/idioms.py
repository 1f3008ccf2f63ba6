"""Which instructions with one register for all their sources need no execution unit?

A few instances of the candidate stand among ordinary instances, so many that their ports are the limit. If
the candidate is executed, it is as slow as more ordinary instances would be; if not, as fast as NOPs. On
some cores it is neither, since the renamer has a limit of its own: there it needs no unit if candidates
alone are clearly faster than ordinary instances alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from cyclescope.model.facts import ZERO_IDIOMS, CoreAnswer
from cyclescope.probe.code import MORE, SOME, KernelLine, written
from cyclescope.probe.core.breaking import GROUPS, Group, lines
from cyclescope.probe.levels import is_higher, steady
from cyclescope.probe.question import (
    Model,
    Point,
    Probe,
    ProbeCase,
    ProbeVerdict,
    Readings,
    Unresolved,
    parallel,
)
from cyclescope.remarks.probing import UnclearCore

_CLEARLY = 0.8  # of what ordinary instances take: five ports for four would be as much, which no idiom gets
_NOPS = {"x86-64": "NOP", "aarch64": "NOP", "riscv64": "ADDI: z z #0"}
_BUSY, _SOURCE, _FEW = SOME + MORE[:2], MORE[2], MORE[3:]  # registers: of ordinary ones, source, candidates


def _cases(isa: str) -> Iterator[ProbeCase]:
    for group in GROUPS.get(isa, ()):
        for form in group.forms:
            yield ProbeCase(form, tuple(_points(isa, group, form)), form in group.quick)


def _points(isa: str, group: Group, form: str) -> Iterator[Point]:
    few = {
        "idle": [written(isa, _NOPS[isa])] * len(_FEW),
        "asked": [lines(isa, f"{form}: {group.alone}", name, name) for name in _FEW],
        "busy": [lines(isa, f"{form}: {group.apart}", name, _SOURCE) for name in _FEW],
    }
    ordinary = [lines(isa, f"{form}: {group.apart}", name, _SOURCE) for name in _BUSY]
    for part, candidates in few.items():
        yield parallel(part, *_spread(ordinary, candidates))
    alone = [lines(isa, f"{form}: {group.alone}", name, name) for name in _BUSY]
    for part, candidates in (("alone", alone), ("ordinary", ordinary)):
        yield parallel(part, *(line for one in candidates for line in one))


def _spread(many: list[tuple[KernelLine, ...]], few: list[tuple[KernelLine, ...]]) -> Iterator[KernelLine]:
    """The few evenly among the many."""
    step = len(many) // len(few)
    for number, one in enumerate(many):
        yield from one
        if number % step == step - 1 and number // step < len(few):
            yield from few[number // step]


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    idle, asked, busy = (readings.get(part) for part in ("idle", "asked", "busy"))
    alone, ordinary = readings.get("alone"), readings.get("ordinary")
    try:
        answer = CoreAnswer.EXECUTED if is_higher(asked, idle, busy) else CoreAnswer.ZERO
    except Unresolved:
        no_limit = busy.low <= ordinary.high  # ports are none: chains of the instances themselves are
        if no_limit or alone.high > _CLEARLY * ordinary.low or asked.high > busy.low:
            raise
        return ProbeVerdict(CoreAnswer.ZERO, None, steady(asked, busy, alone, ordinary))
    if answer is CoreAnswer.EXECUTED and idle.low > ordinary.high:
        raise Unresolved(UnclearCore.NOPS_TAKE_TIME.of())
    slots = alone.high * (len(_BUSY) + len(_FEW)) / len(_BUSY)  # what so many take at most, if these limit
    if answer is CoreAnswer.EXECUTED and alone.high < ordinary.low and slots >= asked.low:
        raise Unresolved(UnclearCore.ORDINARY_WAIT.of())
    return ProbeVerdict(answer, None, steady(idle, asked, busy))


PROBE = Probe(
    ZERO_IDIOMS,
    "Which instructions whose sources are one register need no execution unit?",
    Model.TWO_LEVEL,
    _cases,
    _judge,
    ("Agner Fog, test programs, xor", "LLVM, IsZeroIdiomFunction of the scheduling models"),
)
