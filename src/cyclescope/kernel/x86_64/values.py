"""Values that operands hold, and the machine states made of them.

No floating-point operand is denormal, zero, infinite or NaN unless that is the question: vectors and
memory hold 1.0 in the element type the form works on. Division and square root get two classes of
values, fast and slow; the slow ones are Agner Fog's (Test programs for measuring clock cycles).
"""

from __future__ import annotations

import re
import struct
from functools import cache

import msgspec

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.register import domain
from cyclescope.kernel import patterns
from cyclescope.kernel.state import (
    FIRST_WINDOW,
    STACK_TOP,
    VECTOR_EVEX512,
    VECTOR_LEGACY,
    VECTOR_NONE,
    VECTOR_VEX128,
    VECTOR_VEX256,
    MachineState,
)
from cyclescope.kernel.x86_64.registers import (
    ALIAS,
    BASE,
    NARROW_BASE,
    STACK,
    VECTOR_INDICES,
    VECTOR_ONES,
    VECTOR_ZERO,
    X86RegisterRoles,
)

_PATTERNS = {
    "mxcsr": struct.pack("<16I", *[0x1F80] * 16),
    "zero": bytes(64),
    "fcw": struct.pack("<32H", *[0x37F] * 32),
    "complex": struct.pack("<32H", *[0x3C00, 0] * 16),  # 1 of f16, without an imaginary part
}
DIVISOR_VECTOR, DIVISOR_CONSTANT = 12, 10  # vector registers that hold the divisor in slow chains
LOW_HALF, HIGH_HALF, DIVISOR = 10, 11, 12  # general registers: the dividend's halves and the divisor
_ROOT = re.compile(r"V?(R?SQRT(14|28)?)[PS][SDH]$|FSQRT$")
_DIVISION = re.compile(r"V?DIV[PS][SDH]$|FI?DIVR?P?$")
_NARROWING = re.compile(r"V?CVT(PD2PS|PS2PHX?|PD2PH)$")
INTEGER_DIVISION = ("DIV", "IDIV")

# dividend (low, high) and divisor by operand width
_SLOW_INTEGER = {
    8: (13057, 0, 123),
    16: (133, 0x343A, 0x75E6),
    32: (133, 0x343A9ED7, 0x75E6E44F),
    64: (133, 0x343A9ED744556677, 0x75E6E44FCCDDEEFF),
}


class Division(msgspec.Struct, frozen=True):
    """Values of a division or square root: 64-byte dividend (or radicand) and divisor patterns."""

    dividend: bytes
    divisor: bytes


def is_narrowing(form: InstructionForm) -> bool:
    """Whether the form makes narrower floating-point numbers of wide ones."""
    return bool(_NARROWING.match(form.mnemonic))


def is_division(form: InstructionForm) -> bool:
    """Whether the time depends on the values: division or square root."""
    name = form.mnemonic
    return name in INTEGER_DIVISION or bool(_ROOT.match(name) or _DIVISION.match(name))


def vector_division(form: InstructionForm, speed: str) -> Division:
    """Operand patterns of a floating-point division or root; `speed` is `fast` or `slow`."""
    element = form.element if form.element in patterns.SLOW_ROOT else "f64"
    if speed == "fast":
        return Division(patterns.ONE[element], patterns.ONE[element])
    if _ROOT.match(form.mnemonic):
        value, size = patterns.SLOW_ROOT[element]
        return Division(patterns.repeated(value, size), patterns.repeated(value, size))
    dividend, divisor, size = patterns.SLOW_DIVIDE[element]
    return Division(patterns.repeated(dividend, size), patterns.repeated(divisor, size))


def integer_division(form: InstructionForm, speed: str) -> tuple[int, int, int]:
    """(RAX, RDX, divisor) of an integer division."""
    op = form.operands[0]
    if speed == "slow":
        return _SLOW_INTEGER[op.width]
    return 0, 0, 1


def pattern(element: str) -> bytes:
    """64 bytes of harmless values of an element type, of control registers too."""
    return _PATTERNS.get(element) or patterns.pattern(element)


def vector_level(form: InstructionForm) -> int:
    """How much vector state the form needs."""
    if "evex" in form.attributes or any(op.cls == "K" for op in form.operands):
        return VECTOR_EVEX512
    width = form.vector_width
    if width <= 64 and not form.is_vex:
        return VECTOR_NONE
    if not form.is_vex:
        return VECTOR_LEGACY
    return VECTOR_VEX256 if width >= 256 else VECTOR_VEX128


def origin(form: InstructionForm) -> int:
    """Displacement of the form's first data: an address where the operand has no base register."""
    return FIRST_WINDOW if any(op.cls.startswith("Moffs") for op in form.operands) else 0


_COMPARE = re.compile(r"V?CMP[PS][SDH]$")
_DOT = re.compile(r"V?DPP[SD]$")
_LANE = re.compile(r"V(EXTRACT|INSERT)[FI]\d+(X\d)?$|VSHUF[FI]\d+X\d$|VALIGN[DQ]$")
_TWO_LANES = re.compile(r"VPERM2[FI]128$")

# What may copy a register, so that with one register for both it would do nothing: without a mask all
# elements are compressed and expanded to themselves, and a blend takes one source.
_MOVES = (
    "MOV", "VMOV", "KMOV", "XCHG", "VPCOMPRESS", "VCOMPRESSP", "VPEXPAND", "VEXPANDP", "VBLENDM", "VPBLENDM",
)  # fmt: skip


def may_copy(form: InstructionForm) -> bool:
    """Whether the form may copy a register."""
    return form.mnemonic.startswith(_MOVES)


def immediates(form: InstructionForm) -> tuple[int, ...] | None:
    """Immediates that matter, or None for the usual ones.

    Comparisons ask for equality, the quiet one: chained results are no numbers. Where a lane is
    selected it is the one that does not stay in place, which some CPUs do for less. A dot product is that of
    the first elements: the usual value selects none. Two vectors that are aligned are both in the result, and
    so is a lane of each where lanes of two are chosen. A form of immediate 0 has that.
    """
    return None if any(op.cls == "0" for op in form.operands) else _immediates(form.mnemonic)


@cache
def _immediates(mnemonic: str) -> tuple[int, ...] | None:
    if _TWO_LANES.match(mnemonic):
        return (0x21,)
    if _DOT.match(mnemonic):
        return (0x11,)
    if _COMPARE.match(mnemonic):
        return (0,)
    return (1,) if _LANE.match(mnemonic) else None


def general_values(roles: X86RegisterRoles) -> list[int]:
    """Small distinct numbers, addresses in the address registers, 0 in the index."""
    values = [n + 1 for n in range(16)]
    values[STACK] = STACK_TOP
    values[BASE] = values[ALIAS] = FIRST_WINDOW
    if roles.narrow:
        values[NARROW_BASE] = FIRST_WINDOW
    values[roles.index] = 0
    return values


# Registers and memory with a value that the form insists on.
_REQUIRED = {
    "XGETBV": {1: 0}, "RDPRU": {1: 1}, "CPUID": {0: 0, 1: 0}, "JRCXZ": {1: 5}, "JECXZ": {1: 5},
    "JO": {10: 1 << 63}, "JNO": {10: 1 << 63},
}  # fmt: skip
_ELEMENTS = {"LDMXCSR": "mxcsr", "VLDMXCSR": "mxcsr", "FLDCW": "fcw"}
_ELEMENTS |= {f"VSCALEF{kind}": "zero" for kind in ("PD", "PS", "PH", "SD", "SS", "SH")}  # 0 * 2 ** 0
_ELEMENTS |= {
    f"VF{conjugate}{name}{kind}": "complex"
    for conjugate in ("", "C") for name in ("MULC", "MADDC") for kind in ("PH", "SH")
}  # fmt: skip
_ADDRESS_REGISTERS = {"RSI": 6, "RDI": 7, "RBX": 3, "RAX": 0, "RBP": 5}


@cache
def _state(
    general: tuple[int, ...], element: str, level: int, x87: bool, divided: Division | None
) -> MachineState:
    fill = divided.divisor if divided else pattern(element)
    vector = divided.dividend if divided else fill
    vectors = [(VECTOR_ONES, b"\xff" * 64), (VECTOR_ZERO, bytes(64))]
    return MachineState(general, vector, tuple(vectors), fill=(fill, fill), vector_level=level, x87=x87)


def chain_state(
    form: InstructionForm, roles: X86RegisterRoles, avx: bool = True, speed: str = ""
) -> MachineState:
    """State for latency chains: helpers' constants in vectors 12 (divisor), 14 and 15."""
    level = max(vector_level(form), VECTOR_VEX128 if avx else VECTOR_LEGACY)
    state = _with_values(form, roles, speed, level)
    if "vsib" in form.attributes:  # every index 0
        return msgspec.structs.replace(
            state, vectors=(*state.vectors, *[(n, bytes(64)) for n in VECTOR_INDICES])
        )
    if not speed or form.mnemonic in INTEGER_DIVISION:
        return state
    divisor = vector_division(form, speed).divisor
    return msgspec.structs.replace(
        state, vectors=(*state.vectors, *[(n, divisor) for n in (DIVISOR_VECTOR, DIVISOR_CONSTANT)])
    )


def stream_state(form: InstructionForm, roles: X86RegisterRoles, speed: str = "") -> MachineState:
    """State for throughput sequences: every vector register holds the form's values."""
    state = _with_values(form, roles, speed, vector_level(form))
    return msgspec.structs.replace(state, vectors=_stream_vectors(form, roles, speed))


def _stream_vectors(
    form: InstructionForm, roles: X86RegisterRoles, speed: str
) -> tuple[tuple[int, bytes], ...]:
    if "vsib" in form.attributes:  # every index 0
        return ((roles.vector_sources[-1], bytes(64)),)
    reads = [op for op in form.operands if op.is_register and domain(op.cls) == "v" and not op.write]
    if "MASKMOV" in form.mnemonic:  # select every element
        return tuple(
            (roles.vector_sources[n], b"\xff" * 64) for n, op in enumerate(reads) if op.name == "op2"
        )
    if not speed or form.mnemonic in INTEGER_DIVISION:
        return ()
    if not reads or form.memory >= 0:
        return ()
    return ((roles.vector_sources[len(reads) - 1], vector_division(form, speed).divisor),)


def _with_values(form: InstructionForm, roles: X86RegisterRoles, speed: str, level: int) -> MachineState:
    general = general_values(roles)
    for number, value in _REQUIRED.get(form.mnemonic, {}).items():
        general[number] = value
    for op in form.operands:
        if op.is_memory and op.implicit and op.fixed in _ADDRESS_REGISTERS:
            general[_ADDRESS_REGISTERS[op.fixed]] = FIRST_WINDOW
    x87 = not form.attributes.isdisjoint(("x87", "mmx", "d3now"))
    element = _ELEMENTS.get(form.mnemonic, form.element)
    if speed and form.mnemonic in INTEGER_DIVISION:
        integers = _integer_state(form, roles, general, speed)
        return _state(tuple(general), element, level, x87, integers)
    divided = vector_division(form, speed) if speed else None
    return _state(tuple(general), element, level, x87, divided)


def _integer_state(
    form: InstructionForm, roles: X86RegisterRoles, general: list[int], speed: str
) -> Division:
    low, high, divisor = integer_division(form, speed)
    for number in (*roles.general_sources, *roles.general_chain[:1]):
        general[number] = divisor | (divisor << 8 if form.operands[0].cls == "R8h" else 0)
    general[0], general[2] = low, high
    general[LOW_HALF], general[HIGH_HALF], general[DIVISOR] = low, high, divisor
    return Division(patterns.INTEGERS, patterns.repeated(divisor, form.operands[0].width // 8))
