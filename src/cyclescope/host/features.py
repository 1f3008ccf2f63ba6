"""Which instruction-set extensions a machine announces, by the names the tables use: CPUID, HWCAP, hwprobe."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from cyclescope.host import aarch64, riscv64
from cyclescope.host.identity import AARCH64, RISCV64, X86_64, Leaves, hwcaps, hwprobe, isa_of, riscv_hwcap

# name -> (leaf, subleaf, register: 0 EAX 1 EBX 2 ECX 3 EDX, bit)
_BITS = {
    "X87": (1, 0, 3, 0), "TSC": (1, 0, 3, 4), "MSR": (1, 0, 3, 5), "CX8": (1, 0, 3, 8), "SEP": (1, 0, 3, 11),
    "CMOV": (1, 0, 3, 15), "CLFSH": (1, 0, 3, 19), "MMX": (1, 0, 3, 23), "FXSR": (1, 0, 3, 24),
    "SSE": (1, 0, 3, 25), "SSE2": (1, 0, 3, 26), "SSE3": (1, 0, 2, 0), "PCLMULQDQ": (1, 0, 2, 1),
    "MONITOR": (1, 0, 2, 3), "SSSE3": (1, 0, 2, 9), "FMA": (1, 0, 2, 12), "CMPXCHG16B": (1, 0, 2, 13),
    "SSE4_1": (1, 0, 2, 19), "SSE4_2": (1, 0, 2, 20), "MOVBE": (1, 0, 2, 22), "POPCNT": (1, 0, 2, 23),
    "AES": (1, 0, 2, 25), "XSAVE": (1, 0, 2, 26), "AVX": (1, 0, 2, 28), "F16C": (1, 0, 2, 29),
    "RDRAND": (1, 0, 2, 30), "FSGSBASE": (7, 0, 1, 0), "BMI1": (7, 0, 1, 3), "HLE": (7, 0, 1, 4),
    "AVX2": (7, 0, 1, 5), "BMI2": (7, 0, 1, 8), "INVPCID": (7, 0, 1, 10), "RTM": (7, 0, 1, 11),
    "MPX": (7, 0, 1, 14), "AVX512F": (7, 0, 1, 16), "AVX512DQ": (7, 0, 1, 17), "RDSEED": (7, 0, 1, 18),
    "ADX": (7, 0, 1, 19), "SMAP": (7, 0, 1, 20), "AVX512_IFMA": (7, 0, 1, 21), "CLFLUSHOPT": (7, 0, 1, 23),
    "CLWB": (7, 0, 1, 24), "AVX512PF": (7, 0, 1, 26), "AVX512ER": (7, 0, 1, 27), "AVX512CD": (7, 0, 1, 28),
    "SHA": (7, 0, 1, 29), "AVX512BW": (7, 0, 1, 30), "AVX512VL": (7, 0, 1, 31), "PREFETCHWT1": (7, 0, 2, 0),
    "AVX512_VBMI": (7, 0, 2, 1), "PKU": (7, 0, 2, 3), "WAITPKG": (7, 0, 2, 5), "AVX512_VBMI2": (7, 0, 2, 6),
    "CET_SS": (7, 0, 2, 7), "GFNI": (7, 0, 2, 8), "VAES": (7, 0, 2, 9), "VPCLMULQDQ": (7, 0, 2, 10),
    "AVX512_VNNI": (7, 0, 2, 11), "AVX512_BITALG": (7, 0, 2, 12), "AVX512_VPOPCNTDQ": (7, 0, 2, 14),
    "RDPID": (7, 0, 2, 22), "KL": (7, 0, 2, 23), "CLDEMOTE": (7, 0, 2, 25), "MOVDIRI": (7, 0, 2, 27),
    "MOVDIR64B": (7, 0, 2, 28), "ENQCMD": (7, 0, 2, 29), "AVX512_4VNNIW": (7, 0, 3, 2),
    "AVX512_4FMAPS": (7, 0, 3, 3), "UINTR": (7, 0, 3, 5), "AVX512_VP2INTERSECT": (7, 0, 3, 8),
    "SERIALIZE": (7, 0, 3, 14), "TSXLDTRK": (7, 0, 3, 16), "PCONFIG": (7, 0, 3, 18), "CET_IBT": (7, 0, 3, 20),
    "AMX_BF16": (7, 0, 3, 22), "AVX512_FP16": (7, 0, 3, 23), "AMX_TILE": (7, 0, 3, 24), "AMX_INT8": (7, 0, 3, 25),
    "SHA512": (7, 1, 0, 0), "SM3": (7, 1, 0, 1), "SM4": (7, 1, 0, 2), "RAO_INT": (7, 1, 0, 3),
    "AVX_VNNI": (7, 1, 0, 4), "AVX512_BF16": (7, 1, 0, 5), "CMPCCXADD": (7, 1, 0, 7), "AMX_FP16": (7, 1, 0, 21),
    "AVX_IFMA": (7, 1, 0, 23), "AVX_VNNI_INT8": (7, 1, 3, 4), "AVX_NE_CONVERT": (7, 1, 3, 5),
    "AMX_COMPLEX": (7, 1, 3, 8), "AVX_VNNI_INT16": (7, 1, 3, 10), "PREFETCHITI": (7, 1, 3, 14),
    "XSAVEOPT": (0xD, 1, 0, 0), "XSAVEC": (0xD, 1, 0, 1), "XSAVES": (0xD, 1, 0, 3),
    "LZCNT": (0x80000001, 0, 2, 5), "SSE4A": (0x80000001, 0, 2, 6), "PREFETCHW": (0x80000001, 0, 2, 8),
    "XOP": (0x80000001, 0, 2, 11), "LWP": (0x80000001, 0, 2, 15), "FMA4": (0x80000001, 0, 2, 16),
    "TBM": (0x80000001, 0, 2, 21), "MONITORX": (0x80000001, 0, 2, 29), "SYSCALL": (0x80000001, 0, 3, 11),
    "RDTSCP": (0x80000001, 0, 3, 27), "D3NOWEXT": (0x80000001, 0, 3, 30), "D3NOW": (0x80000001, 0, 3, 31),
    "CLZERO": (0x80000008, 0, 1, 0), "RDPRU": (0x80000008, 0, 1, 4), "WBNOINVD": (0x80000008, 0, 1, 9),
    "MCOMMIT": (0x80000008, 0, 1, 8),
}  # fmt: skip


_KNOWN = {X86_64: frozenset(_BITS), AARCH64: frozenset(aarch64.BITS), RISCV64: riscv64.KNOWN}
_ALL = frozenset().union(*_KNOWN.values())


def features(leaves: Leaves) -> frozenset[str]:
    """Names of the extensions that a machine announces."""
    isa = isa_of(leaves)
    if isa == AARCH64:
        return aarch64.features(hwcaps(leaves))
    if isa == RISCV64:
        return riscv64.features(hwprobe(leaves), riscv_hwcap(leaves))
    found = {"BASE"}
    for name, (leaf, sub, register, bit) in _BITS.items():
        values = leaves.get((leaf, sub))
        if values is not None and values[register] >> bit & 1:
            found.add(name)
    return frozenset(found)


def remarks(leaves: Leaves) -> tuple[str, ...]:
    """What else there is to know of a machine: how long its vectors are, how unaligned accesses fare."""
    isa = isa_of(leaves)
    if isa == AARCH64:
        plain, streaming, _, _ = leaves.get((3, 0), (0, 0, 0, 0))
        lengths = (("SVE", plain), ("streaming SVE", streaming))
        return tuple(f"{name} registers have {8 * size} bits" for name, size in lengths if size)
    if isa != RISCV64:
        return ()
    size = leaves.get((0x100, 0), (0, 0, 0, 0))[2]
    vectors = (f"vector registers have {8 * size} bits",) if size else ()
    unaligned = riscv64.unaligned(hwprobe(leaves))
    return (*vectors, *((f"unaligned accesses are {unaligned}",) if unaligned else ()))


def known(isa: int = X86_64) -> frozenset[str]:
    """Names of the extensions that machines of an instruction set may announce."""
    return _KNOWN[isa] | {"BASE"}


def lacking(wanted: Iterable[str], announced: Collection[str]) -> tuple[str, ...]:
    """Those of the wanted extensions that a machine would announce, but does not.

    Of `A|B` any one is enough, of `A+B` both are needed.
    """
    return tuple(name for name in wanted if _lacks(name, announced))


def _lacks(name: str, announced: Collection[str]) -> bool:
    missing = _ALL.difference(announced)
    return all(not missing.isdisjoint(option.split("+")) for option in name.split("|"))
