"""What CPU this is: vendor, family, model, and LLVM's name of the microarchitecture.

Everything is computed from CPUID leaves that the caller has read, so that recorded machines can be
identified anywhere. The model tables state the same facts as LLVM's TargetParser/Host.cpp
(Apache-2.0 WITH LLVM-exception).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

import msgspec

Leaf = tuple[int, int, int, int]  # EAX, EBX, ECX, EDX
Leaves = Mapping[tuple[int, int], Leaf]

_INTEL = {
    "sandybridge": (0x2A, 0x2D), "ivybridge": (0x3A, 0x3E), "haswell": (0x3C, 0x3F, 0x45, 0x46),
    "broadwell": (0x3D, 0x47, 0x4F, 0x56), "skylake": (0x4E, 0x5E, 0x8E, 0x9E, 0xA5, 0xA6),
    "nehalem": (0x1A, 0x1E, 0x1F, 0x2E), "westmere": (0x25, 0x2C, 0x2F), "rocketlake": (0xA7,),
    "cannonlake": (0x66,), "icelake-client": (0x7D, 0x7E), "icelake-server": (0x6A, 0x6C),
    "tigerlake": (0x8C, 0x8D), "sapphirerapids": (0x8F,), "emeraldrapids": (0xCF,),
    "graniterapids": (0xAD,), "graniterapids-d": (0xAE,), "alderlake": (0x97, 0x9A),
    "raptorlake": (0xB7, 0xBA, 0xBF), "meteorlake": (0xAA, 0xAC), "gracemont": (0xBE,),
    "arrowlake": (0xC5,), "arrowlake-s": (0xC6,), "lunarlake": (0xBD,), "pantherlake": (0xCC,),
    "sierraforest": (0xAF,), "grandridge": (0xB6,), "clearwaterforest": (0xDD,),
    "silvermont": (0x37, 0x4A, 0x4D, 0x5A, 0x5D, 0x4C), "goldmont": (0x5C, 0x5F),
    "goldmont-plus": (0x7A,), "tremont": (0x86, 0x8A, 0x96, 0x9C), "bonnell": (0x1C, 0x26, 0x27, 0x35, 0x36),
}  # fmt: skip
_INTEL_BY_MODEL = {model: name for name, models in _INTEL.items() for model in models}
_ZEN3 = (*range(0x10), *range(0x20, 0x60))
_ZEN4 = (*range(0x10, 0x20), *range(0x60, 0x80), *range(0xA0, 0xB0))
_ZEN2 = (*range(0x30, 0x40), 0x47, *range(0x60, 0x80), *range(0x84, 0x88), *range(0x90, 0xB0))


class Identity(msgspec.Struct, frozen=True):
    """A CPU. `llvm` is LLVM's -mcpu name, or "" where it is unknown."""

    vendor: str
    brand: str
    family: int
    model: int
    stepping: int
    llvm: str
    hypervisor: str
    emulated: bool = False

    @property
    def machine(self) -> str:
        """Name of the kind of machine a store belongs to."""
        numbers = f"{self.family:x}-{self.model:x}-{self.stepping:x}"
        return f"{self.vendor} {numbers} {self.llvm or 'unknown'}{' emulated' if self.emulated else ''}"


def as_leaves(rows: Iterable[tuple[int, int, int, int, int, int]]) -> dict[tuple[int, int], Leaf]:
    """CPUID leaves by (leaf, subleaf)."""
    return {(leaf, sub): (a, b, c, d) for leaf, sub, a, b, c, d in rows}


def _text(*words: int) -> str:
    return struct.pack(f"<{len(words)}I", *words).decode("ascii", "replace").strip("\0 ")


def identify(leaves: Leaves) -> Identity:
    """The CPU that these CPUID leaves describe."""
    _, b, c, d = leaves.get((0, 0), (0, 0, 0, 0))
    vendor = _text(b, d, c)
    signature, _, features, _ = leaves.get((1, 0), (0, 0, 0, 0))
    family, model = signature >> 8 & 15, signature >> 4 & 15
    if family in (6, 15):
        model |= (signature >> 16 & 15) << 4
    if family == 15:
        family += signature >> 20 & 0xFF
    brand = "".join(
        struct.pack("<4I", *leaves.get((leaf, 0), (0, 0, 0, 0))).decode("ascii", "replace")
        for leaf in (0x80000002, 0x80000003, 0x80000004)
    )
    return Identity(
        vendor, " ".join(brand.replace("\0", "").split()), family, model, signature & 15,
        llvm_name(vendor, family, model), "yes" if features >> 31 & 1 else "",
    )  # fmt: skip


def llvm_name(vendor: str, family: int, model: int) -> str:
    """LLVM's name of a microarchitecture, or ""."""
    if vendor == "GenuineIntel" and family == 6:
        return _INTEL_BY_MODEL.get(model, "")
    if vendor not in ("AuthenticAMD", "HygonGenuine"):
        return ""
    if family == 0x19:
        return "znver3" if model in _ZEN3 else "znver4" if model in _ZEN4 else ""
    if family == 0x17:
        return "znver2" if model in _ZEN2 else "znver1"
    older = {0x10: "amdfam10", 0x14: "btver1", 0x16: "btver2", 0x18: "znver1", 0x1A: "znver5"}
    if family == 0x15:
        return _bulldozer(model)
    return older.get(family, "")


def _bulldozer(model: int) -> str:
    if model >= 0x60:
        return "bdver4"
    if model >= 0x30:
        return "bdver3"
    return "bdver2" if model == 2 or model >= 0x10 else "bdver1"
