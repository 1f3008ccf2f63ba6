"""Does an instruction need more of the front end, or of the units, for what its address is made of?

A few instances stand among many instructions that need a slot each and nothing else, or among additions
that keep all units busy. If an address with an index, or with the stack pointer, needs more than one with a
base alone, the loop takes longer. By how much one more slot, or addition, per instance lengthens it says
whether they need one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import cycle, islice

from cyclescope.model.facts import (
    ADDRESSING,
    CONSTANT_BITS,
    Addressed,
    More,
    addressed_subject,
    stacked_constant,
)
from cyclescope.probe.code import NUMBERS, SOME, Setting, written
from cyclescope.probe.levels import ADDRESSED_SO, AMONG_OTHERS, places_taken
from cyclescope.probe.question import (
    Model,
    Point,
    Probe,
    ProbeCase,
    ProbeVerdict,
    Readings,
    parallel,
)
from cyclescope.remarks.probing import NotAsked, UnclearCore

_INDEX = "o"
_ISA = "x86-64"
_NOP, _ADDITION = "NOP (M32): p +8", "LEA_B_D8 (R64): {} p +8"
_INDEXED: Mapping[Addressed, str] = {
    Addressed.STORE: "MOV (M64, R64): p a {} +{}",
    Addressed.OPERATION: "CMP (R64, M64): a p {} +{}",
    Addressed.UPDATE: "ADD (M64, R64): p a {} +{}",
}


def _cases(isa: str) -> Iterator[ProbeCase]:
    if isa != _ISA:
        return
    for which, text in _INDEXED.items():
        for more in More:
            subject = addressed_subject(which, more)
            yield _case(subject, more, text.replace("{}", f"*{_INDEX}", 1), text.replace("{}", "", 1))
    for bits in CONSTANT_BITS:
        text = f"MOV (M{bits}, I{min(bits, 32)}): {{}} #7 +{{}}"
        subject = addressed_subject(stacked_constant(bits), More.ADDITIONS)
        yield _case(subject, More.ADDITIONS, text.replace("{}", "s", 1), text.replace("{}", "p", 1))


def _case(subject: str, more: More, asked: str, plain: str) -> ProbeCase:
    """The instructions by both addresses, and by the plain one among more of what is beside them."""
    filler = _NOP if more is More.SLOTS else _ADDITION
    points = [
        _point("asked", asked, filler, AMONG_OTHERS),
        _point("plain", plain, filler, AMONG_OTHERS),
        _point("more", plain, filler, AMONG_OTHERS + ADDRESSED_SO),
    ]
    if more is More.ADDITIONS:
        points.append(_point("wider", plain, filler, AMONG_OTHERS, ADDRESSED_SO))
    return ProbeCase(subject, tuple(points))


def _point(part: str, text: str, filler: str, fillers: int, nops: int = 0) -> Point:
    """A body of what is asked about, each in front of as many others."""
    others = iter(map(filler.format, cycle(SOME)))
    texts = []
    for n in range(ADDRESSED_SO):
        texts += [
            text.format(64 + 8 * n),
            *[_NOP] * (nops // ADDRESSED_SO),
            *islice(others, fillers // ADDRESSED_SO),
        ]
    setting = Setting(numbers=((NUMBERS[_ISA][_INDEX], 0),))
    return parallel(part, *written(_ISA, *texts), setting=setting, count=ADDRESSED_SO)


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    among_units = case.subject.endswith(More.ADDITIONS)
    return places_taken(readings, among_units, UnclearCore.NOT_SLOTS.of())


PROBE = Probe(
    ADDRESSING,
    "Does an instruction need more slots, or units, for what its address is made of?",
    Model.TWO_LEVEL,
    _cases,
    _judge,
    ("AMD, Software Optimization Guide for Family 19h (56665), 2.9.3", "Agner Fog, microarchitecture"),
    dict.fromkeys(("aarch64", "riscv64"), NotAsked.NO_SUCH_STORES.of()),
)
