"""Timing any piece of code with the engine that measures instructions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cyclescope.backend.base import Backend, Effort
from cyclescope.errors import MeasurementError, UnsupportedInstruction, UsageError
from cyclescope.isa.assemble import assemble
from cyclescope.kernel.fixed_width.registers import AARCH64, RISCV64
from cyclescope.kernel.kernel import CANARY, Kernel
from cyclescope.kernel.patterns import pattern
from cyclescope.kernel.state import (
    FIRST_WINDOW,
    STACK_TOP,
    VECTOR_EVEX512,
    VECTOR_FLOAT,
    VECTOR_LEGACY,
    VECTOR_SCALABLE,
    VECTOR_VEX128,
    VECTOR_VEX256,
    MachineState,
)
from cyclescope.kernel.x86_64.registers import ALIAS, BASE, STACK
from cyclescope.measure.plan import Experiment
from cyclescope.measure.sampling import Measurement, Sampler

LEVELS = {
    "sse": VECTOR_LEGACY, "avx": VECTOR_VEX128, "avx2": VECTOR_VEX256, "avx512": VECTOR_EVEX512,
    "float": VECTOR_FLOAT, "scalable": VECTOR_SCALABLE,
}  # fmt: skip
USUAL = {"x86-64": "avx", "aarch64": "float", "riscv64": "float"}  # of machine code
COUNTERS = {"x86-64": r"r15[dwb]?", "aarch64": "[xw]28", "riscv64": "x27|s11"}
_STARTS = {
    "x86-64": "RSP is a stack, R13, R14, RSI and RDI point to 4096 bytes",
    "aarch64": "SP is a stack, X20 and X21 point to 4096 bytes",
    "riscv64": "sp is a stack, s0 and s1 point to 4096 bytes",
}
_OUTCOMES = {
    "SIGSEGV at 0x0": "address 0 was accessed, or no address at all: an instruction that may not run in user "
    "space or not with these operands; --init can set registers",
    "SIGSEGV": "{}; --init can set other registers",
    "SIGBUS": "look at the alignment of its memory operands",
    "SIGFPE": "a division by zero or an overflow; --init can set the operands",
    "SIGTRAP": "it runs into a breakpoint",
    "SIGSYS": "system calls are not let through",
    "hang": "it does not end within a second",
    "too long": "unroll less",
}
_POINTERS = (BASE, ALIAS, 6, 7)  # R14, R13, RSI, RDI
_FIXED_WIDTH = {pools.isa: pools for pools in (AARCH64, RISCV64)}


def default_state(level: int, isa: str = "x86-64") -> MachineState:
    """What a snippet starts with.

    RSP points into a stack, R13, R14, RSI and RDI to the middle of 4096 bytes of memory, the other
    general registers hold small numbers; vectors and memory hold 1.0 (floats, which are harmless
    doubles too), masks are all ones. Of AArch64 X20 and X21, of RISC-V s0 and s1 point to memory; f registers
    of RISC-V hold the double 1.0.
    """
    ones = pattern("f32")
    if pools := _FIXED_WIDTH.get(isa):
        general = [n + 1 for n in range(32)]
        general[pools.stack] = STACK_TOP
        general[pools.base] = general[pools.alias] = FIRST_WINDOW
        scalars = (int.from_bytes(pattern("f64")[:8], "little"),) * 32 if isa == "riscv64" else ()
        return MachineState(
            tuple(general), ones, fill=(ones, ones), vector_level=level, flags=0, control=0, scalars=scalars
        )
    general = [n + 1 for n in range(16)]
    general[STACK] = STACK_TOP
    for number in _POINTERS:
        general[number] = FIRST_WINDOW
    return MachineState(tuple(general), ones, fill=(ones, ones), vector_level=level)


def level_of(text: str) -> int:
    """How much vector state a text needs, from the registers it names."""
    lower = text.lower()
    if re.search(r"\bzmm\d|\bk[0-7]\b|\{k[0-7]\}|\b[xy]mm(1[6-9]|2\d|3[01])\b", lower):
        return VECTOR_EVEX512
    if re.search(r"\bymm\d", lower):
        return VECTOR_VEX256
    return VECTOR_VEX128 if re.search(r"(^|[;\n])\s*v\w+ ", lower) else VECTOR_LEGACY


def snippet(text: str, init: str, unroll: int, vectors: str) -> Kernel:
    """The kernel of an assembly text of x86-64, repeated `unroll` times per body."""
    check_counter(text, init, "x86-64")
    body = assemble(text)
    level = LEVELS[vectors] if vectors else level_of(f"{text}\n{init}")
    return machine_code(body.code, assemble(init).code if init else b"", body.instructions, unroll, level)


def check_counter(text: str, init: str, isa: str) -> None:
    """Raise UsageError where code names the register that counts its repetitions."""
    for part in (text, init):
        if found := re.search(rf"\b({COUNTERS[isa]})\b", part.lower()):
            raise UsageError(f"{found[0]} counts the repetitions", "use another register")


def machine_code(
    code: bytes, setup: bytes, instructions: int, unroll: int, level: int, isa: str = "x86-64"
) -> Kernel:
    """The kernel of machine code, repeated `unroll` times per body."""
    if not code:
        raise UsageError("there is no instruction to time")
    if len(code) * unroll > 0xFFFF:
        raise UsageError(f"{len(code) * unroll} bytes per body are too many", "unroll less")
    return Kernel(code * unroll, instructions * unroll, default_state(level, isa), setup, CANARY)


def time_kernel(backend: Backend, kernel: Kernel, rounds: int) -> Measurement:
    """Time one kernel; like every measurement, until the rounds agree.

    Raises UnsupportedInstruction or MeasurementError for code that does not run.
    """
    experiment = Experiment("", "bench", "", "", "", kernel, 1)
    effort = Effort(rounds=rounds, want=12, target=10000.0)
    settled: Sequence[tuple[Experiment, Measurement]] = next(
        batch for batch in Sampler(backend, effort).measure([experiment]) if batch
    )
    measurement = settled[0][1]
    if measurement.error == "SIGILL":
        raise UnsupportedInstruction("this CPU does not execute the code", "SIGILL")
    if not measurement.usable:
        kind = measurement.error.partition(" at ")[0]
        remedy = _OUTCOMES.get(measurement.error) or _OUTCOMES.get(kind, "")
        start = _STARTS[backend.capabilities().isa]
        raise MeasurementError(f"the code cannot be timed, {measurement.error}", remedy.format(start))
    return measurement
