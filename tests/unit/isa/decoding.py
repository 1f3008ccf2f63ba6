"""Instructions as iced-x86 decodes them, and as a form with register numbers describes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from iced_x86 import (
    Code,
    Decoder,
    DecoderOptions,
    Instruction,
    MandatoryPrefix,
    MemorySizeExt,
    OpCodeInfo,
    OpKind,
    Register,
    RoundingControl,
)

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import BLOCKS, Operand
from cyclescope.isa.register import register_name

ADDRESS = 0x10000000
COUNTS = {"K": 8, "MM": 8, "ST": 8, "BND": 4, "TMM": 8, "SEG": 1}  # templates hold ES only


def _names(enum: object) -> dict[int, str]:
    items = ((getattr(enum, name), name) for name in dir(enum) if not name.startswith("_"))
    return {value: name for value, name in items if isinstance(value, int)}


REGISTERS = _names(Register)
CODES = _names(Code)


class Memory(NamedTuple):
    """An address, with the bits accessed there (0 for LEA)."""

    base: str
    index: str
    scale: int
    displacement: int
    width: int


class Decoded(NamedTuple):
    """Everything that an encoding says. `operands` are the explicit ones, without the mask."""

    code: str
    length: int
    operands: tuple[object, ...]
    mask: str = "NONE"
    zeroing: bool = False
    broadcast: bool = False
    rounding: str = ""
    prefix: str = ""


class Values(NamedTuple):
    """Arguments of `encode`."""

    registers: Sequence[int]
    displacement: int = 0
    immediates: Sequence[int] | None = None
    index: int | None = None


# --- what the form says -------------------------------------------------------------------------


def iced_register(cls: str, number: int) -> str:
    """Name of a register in iced-x86: `R8L` where Intel writes R8B, `ST0` for ST(0)."""
    if cls == "ST":
        return f"ST{number}"
    if cls == "R8l" and number >= 8:
        return f"R{number}L"
    return register_name(cls, number)


def explicit(form: InstructionForm) -> list[int]:
    """Positions of the operands that iced-x86 numbers: all but a mask and implicit ones."""
    masked = "masked" in form.attributes
    return [i for i, op in enumerate(form.operands) if not op.implicit and not (masked and i == 1)]


def described(form: InstructionForm, values: Values, length: int) -> Decoded:
    """What `encode` with these values has to give."""
    assert form.encoding is not None
    slots = zip(form.encoding.slots, values.registers, strict=True)
    numbers = {(slot.operand, slot.part): number for slot, number in slots}
    immediates = iter(values.immediates or ())
    operands = [_described_operand(form, i, numbers, values, immediates, length) for i in explicit(form)]
    return Decoded(
        form.code,
        length,
        tuple(operands),
        mask=iced_register("K", numbers[1, 0]) if "masked" in form.attributes else "NONE",
        zeroing="zeroing" in form.attributes,
        broadcast="broadcast" in form.attributes,
        rounding=next((a for a in ("rounding", "sae") if a in form.attributes), ""),
        prefix=next((a for a in ("lock", "rep", "repne") if a in form.attributes), ""),
    )


def _described_operand(
    form: InstructionForm,
    position: int,
    numbers: dict[tuple[int, int], int],
    values: Values,
    immediates: Iterator[int],
    length: int,
) -> object:
    op = form.operands[position]
    if op.is_register:
        if (position, 0) in numbers:
            return iced_register(op.cls, numbers[position, 0])
        return op.fixed
    if op.kind == "branch":
        target = ADDRESS + length + next(immediates)
        return target & (0xFFFF if "operand16" in form.attributes else (1 << 64) - 1)
    if op.kind == "immediate":
        return 1 if op.cls == "1" else next(immediates) & ((1 << op.width) - 1)
    return _described_memory(op, position, numbers, values, length)


def _described_memory(
    op: Operand, position: int, numbers: dict[tuple[int, int], int], values: Values, length: int
) -> Memory:
    base, index, displacement = "NONE", "NONE", values.displacement
    if (position, 1) in numbers:
        base = iced_register("R64", numbers[position, 1])
    if (position, 2) in numbers:
        cls = op.cls.removeprefix("VSIB_") if op.cls.startswith("VSIB") else "R64"
        index = iced_register(cls, numbers[position, 2])
    if values.index is not None:
        index = iced_register("R64", values.index)
    if op.cls == "LEA_R_D32":
        base, displacement = "RIP", displacement + ADDRESS + length
    scale = 2 if "_IS" in op.cls else 1
    return Memory(base, index, scale, displacement & (1 << 64) - 1, op.width if op.is_memory else 0)


# --- what iced-x86 decodes ----------------------------------------------------------------------


@cache
def options(code: int) -> int:
    """Decoder options of an opcode that is off by default (MPX, AMD's branches, ...)."""
    info = OpCodeInfo(code)
    return info.decoder_option or (0 if info.intel_decoder64 else DecoderOptions.AMD)


def decoded(form: InstructionForm, code: bytes) -> Decoded:
    """What iced-x86 reads in machine code of a form."""
    return read(form, decode(form, code))


def decode(form: InstructionForm, code: bytes) -> Instruction:
    """The first instruction of `code`, by the decoder that knows the form."""
    decoder = Decoder(64, code, options=options(getattr(Code, form.code)), ip=ADDRESS)
    return decoder.decode()


def read(form: InstructionForm, ins: Instruction) -> Decoded:
    """An iced-x86 instruction with the operands that the form counts as explicit."""
    positions = explicit(form)
    widths = [form.operands[p].width for p in positions] + [64] * ins.op_count
    operands = [_read_operand(ins, i, width) for i, width in zip(shown(form, ins), widths, strict=False)]
    return Decoded(
        CODES[ins.code],
        ins.len,
        tuple(operands),
        mask=REGISTERS[ins.op_mask],
        zeroing=ins.zeroing_masking,
        broadcast=ins.is_broadcast,
        rounding=_rounding(ins),
        prefix="" if OpCodeInfo(ins.code).mandatory_prefix == MandatoryPrefix.PF3 else _prefix(ins),
    )


def shown(form: InstructionForm, ins: Instruction) -> list[int]:
    """The operands of iced-x86 that the form counts as explicit."""
    return [i for i in range(ins.op_count) if not _is_implicit(form, ins, i)]


_STRING_KINDS = {OpKind.MEMORY_SEG_RSI, OpKind.MEMORY_SEG_RDI, OpKind.MEMORY_ESRDI}


def _is_implicit(form: InstructionForm, ins: Instruction, index: int) -> bool:
    """String operands, and the accumulator next to them, are implicit in the table."""
    kinds = [ins.op_kind(i) for i in range(ins.op_count)]
    if not _STRING_KINDS.isdisjoint(kinds):
        return kinds[index] in _STRING_KINDS or REGISTERS[ins.op_register(index)] in {
            op.fixed for op in form.operands if op.implicit
        }
    return form.mnemonic == "XLATB"


def _read_operand(ins: Instruction, index: int, width: int) -> object:
    kind = ins.op_kind(index)
    if kind == OpKind.REGISTER:
        return REGISTERS[ins.op_register(index)]
    if kind == OpKind.MEMORY:
        lea = ins.memory_size == 0 and width == 64 and ins.op0_kind == OpKind.REGISTER
        bits = 0 if lea else MemorySizeExt.size(ins.memory_size) * 8
        registers = REGISTERS[ins.memory_base], REGISTERS[ins.memory_index]
        return Memory(*registers, ins.memory_index_scale, ins.memory_displacement, bits)
    if kind in (OpKind.NEAR_BRANCH16, OpKind.NEAR_BRANCH32, OpKind.NEAR_BRANCH64):
        return ins.near_branch_target
    return ins.immediate(index) & ((1 << width) - 1)


def _rounding(ins: Instruction) -> str:
    if ins.rounding_control == RoundingControl.ROUND_TO_NEAREST:
        return "rounding"
    return "sae" if ins.suppress_all_exceptions else ""


def _prefix(ins: Instruction) -> str:
    found = {"lock": ins.has_lock_prefix, "rep": ins.has_rep_prefix, "repne": ins.has_repne_prefix}
    return ",".join(name for name, present in found.items() if present)


# --- register numbers that a form can encode ----------------------------------------------------


def legal_numbers(form: InstructionForm) -> list[list[int]]:
    """Register numbers per slot that are encodable and mean what they say."""
    assert form.encoding is not None
    return [_legal(form, slot.operand, slot.part) for slot in form.encoding.slots]


def _legal(form: InstructionForm, position: int, part: int) -> list[int]:
    assert form.encoding is not None
    op = form.operands[position]
    general = range(8 if "high_byte" in form.attributes else 16)  # REX turns AH into SPL
    if part == 1:
        escapes = set() if any(slot.part == 2 for slot in form.encoding.slots) else {4}  # 4: a SIB byte
        if form.encoding.displacement is None:
            escapes.add(5)  # no base
        return [n for n in general if n & 7 not in escapes]
    if part == 2 and not op.cls.startswith("VSIB_"):
        return [n for n in general if n != 4]  # index = 4 is "no index"
    if part == 0 and op.cls in ("R16", "R32", "R64"):
        return list(general)[1:] if form.code.startswith("XCHG_") and form.memory < 0 else list(general)
    if op.cls in ("R8l", "R8h"):
        low = range(4 if "high_byte" in form.attributes else 16)
        return [4, 5, 6, 7] if op.cls == "R8h" else list(low)
    return _legal_other(form, position, op)


def _legal_other(form: InstructionForm, position: int, op: Operand) -> list[int]:
    count = COUNTS.get(op.cls, 32 if "evex" in form.attributes else 16)
    if "masked" in form.attributes and position == 1:
        return list(range(1, count))  # k0 means no mask
    return list(range(0, count, BLOCKS.get(op.fixed, 1)))


def choices(form: InstructionForm, count: int) -> Iterator[list[int]]:
    """Choices of numbers: the lowest, the highest, then mixed ones.

    Operands with the same pool get different registers, as gathers and some others need.
    """
    pools = legal_numbers(form)
    for turn in range(count):
        yield [_pick(pool, turn, place) for place, pool in enumerate(pools)]


def _pick(pool: list[int], turn: int, place: int) -> int:
    if turn == 0:
        return pool[place % len(pool)]
    if turn == 1:
        return pool[-1 - place % len(pool)]
    return pool[(11 * turn + 5 * place) % len(pool)]
