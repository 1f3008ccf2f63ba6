"""Loads and stores of every size, per instruction set: what the questions about memory are made of.

Chains through memory share its ports with what runs beside them: they are measured as what is near a width,
while the core is undisturbed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cyclescope.model.facts import OF_GENERAL, VECTOR, VEX, CoreAnswer
from cyclescope.probe.code import KernelLine, Setting, written
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Point, ProbeVerdict, Readings, Unresolved, parallel
from cyclescope.remarks.probing import NotAsked, Unclear


class Transfer(NamedTuple):
    """A way to store a register and a way to load all of it again, with another register's letter for @.

    `bits` are those of the access. `link` is an operation on a that takes some cycles; whatever of a it reads
    has to come from the load.
    """

    bits: int
    store: str
    load: str
    link: str


# What a stored pointer is loaded by, as its own address.
CHASE: Mapping[str, str] = {"x86-64": "MOV (R64, M64): o o", "aarch64": "LDRXui: o o", "riscv64": "LD: o o"}
EMULATED_IF_UNALIGNED = {"riscv64": NotAsked.EMULATED_ACCESS.of()}
_IMUL = "IMUL (R64, R64, I8): a a #3"
_MADD, _MUL, _FLOAT = "MADDXrrr: a a e z", "MUL: a a e", "FADDDrr: a a e"
PLAIN_TRANSFERS: Mapping[str, tuple[Transfer, ...]] = {
    "x86-64": (
        Transfer(8, "MOV (M8, R8l): @ a", "MOVZX (R32, M8): a @", _IMUL),
        Transfer(16, "MOV (M16, R16): @ a", "MOVZX (R32, M16): a @", _IMUL),
        Transfer(32, "MOV (M32, R32): @ a", "MOV (R32, M32): a @", _IMUL),
        Transfer(64, "MOV (M64, R64): @ a", "MOV (R64, M64): a @", _IMUL),
    ),
    "aarch64": (
        Transfer(8, "STRBBui: a @", "LDRBBui: a @", _MADD),
        Transfer(16, "STRHHui: a @", "LDRHHui: a @", _MADD),
        Transfer(32, "STRWui: a @", "LDRWui: a @", _MADD),
        Transfer(64, "STRXui: a @", "LDRXui: a @", _MADD),
    ),
    "riscv64": (
        Transfer(8, "SB: a @", "LBU: a @", _MUL),
        Transfer(16, "SH: a @", "LHU: a @", _MUL),
        Transfer(32, "SW: a @", "LW: a @", _MUL),
        Transfer(64, "SD: a @", "LD: a @", _MUL),
    ),
}  # fmt: skip
_CONVERT, _VEX = "CVTDQ2PS (XMM, XMM): a a", "VCVTDQ2PS (XMM, XMM): a a"
_VEX_256, _VEX_512 = "VCVTDQ2PS (YMM, YMM): a a", "VCVTDQ2PS (ZMM, ZMM): a a"
VECTOR_TRANSFERS: Mapping[str, Mapping[str, tuple[Transfer, ...]]] = {
    "x86-64": {
        VECTOR: (
            Transfer(32, "MOVSS (M32, XMM): @ a", "MOVSS (XMM, M32): a @", _CONVERT),
            Transfer(64, "MOVQ (M64, XMM): @ a", "MOVQ (XMM, M64): a @", _CONVERT),
            Transfer(128, "MOVUPS (M128, XMM): @ a", "MOVUPS (XMM, M128): a @", _CONVERT),
        ),
        VEX: (
            Transfer(32, "VMOVSS (M32, XMM): @ a", "VMOVSS (XMM, M32): a @", _VEX),
            Transfer(64, "VMOVQ (M64, XMM): @ a", "VMOVQ (XMM, M64): a @", _VEX),
            Transfer(128, "VMOVUPS (M128, XMM): @ a", "VMOVUPS (XMM, M128): a @", _VEX),
            Transfer(256, "VMOVUPS (M256, YMM): @ a", "VMOVUPS (YMM, M256): a @", _VEX_256),
            Transfer(512, "VMOVUPS (M512, ZMM): @ a", "VMOVUPS (ZMM, M512): a @", _VEX_512),
        ),
    },
    "aarch64": {
        VECTOR: (
            Transfer(32, "STRSui: a @", "LDRSui: a @", "FADDSrr: a a e"),
            Transfer(64, "STRDui: a @", "LDRDui: a @", _FLOAT),
            Transfer(128, "STRQui: a @", "LDRQui: a @", _FLOAT),
        ),
    },
    "riscv64": {
        VECTOR: (
            Transfer(32, "FSW: a @", "FLW: a @", "FADD_S: a a e"),
            Transfer(64, "FSD: a @", "FLD: a @", "FADD_D: a a e"),
        ),
    },
}  # fmt: skip
"""By the kind of instructions: mixed ones may wait for each other."""


def groups(isa: str) -> dict[str, tuple[Transfer, ...]]:
    """All transfers by kind, those of general registers first."""
    return {OF_GENERAL: PLAIN_TRANSFERS[isa], **VECTOR_TRANSFERS[isa]} if isa in PLAIN_TRANSFERS else {}


def at(isa: str, text: str, place: str) -> tuple[KernelLine, ...]:
    """The line of a template with a place: `p +8`."""
    return written(isa, text.replace("@", place))


def with_register(text: str, letter: str) -> str:
    """A template with another register in place of a."""
    form, _, operands = text.partition(": ")
    return f"{form}: {' '.join(letter if word == 'a' else word for word in operands.split())}"


def load_latency(isa: str) -> Point:
    """A chain of loads of a pointer to itself."""
    (text,) = written(isa, CHASE[isa])
    number = text.registers[0]
    return parallel("load", text, setting=Setting(pointers=((number, 512),), stored=((512, 512),)))


def extra(readings: Readings, part: str = "asked", without: str = "") -> Interval:
    """Cycles from stored data to the register that loads them: what the way through memory adds."""
    return readings.get(part) - readings.get(without or f"{part}, cut")


def per_cycle(readings: Readings, most: float) -> ProbeVerdict:
    """How many accesses a cycle takes, if that is known to a relative error. Raises Unresolved."""
    taken = readings.get("accesses")
    if taken.low <= 0 or taken.error > most * taken.value:
        raise Unresolved(Unclear.LOOKS_DIFFER.of())
    return ProbeVerdict(CoreAnswer.VALUE, taken.inverse())
