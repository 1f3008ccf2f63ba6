"""Which instruction-set extensions a machine announces, by the names the tables use: CPUID, HWCAP, hwprobe."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from cyclescope.host import aarch64, riscv64, x86_64
from cyclescope.host.identity import (
    OF_AARCH64,
    OF_RISCV64,
    OF_X86_64,
    Leaves,
    hwcaps,
    hwprobe,
    isa_of,
    riscv_hwcap,
)

_KNOWN = {OF_X86_64: frozenset(x86_64.BITS), OF_AARCH64: frozenset(aarch64.BITS), OF_RISCV64: riscv64.KNOWN}
_ALL = frozenset().union(*_KNOWN.values())


def features(leaves: Leaves) -> frozenset[str]:
    """Names of the extensions that a machine announces."""
    isa = isa_of(leaves)
    if isa == OF_AARCH64:
        return aarch64.features(hwcaps(leaves))
    if isa == OF_RISCV64:
        return riscv64.features(hwprobe(leaves), riscv_hwcap(leaves))
    return x86_64.features(leaves) | {"BASE"}


def remarks(leaves: Leaves) -> tuple[str, ...]:
    """What else there is to know of a machine: how long its vectors are, how unaligned accesses fare."""
    isa = isa_of(leaves)
    if isa == OF_AARCH64:
        plain, streaming, _, _ = leaves.get((3, 0), (0, 0, 0, 0))
        lengths = (("SVE", plain), ("streaming SVE", streaming))
        return tuple(f"{name} registers have {8 * size} bits" for name, size in lengths if size)
    if isa != OF_RISCV64:
        return ()
    size = leaves.get((0x100, 0), (0, 0, 0, 0))[2]
    vectors = (f"vector registers have {8 * size} bits",) if size else ()
    unaligned = riscv64.unaligned(hwprobe(leaves))
    return (*vectors, *((f"unaligned accesses are {unaligned}",) if unaligned else ()))


def known(isa: int = OF_X86_64) -> frozenset[str]:
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
