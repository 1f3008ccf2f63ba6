"""Pieces of code to time, on any instruction set: text, or machine code, to a kernel."""

from __future__ import annotations

import re

from cyclescope.analyze.read.assembler import text_program
from cyclescope.errors import SourceError, UsageError
from cyclescope.kernel.kernel import Kernel
from cyclescope.kernel.state import VECTOR_FLOAT, VECTOR_SCALABLE
from cyclescope.measure import bench

_SCALABLE = {"aarch64": r"\b[zp]\d+\b|\bffr\b", "riscv64": r"\bv\d+\b|\bvset"}


def text_kernel(text: str, init: str, unroll: int, vectors: str, isa: str) -> Kernel:
    """The kernel of an assembly text, repeated `unroll` times per body; `init` runs once before.

    `vectors` is a name of `measure.bench.LEVELS`, or empty for what the registers in the text need. Raises
    UsageError, UnsupportedInstruction, BackendUnavailable where there is no assembler.
    """
    if isa == "x86-64":
        return bench.snippet(text, init, unroll, vectors)
    bench.check_counter(text, init, isa)
    code, setup = _assembled(text, isa), _assembled(init, isa)
    scalable = re.search(_SCALABLE[isa], f"{text}\n{init}".lower())
    level = bench.LEVELS[vectors] if vectors else VECTOR_SCALABLE if scalable else VECTOR_FLOAT
    return bench.machine_code(code, setup, instructions(code, isa), unroll, level, isa)


def code_kernel(code: bytes, unroll: int, vectors: str, isa: str) -> Kernel:
    """The kernel of machine code, repeated `unroll` times per body. Raises UsageError."""
    if isa != "x86-64" and len(code) % (2 if isa == "riscv64" else 4):
        raise UsageError(f"{len(code)} bytes are no whole instructions of {isa}")
    level = bench.LEVELS[vectors or bench.USUAL[isa]]
    count = 1 if isa == "x86-64" else instructions(code, isa)
    return bench.machine_code(code, b"", count, unroll, level, isa)


def instructions(code: bytes, isa: str) -> int:
    """Number of instructions in machine code of AArch64 or RISC-V."""
    if isa == "aarch64":
        return len(code) // 4
    count = at = 0
    while at < len(code):
        at += 4 if code[at] & 3 == 3 else 2
        count += 1
    return count


def _assembled(text: str, isa: str) -> bytes:
    lines = "\n".join(part.strip() for part in re.split(r"[;\n]", text))
    if not lines.strip():
        return b""
    try:
        program = text_program(f"{lines}\n", "--asm", isa)
    except SourceError:  # comments alone
        return b""
    return b"".join(piece.code for piece in program.pieces)
