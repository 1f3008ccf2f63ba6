"""How many instructions does a cycle take that wait for nothing, by what they are and how long they are?

NOPs of one length each, and NOPs alternating with instructions of several units, in loops that are kept
decoded. A loop that is as fast with one NOP after each instruction as with three is limited neither by a
unit nor by NOPs that share a slot: its rate is the width. Where NOPs share slots, mixes without them tell
(`probe.slots`).
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
from cyclescope.probe.slots import (
    among,
    are_same,
    filling,
    hull,
    nops_share,
    rate_of_slots,
    slot_points,
)
from cyclescope.remarks.probing import UnclearCore

ANY_KIND = "of any kind"
NOPS_BEHIND = ", NOPs "
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
        size = len(instruction(load_table(isa), lines[0]).code)
        yield ProbeCase(f"NOPs of {size} bytes" if size > 1 else "NOPs of 1 byte", (_point("NOPs", lines),))
    points = {(name, nops): _behind(isa, way, name, nops) for name in way.beside for nops in (_ONE, _THREE)}
    for name in way.beside:
        yield ProbeCase(f"NOPs and {name}", (points[name, _ONE],))
    yield ProbeCase(ANY_KIND, (*points.values(), *slot_points(isa)))


def _behind(isa: str, way: Mixes, name: str, nops: int) -> Point:
    """A mix with so many NOPs behind each instruction."""
    return _point(f"{name}{NOPS_BEHIND}{nops}", _mixed(isa, way.filler, way.beside[name], nops))


def _first(isa: str, way: Mixes) -> Point:
    return _behind(isa, way, next(iter(way.beside)), _ONE)


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


def _isa_of(case: ProbeCase) -> str:
    """The instruction set of the case of any kind."""
    return next(isa for isa, way in _WAYS.items() if case.points[0] == _first(isa, way))


def _more(case: ProbeCase, readings: Readings) -> Iterator[Point]:
    """What else fills slots, where NOPs share them."""
    if case.subject == ANY_KIND:
        yield from among(_isa_of(case), readings, lambda _: ())


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    if case.subject != ANY_KIND:
        return ProbeVerdict(CoreAnswer.VALUE, rate(readings.get(case.points[0].part)))
    if nops_share(readings):
        isa = _isa_of(case)
        return ProbeVerdict(CoreAnswer.VALUE, rate_of_slots(isa, readings, filling(isa, readings)))
    rates = [rate(readings.get(point.part)) for point in case.points if NOPS_BEHIND in point.part]
    return ProbeVerdict(CoreAnswer.VALUE, _width(list(zip(rates[::2], rates[1::2], strict=True))))


def _width(pairs: Sequence[tuple[Interval, Interval]]) -> Interval:
    """What mixes take with one NOP behind each as with three; all of those agree. Raises Unresolved."""
    same = [one for pair in pairs if are_same(*pair) for one in pair]
    if not same:
        raise Unresolved(UnclearCore.UNITS_LIMIT.of())
    if not all(are_same(same[0], other) for other in same):
        raise Unresolved(UnclearCore.OTHER_RATES.of())
    return hull(same)


PROBE = Probe(
    "dispatch",
    "How many instructions does a cycle take that wait for nothing, by what they are and how long they are?",
    Model.RATIO,
    _cases,
    _judge,
    ("Agner Fog, test programs, decode_nops and mixed_throughput",),
    unit="per cycle",
    more=_more,
)
