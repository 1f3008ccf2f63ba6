"""What an x86-64 CPU is, by CPUID: extensions, and LLVM's name of the microarchitecture.

The model tables state the same facts as LLVM's TargetParser/Host.cpp (Apache-2.0 WITH LLVM-exception).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

# name -> (leaf, subleaf, register: 0 EAX 1 EBX 2 ECX 3 EDX, bit)
BITS = {
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
    "AMX_BF16": (7, 0, 3, 22), "AVX512_FP16": (7, 0, 3, 23), "AMX_TILE": (7, 0, 3, 24),
    "AMX_INT8": (7, 0, 3, 25),
    "SHA512": (7, 1, 0, 0), "SM3": (7, 1, 0, 1), "SM4": (7, 1, 0, 2), "RAO_INT": (7, 1, 0, 3),
    "AVX_VNNI": (7, 1, 0, 4), "AVX512_BF16": (7, 1, 0, 5), "CMPCCXADD": (7, 1, 0, 7),
    "AMX_FP16": (7, 1, 0, 21),
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

# Which microarchitectures have an extension, as LLVM's X86TargetParser.cpp says, the newer ones.
_SERVERS = {"sapphirerapids", "emeraldrapids", "graniterapids", "graniterapids-d"}
_HYBRIDS = {
    "alderlake", "raptorlake", "meteorlake", "arrowlake", "arrowlake-s", "lunarlake", "pantherlake",
    "gracemont", "sierraforest", "grandridge", "clearwaterforest",
}  # fmt: skip
_AVX512 = _SERVERS | {
    "cannonlake", "icelake-client", "icelake-server", "tigerlake", "rocketlake", "znver4", "znver5"
}  # fmt: skip
_WITH = {
    "AMX_FP16": {"graniterapids", "graniterapids-d"}, "AMX_TILE": _SERVERS, "AVX512_FP16": _SERVERS,
    "AVX512_BF16": _SERVERS | {"znver4", "znver5"}, "AVX512F": _AVX512,
    "AVX_VNNI": _SERVERS | _HYBRIDS | {"znver5"},
}  # fmt: skip


def features(leaves: Mapping[tuple[int, int], tuple[int, int, int, int]]) -> frozenset[str]:
    """Names of the extensions that CPUID announces."""
    found = set()
    for name, (leaf, sub, register, bit) in BITS.items():
        values = leaves.get((leaf, sub))
        if values is not None and values[register] >> bit & 1:
            found.add(name)
    return frozenset(found)


def beyond(llvm: str, announced: Collection[str]) -> tuple[str, ...]:
    """Extensions that are announced and that no CPU of a microarchitecture has.

    A hypervisor may give any model number, and hide extensions; it cannot add what the core has not.
    """
    return tuple(name for name, those in _WITH.items() if llvm and name in announced and llvm not in those)


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
