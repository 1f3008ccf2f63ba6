"""How much longer do operations take with subnormal numbers, infinities and NaNs?

The same operation side by side, into registers that nothing waits for, with operands of a kind and with plain
ones. Some cores take an assist of a hundred cycles where an operand or a result is subnormal.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.code import NUMBERS, PARALLEL, Setting, written
from cyclescope.probe.levels import steady
from cyclescope.probe.question import Model, Point, Probe, ProbeCase, ProbeVerdict, Readings, Unresolved
from cyclescope.remarks.probing import Unclear

_TARGETS = "efghABCD"  # registers that nothing reads
_ASKED, _PLAIN = "asked", "plain"


class SpecialOperands(NamedTuple):
    """Two operands as bits of doubles: `one` is that of operations with a single one."""

    one: int
    other: int


def _bits(value: float) -> int:
    (found,) = struct.unpack("<Q", struct.pack("<d", value))
    return int(found)


_ORDINARY = SpecialOperands(_bits(1.7), _bits(1.3))
_TINY = 3e-308  # the least normal doubles: a product with a half, or a difference, is subnormal
KINDS: Mapping[str, SpecialOperands] = {
    "subnormal operand": SpecialOperands(_bits(3e-310), _bits(1.3)),
    "subnormal result": SpecialOperands(_bits(_TINY), _bits(0.1)),
    "infinity": SpecialOperands(_bits(float("inf")), _bits(1.3)),
    "NaN": SpecialOperands(0x7FF8000000000001, _bits(1.3)),
    "zero": SpecialOperands(0, _bits(1.3)),
}
_SETUP: Mapping[str, tuple[str, str]] = {
    "x86-64": ("VMOVQ (XMM, R64): a a", "VMOVQ (XMM, R64): b b"),
    "aarch64": ("FMOVXDr: a a", "FMOVXDr: b b"),
    "riscv64": ("FMV_D_X: a a", "FMV_D_X: b b"),
}
_OPERATIONS: Mapping[str, Mapping[str, str]] = {
    "x86-64": {
        "addition": "VADDSD (XMM, XMM, XMM): @ a b",
        "multiplication": "VMULSD (XMM, XMM, XMM): @ a b",
        "division": "VDIVSD (XMM, XMM, XMM): @ a b",
        "square root": "VSQRTSD (XMM, XMM, XMM): @ a a",
    },
    "aarch64": {
        "addition": "FADDDrr: @ a b",
        "multiplication": "FMULDrr: @ a b",
        "division": "FDIVDrr: @ a b",
        "square root": "FSQRTDr: @ a",
    },
    "riscv64": {
        "addition": "FADD_D: @ a b",
        "multiplication": "FMUL_D: @ a b",
        "division": "FDIV_D: @ a b",
        "square root": "FSQRT_D: @ a",
    },
}
_SMALL_RESULT = {"multiplication"}  # what of these kinds has a subnormal result from operands that are not


def _cases(isa: str) -> Iterator[ProbeCase]:
    for name, text in _OPERATIONS.get(isa, {}).items():
        for kind, operands in KINDS.items():
            if kind != "subnormal result" or name in _SMALL_RESULT:
                points = (_point(isa, _ASKED, text, operands), _point(isa, _PLAIN, text, _ORDINARY))
                yield ProbeCase(f"{name}, {kind}", points, kind.startswith("subnormal"))


def _point(isa: str, part: str, text: str, operands: SpecialOperands) -> Point:
    lines = written(isa, *[text.replace("@", target) for target in _TARGETS])
    registers = [NUMBERS[isa][letter] for letter in "ab"]
    setting = Setting(numbers=tuple(zip(registers, operands, strict=True)))
    return Point(part, lines, 0, PARALLEL, setting, len(lines), written(isa, *_SETUP[isa]))


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    asked, plain = readings.get(_ASKED), readings.get(_PLAIN)
    if not steady(asked, plain):
        raise Unresolved(Unclear.LOOKS_DIFFER.of())
    return ProbeVerdict(CoreAnswer.VALUE, asked - plain)


PROBE = Probe(
    "special-values",
    "How much longer do operations take with subnormal numbers, infinities and NaNs?",
    Model.MATRIX,
    _cases,
    _judge,
    ("Agner Fog, test programs, subnormal",),
    events=("uops",),
)
