"""Which two instructions next to each other share a slot of the front end?

NOPs fill loops so that slots are the limit: more NOPs cost the same in all kernels that are compared. With
only the first of two instructions a loop takes a slot less than with both, with a NOP between them a slot
more. Two adjacent instructions that share a slot take as long as the first alone. Where NOPs share slots
themselves, others fill the loops (`probe.slots`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import NamedTuple

from cyclescope.model.facts import FUSION, CoreAnswer
from cyclescope.probe.code import Setting, written
from cyclescope.probe.interval import Interval
from cyclescope.probe.levels import is_higher, steady
from cyclescope.probe.question import (
    GridPlace,
    Model,
    Point,
    Probe,
    ProbeCase,
    ProbeVerdict,
    Readings,
    Unresolved,
    first_of,
    parallel,
)
from cyclescope.probe.slots import FILLERS as FILLERS_OF
from cyclescope.probe.slots import (
    LIKE,
    among,
    ending,
    fillers_named,
    filling,
    in_turn,
    nops_share,
    rate_of_slots,
    slot_points,
)
from cyclescope.remarks.probing import UnclearCore

_PARTS = ("alone", "together", "apart")
_HALF = 0.5  # of a slot, or of two: what differs by less is as one that takes none
WITH = " + "  # between the two of a subject
FILLERS = (8, 12, 16, 24)  # NOPs behind a pair, even numbers: branches and chains are no limit beside so many
# Others instead, which three units share evenly: so few that a slot more is clear, and beside
# which a chain of additions is no limit where ten slots are in a cycle; by more it is seen that slots are.
OF_OTHERS = (9, 21)
_ELEVEN = Setting(numbers=((0, 11), (1, 0)))  # results with an odd number of bits: no condition holds
_LARGE = Setting(numbers=((0, 1 << 40), (1, 4)))
_GREATER = Setting(numbers=((0, 11), (1, 4)))


class Pairs(NamedTuple):
    """Instructions and those behind them, all with each; `quick` are the latter that matter most."""

    firsts: tuple[str, ...]
    seconds: tuple[str, ...]
    setting: Setting = Setting()
    quick: tuple[str, ...] = ()


_ALL = tuple(f"J{name} (Rel8): #0" for name in ("Z", "B", "BE", "L", "LE", "S", "O", "P"))
_MOST = _ALL[:-1]
_WORK = (
    "ADD_01 (R64, R64): a c", "SUB_29 (R64, R64): a c", "AND_21 (R64, R64): a c", "OR_09 (R64, R64): a c",
    "XOR_31 (R64, R64): a c", "INC (R64): a", "DEC (R64): a", "NEG (R64): a", "NOT (R64): a",
    "ADD (R64, I8): a #3", "SHL (R64, I8): a #3", "IMUL (R64, R64): a c", "CMP_39 (R64, R64): a c",
    "TEST (R64, R64): a c", "LEA_B_D8 (R64): a a +8",
)  # fmt: skip
_PAIRS: Mapping[str, tuple[Pairs, ...]] = {
    "x86-64": (
        Pairs(("CMP_39 (R64, R64): a b", "CMP_39 (R32, R32): a b", "CMP (R64, I8): a #4"), _ALL, _GREATER,
              ("JZ (Rel8): #0", "JB (Rel8): #0", "JL (Rel8): #0", "JS (Rel8): #0")),
        Pairs(("TEST (R64, R64): a a", "AND_21 (R64, R64): a a", "ADD_01 (R64, R64): a b",
               "SUB_29 (R64, R64): a b", "OR_09 (R64, R64): a b", "XOR_31 (R64, R64): a b"), _ALL, _ELEVEN,
              ("JZ (Rel8): #0",)),
        Pairs(("INC (R64): a", "DEC (R64): a"), _MOST, _LARGE, ("JZ (Rel8): #0", "JB (Rel8): #0")),
        Pairs(("NEG (R64): a", "ADC_11 (R64, R64): a b", "CMP (R64, M64): a p +8", "CMP (M64, R64): p a +8",
               "CMP (M64, I8): p +8 #4"), _ALL[:1], _ELEVEN),
        Pairs(("BT (R64, R64): a b",), ("JB (Rel8): #0",), _GREATER),
        Pairs(("MOV_89 (R64, R64): a b",), _WORK, Setting(), _WORK[:2]),
        Pairs(("LEA_B_D8 (R64): a b +8", "MOVZX (R32, R8l): a b"), _WORK[:2]),
        Pairs(("ADD_01 (R64, R64): a c", "LEA_B_D8 (R64): a b +8", "MOV_89 (R64, R64): a b",
               "MOV (R64, M64): a p +8", "MOV (M64, R64): p a +16", "PADDD (XMM, XMM): a b"),
              ("NOP (M32): p +8",)),
    ),
    "aarch64": (
        Pairs(("SUBSXrs: z a b #0", "ANDSXrs: z a a #0", "SUBSXrs: c a b #0", "ADDSXrs: c a b #0",
               "ANDSXrs: c a a #0", "SUBSWrs: z a b #0"), ("Bcc: #0 #1",), Setting(), ("Bcc: #0 #1",)),
        Pairs(("ADDXrs: c a b #0",), ("CBZX: c #1",)),
        Pairs(("MOVZXi: c #7 #0",), ("MOVKXi: c #7 #1", "ADDXrs: c c a #0"), Setting(), ("MOVKXi: c #7 #1",)),
        Pairs(("ORRXrs: c z a #0",), ("ADDXrs: c c b #0", "SUBXrs: c c b #0", "EORXrs: c c b #0")),
    ),
    "riscv64": (
        Pairs(("LUI: c #7",), ("ADDI: c c #7", "ADDIW: c c #7"), Setting(), ("ADDI: c c #7",)),
        Pairs(("AUIPC: c #0",), ("ADDI: c c #7",)),
        Pairs(("SLLI: c a #32",), ("SRLI: c c #32", "ADD: c c b"), Setting(), ("SRLI: c c #32",)),
        Pairs(("ADDI: c a #0",), ("ADD: c c b", "SUB: c c b", "XOR: c c b")),
        Pairs(("SLT: c z a",), ("BEQ: c z #2",)),
    ),
}  # fmt: skip


def _cases(isa: str) -> Iterator[ProbeCase]:
    for pairs in _PAIRS.get(isa, ()):
        for first in pairs.firsts:
            for second in pairs.seconds:
                subject = _subject(first, second)
                points = (p for x in FILLERS for p in _points(isa, first, second, pairs.setting, x))
                place = GridPlace("", _name(first), _name(second))
                yield ProbeCase(subject, (*points, *slot_points(isa)), second in pairs.quick, place)


def _subject(first: str, second: str) -> str:
    return f"{_name(first)}{WITH}{_name(second)}"


def _name(text: str) -> str:
    """An instruction as subjects have it: with the registers, where forms do not say what they are."""
    form, _, operands = text.partition(": ")
    return form if "(" in form else f"{form} {operands}"


def _points(isa: str, first: str, second: str, setting: Setting, x: int, others: str = "") -> Iterator[Point]:
    """The first of two alone, both together, and apart, in front of so many NOPs, or others by their name."""
    one, other = (written(isa, text) for text in (first, second))
    texts = in_turn(fillers_named(isa, others), x + 1) if others else [FILLERS_OF[isa].nop] * (x + 1)
    between, *rest = written(isa, *texts)
    behind = ending(others)
    for part, lines in zip(_PARTS, (one, (*one, *other), (*one, between, *other)), strict=True):
        yield parallel(f"{part}{behind}", *lines, *rest, x=x, setting=setting)


def _more(case: ProbeCase, readings: Readings) -> Iterator[Point]:
    """Others than NOPs, where these share slots."""
    isa, first, second, setting = _of(case)

    def points(others: str) -> Iterator[Point]:
        return (p for x in OF_OTHERS for p in _points(isa, first, second, setting, x, others))

    yield from among(isa, readings, points)


def _of(case: ProbeCase) -> tuple[str, str, str, Setting]:
    """The instruction set of a case, its two texts and what registers hold."""
    return next(
        (isa, first, second, pairs.setting)
        for isa, every in _PAIRS.items()
        for pairs in every
        for first, second in product(pairs.firsts, pairs.seconds)
        if case.subject == _subject(first, second)
    )


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    if nops_share(readings):
        return _among_others(_of(case)[0], readings)
    places = readings.places("apart")
    before = dict(pairwise(places[::-1]))
    return first_of(lambda x: _told(readings, before[x], x), places[1:])


def _among_others(isa: str, readings: Readings) -> ProbeVerdict:
    """Units are no limit where more instructions take as long as slots do without NOPs.

    If anything but slots held a part among few by one slot, more of them would take a slot less.
    """
    others = filling(isa, readings)
    few, many = ([readings.get(f"{part}{ending(others)}", x) for part in _PARTS] for x in OF_OTHERS)
    slots = OF_OTHERS[1] - OF_OTHERS[0]
    costs = [(more - one).scaled(1 / slots) for one, more in zip(few, many, strict=True)]
    slot = rate_of_slots(isa, readings, others, costs[0]).inverse()
    return _verdict(few, OF_OTHERS[0], costs, slot.value, _HALF / slots)


def _told(readings: Readings, fewer: int, x: int) -> ProbeVerdict:
    """What kernels with `x` NOPs say, beside those with fewer."""
    few, some = ([readings.get(part, count) for part in _PARTS] for count in (fewer, x))
    costs = [(more - one).scaled(1 / (x - fewer)) for one, more in zip(few, some, strict=True)]
    return _verdict(some, x, costs, costs[0].value, LIKE)


def _verdict(
    parts: Sequence[Interval], x: int, costs: Sequence[Interval], slot: float, like: float
) -> ProbeVerdict:
    """What the three parts beside `x` others say, if each more takes a slot. Raises Unresolved.

    `like` is of a slot: what differs by more is none. The first takes one itself, unless it shares that of
    the one behind it, which then is alone behind the second.
    """
    alone, together, apart = parts
    if costs[0].low <= 0 or any(abs(one.value - slot) > like * slot for one in costs):
        raise Unresolved(UnclearCore.NOT_SLOTS.of())
    if alone.value < (x + _HALF) * slot:
        raise Unresolved(UnclearCore.NOT_SLOTS.of())
    separate = is_higher(together, alone, (alone + apart).scaled(_HALF))  # of the two slots more
    answer = CoreAnswer.SEPARATE if separate else CoreAnswer.FUSED
    return ProbeVerdict(answer, None, steady(alone, together, apart))


PROBE = Probe(
    FUSION,
    "Which two instructions next to each other share a slot of the front end?",
    Model.TWO_LEVEL,
    _cases,
    _judge,
    ("Agner Fog, test programs, fused_branch", "T. Downs, uarch-bench, fusion"),
    more=_more,
    events=("uops",),
    axis="NOPs beside them",
)
