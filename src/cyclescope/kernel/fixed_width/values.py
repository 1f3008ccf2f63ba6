"""Values that operands of AArch64 and RISC-V hold, and the machine states made of them.

As for x86-64, no floating-point operand is denormal, zero, infinite or NaN unless that is the question, and
divisions and roots get two classes of values, fast and slow.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import instruction_set
from cyclescope.kernel.block import Register
from cyclescope.kernel.fixed_width.links import CONSTANT_VALUE, Helpers
from cyclescope.kernel.fixed_width.numbers import (
    compared_bytes,
    integer_bits,
    is_integer_vector_division,
    is_reversed,
    is_root,
    is_scaling,
    number_type,
)
from cyclescope.kernel.fixed_width.registers import CHAIN, RING, SOURCE
from cyclescope.kernel.patterns import ONE, SLOW_DIVIDE, SLOW_ROOT, pattern, repeated
from cyclescope.kernel.state import FIRST_WINDOW, STACK_TOP, MachineState

LINE = 64  # bytes from one of the other addresses to the next
FLOAT_BITS = 26  # general register of RISC-V with the bits of the form's floating-point value
_NOTHING = 14  # a general register of 0 that compressed instructions can name
DIVISOR_BITS = 17  # the same of the divisor
# FPCR: what overflows is the greatest number then, and no infinity, however often it is doubled.
TOWARDS_ZERO = 3 << 22
# Dividends and divisors with long quotients, by bits: the wide ones are A. Fog's.
_SLOW_INTEGER = {
    8: (0x77, 0x05), 16: (0x75E6, 0x0B), 32: (0x343A9ED7, 0x75E6), 64: (0x343A9ED744556677, 0x75E6E44F),
}  # fmt: skip
_FAST_INTEGER = (3, 2)  # quotient and remainder 1: neither may be skipped


def division_values(form: InstructionForm, speed: str) -> tuple[bytes, bytes]:
    """64 bytes of first and of second sources that take long, or are fast."""
    first, second = _dividend_and_divisor(form, speed)
    return (second, first) if is_reversed(form) else (first, second)


def _dividend_and_divisor(form: InstructionForm, speed: str) -> tuple[bytes, bytes]:
    if is_integer_vector_division(form):
        size = integer_bits(form) // 8
        first, second = integer_values(form, speed)
        return repeated(first, size), repeated(second, size)
    element = number_type(form) if number_type(form) in SLOW_ROOT else "f64"
    if speed == "fast":
        return ONE[element], ONE[element]
    if is_root(form):
        value, size = SLOW_ROOT[element]
        return repeated(value, size), repeated(value, size)
    dividend, divisor, size = SLOW_DIVIDE[element]
    return repeated(dividend, size), repeated(divisor, size)


def integer_values(form: InstructionForm, speed: str) -> tuple[int, int]:
    """Dividend and divisor."""
    return _SLOW_INTEGER[integer_bits(form)] if speed == "slow" else _FAST_INTEGER


def float_bits(element: str, values: bytes) -> int:
    """What an f register holds for a number of an element type: a NaN-boxed one where it is narrower."""
    size = {"f32": 4, "f16": 2, "bf16": 2}.get(element, 8)
    number = int.from_bytes(values[:size], "little")
    return number | (1 << 64) - (1 << 8 * size)


def start_state(form: InstructionForm, helpers: Helpers, level: int) -> MachineState:
    """Small distinct numbers, addresses in the address registers, ones in vectors and memory."""
    pools = helpers.pools
    general = [n + 1 for n in range(32)]
    for small, number in enumerate(pools.pools[SOURCE]["r"], 1):
        general[number] = small  # shorter than any vector, for instructions that slide by them
    general[pools.stack] = STACK_TOP
    general[pools.base] = general[pools.alias] = FIRST_WINDOW
    for place, number in enumerate(pools.others, 1):
        general[number] = FIRST_WINDOW + place * LINE
    general[pools.zero] = general[_NOTHING] = 0
    general[pools.constant] = CONSTANT_VALUE
    values = pattern(number_type(form))
    if compared_bytes(form):  # the comparison is true, and the store takes place
        values = repeated(CONSTANT_VALUE, compared_bytes(form))
        for number in {n for use in (RING, CHAIN, SOURCE) for n in pools.pools[use]["r"]} - {*pools.others}:
            general[number] = CONSTANT_VALUE
    scalars: tuple[int, ...] = ()
    if instruction_set(pools.isa).registers.has_floats:
        element = number_type(form) if number_type(form) in ONE else "f64"
        general[FLOAT_BITS] = float_bits(element, ONE[element])
        scalars = (general[FLOAT_BITS],) * 32
    vectors = [(pools.nought, bytes(64))] if pools.ones >= 0 else []
    vectors += [(n, value) for n, value in ((pools.ones, b"\xff" * 64), (pools.indices, bytes(64))) if n >= 0]
    if any(op.cls.startswith("VMask") for op in form.operands):
        vectors.append((0, b"\xff" * 64))
    if pools.addresses >= 0:
        vectors.append((pools.addresses, _addresses(form)))
    return MachineState(
        tuple(general), values, tuple(vectors), fill=(values, values), vector_level=level, flags=0,
        control=TOWARDS_ZERO if is_scaling(form) else 0, scalars=scalars, masks=((1 << 64) - 1,) * 16,
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


def with_divisions(
    state: MachineState, form: InstructionForm, seconds: Collection[Register], first: bytes, second: bytes
) -> MachineState:
    """The state with a first source in every vector register and in memory, and a second one in some."""
    vectors = {n for kind, n in seconds if kind == "v"}
    kept = [(n, value) for n, value in state.vectors if n not in vectors]
    general, scalars = list(state.general), state.scalars
    if scalars:
        bits = [float_bits(number_type(form), value) for value in (first, second)]
        scalars = tuple(bits[("f", n) in seconds] for n in range(32))
        general[FLOAT_BITS], general[DIVISOR_BITS] = bits
    for _, number in (register for register in seconds if register[0] == "r"):
        general[number] = float_bits("", second)
    return msgspec.structs.replace(
        state, general=tuple(general), vector=first, vectors=(*kept, *[(n, second) for n in sorted(vectors)]),
        scalars=scalars, fill=(first, first),
    )  # fmt: skip
