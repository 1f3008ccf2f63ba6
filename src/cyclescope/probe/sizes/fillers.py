"""What fills a core between two chains of slow operations, and what it takes beside what is counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cyclescope.model.facts import InFlight

_BOTH, _ONE = (2, 4), (0, 2)  # entries of two operations of the chain, and of at most one
# That of a load in `source`: loads that are done may leave their queue, unless an older one is not.
_OLDER = (1, 1)


class Filler(NamedTuple):
    """Instructions of a kind: texts in turn, with some registers in turn for @, and what they wait for.

    `source` waits for the chain's result and comes before them. `slow` is the chain's operation. `own` are
    the entries, at the least and at the most, that others take beside them: one or two each of the chain's
    last operation and the next one's first, or one of a load in `source`. `mix` tells mixes of one subject
    apart.
    """

    subject: str
    text: str
    own: tuple[int, int] = (0, 0)
    source: str = ""
    quick: bool = False
    slow: str = ""
    mix: str = ""


# An operation that takes long, from @ to a. Legacy and VEX instructions may wait for each other.
SLOW: Mapping[str, str] = {
    "x86-64": "SQRTPD (XMM, XMM): a @",
    "aarch64": "FSQRTDr: a @",
    "riscv64": "FSQRT_D: a @",
}
SLOW_WIDE = "VSQRTPD (XMM, XMM): a @"
_NOPS, _ADDITIONS, _VECTORS, _DOUBLES = InFlight.NOPS, InFlight.ADDITIONS, InFlight.VECTORS, InFlight.DOUBLES
_FLAGS, _LOADS, _STORES, _BRANCHES = "comparisons", InFlight.LOADS, InFlight.STORES, "branches not taken"
_WAITING, _WIDE = "that wait", "vector additions of 256 bits"
_X86_SOURCE = "CVTTSD2SI (R64, XMM): h a"
# An address that waits for the chain.
_X86_ADDRESS = f"{_X86_SOURCE}; SHR (R64, I8): h #63; ADD_01 (R64, R64): h p"
_ARM_ADDRESS = "FCVTZSUXDr: h a; UBFMXri: h h #63 #63; ADDXrs: h h p #0"
_RISC_ADDRESS = "FCVT_L_D: h a; SRLI: h h #63; ADD: h h p"


# Additions, vector additions, loads and stores in turn, of each a share that differs from mix to mix: so few
# that none of their own structures is full first on cores of today. Behind a vector addition stands what uses
# memory: a Zen 4 has an addition behind one, or behind a branch or a NOP, in one entry with it.
FILLER_MIXES = ("aalvvs", "alvvsalvvl", "aaaalvvvs")


def _any_kind(addition: str, vector: str, load: str, store: str) -> Iterator[Filler]:
    """Mixes of several kinds, whose results and places are in structures of their own."""
    texts = {"a": addition, "v": vector, "l": load, "s": store}
    for number, mix in enumerate(FILLER_MIXES, 1):
        text = "; ".join(texts[kind] for kind in mix)
        yield Filler(InFlight.ANY, text, _BOTH, quick=True, mix=f", mix {number}")


FILLERS: Mapping[str, tuple[Filler, ...]] = {
    "x86-64": (
        *_any_kind(
            "LEA_B_I (R64): @ d d", "PADDD (XMM, XMM): @ d", "MOV (R64, M64): @ p +8",
            "MOV (M64, R64): p d +16",
        ),
        Filler(_NOPS, "NOP_90", _BOTH, quick=True),
        Filler(_ADDITIONS, "LEA_B_I (R64): @ d d", quick=True),
        Filler(f"{_ADDITIONS} with flags", "ADD_01 (R64, R64): @ d"),
        Filler(_VECTORS, "PADDD (XMM, XMM): @ d", _BOTH, quick=True),
        Filler(_WIDE, "VPADDD (YMM, YMM, YMM): @ d d", _BOTH, slow=SLOW_WIDE),
        Filler(_FLAGS, "CMP_39 (R64, R64): c d"),
        Filler(_LOADS, "MOV (R64, M64): @ p +8", _OLDER, f"{_X86_ADDRESS}; MOV (R64, M64): h h +8", True),
        Filler(_STORES, "MOV (M64, R64): p d +16", quick=True),
        Filler(_BRANCHES, "JZ (Rel8): #0"),
        Filler(f"{_ADDITIONS} {_WAITING}", "LEA_B_I (R64): @ h d", source=_X86_SOURCE),
        Filler(f"multiplications {_WAITING}", "IMUL (R64, R64, I8): @ h #3", source=_X86_SOURCE),
        Filler(f"{_VECTORS} {_WAITING}", "ADDPS (XMM, XMM): @ a", _ONE),
        Filler(f"{_LOADS} {_WAITING}", "MOV (R64, M64): @ h +8", source=_X86_ADDRESS),
    ),
    "aarch64": (
        *_any_kind("ADDXrs: @ d d #0", "FADDDrr: @ d d", "LDRXui: @ p +8", "STRXui: d p +16"),
        Filler(_NOPS, "NOP", _BOTH, quick=True),
        Filler(_ADDITIONS, "ADDXrs: @ d d #0", quick=True),
        Filler(_VECTORS, "FADDDrr: @ d d", _BOTH, quick=True),
        Filler(_FLAGS, "SUBSXrs: z c d #0"),
        Filler(_LOADS, "LDRXui: @ p +8", _OLDER, f"{_ARM_ADDRESS}; LDRXui: h h +8", True),
        Filler(_STORES, "STRXui: d p +16", quick=True),
        Filler(f"{_ADDITIONS} {_WAITING}", "ADDXrs: @ h h #0", source="FCVTZSUXDr: h a"),
        Filler(f"{_VECTORS} {_WAITING}", "FADDDrr: @ a a", _ONE),
        Filler(f"{_LOADS} {_WAITING}", "LDRXui: @ h +8", source=_ARM_ADDRESS),
    ),
    "riscv64": (
        *_any_kind("ADD: @ d d", "FADD_D: @ d d", "LD: @ p +8", "SD: d p +16"),
        Filler(_NOPS, "ADDI: z z #0", _BOTH, quick=True),
        Filler(_ADDITIONS, "ADD: @ d d", quick=True),
        Filler(_DOUBLES, "FADD_D: @ d d", _BOTH, quick=True),
        Filler(_LOADS, "LD: @ p +8", _OLDER, f"{_RISC_ADDRESS}; LD: h h +8", True),
        Filler(_STORES, "SD: d p +16", quick=True),
        Filler(f"{_ADDITIONS} {_WAITING}", "ADD: @ h h", source="FCVT_L_D: h a"),
        Filler(f"{_DOUBLES} {_WAITING}", "FADD_D: @ a a", _ONE),
        Filler(f"{_LOADS} {_WAITING}", "LD: @ h +8", source=_RISC_ADDRESS),
    ),
}  # fmt: skip
