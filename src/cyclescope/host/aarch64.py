"""AArch64 CPUs: who made them, LLVM's names, and extensions by the kernel's HWCAP bits.

Parts state the same facts as LLVM's TargetParser/Host.cpp (Apache-2.0 WITH LLVM-exception), bits those
of the Linux kernel's interface (asm/hwcap.h).
"""

from __future__ import annotations

from collections.abc import Mapping

VENDORS = {
    0x41: "Arm", 0x42: "Broadcom", 0x43: "Cavium", 0x46: "Fujitsu", 0x48: "HiSilicon", 0x4E: "NVIDIA",
    0x51: "Qualcomm", 0x53: "Samsung", 0x61: "Apple", 0x63: "Arm China", 0x6D: "Microsoft",
    0x70: "Phytium", 0xC0: "Ampere",
}  # fmt: skip

_ARM = {
    0xD02: "cortex-a34", 0xD03: "cortex-a53", 0xD04: "cortex-a35", 0xD05: "cortex-a55", 0xD06: "cortex-a65",
    0xD07: "cortex-a57", 0xD08: "cortex-a72", 0xD09: "cortex-a73", 0xD0A: "cortex-a75", 0xD0B: "cortex-a76",
    0xD0C: "neoverse-n1", 0xD0D: "cortex-a77", 0xD0E: "cortex-a76ae", 0xD14: "cortex-r82ae",
    0xD15: "cortex-r82", 0xD40: "neoverse-v1", 0xD41: "cortex-a78", 0xD42: "cortex-a78ae",
    0xD43: "cortex-a65ae", 0xD44: "cortex-x1", 0xD46: "cortex-a510", 0xD47: "cortex-a710",
    0xD48: "cortex-x2", 0xD49: "neoverse-n2", 0xD4A: "neoverse-e1", 0xD4B: "cortex-a78c",
    0xD4C: "cortex-x1c", 0xD4D: "cortex-a715", 0xD4E: "cortex-x3", 0xD4F: "neoverse-v2",
    0xD80: "cortex-a520", 0xD81: "cortex-a720", 0xD82: "cortex-x4", 0xD83: "neoverse-v3ae",
    0xD84: "neoverse-v3", 0xD85: "cortex-x925", 0xD87: "cortex-a725", 0xD88: "cortex-a520ae",
    0xD89: "cortex-a720ae", 0xD8E: "neoverse-n3", 0xD8F: "cortex-a320",
}  # fmt: skip
_THUNDER = {0x516: "thunderx2t99", 0xAF: "thunderx2t99", 0xA1: "thunderxt88"}
_QUALCOMM = {
    0x001: "oryon-1", 0x201: "kryo", 0x205: "kryo", 0x211: "kryo", 0x800: "cortex-a73", 0x801: "cortex-a73",
    0x802: "cortex-a75", 0x803: "cortex-a75", 0x804: "cortex-a76", 0x805: "cortex-a76", 0xC00: "falkor",
    0xC01: "saphira",
}  # fmt: skip
_APPLE = {
    **dict.fromkeys((*range(0x20, 0x26), 0x28, 0x29), "apple-m1"),
    **dict.fromkeys((*range(0x30, 0x36), 0x38, 0x39), "apple-m2"),
    **dict.fromkeys((0x48, 0x49), "apple-m3"),
}
_PARTS: Mapping[int, Mapping[int, str]] = {
    0x41: _ARM, 0x42: _THUNDER, 0x43: _THUNDER, 0x46: {0x001: "a64fx", 0x003: "fujitsu-monaka"},
    0x48: {0xD01: "tsv110"}, 0x4E: {0x004: "carmel", 0x010: "olympus"}, 0x51: _QUALCOMM, 0x61: _APPLE,
    0x6D: {0xD49: "neoverse-n2"}, 0xC0: {0xAC3: "ampere1", 0xAC4: "ampere1a", 0xAC5: "ampere1b"},
}  # fmt: skip
_EXYNOS = {0x1002: "exynos-m3", 0x1003: "exynos-m4"}  # by variant and part


def llvm_name(implementer: int, part: int, variant: int = 0) -> str:
    """LLVM's name of a core, or ""."""
    if implementer == 0x53:
        return _EXYNOS.get(variant << 12 | part, "")
    return _PARTS.get(implementer, {}).get(part, "")


# name in the tables -> (0 HWCAP, 1 HWCAP2, 2 HWCAP3; bit)
BITS = {
    "FP-ARMV8": (0, 0), "NEON": (0, 1), "AES": (0, 3), "SHA2": (0, 6), "CRC": (0, 7), "LSE": (0, 8),
    "FULLFP16": (0, 9), "RDM": (0, 12), "JSCONV": (0, 13), "COMPLXNUM": (0, 14), "RCPC": (0, 15),
    "SHA3": (0, 17), "SM4": (0, 19), "DOTPROD": (0, 20), "SVE": (0, 22), "FP16FML": (0, 23),
    "RCPC-IMMO": (0, 26), "FLAGM": (0, 27), "SB": (0, 29), "PAUTH": (0, 30), "GCS": (0, 32),
    "CMPBR": (0, 33), "FPRCVT": (0, 34), "F8F32MM": (0, 35), "F8F16MM": (0, 36), "SVE-F16F32MM": (0, 37),
    "SVE-AES2": (0, 39), "SVE-BFSCALE": (0, 40), "SVE2P2": (0, 41), "SME2P2": (0, 42),
    "SSVE-BITPERM": (0, 43), "SSVE-AES": (0, 44), "SSVE-FEXPA": (0, 45), "SME-TMOP": (0, 46),
    "SME-MOP4": (0, 47),
    "SVE2": (1, 1), "SVE-AES": (1, 2), "SVE-BITPERM": (1, 4), "SVE-SHA3": (1, 5), "SVE-SM4": (1, 6),
    "ALTNZCV": (1, 7), "FPTOINT": (1, 8), "F32MM": (1, 10), "F64MM": (1, 11), "I8MM": (1, 13),
    "BF16": (1, 14), "MTE": (1, 18), "SME": (1, 23), "SME-I16I64": (1, 24), "SME-F64F64": (1, 25),
    "WFXT": (1, 31), "CSSC": (1, 34), "SVE2P1": (1, 36), "SME2": (1, 37), "SME2P1": (1, 38),
    "SME-B16B16": (1, 41), "SME-F16F16": (1, 42), "MOPS": (1, 43), "HBC": (1, 44), "SVE-B16B16": (1, 45),
    "RCPC3": (1, 46), "LSE128": (1, 47), "LUT": (1, 49), "FAMINMAX": (1, 50), "FP8": (1, 51),
    "FP8FMA": (1, 52), "FP8DOT4": (1, 53), "FP8DOT2": (1, 54), "SME-LUTV2": (1, 57), "SME-F8F16": (1, 58),
    "SME-F8F32": (1, 59), "SSVE-FP8FMA": (1, 60), "SSVE-FP8DOT4": (1, 61), "SSVE-FP8DOT2": (1, 62),
    "LS64": (2, 3),
}  # fmt: skip


def features(words: tuple[int, int, int]) -> frozenset[str]:
    """Names of the extensions in HWCAP, HWCAP2 and HWCAP3."""
    return frozenset({"BASE"} | {name for name, (word, bit) in BITS.items() if words[word] >> bit & 1})
