"""How long does a line take from one core to another?

Both CPUs wait until the other one has written to the same line, and write to it themselves: each time the
line goes there and back. A CPU that waits in vain goes on after a while, so that nothing hangs if the other
one is stopped; how long that takes is asked without the other one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cyclescope.kernel.state import FIRST_WINDOW, MET_BASE
from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.code import DEPENDENT, NUMBERS, Setting
from cyclescope.probe.layout import Branch, Item, Label, laid_out
from cyclescope.probe.question import Model, Point, Probe, ProbeCase, ProbeVerdict, Readings, Unresolved
from cyclescope.remarks.probing import Read, Unclear, UnclearPair

MOST_WAITS = 16384  # looks at the line, of a cycle at least: several times as long as any line takes
IN_VAIN = 0.5  # of the time without an answer: what takes longer was not always answered
DRIFT = 0.34  # of what a line takes: medians of a day on a Zen 5 of a cloud were 108 to 215 cycles
MOST_APART = 0.5  # of it: more would not tell neighbours from other packages
_HANDED, _ALONE = "there and back", "without an answer"
_SUBJECT = "a line from one to the other"


class Waiting(NamedTuple):
    """Wait until what o points to is not b, then b is one more than it, and what it becomes.

    `begin` sets the looks that are left, c, to f; then a look, a branch to what follows where it sees another
    number, c less one, and a branch back while it is not 0. e is -1, g is 1.
    """

    begin: str
    looks: tuple[str, ...]
    met: str
    less: str
    back: str
    answer: tuple[str, ...]


_WAYS: Mapping[str, Waiting] = {
    "x86-64": Waiting(
        "MOV_89 (R64, R64): c f", ("CMP (R64, M64): b o",), "JNZ (Rel8): #@", "DEC (R64): c",
        "JNZ (Rel8): #@", ("MOV (R64, M64): b o", "INC (R64): b", "MOV (M64, R64): o b"),
    ),
    "aarch64": Waiting(
        "ADDXrs: c f z #0", ("LDRXui: a o", "SUBXrs: d a b #0"), "CBNZX: d #@", "ADDXrs: c c e #0",
        "CBNZX: c #@", ("ADDXrs: b a g #0", "STRXui: b o"),
    ),
    "riscv64": Waiting(
        "ADD: c f z", ("LD: a o",), "BNE: a b #@", "ADD: c c e", "BNE: c z #@", ("ADD: b a g", "SD: b o"),
    ),
}  # fmt: skip


def _cases(isa: str) -> Iterator[ProbeCase]:
    if isa not in _WAYS:
        return
    way, numbers = _WAYS[isa], NUMBERS[isa]
    look: list[Item] = [Label("wait"), *way.looks, Branch(way.met, "met"), way.less, Branch(way.back, "wait")]
    lines = laid_out(isa, [way.begin, *look, Label("met"), *way.answer])
    registers = {"b": 0, "e": (1 << 64) - 1, "f": MOST_WAITS, "g": 1}
    setting = Setting(
        numbers=tuple((numbers[letter], value) for letter, value in registers.items()),
        pointers=((numbers["o"], MET_BASE - FIRST_WINDOW),),
    )
    handed = Point(_HANDED, lines, flags=DEPENDENT, setting=setting, beside=lines, varies=True)
    yield ProbeCase(_SUBJECT, (handed, Point(_ALONE, lines, flags=DEPENDENT, setting=setting)))


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    alone, handed = readings.get(_ALONE), readings.get(_HANDED)
    if handed.high > IN_VAIN * alone.low:
        raise Unresolved(UnclearPair.NO_ANSWER.of())
    if handed.error > MOST_APART * handed.value:
        detail = Read.RANGE.of(max(handed.low, 0) / 2, handed.high / 2)
        raise Unresolved(Unclear.LOOKS_DIFFER.of(), detail)
    return ProbeVerdict(CoreAnswer.VALUE, handed.with_error(DRIFT).scaled(0.5))


PROBE = Probe(
    "core-to-core",
    "How long does a line take from one CPU to another?",
    Model.MATRIX,
    _cases,
    _judge,
    ("core-to-core-latency, nviennot", "Agner Fog, test programs, multi-threaded tests"),
    of_pairs=True,
)
