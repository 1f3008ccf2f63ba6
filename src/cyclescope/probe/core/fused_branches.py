"""Does a comparison, with the branch that it shares a slot with, take the place of an addition?

Some cores have a unit that compares and branches, besides those that add. A few comparisons with branches
that are not taken stand among additions that keep all units busy, in the places of NOPs. By how much one
addition more per pair lengthens the loop says whether the pairs take the place of one. What counts and
branches writes a register, too: it is asked whether it takes the place of a conditional move, or of a
shift, which fewer units execute. These read what they write, and some core may let additions wait so, too:
where those of one register take as long as the loop, they wait for each other, and units do not limit them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import cycle, islice

from cyclescope.model.facts import COUNTED_AMONG, FUSED_BRANCHES, SHIFT, fused_subject
from cyclescope.probe.code import NUMBERS, SOME, Setting, written
from cyclescope.probe.levels import ADDRESSED_SO, AMONG_OTHERS, places_taken
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
from cyclescope.remarks.probing import NotAsked, UnclearCore

_COMPARISONS: Mapping[str, tuple[str, ...]] = {  # of two pointers that differ, or of one with 0
    "x86-64": ("CMP_39 (R64, R64): p o", "TEST (R64, R64): p p", "CMP (R64, I8): p #0"),
    "aarch64": ("SUBSXrs: z p o #0",),
}
_BRANCH = {"x86-64": "JZ (Rel8): #0", "aarch64": "Bcc: #0 #1"}
_NOP = {"x86-64": "NOP (M32): p +8", "aarch64": "NOP"}
_ADDITION = {"x86-64": "LEA_B_D8 (R64): {} p +8", "aarch64": "ADDXrs: {} p p #0"}
_COUNT, _CONSTANT = "DEC (R64): o", {SHIFT: "#1"}  # others read a pointer
_APART = 64  # bytes between the two pointers


def _cases(isa: str) -> Iterator[ProbeCase]:
    for text in _COMPARISONS.get(isa, ()):
        first, branch = (one.partition(": ")[0] for one in (text, _BRANCH[isa]))
        yield ProbeCase(fused_subject(first, branch), _points(isa, text, _ADDITION[isa]))
    for subject, among in COUNTED_AMONG.items() if isa == "x86-64" else ():
        yield ProbeCase(subject, _points(isa, _COUNT, f"{among}: {{}} {_CONSTANT.get(among, 'p')}"))


def _points(isa: str, text: str, among: str) -> tuple[Point, ...]:
    """An instruction and a branch, and NOPs in their places, among others of one kind."""
    nop, fillers = _NOP[isa], AMONG_OTHERS // ADDRESSED_SO
    return (
        _point(isa, "asked", [text, _BRANCH[isa]], fillers, among),
        _point(isa, "plain", [nop], fillers, among),
        _point(isa, "more", [nop], fillers + 1, among),
        _point(isa, "wider", [nop, nop], fillers, among),
        _point(isa, "waiting", [nop], 1, among.format(SOME[0])),
    )


def _point(isa: str, part: str, asked: list[str], fillers: int, among: str) -> Point:
    """A body of what is asked about, each in front of as many others."""
    others = iter(map(among.format, cycle(SOME)))
    texts = [text for _ in range(ADDRESSED_SO) for text in (*asked, *islice(others, fillers))]
    setting = Setting(pointers=((NUMBERS[isa]["o"], _APART),))
    return parallel(part, *written(isa, *texts), setting=setting, count=ADDRESSED_SO)


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    if (readings.get("plain") - readings.get("waiting")).low <= 0:
        raise Unresolved(UnclearCore.OTHERS_WAIT.of())
    return places_taken(readings, UnclearCore.NOT_UNITS.of())


PROBE = Probe(
    FUSED_BRANCHES,
    "Does a comparison with a branch behind it take the place of an addition?",
    Model.TWO_LEVEL,
    _cases,
    _judge,
    ("AMD, Software Optimization Guide for Family 19h (56665), 2.10", "Agner Fog, microarchitecture"),
    {"riscv64": NotAsked.BRANCHES_COMPARE.of()},
)
