"""Values that operands of AArch64 and RISC-V hold, and the machine states made of them.

As for x86-64, no floating-point operand is denormal, zero, infinite or NaN unless that is the question, and
divisions and roots get two classes of values, fast and slow.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import msgspec

from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.fixed_width.links import CONSTANT_VALUE, Helpers
from cyclescope.kernel.patterns import ONE, SLOW_DIVIDE, SLOW_ROOT, pattern, repeated
from cyclescope.kernel.state import FIRST_WINDOW, STACK_TOP, MachineState

LINE = 64  # bytes from one of the other addresses to the next
FLOAT_BITS = 26  # general register of RISC-V with the bits of the form's floating-point value
NOTHING = 14  # a general register of 0 that compressed instructions can name
_INTEGER = re.compile(r"[SU]DIV$|(C\.)?(DIV|REM)U?W?$")
_ROOT = re.compile(r"V?FSQRT")
_DIVISION = re.compile(r"V?FR?DIV")
_SLOW_INTEGER = {32: (0x343A9ED7, 0x75E6), 64: (0x343A9ED744556677, 0x75E6E44F)}


def is_integer_division(form: InstructionForm) -> bool:
    """Whether the form divides general registers."""
    return bool(_INTEGER.match(form.mnemonic)) and all(op.file in ("r", "?", "") for op in form.operands)


def is_vector_division(form: InstructionForm) -> bool:
    """Whether the form divides floating-point numbers or takes roots of them."""
    return bool(_ROOT.match(form.mnemonic) or _DIVISION.match(form.mnemonic))


def is_division(form: InstructionForm) -> bool:
    """Whether the time depends on the values."""
    return is_integer_division(form) or is_vector_division(form)


def slow_values(form: InstructionForm) -> tuple[bytes, bytes]:
    """64 bytes of dividends (or radicands) and of divisors that take long."""
    element = form.element if form.element in SLOW_ROOT else "f64"
    if _ROOT.match(form.mnemonic):
        value, size = SLOW_ROOT[element]
        return repeated(value, size), repeated(value, size)
    dividend, divisor, size = SLOW_DIVIDE[element]
    return repeated(dividend, size), repeated(divisor, size)


def integer_values(form: InstructionForm, speed: str) -> tuple[int, int]:
    """Dividend and divisor of general registers."""
    width = 32 if form.mnemonic.endswith("W") or form.operands[0].width == 32 else 64
    return _SLOW_INTEGER[width] if speed == "slow" else (0, 1)


def float_bits(element: str, values: bytes) -> int:
    """What an f register holds for a number of an element type: a NaN-boxed one where it is narrower."""
    size = {"f32": 4, "f16": 2, "bf16": 2}.get(element, 8)
    number = int.from_bytes(values[:size], "little")
    return number | (1 << 64) - (1 << 8 * size)


def start_state(form: InstructionForm, helpers: Helpers, level: int) -> MachineState:
    """Small distinct numbers, addresses in the address registers, ones in vectors and memory."""
    pools = helpers.pools
    general = [n + 1 for n in range(32)]
    general[pools.stack] = STACK_TOP
    general[pools.base] = general[pools.alias] = FIRST_WINDOW
    for place, number in enumerate(pools.others, 1):
        general[number] = FIRST_WINDOW + place * LINE
    general[pools.zero] = general[NOTHING] = 0
    general[pools.constant] = CONSTANT_VALUE
    values = pattern(form.element)
    scalars: tuple[int, ...] = ()
    if pools.isa == "riscv64":
        element = form.element if form.element in ONE else "f64"
        general[FLOAT_BITS] = float_bits(element, ONE[element])
        scalars = (general[FLOAT_BITS],) * 32
    vectors = [(pools.nought, bytes(64))] if pools.ones >= 0 else []
    vectors += [(n, value) for n, value in ((pools.ones, b"\xff" * 64), (pools.indices, bytes(64))) if n >= 0]
    if pools.isa == "riscv64":
        vectors.append((0, b"\xff" * 64))  # the mask
    if pools.addresses >= 0:
        vectors.append((pools.addresses, _addresses(form)))
    return MachineState(
        tuple(general), values, tuple(vectors), fill=(values, values), vector_level=level, flags=0,
        control=0, scalars=scalars, masks=((1 << 64) - 1,) * 16,
    )  # fmt: skip


def _addresses(form: InstructionForm) -> bytes:
    """A vector of addresses: of 32 bits where the form has such."""
    narrow = any(op.role == "base" and op.file == "v" and op.cls.startswith("ZPR32") for op in form.operands)
    return repeated(FIRST_WINDOW, 4 if narrow else 8)


def with_zeros(state: MachineState, numbers: Collection[int]) -> MachineState:
    """The state with 0 in some vector registers."""
    vectors = (*state.vectors, *[(number, bytes(64)) for number in sorted(numbers)])
    return msgspec.structs.replace(state, vectors=vectors) if numbers else state


def with_integers(state: MachineState, numbers: Sequence[int], values: Sequence[int]) -> MachineState:
    """The state with other values in some general registers."""
    general = list(state.general)
    for number, value in zip(numbers, values, strict=True):
        general[number] = value
    return msgspec.structs.replace(state, general=tuple(general))


def with_vectors(
    state: MachineState, form: InstructionForm, divisors: tuple[int, ...], dividend: bytes, divisor: bytes
) -> MachineState:
    """The state with a dividend in every vector register and in memory, and a divisor in some."""
    kept = [(n, value) for n, value in state.vectors if n not in divisors]
    vectors = (*kept, *[(n, divisor) for n in divisors])
    scalars = state.scalars
    general = list(state.general)
    if scalars:
        bits = [float_bits(form.element, value) for value in (dividend, divisor)]
        scalars = tuple(bits[n in divisors] for n in range(32))
        general[FLOAT_BITS] = bits[0]
    return msgspec.structs.replace(
        state, general=tuple(general), vector=dividend, vectors=vectors, scalars=scalars,
        fill=(dividend, dividend),
    )  # fmt: skip
