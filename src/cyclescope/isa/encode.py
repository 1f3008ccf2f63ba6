"""The encoder: base word plus scattered operand bits, the same for every form."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from cyclescope.isa.fields import default_value
from cyclescope.isa.form import Encoding, InstructionForm, Slot
from cyclescope.isa.register import domain

_VEX2, _VEX3 = 0xC5, 0xC4
_LEGACY_PREFIXES = frozenset((0x66, 0xF2, 0xF3, 0xF0, 0x2E, 0x36, 0x3E, 0x26, 0x64, 0x65))
_MODRM_SIB = 4  # rm field value that announces a SIB byte
_STACK_POINTER, _NO_INDEX = 4, 4  # RSP, and what stands for no index in a SIB byte
_FRAME_POINTER = 5  # RBP or R13, which stand for no base where there is no displacement


@cache
def default_immediates(form: InstructionForm) -> tuple[int, ...]:
    """Immediate values that uops.info uses too: 2 for 8 bits, else a single high bit.

    On AArch64 and RISC-V a plain value of every field that is no register: see `default_value`.
    """
    if form.bits is not None:
        fields = (field for field in form.bits.fields if not field.is_register)
        return tuple(default_value(field, form.operands[field.operand].role) for field in fields)
    classes = [op.cls for op in form.operands if op.kind in ("immediate", "branch")]
    values = {"0": 0, "I8": 2, "I16": 1 << 8, "I32": 1 << 24, "I64": 1 << 56}
    return tuple(values.get(cls, 0) for cls in classes if cls != "1")


def encode(
    form: InstructionForm,
    registers: Sequence[int],
    displacement: int = 0,
    immediates: Sequence[int] | None = None,
    index: int | None = None,
) -> bytes:
    """Machine code of a form with the given register numbers, one per encoding slot.

    `index` adds an index register (0 to 7, not 4) with scale 1 to a base-only address. On AArch64 and
    RISC-V there is a register per field that holds one, and an immediate, as encoded, per other field.
    Raises ValueError where the form has no encoding or a value does not fit.
    """
    if form.bits is not None:
        return form.bits.encode(field_values(form, registers, displacement, immediates, index))
    encoding = form.encoding
    if encoding is None:
        raise ValueError(f"{form.id} has no encoding template")
    word = encoding.base
    try:
        for number, scatter in zip(registers, encoding.scatter, strict=True):
            word ^= scatter[number]
    except IndexError:
        return _widen(form, registers, displacement, immediates, index)
    if displacement:
        word |= _displacement(encoding, displacement)
    values = default_immediates(form) if immediates is None else immediates
    for (offset, size), value in zip(encoding.immediates, values, strict=False):
        limit = 1 << 8 * size
        if not -limit <= 2 * value < 2 * limit:
            raise ValueError(f"immediate {value} does not fit")
        word |= (value & (limit - 1)) << 8 * offset
    try:
        code = word.to_bytes(encoding.length, "little")
    except OverflowError:  # see Encoding.scatter
        return _on_stack(form, registers, displacement, immediates, index)
    return code if index is None else _add_index(encoding, code, index)


def field_values(
    form: InstructionForm,
    registers: Sequence[int],
    displacement: int = 0,
    immediates: Sequence[int] | None = None,
    index: int | None = None,
) -> list[int]:
    """Values of all fields of an AArch64 or RISC-V form; arguments as for `encode`. Raises ValueError."""
    if form.bits is None or displacement or index is not None:
        raise ValueError(f"{form.id}: offset and index are operands of their own")
    given = iter(registers), iter(default_immediates(form) if immediates is None else immediates)
    values = [next(given[not field.is_register], None) for field in form.bits.fields]
    if None in values or any(next(rest, None) is not None for rest in given):
        raise ValueError(f"{form.id} has other operands")
    return [value for value in values if value is not None]


def _widen(
    form: InstructionForm,
    registers: Sequence[int],
    displacement: int,
    immediates: Sequence[int] | None,
    index: int | None,
) -> bytes:
    """Registers 8 to 15 in a template without a bit for them: a longer VEX or a REX prefix."""
    encoding = form.encoding
    assert encoding is not None
    fields = list(zip(registers, encoding.scatter, encoding.slots, strict=True))
    wide = [(n, s, slot) for n, s, slot in fields if n >= len(s)]
    if any(n > 15 or len(s) != 8 or not _is_extensible(form, slot) for n, s, slot in wide):
        raise ValueError(f"{form.id} cannot encode registers {tuple(registers)}")
    low = [n & 7 if n >= len(s) else n for n, s, _ in fields]
    code = encode(form, low, displacement, immediates, index)
    # The lowest bit of a field is bit 0 (ModRM.rm, opcode) or bit 3 (ModRM.reg) of its byte.
    extends_reg = any((s[1].bit_length() - 1) % 8 == 3 for _, s, _ in wide)
    extends_rm = any((s[1].bit_length() - 1) % 8 == 0 for _, s, _ in wide)
    if code[0] == _VEX2:
        if extends_reg:
            raise ValueError(f"{form.id} has an incomplete VEX template")
        return bytes((_VEX3, code[1] & 0x80 | 0x41, code[1] & 0x7F)) + code[2:]
    at = next(i for i, byte in enumerate(code) if byte not in _LEGACY_PREFIXES)
    rex = 0x40 | extends_reg << 2 | extends_rm
    return code[:at] + bytes((rex,)) + code[at:]


def _is_extensible(form: InstructionForm, slot: Slot) -> bool:
    """Whether a prefix can give a fourth bit: not to MMX or x87, and not next to AH, BH, CH or DH."""
    if "high_byte" in form.attributes:
        return False
    return slot.part > 0 or domain(form.operands[slot.operand].cls) in ("r", "v")


def _on_stack(
    form: InstructionForm,
    registers: Sequence[int],
    displacement: int,
    immediates: Sequence[int] | None,
    index: int | None,
) -> bytes:
    """The stack pointer as a base: only an address with a SIB byte can have it."""
    encoding = form.encoding
    assert encoding is not None
    slots = enumerate(zip(registers, encoding.slots, strict=True))
    bases = [n for n, (number, slot) in slots if number == _STACK_POINTER and slot.part > 0]
    if len(bases) != 1 or index is not None or encoding.modrm < 0:
        raise ValueError(f"{form.id} cannot encode registers {tuple(registers)}")
    other = [0 if n in bases else number for n, number in enumerate(registers)]
    return _with_sib(encoding, encode(form, other, displacement, immediates), _NO_INDEX, _STACK_POINTER)


def _displacement(encoding: Encoding, displacement: int) -> int:
    if encoding.displacement is None:
        raise ValueError("the form has no displacement")
    offset, size, scale = encoding.displacement
    quotient, rest = divmod(displacement, scale)
    limit = 1 << (8 * size - 1)
    if rest or not (-limit <= quotient < limit or (size == 8 and quotient < 2 * limit)):
        raise ValueError(f"displacement {displacement} does not fit")
    return (quotient & ((1 << 8 * size) - 1)) << 8 * offset


def _add_index(encoding: Encoding, code: bytes, index: int) -> bytes:
    if encoding.modrm < 0 or index == _MODRM_SIB or not 0 <= index < 8:
        raise ValueError("no index register can be added")
    return _with_sib(encoding, code, index, code[encoding.modrm] & 7)


def _with_sib(encoding: Encoding, code: bytes, index: int, base: int) -> bytes:
    """Code of a base alone, with a SIB byte that has another base or an index."""
    at = encoding.modrm
    return code[:at] + bytes((code[at] & ~7 | _MODRM_SIB, index << 3 | base)) + code[at + 1 :]


def readdressed(form: InstructionForm, code: bytes, scale: int, is_short: bool) -> bytes:
    """Code of an address with an index: this one times `scale`, without a displacement where it `is_short`.

    Raises ValueError for a base that cannot be without one.
    """
    encoding = form.encoding
    assert encoding is not None
    at, sib = encoding.modrm, encoding.modrm + 1
    found = bytearray(code)
    found[sib] |= (scale.bit_length() - 1) << 6
    if is_short:
        if encoding.displacement is None or found[sib] & 7 == _FRAME_POINTER:
            raise ValueError(f"{form.id} has to have a displacement")
        first, size, _ = encoding.displacement
        found[at] &= 0x3F
        del found[first + 1 : first + 1 + size]
    return bytes(found)


def takes_index(form: InstructionForm) -> bool:
    """Whether `encode` can add an index register to the form's address."""
    return form.encoding is not None and form.encoding.modrm >= 0
