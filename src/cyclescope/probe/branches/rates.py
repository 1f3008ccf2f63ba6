"""How many branches does a cycle take that are predicted, taken or not, by how far they are apart?

Kernels are in a loop, whose own branch is taken: it is beside those that are asked about, or takes a cycle of
its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.branches.targets import jumps
from cyclescope.probe.code import written
from cyclescope.probe.interval import Interval
from cyclescope.probe.layout import ALONE_IN_LOOP
from cyclescope.probe.levels import rate
from cyclescope.probe.question import Model, Point, Probe, ProbeCase, ProbeVerdict, Readings, parallel

TAKEN_SPACINGS = (8, 16, 32, 64)  # bytes from one taken jump to the next
TAKEN_JUMPS = 64  # jumps: cores know the targets of more
_STRAIGHT = 16  # branches of a body that are not taken
_LOOPS_OWN = 2  # of them in the time of the loop's own branch, which is taken
# A branch that is not taken, and what is between two of them.
_WAYS: Mapping[str, tuple[str, str]] = {
    "x86-64": ("JZ (Rel8): #0", "LEA_B_D32 (R64): c d"),
    "aarch64": ("CBZX: d #1", "ADDXrs: c d d #0"),
    "riscv64": ("BEQ: d z #2", "ADD: c d d"),
}


def _cases(isa: str) -> Iterator[ProbeCase]:
    if isa not in _WAYS:
        return
    branch, other = _WAYS[isa]
    yield ProbeCase("not taken", (_straight(isa, [branch]),))
    yield ProbeCase("not taken, with another instruction behind each", (_straight(isa, [branch, other]),))
    for spacing in TAKEN_SPACINGS:
        point = jumps(isa, spacing, TAKEN_JUMPS)
        yield ProbeCase(f"taken, {spacing} bytes apart", (point,))


def _straight(isa: str, texts: list[str]) -> Point:
    return parallel("branches", *written(isa, *texts * _STRAIGHT), count=_STRAIGHT)


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    (point,) = case.points
    return ProbeVerdict(CoreAnswer.VALUE, rate(_without_the_loop(point, readings.get(point.part, point.x))))


def _without_the_loop(point: Point, taken: Interval) -> Interval:
    """What branches take, with what the loop's own one may be of that."""
    bodies = max(ALONE_IN_LOOP // len(point.lines), 1)
    least = taken.low * (1 - _LOOPS_OWN / (point.count * bodies))
    return Interval(least, taken.high, taken.is_steady)


PROBE = Probe(
    "branch-rates",
    "How many branches does a cycle take that are predicted, taken or not?",
    Model.RATIO,
    _cases,
    _judge,
    ("Agner Fog, test programs, jmp",),
    unit="per cycle",
)
