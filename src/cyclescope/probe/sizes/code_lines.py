"""How many instructions does a short loop get from one line of code in a cycle?

Loops of NOPs that begin where a line does: of the shortest NOPs, all in one line, and of longer ones, which
reach into the next. What a trip takes beyond its slots is how the core gets the code of a line. A few that
begin shortly before their line ends tell whether the next one takes a cycle of its own, and those that end
where it does, how many leave time for the loop's end behind them.

Decoded instructions are kept with their constants, for which a line may have no room. So short loops of as
many instructions are asked with more and more of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from cyclescope.isa.table import load_table
from cyclescope.model.behaviour.lines import SPLIT_NOPS, split_loop
from cyclescope.model.facts import (
    BEGUN_LATE,
    CODE_LINES,
    LONGER_NOPS,
    SHORTEST_NOPS,
    WITH_CONSTANTS,
    Constants,
    CoreAnswer,
    begun_late,
    loop_of,
    loop_with,
)
from cyclescope.probe.code import DEPENDENT, NUMBERS, Setting, instruction, written
from cyclescope.probe.layout import Branch, Fill, Item, Label, laid_out
from cyclescope.probe.question import Model, Point, Probe, ProbeCase, ProbeVerdict, Readings

ALIGNED = 64  # bytes: lines of code are no longer, and what runs unrolled begins at a multiple
TRIPS = 1000  # of the loop, so that its wrongly predicted end is a hundredth of a cycle of each
_TRIP = "trip"


class NopLoop(NamedTuple):
    """NOPs from the shortest on; counting: a is 0 and gets f, then less; back while it is not 0; onward."""

    nops: tuple[str, ...]
    begin: str
    less: str
    back: str
    jump: str


_WAYS: Mapping[str, NopLoop] = {
    "x86-64": NopLoop(
        ("NOP_90", "NOP (R64): a"),
        "ADD_01 (R64, R64): a f",
        "DEC (R64): a",
        "JNZ (Rel32): #@",
        "JMP (Rel32): #@",
    ),
    "aarch64": NopLoop(("NOP",), "ADDXrs: a a f #0", "ADDXrs: a a b #0", "CBNZX: a #@", "B: #@"),
    "riscv64": NopLoop(("C_NOP", "ADDI: z z #0"), "ADD: a a f", "ADD: a a b", "BNE: a z #@", "JAL: z #@"),
}


_WITH: Mapping[str, Mapping[Constants, str]] = {
    "x86-64": {
        Constants.ONE: "CMP (R64, I8): h #5",
        Constants.TWO: "CMP (M64, I8): p +8 #5",
        Constants.WIDE: "MOV (R64, I64): b #5",
    }
}


def _cases(isa: str) -> Iterator[ProbeCase]:
    nops = _WAYS[isa].nops if isa in _WAYS else ()
    for nop, counts in zip(nops, (SHORTEST_NOPS, LONGER_NOPS), strict=False):
        for count in counts:
            yield ProbeCase(loop_of(count, _length(isa, nop)), (_loop(isa, [nop] * count),), is_quick=False)
    for nop in nops[:1]:
        late, before = BEGUN_LATE
        point = _loop(isa, [nop] * late, [nop] * ((ALIGNED - before) // _length(isa, nop)))
        yield ProbeCase(begun_late(_length(isa, nop)), (point,), is_quick=False)
    for nop in nops[1:]:
        size = _length(isa, nop)
        for count in SPLIT_NOPS:
            ahead = [nops[0]] * ((ALIGNED - count * size) // _length(isa, nops[0]))
            yield ProbeCase(split_loop(count, size), (_loop(isa, [nop] * count, ahead),), is_quick=False)
    for (what, among), counts in WITH_CONSTANTS.items():
        for count in counts if isa in _WITH else ():
            inside = _with(isa, what, count)
            point = _loop(isa, [*inside, *[nops[0]] * (among - len(inside))])
            yield ProbeCase(loop_with(count, what, among), (point,), is_quick=False)


def _with(isa: str, what: Constants, count: int) -> list[str]:
    """Instructions with so many constants."""
    alone, kind = _WITH[isa][Constants.ONE], _WITH[isa][what]
    return [*[kind] * (count // 2), *[alone] * (count % 2)] if what is Constants.TWO else [kind] * count


@cache
def _length(isa: str, text: str) -> int:
    return len(instruction(load_table(isa), written(isa, text)[0]).code)


def _loop(isa: str, inside: Sequence[str], ahead: Sequence[str] = ()) -> Point:
    """A loop of some instructions; those `ahead` are in front of it in its line."""
    way = _WAYS[isa]
    items: list[Item] = [
        way.begin, Branch(way.jump, _TRIP), Fill(ALIGNED), *ahead, Label(_TRIP), *inside,
        way.less, Branch(way.back, _TRIP), Branch(way.jump, "end"), Fill(ALIGNED), Label("end"),
    ]  # fmt: skip
    registers = {"a": 0, "b": (1 << 64) - 1, "f": TRIPS}
    numbers = tuple((NUMBERS[isa][letter], value) for letter, value in registers.items())
    setting = Setting(numbers, pointers=((NUMBERS[isa]["p"], 0),))
    return Point("asked", laid_out(isa, items), 0, DEPENDENT, setting, TRIPS)


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    return ProbeVerdict(CoreAnswer.VALUE, readings.get("asked"))


PROBE = Probe(
    CODE_LINES,
    "How many instructions does a short loop get from one line of code in a cycle?",
    Model.MATRIX,
    _cases,
    _judge,
    ("Abel and Reineke, uiCA (2022), section 4.1", "Agner Fog, test programs, loop_size"),
)
