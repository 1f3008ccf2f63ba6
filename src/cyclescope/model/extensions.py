"""Extensions that cores lack although LLVM's models of them have costs of their instructions.

LLVM takes the same tables for costs of all extensions, and has in other tables which a CPU executes. Here are
those of its names whose models have costs of vector instructions that no such core executes, after LLVM's
`X86.td` and `RISCVProcessors.td`.
"""

from __future__ import annotations

from collections.abc import Iterable

_EVERY = "*"  # at the end of a name: all that begin so
_512 = ("AVX512*",)
_256 = ("AVX2", "FMA", "BMI1", "BMI2", "AVX_*", *_512)
_128 = ("AVX", "F16C", *_256)
_NO_AVX = (
    "atom", "bonnell", "core2", "corei7", "goldmont", "goldmont-plus", "nehalem", "penryn", "silvermont",
    "tremont", "westmere", "x86-64-v2", "yonah",
)  # fmt: skip
_NO_AVX_512 = (
    "alderlake", "arrowlake", "arrowlake-s", "bdver4", "broadwell", "clearwaterforest", "gracemont",
    "grandridge", "haswell", "lunarlake", "meteorlake", "pantherlake", "raptorlake", "sierraforest",
    "skylake", "wildcatlake", "x86-64-v3", "znver1", "znver2", "znver3",
)  # fmt: skip
_VECTORS = ("ZV*",)
_LACKING: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_NO_AVX_512, _512),
    **dict.fromkeys(("sandybridge", "ivybridge", "core-avx-i"), _256),
    **dict.fromkeys(_NO_AVX, _128),
    "bdver1": ("AVX2", "FMA", "BMI1", "BMI2", "AVX_*", *_512),
    "bdver2": ("AVX2", "BMI2", "AVX_*", *_512),
    "bdver3": ("AVX2", "BMI2", "AVX_*", *_512),
    "btver2": ("AVX2", "FMA", "BMI2", "AVX_*", *_512),
    "sifive-7-series": _VECTORS, "andes-45-series": _VECTORS,
}  # fmt: skip
# Names of a model's core that have what the others lack.
_BUT = {"sifive-7-series": "sifive-x280", "andes-45-series": "andes-ax45mpv"}


def lacked(core: str, features: Iterable[str]) -> tuple[str, ...]:
    """Those of the extensions that a form needs which a core, by LLVM's name, lacks."""
    known = _LACKING.get(core, ())
    return tuple(one for one in features if one in known or one.startswith(_beginnings(known)))


def but(core: str) -> str:
    """The one of a model's names whose core has what the others lack, "" where none has."""
    return _BUT.get(core, "")


def _beginnings(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.removesuffix(_EVERY) for name in names if name.endswith(_EVERY))
