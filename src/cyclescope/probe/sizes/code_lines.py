"""How many instructions does a short loop get from one line of code in a cycle?

Loops of NOPs that begin where a line does: of the shortest NOPs, all in one line, and of longer ones, which
reach into the next. What a trip takes beyond its slots is how the core gets the code of a line. A few that
begin shortly before their line ends tell whether the next one takes a cycle of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from cyclescope.isa.table import load_table
from cyclescope.model.facts import (
    BEGUN_LATE,
    CODE_LINES,
    LONGER_NOPS,
    SHORTEST_NOPS,
    CoreAnswer,
    begun_late,
    loop_of,
)
from cyclescope.probe.code import CHAIN, NUMBERS, Setting, instruction, written
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


def _cases(isa: str) -> Iterator[ProbeCase]:
    nops = _WAYS[isa].nops if isa in _WAYS else ()
    for nop, counts in zip(nops, (SHORTEST_NOPS, LONGER_NOPS), strict=False):
        for count in counts:
            yield ProbeCase(loop_of(count, _length(isa, nop)), (_loop(isa, nop, count),), is_quick=False)
    for nop in nops[:1]:
        late, before = BEGUN_LATE
        point = _loop(isa, nop, late, ahead=(ALIGNED - before) // _length(isa, nop))
        yield ProbeCase(begun_late(_length(isa, nop)), (point,), is_quick=False)


@cache
def _length(isa: str, text: str) -> int:
    return len(instruction(load_table(isa), written(isa, text)[0]).code())


def _loop(isa: str, nop: str, count: int, ahead: int = 0) -> Point:
    """A loop of so many NOPs, `ahead` others of which are in front of it in its line."""
    way = _WAYS[isa]
    items: list[Item] = [
        way.begin, Branch(way.jump, _TRIP), Fill(ALIGNED), *[nop] * ahead, Label(_TRIP), *[nop] * count,
        way.less, Branch(way.back, _TRIP), Branch(way.jump, "end"), Fill(ALIGNED), Label("end"),
    ]  # fmt: skip
    registers = {"a": 0, "b": (1 << 64) - 1, "f": TRIPS}
    setting = Setting(numbers=tuple((NUMBERS[isa][letter], value) for letter, value in registers.items()))
    return Point("asked", laid_out(isa, items), 0, CHAIN, setting, TRIPS)


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
