"""What do two CPUs share: how many times as long does code take while the other one runs the same?

Code that keeps one part of a core busy, on one CPU alone and on both. Two threads of one core take twice as
long for what one of them can fill; cores of their own take as long as alone. A chain of additions fills
nothing: where it takes longer as well, the CPUs take turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce

import msgspec

from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.code import DEPENDENT, written
from cyclescope.probe.interval import Interval
from cyclescope.probe.levels import precise
from cyclescope.probe.question import Model, Point, Probe, ProbeCase, ProbeVerdict, Readings, Unresolved
from cyclescope.remarks.probing import Read, Unclear, UnclearPair

LEAST_PASSES = 2  # over all cases
SURELY_LONGER = 1.1  # times: less is within what readings may be off
_TOGETHER, _ALONE = "on both", "alone"
_TARGETS = "abcef"  # registers that nothing reads
_TIMES = 80  # they are in a body: what the end of a loop takes is a cycle or two of fifty and more
_SLOTS, _CHAIN = "slots of the front end", "nothing: a chain of additions"
_ADDERS, _MULTIPLIERS, _VECTORS = "adders", "multipliers", "vector adders"
_LOADS, _STORES = "loads", "stores"
_QUICK = (_MULTIPLIERS, _LOADS, _CHAIN)  # neighbours disturb these least
_TEXTS: Mapping[str, Mapping[str, str]] = {
    "x86-64": {
        _SLOTS: "NOP_90",
        _ADDERS: "LEA_B_I (R64): @ d d",
        _MULTIPLIERS: "IMUL (R64, R64, I8): @ d #3",
        _VECTORS: "CVTDQ2PS (XMM, XMM): @ d",
        _LOADS: "MOV (R64, M64): @ p +8",
        _STORES: "MOV (M64, R64): p d +16",
        _CHAIN: "ADD_01 (R64, R64): a d",
    },
    "aarch64": {
        _SLOTS: "NOP",
        _ADDERS: "ADDXrs: @ d d #0",
        _MULTIPLIERS: "MADDXrrr: @ d d z",
        _VECTORS: "FADDDrr: @ d d",
        _LOADS: "LDRXui: @ p +8",
        _STORES: "STRXui: d p +16",
        _CHAIN: "ADDXrs: a a d #0",
    },
    "riscv64": {
        _SLOTS: "ADDI: z z #0",
        _ADDERS: "ADD: @ d d",
        _MULTIPLIERS: "MUL: @ d d",
        _VECTORS: "FADD_D: @ d d",
        _LOADS: "LD: @ p +8",
        _STORES: "SD: d p +16",
        _CHAIN: "ADD: a a d",
    },
}
"""By what the code keeps busy. Registers and memory are each CPU's own."""


def addition(isa: str) -> str:
    """One that waits for the one before, a cycle each; see `probe.code.written`."""
    return _TEXTS[isa][_CHAIN]


def _cases(isa: str) -> Iterator[ProbeCase]:
    for what, text in _TEXTS.get(isa, {}).items():
        lines = written(isa, *[text.replace("@", target) for target in _TARGETS * _TIMES])
        points = (
            Point(_TOGETHER, lines, flags=DEPENDENT, count=len(lines), beside=lines),
            Point(_ALONE, lines, flags=DEPENDENT, count=len(lines)),
        )
        yield ProbeCase(what, points, what in _QUICK)


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    first, *later = (_ratio(readings, x) for x in readings.places(_ALONE))
    if not all(first.meets(ratio) for ratio in later):
        raise Unresolved(UnclearPair.CHANGED.of(), Read.NEIGHBOURS.of())
    return ProbeVerdict(CoreAnswer.VALUE, reduce(Interval.hull, later, first))


def _ratio(readings: Readings, x: int) -> Interval:
    """How many times as long it takes beside the other, in one of the passes."""
    together, alone = precise(readings.get(_TOGETHER, x)), precise(readings.get(_ALONE, x))
    if alone.low <= 0:
        raise Unresolved(Unclear.NO_TIME_TAKEN.of())
    return Interval(together.low / alone.high, together.high / alone.low)


def _more(case: ProbeCase, readings: Readings) -> Iterator[Point]:
    """Another pass, some seconds later: what a neighbour takes for a while is not what the other CPU takes.

    Two CPUs that share something are the exception, and asked a third time.
    """
    passes = len(readings.places(_ALONE))
    if passes < LEAST_PASSES or (passes == LEAST_PASSES and _ratio(readings, 0).low > SURELY_LONGER):
        for point in case.points[:2]:
            yield msgspec.structs.replace(point, x=passes)


PROBE = Probe(
    "shared-core",
    "What do two CPUs share: how many times as long does code take while the other one runs the same?",
    Model.MATRIX,
    _cases,
    _judge,
    ("Agner Fog, test programs, resource sharing between threads",),
    unit="times",
    more=_more,
    of_pairs=True,
)
