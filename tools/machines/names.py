"""Which of LLVM's CPU names a model goes by; the others are its aliases."""

from __future__ import annotations

import re
from collections.abc import Sequence

# LLVM lists them alphabetically; the name people know, of the core that the model was made for.
PREFERRED = {
    "alderlake", "atom", "silvermont", "bdver2", "znver1", "broadwell", "btver2", "skylake-avx512",
    "sandybridge", "haswell", "sapphirerapids", "icelake-server", "skylake", "lunarlake", "znver2", "znver3",
    "znver4",
    "a64fx", "ampere1", "ampere1b", "apple-a7", "cortex-a510", "cortex-a53", "cortex-a55", "cortex-a57",
    "cortex-a320", "exynos-m3", "exynos-m4", "exynos-m5", "falkor", "kryo", "neoverse-n1", "neoverse-n2",
    "neoverse-n3", "neoverse-v1", "neoverse-v2", "neoverse-v3", "neoverse-v3ae", "olympus", "oryon-1",
    "thunderx", "thunderx2t99", "thunderx3t110", "tsv110",
    "andes-45-series", "generic-ooo", "mips-p8700", "rocket", "sifive-7-series", "sifive-p450", "sifive-p550",
    "sifive-p670", "sifive-p870", "sifive-x390", "spacemit-x60", "syntacore-scr3-rv64", "syntacore-scr4-rv64",
    "syntacore-scr5-rv64", "syntacore-scr1-max", "syntacore-scr7", "tt-ascalon-d8", "xiangshan-nanhu",
}  # fmt: skip


def canonical(names: Sequence[str]) -> str:
    """The name of a model, of all that have it; empty for cores of 32 bits."""
    if all(name.endswith("-rv32") for name in names):
        return ""
    found = [name for name in names if name in PREFERRED]
    if len(found) != 1:
        raise ValueError(f"one of these needs to be preferred: {', '.join(names)}")
    return found[0]


def other_names(name: str, names: Sequence[str]) -> list[str]:
    """Aliases, without the second spelling that dispatching functions use and what means no CPU."""
    return [other for other in names if other not in (name, "generic") and "_" not in other]


def natural(name: str) -> list[tuple[bool, int, str]]:
    """A key that sorts numbers by value and before words."""
    return [
        (not part.isdigit(), int(part) if part.isdigit() else 0, part)
        for part in re.findall(r"\d+|\D+", name)
    ]
