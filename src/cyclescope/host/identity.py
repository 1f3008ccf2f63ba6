"""What CPU this is: vendor, family, model, and LLVM's name of the microarchitecture.

Everything is computed from leaves that the runner has read (of CPUID, or of what other instruction sets
have instead: arch_leaves in native/*/arch.c), so that recorded machines can be identified anywhere. The
model tables state the same facts as LLVM's TargetParser/Host.cpp (Apache-2.0 WITH LLVM-exception).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

import msgspec

from cyclescope.host import aarch64, riscv64

Leaf = tuple[int, int, int, int]  # EAX, EBX, ECX, EDX
Leaves = Mapping[tuple[int, int], Leaf]

RUNNER_LEAF = (0x43530001, 0)  # the runner's own: bits of enum runner_bits, its instruction set
X86_64, AARCH64, RISCV64 = 1, 2, 3
_HWCAP_LEAF = (0x100, 0)  # of RISC-V
DIGEST_LEAF = (0x101, 0)  # of RISC-V: a number made of what names the board
BOARD_LEAF, _BOARD_LEAVES = 0x110, 4  # the text that names it, 16 bytes each; of RISC-V and AArch64

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
    """A CPU, or what an emulator plays. `llvm` is LLVM's -mcpu name, or "" where it is unknown.

    `family`, `model` and `stepping` are on AArch64 the part, variant and revision of MIDR_EL1, on RISC-V
    marchid, mimpid and 0; where a RISC-V CPU says neither, `family` is made of what names the board. There
    is no `brand` but that of the board on both.
    """

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
    text = struct.pack(f"<{len(words)}I", *words).decode("ascii", "replace").replace("\0", " ")
    return "".join(sign for sign in text if sign.isprintable()).strip()


def _board(leaves: Leaves) -> str:
    return _text(*(word for n in range(_BOARD_LEAVES) for word in leaves.get((BOARD_LEAF + n, 0), (0,) * 4)))


def isa_of(leaves: Leaves) -> int:
    """The instruction set that leaves are of: X86_64, AARCH64 or RISCV64."""
    return leaves.get(RUNNER_LEAF, (0, X86_64, 0, 0))[1] or X86_64


def hwcaps(leaves: Leaves) -> tuple[int, int, int]:
    """HWCAP, HWCAP2 and HWCAP3 of an AArch64 machine."""
    low, high, low2, high2 = leaves.get((2, 0), (0, 0, 0, 0))
    low3, high3, _, _ = leaves.get((2, 1), (0, 0, 0, 0))
    return low | high << 32, low2 | high2 << 32, low3 | high3 << 32


def hwprobe(leaves: Leaves) -> dict[int, int]:
    """What riscv_hwprobe says, by key."""
    keys = ((key, words) for (key, sub), words in leaves.items() if key < _HWCAP_LEAF[0] and not sub)
    return {key: low | high << 32 for key, (low, high, _, _) in keys}


def riscv_hwcap(leaves: Leaves) -> int:
    """HWCAP of a RISC-V machine."""
    low, high, _, _ = leaves.get(_HWCAP_LEAF, (0, 0, 0, 0))
    return low | high << 32


def identify(leaves: Leaves) -> Identity:
    """The CPU that these leaves describe."""
    kinds = {AARCH64: _identify_aarch64, RISCV64: _identify_riscv64}
    return kinds.get(isa_of(leaves), _identify_x86_64)(leaves)


def _identify_aarch64(leaves: Leaves) -> Identity:
    midr = leaves.get((1, 0), (0, 0, 0, 0))[0]
    implementer, variant, part, revision = midr >> 24, midr >> 20 & 15, midr >> 4 & 0xFFF, midr & 15
    vendor = aarch64.VENDORS.get(implementer, f"implementer {implementer:#x}") if midr else "AArch64"
    llvm = aarch64.llvm_name(implementer, part, variant)
    return Identity(vendor, _board(leaves), part, variant, revision, llvm, "")


def _identify_riscv64(leaves: Leaves) -> Identity:
    keys = hwprobe(leaves)
    vendor, architecture, implementation = (keys.get(key, 0) for key in range(3))
    name = riscv64.VENDORS.get(vendor, f"vendor {vendor:#x}") if vendor else "RISC-V"
    board = _board(leaves)
    llvm = riscv64.llvm_name(vendor, architecture) or riscv64.name_of_core(board.partition(" on ")[0])
    if not any((vendor, architecture, implementation)):
        architecture = leaves.get(DIGEST_LEAF, (0,))[0]
    return Identity(name, board, architecture, implementation, 0, llvm, "")


def _identify_x86_64(leaves: Leaves) -> Identity:
    _, b, c, d = leaves.get((0, 0), (0, 0, 0, 0))
    vendor = _text(b, d, c)
    signature, _, features, _ = leaves.get((1, 0), (0, 0, 0, 0))
    family, model = signature >> 8 & 15, signature >> 4 & 15
    if family in (6, 15):
        model |= (signature >> 16 & 15) << 4
    if family == 15:
        family += signature >> 20 & 0xFF
    words = (word for leaf in (2, 3, 4) for word in leaves.get((0x80000000 + leaf, 0), (0, 0, 0, 0)))
    return Identity(
        vendor, " ".join(_text(*words).split()), family, model, signature & 15,
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
