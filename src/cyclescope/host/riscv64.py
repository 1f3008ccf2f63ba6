"""RISC-V CPUs: who made them, LLVM's names, and extensions by riscv_hwprobe, or HWCAP without it.

Bits are those of the Linux kernel's interface (asm/hwprobe.h), names of CPUs those of LLVM's
RISCVProcessors.td (Apache-2.0 WITH LLVM-exception).
"""

from __future__ import annotations

from collections.abc import Mapping

VENDORS = {0x31E: "Andes", 0x489: "SiFive", 0x5B7: "T-Head", 0x61F: "Ventana", 0x710: "SpacemiT"}
_NAMES = {  # by mvendorid and marchid
    (0x489, 0x8000000000000007): "sifive-u74", (0x489, 0x8000000000000008): "sifive-p550",
    (0x61F, 0x8000000000010000): "veyron-v1", (0x710, 0x8000000058000001): "spacemit-x60",
}  # fmt: skip


def llvm_name(vendor: int, architecture: int) -> str:
    """LLVM's name of a core by mvendorid and marchid, or ""."""
    return _NAMES.get((vendor, architecture), "")


_CORES = {  # as the device tree has them: Linux's riscv/cpus.yaml
    "sifive,u74": "sifive-u74", "sifive,u74-mc": "sifive-u74", "sifive,p550": "sifive-p550",
    "spacemit,x60": "spacemit-x60",
}  # fmt: skip


def name_of_core(compatible: str) -> str:
    """LLVM's name of a core by its name in the device tree, or ""."""
    return _CORES.get(compatible, "")


# What a bit of RISCV_HWPROBE_KEY_IMA_EXT_0 stands for, by the names in the tables.
_PROBED: tuple[tuple[str, ...], ...] = (
    ("F", "D"), ("C", "ZCA", "ZCD"), ("ZVE32X", "ZVE32F", "ZVE64X", "ZVE64F", "ZVE64D"), ("ZBA",), ("ZBB",),
    ("ZBS",), ("ZICBOZ",), ("ZBC",), ("ZBKB",), ("ZBKC",), ("ZBKX",), ("ZKND",), ("ZKNE",), ("ZKNH",),
    ("ZKSED",), ("ZKSH",), (), ("ZVBB", "ZVKB"), ("ZVBC",), ("ZVKB",), ("ZVKG",), ("ZVKNED",), ("ZVKNHA",),
    ("ZVKNHB", "ZVKNHA"), ("ZVKSED",), ("ZVKSH",), (), ("ZFH", "ZFHMIN"), ("ZFHMIN",), (), ("ZVFH",), (),
    ("ZFA",), (), ("ZACAS",), ("ZICOND",), (), ("ZVE32X",), ("ZVE32F", "ZVE32X"), ("ZVE64X", "ZVE32X"),
    ("ZVE64F", "ZVE64X", "ZVE32F", "ZVE32X"), ("ZVE64D", "ZVE64F", "ZVE64X", "ZVE32F", "ZVE32X"),
    ("ZIMOP",), ("ZCA",), ("ZCB",), ("ZCD",), ("ZCF",), ("ZCMOP",), ("ZAWRS",), (), (), (), ("ZFBFMIN",),
    ("ZVFBFMIN",), ("ZVFBFWMA",), ("ZICBOM",), ("ZAAMO",), ("ZALRSC",), ("ZABHA",), (), ("ZICFISS",),
)  # fmt: skip
_BASE = ("M", "ZMMUL", "A", "ZAAMO", "ZALRSC")  # of RISCV_HWPROBE_BASE_BEHAVIOR_IMA
_LETTERS = {
    "A": ("A", "ZAAMO", "ZALRSC"), "C": _PROBED[1], "D": ("D",), "F": ("F",), "M": ("M", "ZMMUL"),
    "V": _PROBED[2],
}  # fmt: skip
ALWAYS = ("BASE", "RV64")
KNOWN = frozenset(name for names in (*_PROBED, _BASE, ALWAYS) for name in names) | {"RV32"}
_LETTERED = 3  # bits of extensions that have letters: F and D, C, V
BASE_KEY, EXTENSIONS_KEY, UNALIGNED_KEYS = 3, 4, (9, 5)
UNALIGNED = {1: "emulated", 2: "slow", 3: "fast", 4: "unsupported"}


def features(keys: Mapping[int, int], hwcap: int) -> frozenset[str]:
    """Names of the extensions by the keys of riscv_hwprobe, and by the letters in HWCAP."""
    found = set(ALWAYS)
    if keys.get(BASE_KEY, 0) & 1:
        found.update(_BASE)
    probed = keys.get(EXTENSIONS_KEY, 0)
    for bit, names in enumerate(_PROBED):
        if probed >> bit & 1:
            found.update(names)
    for letter, names in _LETTERS.items():
        if hwcap >> (ord(letter) - ord("A")) & 1:
            found.update(names)
    return frozenset(found)


def probed_bits(isa: str) -> int:
    """Bits of RISCV_HWPROBE_KEY_IMA_EXT_0 for the extensions in a string such as rv64imafdc_zba_zbb.

    Those of one letter are left out: they are in HWCAP.
    """
    listed = set(isa.upper().split("_")[1:])
    return sum(
        1 << bit for bit, names in enumerate(_PROBED[_LETTERED:], _LETTERED) if listed & set(names[:1])
    )


def unaligned(keys: Mapping[int, int]) -> str:
    """How unaligned accesses of general registers fare: `emulated`, `slow`, `fast`, `unsupported`, or ""."""
    for key in UNALIGNED_KEYS:
        if name := UNALIGNED.get(keys.get(key, 0) & 7, ""):
            return name
    return ""
