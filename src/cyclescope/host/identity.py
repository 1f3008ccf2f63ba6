"""What CPU this is: vendor, family, model, and LLVM's name of the microarchitecture.

Everything is computed from leaves that the runner has read (of CPUID, or of what other instruction sets
have instead: arch_leaves in native/*/arch.c), so that recorded machines can be identified anywhere.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from cyclescope.host import aarch64, riscv64, x86_64

Leaf = tuple[int, int, int, int]  # EAX, EBX, ECX, EDX
Leaves = Mapping[tuple[int, int], Leaf]

RUNNER_LEAF = (0x43530001, 0)  # the runner's own: bits of enum runner_bits, its instruction set
OF_X86_64, OF_AARCH64, OF_RISCV64 = 1, 2, 3
_HWCAP_LEAF = (0x100, 0)  # of RISC-V
DIGEST_LEAF = (0x101, 0)  # of RISC-V: a number made of what names the board
BOARD_LEAF, _BOARD_LEAVES = 0x110, 4  # the text that names it, 16 bytes each; of RISC-V and AArch64


class Hypervisor(StrEnum):
    """Whether a CPU says that it is a virtual machine's, which its host may move from core to core."""

    NONE = ""
    THERE = "yes"
    UNTOLD = "unknown"  # AArch64 and RISC-V do not tell programs


class Identity(msgspec.Struct, frozen=True):
    """A CPU, or what an emulator plays. `llvm` is LLVM's -mcpu name, or "" where it is unknown; `doubt` says
    why a name that its numbers have is not believed.

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
    hypervisor: Hypervisor
    emulated: bool = False
    doubt: str = ""

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
    """The instruction set that leaves are of: OF_X86_64, OF_AARCH64 or OF_RISCV64."""
    return leaves.get(RUNNER_LEAF, (0, OF_X86_64, 0, 0))[1] or OF_X86_64


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
    kinds = {OF_AARCH64: _identify_aarch64, OF_RISCV64: _identify_riscv64}
    return kinds.get(isa_of(leaves), _identify_x86_64)(leaves)


def _identify_aarch64(leaves: Leaves) -> Identity:
    midr = leaves.get((1, 0), (0, 0, 0, 0))[0]
    implementer, variant, part, revision = midr >> 24, midr >> 20 & 15, midr >> 4 & 0xFFF, midr & 15
    vendor = aarch64.VENDORS.get(implementer, f"implementer {implementer:#x}") if midr else "AArch64"
    llvm = aarch64.llvm_name(implementer, part, variant)
    return Identity(vendor, _board(leaves), part, variant, revision, llvm, Hypervisor.UNTOLD)


def _identify_riscv64(leaves: Leaves) -> Identity:
    keys = hwprobe(leaves)
    vendor, architecture, implementation = (keys.get(key, 0) for key in range(3))
    name = riscv64.VENDORS.get(vendor, f"vendor {vendor:#x}") if vendor else "RISC-V"
    board = _board(leaves)
    llvm = riscv64.llvm_name(vendor, architecture) or riscv64.name_of_core(board.partition(" on ")[0])
    if not any((vendor, architecture, implementation)):
        architecture = leaves.get(DIGEST_LEAF, (0,))[0]
    return Identity(name, board, architecture, implementation, 0, llvm, Hypervisor.UNTOLD)


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
    llvm = x86_64.llvm_name(vendor, family, model)
    doubt = _doubt(llvm, x86_64.beyond(llvm, x86_64.features(leaves)))
    return Identity(
        vendor, " ".join(_text(*words).split()), family, model, signature & 15, "" if doubt else llvm,
        Hypervisor.THERE if features >> 31 & 1 else Hypervisor.NONE, doubt=doubt,
    )  # fmt: skip


def _doubt(llvm: str, beyond: tuple[str, ...]) -> str:
    return f"its numbers are those of {llvm}, which has no {', '.join(beyond)}" if beyond else ""
