"""How many instructions does a cycle take that wait for nothing, by what they are and how long they are?

NOPs of one length each, and NOPs alternating with instructions of several units, in loops that are kept
decoded. A loop that is as fast with one NOP after each instruction as with three is limited neither by a
unit nor by NOPs that share a slot: its rate is the width.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from cyclescope.isa.table import load_table
from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.code import SOME, KernelLine, instruction, written
from cyclescope.probe.interval import Interval
from cyclescope.probe.levels import rate
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

ANY_KIND = "of any kind"
SAME_RATE = 0.03  # of a rate that mixes with one and three NOPs show: they differ by less
_ONE, _THREE = 1, 3  # NOPs behind each instruction
_TARGETS = "abcefgh"  # registers that nothing reads
_TIMES = 4  # a mix in a body


class NopLength(NamedTuple):
    """A NOP by its text, and how many prefixes that say nothing it has."""

    text: str
    prefixes: int = 0


class Mixes(NamedTuple):
    """NOPs of every length, one to fill with, and texts of units that run beside it, with @ for a target."""

    nops: tuple[NopLength, ...]
    filler: str
    beside: Mapping[str, tuple[str, ...]]


_X86_NOPS = (
    NopLength("NOP"), NopLength("NOP_90"), NopLength("NOP_90", 1), NopLength("NOP (R64): a"),
    *(NopLength("NOP (M64): p +64", prefixes) for prefixes in range(8)),
)  # fmt: skip
_WAYS: Mapping[str, Mixes] = {
    "x86-64": Mixes(
        _X86_NOPS,
        "NOP (M64): p +64",
        {
            "additions": ("LEA_B_D32 (R64): @ d",),
            "vector additions": ("VPADDD (XMM, XMM, XMM): @ d d",),
            "additions, loads and vector additions": (
                "LEA_B_D32 (R64): @ d", "MOV (R64, M64): @ p +8", "VPADDD (XMM, XMM, XMM): @ d d",
            ),
        },
    ),
    "aarch64": Mixes(
        (NopLength("NOP"),),
        "NOP",
        {
            "additions": ("ADDXrs: @ d d #0",),
            "vector additions": ("FADDDrr: @ d d",),
            "additions, loads and vector additions": ("ADDXrs: @ d d #0", "LDRXui: @ p +8", "FADDDrr: @ d d"),
        },
    ),
    "riscv64": Mixes(
        (NopLength("C_NOP"), NopLength("ADDI: z z #0")),
        "ADDI: z z #0",
        {
            "additions": ("ADD: @ d d",),
            "additions of doubles": ("FADD_D: @ d d",),
            "additions, loads and additions of doubles": ("ADD: @ d d", "LD: @ p +8", "FADD_D: @ d d"),
        },
    ),
}  # fmt: skip


def _cases(isa: str) -> Iterator[ProbeCase]:
    if isa not in _WAYS:
        return
    way = _WAYS[isa]
    for nop in way.nops:
        lines = _nops(isa, nop)
        size = len(instruction(load_table(isa), lines[0]).code())
        yield ProbeCase(f"NOPs of {size} bytes" if size > 1 else "NOPs of 1 byte", (_point("NOPs", lines),))
    points = {
        (name, nops): _point(f"{name}, NOPs {nops}", _mixed(isa, way.filler, texts, nops))
        for name, texts in way.beside.items()
        for nops in (_ONE, _THREE)
    }
    for name in way.beside:
        yield ProbeCase(f"NOPs and {name}", (points[name, _ONE],))
    yield ProbeCase(ANY_KIND, tuple(points.values()))


def _nops(isa: str, nop: NopLength) -> tuple[KernelLine, ...]:
    return tuple(line._replace(padding=nop.prefixes) for line in written(isa, nop.text) * len(SOME))


def _mixed(isa: str, filler: str, texts: Sequence[str], nops: int) -> tuple[KernelLine, ...]:
    """So many NOPs behind every other instruction."""
    count = len(_TARGETS) * _TIMES // len(texts) * len(texts)
    found = []
    for number in range(count):
        target = _TARGETS[number % len(_TARGETS)]
        found += [texts[number % len(texts)].replace("@", target), *[filler] * nops]
    return written(isa, *found)


def _point(part: str, lines: tuple[KernelLine, ...]) -> Point:
    return parallel(part, *lines, count=len(lines))


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    rates = [rate(readings.get(point.part)) for point in case.points]
    if case.subject != ANY_KIND:
        return ProbeVerdict(CoreAnswer.VALUE, rates[0])
    return ProbeVerdict(CoreAnswer.VALUE, _width(list(zip(rates[::2], rates[1::2], strict=True))))


def _width(pairs: Sequence[tuple[Interval, Interval]]) -> Interval:
    """What mixes take with one NOP behind each as with three; all of those agree. Raises Unresolved."""
    same = [one for pair in pairs if _is_same(*pair) for one in pair]
    if not same:
        raise Unresolved(UnclearCore.UNITS_LIMIT.of())
    if not all(_is_same(same[0], other) for other in same):
        raise Unresolved(UnclearCore.OTHER_RATES.of())
    steady = all(one.is_steady for one in same)
    return Interval(min(one.low for one in same), max(one.high for one in same), steady)


def _is_same(one: Interval, other: Interval) -> bool:
    return abs(one.value - other.value) <= SAME_RATE * min(one.value, other.value)


PROBE = Probe(
    "dispatch",
    "How many instructions does a cycle take that wait for nothing, by what they are and how long they are?",
    Model.RATIO,
    _cases,
    _judge,
    ("Agner Fog, test programs, decode_nops and mixed_throughput",),
    unit="per cycle",
)
