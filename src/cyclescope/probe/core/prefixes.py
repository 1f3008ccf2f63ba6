"""Which prefixes take time to decode: those that change the length of a constant, and those that say nothing?

The prefix for 16 bits makes a constant shorter, so decoders that have already found the length of the
instruction have to start again. Each case is compared with an instruction of the same length without such a
prefix, in a short loop and in one of more instructions than cores keep decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cyclescope.kernel.kernel import CANARY, LONG
from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.code import PARALLEL, KernelLine, written
from cyclescope.probe.levels import MOST_ERROR
from cyclescope.probe.question import Model, Point, Probe, ProbeCase, ProbeVerdict, Readings, Unresolved
from cyclescope.remarks.probing import NotAsked, Unclear

OVERFLOWING = 8064  # instructions: cores keep up to 6000 decoded, and the code is below 64 000 bytes
ERROR_CYCLES = 0.1  # so large an error may be, however small the value is: a third of what decoding takes
_TARGETS = "abcdBEF"  # registers without a prefix of their own
_ISA = "x86-64"
_ASKED, _BESIDE = "asked", "beside"
IN_SHORT, DECODED_AGAIN = "in a short loop", "decoded each time"


class Prefixed(NamedTuple):
    """Two instructions on a register @, and how many prefixes that say nothing each of them has."""

    subject: str
    asked: str
    beside: str
    prefixes: tuple[int, int] = (0, 0)


_ADD_16 = "ADD (R16, I8): @ #77"  # of four bytes, with the prefix of 16 bits
PREFIXED = (
    Prefixed("ADD of 16 bits, constant of 16", "ADD (R16, I16): @ #4660", _ADD_16, (0, 1)),
    Prefixed("CMP of 16 bits, constant of 16", "CMP (R16, I16): @ #4660", "CMP (R16, I8): @ #77", (0, 1)),
    Prefixed("MOV of 16 bits, constant of 16", "MOV (R16, I16): @ #4660", _ADD_16),
    Prefixed("ADD with four prefixes", "ADD_01 (R32, R32): @ @", "ADD (R32, I32): @ #305419896", (4, 0)),
)


def _cases(isa: str) -> Iterator[ProbeCase]:
    for one in PREFIXED if isa == _ISA else ():
        for where, times in ((IN_SHORT, 1), (DECODED_AGAIN, OVERFLOWING // len(_TARGETS))):
            points = (
                _point(_ASKED, one.asked, one.prefixes[0], times),
                _point(_BESIDE, one.beside, one.prefixes[1], times),
            )
            yield ProbeCase(f"{one.subject}, {where}", points, where == DECODED_AGAIN)


def _point(part: str, text: str, prefixes: int, times: int) -> Point:
    """An instruction on each register, so many times over."""
    lines: tuple[KernelLine, ...] = written(_ISA, *[text.replace("@", target) for target in _TARGETS])
    lines = tuple(line._replace(padding=prefixes) for line in lines) * times
    return Point(part, lines, flags=PARALLEL if times == 1 else CANARY | LONG, count=len(lines))


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    """What readings leave open, also where looks differ: code beyond the first cache comes unsteadily."""
    longer = readings.get(_ASKED) - readings.get(_BESIDE)
    if longer.error > max(MOST_ERROR * abs(longer.value), ERROR_CYCLES):
        raise Unresolved(Unclear.LOOKS_DIFFER.of())
    return ProbeVerdict(CoreAnswer.VALUE, longer)


PROBE = Probe(
    "prefixes",
    "How much longer do prefixes take that change the length of a constant, or that say nothing?",
    Model.MATRIX,
    _cases,
    _judge,
    ("Agner Fog, test programs, length_chg_prefix and decode_prefix",),
    dict.fromkeys(("aarch64", "riscv64"), NotAsked.NO_PREFIXES.of()),
)
