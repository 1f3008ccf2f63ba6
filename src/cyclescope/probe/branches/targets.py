"""How many jumps does the core know the targets of, and what does a jump take that it knows?

Jumps that are always taken, each to the next, so many bytes apart: those whose targets it knows take the
same, whatever their number, and others longer. What ends at the same number of jumps whether they are near to
each other or far away is no cache of code, which would end at the same number of bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cyclescope.model.facts import CACHE_LEVELS, CoreAnswer
from cyclescope.probe.code import KernelLine
from cyclescope.probe.interval import Interval
from cyclescope.probe.layout import ALONE_IN_LOOP, Branch, Fill, Item, Label, laid_out
from cyclescope.probe.plateaus import WALKED, level_end, numbered_level, steady_places
from cyclescope.probe.question import (
    CYCLES,
    Model,
    Point,
    Probe,
    ProbeCase,
    ProbeVerdict,
    Readings,
    Unresolved,
    parallel,
)
from cyclescope.remarks.probing import UnclearBranches

JUMP_SPACINGS = (8, 16, 32)  # bytes from one jump to the next: each twice the one before
LEAST_JUMPS = 16
MOST_BYTES = 64000  # of a kernel
PER_DOUBLING = 2  # numbers that are asked first
SAME_NUMBER = 0.1  # of a number that two spacings show: they differ by less
SAME_TIME = 0.06  # of what a jump takes
_PARTS = 16  # of a number, in which its end is looked for
_JUMPS, _EACH = "jumps", "each"
_WAYS: Mapping[str, tuple[str, str]] = {
    "x86-64": ("JMP (Rel32): #@", "NOP"),
    "aarch64": ("B: #@", "NOP"),
    "riscv64": ("JAL: z #@", "ADDI: z z #0"),
}


def _cases(isa: str) -> Iterator[ProbeCase]:
    points = [jumps(isa, spacing, n) for spacing in JUMP_SPACINGS if isa in _WAYS for n in counts(spacing)]
    for level in CACHE_LEVELS[:2] if points else ():
        for what in (_JUMPS, _EACH):
            yield ProbeCase(f"{level} level, {what}", tuple(points), level == CACHE_LEVELS[0])


def counts(spacing: int) -> list[int]:
    """Numbers of jumps so far apart that are asked first."""
    every = [round(LEAST_JUMPS * 2 ** (n / PER_DOUBLING)) for n in range(PER_DOUBLING * 12)]
    return [n for n in every if n * spacing <= MOST_BYTES]


def jumps(isa: str, spacing: int, count: int) -> Point:
    """So many jumps, the last over what makes the body long enough to be the only one in its loop."""
    jump, nop = _WAYS[isa]
    items: list[Item] = []
    for number in range(count - 1):
        items += [Branch(jump, str(number + 1)), Fill(spacing), Label(str(number + 1))]
    items += [Branch(jump, "end"), *[nop] * ALONE_IN_LOOP, Label("end")]
    lines: tuple[KernelLine, ...] = laid_out(isa, items)
    return parallel(_part(spacing), *lines, x=count, count=count)


def _part(spacing: int) -> str:
    return f"{spacing} bytes apart"


def apart(readings: Readings, spacing: int) -> Readings:
    """Readings of one spacing, as those of a walk."""
    part = _part(spacing)
    found = {(WALKED, place): readings.get(part, place) for place in readings.places(part)}
    return Readings(found, {})


def _number(case: ProbeCase) -> int:
    return CACHE_LEVELS.index(case.subject.partition(" ")[0])


def _shown(case: ProbeCase, readings: Readings, spacing: int) -> tuple[Interval, Interval]:
    """How many jumps a level has by one spacing, and what each takes. Raises Unresolved."""
    own = apart(readings, spacing)
    level = numbered_level(own, _number(case))
    return Interval(level.places[-1], level_end(level, own) - 1), level.cycles


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    """What two distances agree on."""
    shown: list[tuple[Interval, Interval]] = []
    for spacing in JUMP_SPACINGS:
        try:
            found = _shown(case, readings, spacing)
        except Unresolved:
            continue
        for number, each in shown:
            if _agree(number, found[0], SAME_NUMBER) and _agree(each, found[1], SAME_TIME):
                return _verdict(case, number.hull(found[0]), each.hull(found[1]))
        shown.append(found)
    if len(shown) < 2:
        raise Unresolved(UnclearBranches.NO_DISTANCES.of())
    raise Unresolved(UnclearBranches.DISTANCES_DIFFER.of())


def _agree(one: Interval, other: Interval, most: float) -> bool:
    return abs(one.value - other.value) <= most * min(one.value, other.value)


def _verdict(case: ProbeCase, number: Interval, each: Interval) -> ProbeVerdict:
    if case.subject.endswith(_EACH):
        return ProbeVerdict(CoreAnswer.VALUE, each, unit=CYCLES)
    return ProbeVerdict(CoreAnswer.VALUE, number)


def _more(case: ProbeCase, readings: Readings) -> Iterator[Point]:
    """Numbers between the last of a level and the next, at every distance."""
    form = case.points[0].lines[0].form
    isa = next(isa for isa, (jump, _) in _WAYS.items() if form == jump.partition(":")[0])
    for spacing in JUMP_SPACINGS if case.subject.endswith(_JUMPS) else ():
        for count in between(apart(readings, spacing), case):
            yield jumps(isa, spacing, count)


def between(own: Readings, case: ProbeCase) -> Iterator[int]:
    """Numbers between the last of a case's level and the next that is surely known."""
    try:
        last = numbered_level(own, _number(case)).places[-1]
    except Unresolved:
        return
    after = next((place for place in steady_places(own) if place > last), None)
    if after is not None:
        yield from range(last + max(last // _PARTS, 1), after, max(last // _PARTS, 1))


PROBE = Probe(
    "branch-targets",
    "How many jumps does the core know the targets of, and what does a jump take that it knows?",
    Model.PLATEAU,
    _cases,
    _judge,
    ("Agner Fog, test programs, jmp", "H. Wong, The microarchitecture of branch target buffers"),
    unit="jumps",
    more=_more,
)
