"""The names of machines: which mean the same core, and which cores borrow another one's model.

LLVM takes one scheduling model for many CPUs. Only where the vendor gives the core of two names one name, or
says that one is the other with more instructions, are they the same (`_SAME`). All other names of a model
are cores of their own that LLVM has none of: theirs is borrowed, and whoever prints it has to say so.
"""

from __future__ import annotations

from collections.abc import Iterable

NATIVE = "native"  # the machine that was measured here
LLVM = "llvm:"  # in front of a machine's name: LLVM's model, whatever else has the name

# LLVM's names of a core that has a model under another of its names, and why they are the same core.
_SAME = {
    "bonnell": "LLVM's other name",
    "core-avx2": "LLVM's other name",
    "corei7-avx": "LLVM's other name",
    "skx": "LLVM's other name",
    "slm": "LLVM's other name",
    "thunderxt88": "LLVM's other name",
    "thunderxt81": "the same core in a smaller chip",
    "thunderxt83": "the same core in a smaller chip",
    "icelake-client": "Sunny Cove, as icelake-server",
    "cascadelake": "Skylake's server core with VNNI",
    "cooperlake": "Skylake's server core with VNNI and BF16",
    "grace": "NVIDIA's CPU has cores Neoverse V2",
    "rocket-rv32": "Rocket for registers of 32 bits",
    "rocket-rv64": "Rocket for registers of 64 bits",
    "sifive-e76": "SiFive's 7 series has one core",
    "sifive-s76": "SiFive's 7 series has one core",
    "sifive-u74": "SiFive's 7 series has one core",
    "sifive-x280": "SiFive's 7 series with the vector unit, which LLVM's model has",
    "andes-a45": "Andes' 45 series has one core",
    "andes-ax45": "Andes' 45 series has one core",
    "andes-ax45mpv": "Andes' 45 series with the vector unit, which LLVM's model has",
    "andes-n45": "Andes' 45 series has one core",
    "andes-nx45": "Andes' 45 series has one core",
    "syntacore-scr1-base": "SCR1 without multiplication",
}

# What OSACA, uops.info and vendors call CPUs, by LLVM's names.
OTHER_NAMES = {
    "con": "core2", "wol": "penryn", "nhm": "nehalem", "wsm": "westmere", "snb": "sandybridge",
    "ivb": "ivybridge", "hsw": "haswell", "bdw": "broadwell", "skl": "skylake", "kbl": "skylake",
    "cfl": "skylake", "clx": "cascadelake", "csx": "cascadelake", "cnl": "cannonlake",
    "icl": "icelake-client", "icx": "icelake-server", "tgl": "tigerlake", "rkl": "rocketlake",
    "adl-p": "alderlake", "adl-e": "gracemont", "mtl-p": "meteorlake", "spr": "sapphirerapids",
    "emr": "emeraldrapids", "bnl": "bonnell", "glm": "goldmont", "glp": "goldmont-plus", "trm": "tremont",
    "zen": "znver1", "zen1": "znver1", "zen+": "znver1", "zen2": "znver2", "zen3": "znver3",
    "zen4": "znver4", "zen5": "znver5", "n1": "neoverse-n1", "n2": "neoverse-n2", "v1": "neoverse-v1",
    "v2": "neoverse-v2", "a72": "cortex-a72", "a53": "cortex-a53", "tx2": "thunderx2t99",
    "m1": "apple-a14", "apple-m1": "apple-a14", "apple-m2": "apple-a15", "apple-m3": "apple-a16",
    "cyclone": "apple-a7",
}  # fmt: skip


def is_same_core(name: str) -> bool:
    """Whether LLVM's name of a CPU without a model of its own is that of the model's own core."""
    return name in _SAME


def near(name: str, known: Iterable[str]) -> list[str]:
    """Up to three known names that may be meant."""
    word, names = name.lower(), sorted(known)
    close = [n for n in names if word and n.startswith(word)][:3]
    if close:
        return close
    from difflib import get_close_matches

    return get_close_matches(word, names, n=3, cutoff=0.5)
