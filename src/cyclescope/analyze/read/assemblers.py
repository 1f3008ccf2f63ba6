"""The assemblers that are installed, with the options that make each take all instructions it knows."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

_NATIVE = {"x86_64": "x86-64", "aarch64": "aarch64", "riscv64": "riscv64"}
GNU_NAMES = {
    "x86-64": ("x86_64-linux-gnu-as",),
    "aarch64": ("aarch64-linux-gnu-as", "aarch64-none-linux-gnu-as", "aarch64-none-elf-as", "aarch64-elf-as"),
    "riscv64": (
        "riscv64-linux-gnu-as",
        "riscv64-unknown-linux-gnu-as",
        "riscv64-unknown-elf-as",
        "riscv64-elf-as",
    ),
}
_GNU_OPTIONS = {  # instructions of all extensions; an older version refuses newer names
    "x86-64": (("--64",),),
    "aarch64": (("-mcpu=all",),),
    "riscv64": (
        ("-mno-relax", "-march=rv64gcv_zba_zbb_zbc_zbs_zbkb_zfh_zvfh_zicond_zfa_zvbb_zacas_zcb"),
        ("-mno-relax", "-march=rv64gcv_zba_zbb_zbc_zbs_zbkb_zfh"),
        ("-mno-relax", "-march=rv64gc"),
    ),
}
# Further extensions, allowed one by one where a text is refused: each assembler knows some of them.
_ALLOWING = {"riscv64": ".option arch, +{}", "aarch64": ".arch_extension {}"}
_RISCV = """
    v zba zbb zbc zbs zbkb zbkc zbkx zknd zkne zknh zksed zksh zkr zfh zfhmin zvfh zvfhmin zfa zfbfmin
    zvfbfmin zvfbfwma zicond zacas zabha zalasr zawrs zcb zimop zcmop zicfilp zicfiss zicbom zicboz
    zicbop zihintntl zihintpause zibi zvbb zvbc zvkb zvkg zvkgs zvkned zvknha zvknhb zvksed zvksh
    zvqdotq svinval smrnmi h q xtheadba xtheadbb xtheadbs xtheadcmo xtheadcondmov xtheadfmemidx
    xtheadmac xtheadmemidx xtheadmempair xtheadsync xtheadvdot xventanacondops xsfvcp xsfvqmaccdod
    xsfvqmaccqoq xsfvfwmaccqqq xsfvfnrclipxfqf xsmtvdot xmipscmov xmipslsp xmipscbop xandesperf
"""
_AARCH64 = """
    aes bf16 brbe cmpbr compnum cpa crc crypto cssc d128 dotprod f8f16mm f8f32mm f32mm f64mm faminmax
    flagm fp fp16 fp16fml fp8 fp8dot2 fp8dot4 fp8fma fprcvt gcs hbc i8mm ite jscvt lor ls64 lse lse128
    lsfe lsui lut memtag mops pauth predres predres2 profile ras rasv2 rcpc rcpc2 rcpc3 rdm sb sha2 sha3
    simd sm4 sme sme-b16b16 sme-f16f16 sme-f64f64 sme-f8f16 sme-f8f32 sme-fa64 sme-i16i64 sme-lutv2 sme2
    sme2p1 sme2p2 ssbs sve sve-b16b16 sve-bfscale sve-f16f32mm sve2 sve2-aes sve2-bitperm sve2-sha3
    sve2-sm4 sve2p1 sve2p2 the wfxt xs
"""
_EXTENSIONS = {"riscv64": _RISCV, "aarch64": _AARCH64}
# LLVM's features of AArch64 that have other names than its directives have.
_AARCH64_FEATURES = """
    v8.1a v8.2a v8.3a v8.4a v8.5a v8.6a v8.7a v8.8a v8.9a v9a v9.1a v9.2a v9.3a v9.4a v9.5a v9.6a b16b16
    bti ccdp ccidx ccpp complxnum dit el2vmsa el3 ete fgt fp-armv8 fptoint fullfp16 hcx jsconv mec mpam
    mte neon nmi nv pan pan-rwv perfmon rand rcpc-immo rme sel2 spe specrestrict specres2 sme-f64 sme-i64
    tlb-rmi tme tracev8.4 trbe uaops vh
"""
_FEATURES = {"riscv64": _RISCV, "aarch64": _AARCH64 + _AARCH64_FEATURES}
_TRIPLES = {"x86-64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu", "riscv64": "riscv64-linux-gnu"}
_LLVM_MC_OPTIONS = {
    "x86-64": (),
    "aarch64": ("-mattr=+all",),
    "riscv64": (
        "-mattr=+m,+a,+f,+d,+c,+v,+zba,+zbb,+zbc,+zbs,+zbkb,+zfh,+zvfh,+zicond,+zfa,+zvbb,+zvbc,+zacas,+zcb",
    ),
}
_CLANG_OPTIONS = {
    "x86-64": (),
    "aarch64": ("-march=armv9-a+sve2",),
    "riscv64": ("-march=rv64gcv_zba_zbb_zbs", "-mno-relax"),
}


class Tool(NamedTuple):
    """An assembler: its name, and its command without input and output."""

    name: str
    command: tuple[str, ...]
    defines_local: bool  # whether it wants local labels to be defined
    knows_all: bool  # whether its options allow all instructions, whatever the text says
    extensions: tuple[str, ...] = ()  # directives that allow more of them, some of which it may not know
    more: tuple[str, ...] = ()  # options that do the same


@cache
def tools(isa: str) -> tuple[Tool, ...]:
    """The assemblers for an instruction set that are installed, the fastest first."""
    return tuple(_tools(isa))


def _tools(isa: str) -> Iterator[Tool]:
    more = tuple(_ALLOWING[isa].format(name) for name in _EXTENSIONS.get(isa, "").split())
    native = sys.platform == "linux" and _NATIVE.get(os.uname().machine) == isa
    for name in (("as",) * native) + GNU_NAMES[isa]:
        if path := shutil.which(name):
            for options in _GNU_OPTIONS[isa]:
                yield Tool(name, (path, *options), False, True, more if isa == "riscv64" else ())
    triple, fixed = _TRIPLES[isa], isa == "riscv64"
    for name in _newest_first("llvm-mc"):
        command = (name, f"-triple={triple}", "-filetype=obj", *_LLVM_MC_OPTIONS[isa])
        # Older versions know neither `+all` nor all of the directives that allow extensions.
        yield Tool(name, command, True, True, more=_features(isa))
    for name in _newest_first("clang"):
        options = (f"--target={triple}", "-c", "-x", "assembler", *_CLANG_OPTIONS[isa])
        yield Tool(name, (name, *options), True, fixed, more)
    zig = shutil.which("zig")
    if zig:
        options = ("-target", triple.replace("-gnu", "-musl"), "-c", "-x", "assembler")
        yield Tool("zig cc", (zig, "cc", *options), True, False, more)


def _features(isa: str) -> tuple[str, ...]:
    """What makes LLVM allow all extensions. Those that it does not know it ignores."""
    names = _FEATURES.get(isa, "").split()
    return ("-mattr=" + ",".join(f"+{name}" for name in names),) if names else ()


def _newest_first(name: str) -> list[str]:
    """The program and its versioned names (`clang-19`) that are on the path."""
    found = {path.name for path in _programs() if re.fullmatch(rf"{name}-\d+", path.name)}
    versioned = sorted(found, key=lambda one: int(one.rpartition("-")[2]), reverse=True)
    return versioned + [name] * bool(shutil.which(name))


@cache
def _programs() -> tuple[Path, ...]:
    folders = [Path(folder) for folder in os.get_exec_path() if folder]
    found = (path for folder in folders if folder.is_dir() for path in folder.glob("*-[0-9]*"))
    return tuple(path for path in found if path.name.startswith(("llvm-mc-", "clang-")))
