"""Timing any piece of code with the engine that measures instructions."""

from __future__ import annotations

import math
import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from cyclescope.backend.base import HANG, OK, SIGNALS, STATUS_NAMES, Backend, Effort, Sample, without_address
from cyclescope.errors import MeasurementError, UnsupportedInstruction, UsageError
from cyclescope.isa.assembly.assemble import assemble
from cyclescope.isa.registry import DEFAULT, instruction_set
from cyclescope.kernel.kernel import CANARY, FAST, Kernel
from cyclescope.kernel.patterns import pattern
from cyclescope.kernel.state import (
    FIRST_WINDOW,
    SECOND_WINDOW,
    STACK_TOP,
    VECTOR_EVEX512,
    VECTOR_FLOAT,
    VECTOR_LEGACY,
    VECTOR_NONE,
    VECTOR_SCALABLE,
    VECTOR_VEX128,
    VECTOR_VEX256,
    MachineState,
    PointerRegisters,
    area_middle,
)
from cyclescope.measure.record import STABLE, UNSTABLE
from cyclescope.measure.sampling import DISAGREE, EMULATED_EFFORT, MOST_ROUNDS, Measurement, once, summarise

ROUNDS = 5  # by default: enough for Student's distribution to say something
_PLACES = 4  # lengths and places of the code in each
PAUSE = 0.05  # seconds between rounds: what disturbs lasts for a tenth, and a mean of all averages over it
_WITHIN = 0.01  # relative: rounds of one kernel agree to half of the noise of a whole table's
EFFORT = Effort(rounds=_PLACES, want=12, target=50000.0)  # ten times as long: a step of the clock is 0.1 %
# 97.5 % quantiles of Student's distribution, for 2 readings on
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)

VECTOR_LEVELS = {
    "sse": VECTOR_LEGACY, "avx": VECTOR_VEX128, "avx2": VECTOR_VEX256, "avx512": VECTOR_EVEX512,
    "float": VECTOR_FLOAT, "scalable": VECTOR_SCALABLE,
}  # fmt: skip
_OUTCOMES = {
    "SIGSEGV at 0x0": "address 0 was accessed, or no address at all: an instruction that may not run in user "
    "space or not with these operands; {{init}} can set registers",
    "SIGSEGV": "{}; {{init}} can set other registers, and {{loop}} 0 lets code walk through memory",
    "SIGBUS": "look at the alignment of its memory operands",
    "SIGFPE": "a division by zero or an overflow; {{init}} can set the operands",
    "SIGTRAP": "it runs into a breakpoint",
    "SIGSYS": "system calls are not let through",
    "hang": "it does not end within a second",
    "too long": "unroll less",
}
IN_AREAS = _OUTCOMES | {
    "SIGSEGV": "pointers lead to the middle of areas of 1 MiB; {{init}} can set other registers"
}  # of copies that run once
_HAVE_PLACES = {*SIGNALS.values(), STATUS_NAMES[HANG]}


def default_state(level: int, isa: str = DEFAULT) -> MachineState:
    """What a snippet starts with.

    RSP points into a stack, R13, R14, RSI and RDI to the middle of the same 4096 bytes of memory, the other
    general registers hold small numbers; vectors and memory hold 1.0 (floats, which are harmless
    doubles too), masks are all ones. Of AArch64 X20 and X21, of RISC-V s0 and s1 point to memory; f registers
    of RISC-V hold the double 1.0.
    """
    ones = pattern("f32")
    record, known = instruction_set(isa), _pointers(isa)
    general = [n + 1 for n in range(record.registers.count)]
    general[known.stack] = STACK_TOP
    for number in known.pointers:
        general[number] = FIRST_WINDOW
    state = MachineState(tuple(general), ones, fill=(ones, ones), vector_level=level)
    if not record.fixed_width:
        return state
    scalars = (int.from_bytes(pattern("f64")[:8], "little"),) * 32 if record.registers.has_floats else ()
    return msgspec.structs.replace(state, flags=0, control=0, scalars=scalars)


def _pointers(isa: str) -> PointerRegisters:
    found: PointerRegisters = instruction_set(isa).module("kernel", "registers").POINTERS
    return found


def area_state(level: int, isa: str) -> MachineState:
    """What copies that run once start with, as nanoBench documents it.

    RSP, RBP, RDI, RSI and R14 (of AArch64 SP, X20, X21, of RISC-V sp, s0, s1) point to the middle of areas of
    1 MiB that are 0, as the other general registers are; vectors hold 1.0.
    """
    state = default_state(level, isa)
    general = [0] * len(state.general)
    for area, number in enumerate(_pointers(isa).areas):
        general[number] = area_middle(area)
    return msgspec.structs.replace(state, general=tuple(general), fill=(bytes(64), bytes(64)))


def vectors_of(text: str, isa: str) -> str:
    """The name of the vector state that a text needs, from the registers it names."""
    lower = text.lower()
    known = instruction_set(isa).writing.vectors
    return next(name for name, written in known.items() if re.search(written, lower))


def level_of(text: str, isa: str) -> int:
    """The number of the same."""
    return VECTOR_LEVELS[vectors_of(text, isa)]


def snippet(text: str, init: str, unroll: int, vectors: str) -> Kernel:
    """The kernel of an assembly text of x86-64, repeated `unroll` times per body."""
    body = assemble(text)
    level = VECTOR_LEVELS[vectors] if vectors else level_of(f"{text}\n{init}", DEFAULT)
    return machine_code(body.code, assemble(init).code if init else b"", body.instructions, unroll, level)


TRIPS_ARE, NEEDED_HERE = "counts the repetitions", "is needed by what times the code"


ANOTHER, OR_COPIES = "use another register", "use another register, or {loop} 0"


def check_kept(text: str, names: str, why: str, remedy: str = ANOTHER) -> None:
    """Raise UsageError where code names a register that is kept from it."""
    if found := re.search(rf"\b({names})\b", text.lower()):
        raise UsageError(f"{found[0]} {why}", remedy)


def machine_code(
    code: bytes, setup: bytes, instructions: int, unroll: int, level: int, isa: str = DEFAULT
) -> Kernel:
    """The kernel of machine code, repeated `unroll` times per body."""
    if not code:
        raise UsageError("there is no instruction to time")
    if max(len(code) * unroll, len(setup)) > 0xFFFF:
        raise UsageError(f"{len(code) * unroll} bytes per body are too many", "unroll less")
    return Kernel(code * unroll, instructions * unroll, _bench_state(level, isa), setup, CANARY | FAST)


def _bench_state(level: int, isa: str) -> MachineState:
    """The same with one pointer more, and every other one elsewhere: code that copies meets no byte twice."""
    state, known = default_state(level, isa), _pointers(isa)
    general = list(state.general)
    for number in known.frame:
        general[number] = FIRST_WINDOW
    for number in known.pointers[1::2]:
        general[number] = SECOND_WINDOW
    return msgspec.structs.replace(state, general=tuple(general))


class CodePlace(NamedTuple):
    """What errors call a piece of code, and where in it something happened."""

    code: str = "the code"
    place: str = ""


_SOMEWHERE = CodePlace()
Places = Callable[[int, int], CodePlace]  # of a kernel's number, and an offset in its setup and body or -1


def nowhere(number: int, offset: int) -> CodePlace:
    """Of code that nobody can read."""
    return _SOMEWHERE


def time_kernel(backend: Backend, kernel: Kernel, rounds: int, places: Places = nowhere) -> Measurement:
    """Time one kernel in at least so many rounds, a moment apart, each at several lengths and places.

    Raises UnsupportedInstruction or MeasurementError for code that does not run.
    """
    (measurement,) = time_kernels(backend, [kernel], rounds, places)
    return measurement


def time_kernels(
    backend: Backend, kernels: Sequence[Kernel], rounds: int, places: Places = nowhere
) -> list[Measurement]:
    """The same of several, in turn in every round, so that what disturbs meets all of them."""
    isa = backend.capabilities().isa
    timed = _timed(backend, kernels, rounds)
    return [
        usable(one, isa, places(number, one.instruction))
        for number, one in enumerate(timed) if one is not None
    ]  # fmt: skip


def usable(
    measurement: Measurement, isa: str, at: CodePlace = _SOMEWHERE, remedies: Mapping[str, str] = _OUTCOMES
) -> Measurement:
    """A measurement that has a value. Raises UnsupportedInstruction or MeasurementError, with what helps."""
    kind = without_address(measurement.error)
    place = f" {at.place}" if at.place and kind in _HAVE_PLACES else ""
    if kind == "SIGILL":  # elsewhere: of registers that this CPU lacks, which are set before
        place = place if measurement.instruction >= 0 else ""
        raise UnsupportedInstruction(f"this CPU does not execute {at.code}", f"{kind}{place}")
    if not measurement.usable:
        remedy = remedies.get(measurement.error) or remedies.get(kind, "")
        start = instruction_set(isa).registers.start
        what = f"{at.code} cannot be timed, {measurement.error}{place}"
        raise MeasurementError(what, remedy.format(start))
    return measurement


def _timed(backend: Backend, kernels: Sequence[Kernel], rounds: int) -> Sequence[Measurement | None]:
    """Measurements of all, or of some where one does not run."""
    if backend.capabilities().emulated:
        return [_emulated(samples) for samples in _round(backend, kernels, EMULATED_EFFORT)]
    nop = backend.calibrate().nop
    every = [*kernels, _reference(backend.capabilities().isa)] if _is_whole(nop) else list(kernels)
    samples: list[list[Sample]] = [[] for _ in kernels]
    known: list[Sample] = []
    while True:
        found = _round(backend, every, EFFORT)
        for own, new in zip(samples, found, strict=False):
            own.extend(new)
        known += [sample for row in found[len(kernels) :] for sample in row if sample.status == OK]
        off = _off([s.cycles for s in known], nop)
        settled = [settled_of(own, off, rounds) for own in samples]
        done = [measurement for measurement in settled if measurement is not None]
        if len(done) == len(kernels) or any(not measurement.usable for measurement in done):
            return settled
        time.sleep(PAUSE)


def _emulated(samples: Sequence[Sample]) -> Measurement:
    single = once(samples)
    if single is None:
        raise MeasurementError("the emulator did not come to the code")
    return single


def settled_of(
    samples: Sequence[Sample], off: float, rounds: int, places: int = _PLACES
) -> Measurement | None:
    """What a kernel's samples, so many in each round, say; None where more rounds may say more.

    What is known was read `off` by so much, relative.
    """
    measurement = summarise(samples, places, _WITHIN, most=MOST_ROUNDS * places)
    if measurement is None or any(not sample.usable for sample in samples):
        return measurement
    read = _with_error(measurement, samples, off, places)
    if len(samples) < (rounds if _is_precise(read) else MOST_ROUNDS) * places:
        return None
    return read if _is_precise(read) else _doubted(read)


def _is_precise(measurement: Measurement) -> bool:
    """Whether the error is within what rounds agree to; of what is not `ok` nothing better comes."""
    return measurement.verdict != STABLE or measurement.spread <= _WITHIN / 2 * measurement.cycles


def _doubted(measurement: Measurement) -> Measurement:
    """What stays imprecise after all rounds is not called `ok`."""
    return msgspec.structs.replace(measurement, verdict=UNSTABLE, error=DISAGREE)


def _round(backend: Backend, kernels: Sequence[Kernel], effort: Effort) -> list[list[Sample]]:
    backend.submit(kernels, effort)
    return backend.collect()


def _is_whole(nop: float) -> bool:
    return nop > 0 and abs(1 / nop - round(1 / nop)) < 0.001


def _reference(isa: str) -> Kernel:
    """NOPs, whose time is known where the width is a whole number."""
    return Kernel(instruction_set(isa).nop, 1, default_state(VECTOR_NONE, isa), b"", CANARY | FAST)


def _off(readings: Sequence[float], nop: float) -> float:
    """How far off what is known was read, relative."""
    return abs(statistics.median(readings) / nop - 1) if readings else 0.0


def _with_error(measurement: Measurement, samples: Sequence[Sample], off: float, places: int) -> Measurement:
    """With the error that the rounds show: what Student's distribution says of another mean of as many.

    What disturbs a little for seconds, or the clock, shifts all rounds alike: what is known was as far `off`.
    """
    starts = range(0, len(samples), places)
    means = [_mean([s.cycles for s in samples[n : n + places] if s.status == OK]) for n in starts]
    means = [mean for mean in means if not math.isnan(mean)]
    if measurement.verdict != STABLE or len(means) < 2:
        return measurement
    deviation = statistics.stdev(means) / math.sqrt(len(means))
    quantile = STUDENT[min(len(means), len(STUDENT) + 1) - 2]
    error = math.hypot(quantile * deviation / math.sqrt(2), off * measurement.cycles)
    return msgspec.structs.replace(measurement, spread=error)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan
