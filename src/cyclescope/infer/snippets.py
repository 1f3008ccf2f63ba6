"""Pieces of code to time, on any instruction set: text, or machine code, to a kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from cyclescope.analyze.decode.decoder import decoder
from cyclescope.analyze.read.assembler import text_program
from cyclescope.analyze.read.repetition import expanded
from cyclescope.errors import SourceError, UnsupportedInstruction, UsageError
from cyclescope.isa.assembly.assemble import assemble
from cyclescope.isa.registry import instruction_set
from cyclescope.kernel.kernel import Kernel
from cyclescope.measure import bench


def text_kernel(text: str, init: str, unroll: int, vectors: str, isa: str, kept: str | None = None) -> Kernel:
    """The kernel of an assembly text, repeated `unroll` times per body; `init` runs once before.

    `vectors` is a name of `measure.bench.VECTOR_LEVELS`, or empty for what the registers in the text need.
    Texts may have nanoBench's additions (`analyze.read.repetition`), but not name registers that are `kept`,
    as `check_kept` has them. Raises UsageError, UnsupportedInstruction, BackendUnavailable where there is no
    assembler.
    """
    record = instruction_set(isa)
    text, init = expanded(text, isa), expanded(init, isa)
    check_kept(f"{text}\n{init}", kept, isa)
    if not record.fixed_width:
        return bench.snippet(text, init, unroll, vectors)
    code, setup = _assembled(text, isa), _assembled(init, isa)
    level = bench.VECTOR_LEVELS[vectors or bench.vectors_of(f"{text}\n{init}", isa)]
    return bench.machine_code(code, setup, instructions(code, isa), unroll, level, isa)


def check_kept(text: str, kept: str | None, isa: str) -> None:
    """Raise UsageError for text that names a register of `kept`, or for None the one that counts."""
    if kept is None:
        counter = instruction_set(isa).registers.counter
        bench.check_kept(text, counter, bench.TRIPS_ARE, bench.OR_COPIES)
    else:
        bench.check_kept(text, kept, bench.NEEDED_HERE)


def check_code(code: bytes, kept: str | None, isa: str) -> None:
    """The same of machine code. Raises UsageError that says where."""
    reads = decoder(isa)
    for step in reads.steps(code, 0):
        one = reads.instruction(code[step.address : step.end], step.address)
        try:
            check_kept("" if one.problem else one.text, kept, isa)
        except UsageError as error:
            where = f"{one.text} at byte {step.address}"
            raise UsageError(f"{where}: {error.message}", error.remedy) from error


def code_of(text: str, isa: str) -> bytes:
    """The machine code of an assembly text, perhaps none; errors as for `text_kernel`."""
    text = expanded(text, isa)
    if instruction_set(isa).fixed_width:
        return _assembled(text, isa)
    return assemble(text).code if text.strip() else b""


def code_kernel(code: bytes, unroll: int, vectors: str, isa: str) -> Kernel:
    """The kernel of machine code, repeated `unroll` times per body. Raises UsageError."""
    record = instruction_set(isa)
    if len(code) % record.step:
        raise UsageError(f"{len(code)} bytes are no whole instructions of {isa}")
    level = bench.VECTOR_LEVELS[vectors or record.registers.usual]
    count = instructions(code, isa) if record.lengths else 1
    return bench.machine_code(code, b"", count, unroll, level, isa)


def instructions(code: bytes, isa: str) -> int:
    """Number of instructions in machine code whose first bytes tell their lengths."""
    record = instruction_set(isa)
    count = at = 0
    while at < len(code):
        at += record.length(code[at])
        count += 1
    return count


@contextmanager
def refused_lines() -> Iterator[None]:
    """What assemblers refuse, with what to do about it here: neither machine nor syntax is an option."""
    try:
        yield
    except UnsupportedInstruction as error:
        remedy = "correct or delete the line, or give an object file, which needs no assembler here"
        raise UnsupportedInstruction(error.message, remedy, error.line) from error


def _assembled(text: str, isa: str) -> bytes:
    lines = "\n".join(part.strip() for part in re.split(r"[;\n]", text))
    if not lines.strip():
        return b""
    try:
        with refused_lines():
            program = text_program(f"{lines}\n", "--asm", isa)
    except SourceError:  # comments alone
        return b""
    return b"".join(piece.code for piece in program.pieces)
