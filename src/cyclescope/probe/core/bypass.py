"""How much longer does a vector result take to an operation of another kind than to its own?

Two operations in turn on one register, each waiting for the other, beside both in chains of their own: of
integers, of floating-point numbers, shuffles and logic of both kinds. All leave the numbers as they are.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from itertools import combinations

from cyclescope.model.facts import CoreAnswer, consumer_subject
from cyclescope.probe.code import NUMBERS, Setting, written
from cyclescope.probe.levels import steady
from cyclescope.probe.question import (
    GridPlace,
    Model,
    Probe,
    ProbeCase,
    ProbeVerdict,
    Readings,
    Unresolved,
    parallel,
)
from cyclescope.remarks.probing import NotAsked, Unclear

_BOTH = "in turn"
# Each works on a; c holds ones of floating point, d of integers, b zeros.
_KINDS: Mapping[str, Mapping[str, str]] = {
    "x86-64": {
        "PADDD": "PADDD (XMM, XMM): a b",
        "PMULLD": "PMULLD (XMM, XMM): a d",
        "POR": "POR (XMM, XMM): a b",
        "PSHUFD": "PSHUFD (XMM, XMM, I8): a a #228",
        "ORPS": "ORPS (XMM, XMM): a b",
        "SHUFPS": "SHUFPS (XMM, XMM, I8): a a #228",
        "MAXPS": "MAXPS (XMM, XMM): a b",
        "MULPS": "MULPS (XMM, XMM): a c",
    },
    "aarch64": {
        "ADD": "ADDv4i32: a a b",
        "MUL": "MULv4i32: a a d",
        "ORR": "ORRv16i8: a a b",
        "EXT": "EXTv16i8: a a a #0",
        "FMAX": "FMAXv4f32: a a b",
        "FMUL": "FMULv4f32: a a c",
    },
}
_QUICK = frozenset({"PADDD", "PSHUFD", "MULPS", "ORPS", "ADD", "EXT", "FMUL", "ORR"})
_VALUES: Mapping[str, bytes] = {
    "a": struct.pack("<f", 1.0), "b": bytes(4), "c": struct.pack("<f", 1.0), "d": struct.pack("<I", 1),
}  # fmt: skip
_REGISTER = 64  # bytes


def _cases(isa: str) -> Iterator[ProbeCase]:
    kinds = _KINDS.get(isa, {})
    numbers = NUMBERS.get(isa, {})
    setting = Setting(
        vectors=tuple(
            (numbers[letter], value * (_REGISTER // len(value)))
            for letter, value in _VALUES.items()
            if letter in numbers
        )
    )
    for first, second in combinations(kinds, 2):
        one, other = (written(isa, kinds[name]) for name in (first, second))
        points = (
            parallel("first", *one, setting=setting),
            parallel("second", *other, setting=setting),
            parallel(_BOTH, *one, *other, setting=setting),
        )
        place = GridPlace("", first, second)
        yield ProbeCase(consumer_subject(first, second), points, {first, second} <= _QUICK, place)


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    longer = readings.get(_BOTH) - (readings.get("first") + readings.get("second"))
    if not steady(longer):
        raise Unresolved(Unclear.LOOKS_DIFFER.of())
    return ProbeVerdict(CoreAnswer.VALUE, longer)


PROBE = Probe(
    "bypass",
    "How much longer do two vector operations of other kinds take in turn than in chains of their own?",
    Model.MATRIX,
    _cases,
    _judge,
    ("Agner Fog, test programs, exec_domain",),
    {"riscv64": NotAsked.OWN_REGISTERS.of()},
)
