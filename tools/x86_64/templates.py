"""Encoding templates: which bit of the encoding holds which bit of which register number.

Found by flipping every bit of an example and decoding: a bit that changes exactly one register
number and nothing else is a field bit. Encoding is then `base XOR scatter(register numbers)`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from iced_x86 import (
    ConstantOffsets,
    Decoder,
    DecoderOptions,
    Encoder,
    Instruction,
    OpCodeInfo,
    OpKind,
    Register,
    RegisterExt,
)

from .enumerate_forms import CODE, CODE_ADDRESS, FIXED, REG, Builder, Variant, is_register

BYTE_NUMBERS = {
    "AL": 0, "CL": 1, "DL": 2, "BL": 3, "AH": 4, "CH": 5, "DH": 6, "BH": 7,
    "SPL": 4, "BPL": 5, "SIL": 6, "DIL": 7,
}  # fmt: skip
BYTE_NUMBERS.update({f"R{i}L": i for i in range(8, 16)})


@dataclass
class Template:
    """Encoding of one form with all register fields zero."""

    base: int
    length: int
    fields: dict[str, list[int]] = field(default_factory=dict)  # slot -> bit position per value bit
    displacement: tuple[int, int, int] | None = None  # byte offset, bytes, scale
    immediates: list[tuple[int, int]] = field(default_factory=list)  # byte offset, bytes
    modrm: int = -1  # byte offset of ModRM, for memory operands with disp8
    example: bytes = b""


def register_number(register: int) -> int:
    """Hardware number of an iced register."""
    name = REG[register]
    return BYTE_NUMBERS[name] if name in BYTE_NUMBERS else RegisterExt.number(register)


def _group(register: int) -> str:
    name = REG[register]
    stripped = name.rstrip("0123456789")
    if stripped in ("XMM", "YMM", "ZMM", "MM", "TMM", "BND", "ST", "K"):
        return stripped
    if RegisterExt.is_gpr(register):
        return "H" if name in ("AH", "CH", "DH", "BH") else f"G{RegisterExt.size(register)}"
    return name


def slots(variant: Variant, ins: Instruction) -> list[tuple[str, int]]:
    """Encodable registers as (slot, register): operand index, `base`, `index` or `mask`."""
    result = [(str(i), ins.op_register(i)) for i in range(ins.op_count) if is_register(variant, i)]
    memory = any(ins.op_kind(i) == OpKind.MEMORY for i in range(ins.op_count))
    implicit = "SEG_RBX_AL" in variant.kinds
    if memory and not implicit:
        if ins.memory_base not in (Register.NONE, Register.RIP):
            result.append(("base", ins.memory_base))
        if ins.memory_index != Register.NONE:
            result.append(("index", ins.memory_index))
    if ins.op_mask != Register.NONE:
        result.append(("mask", ins.op_mask))
    return result


def encode(ins: Instruction) -> bytes | None:
    """The bytes of an instruction, or None where iced refuses."""
    encoder = Encoder(64)
    try:
        encoder.encode(ins, CODE_ADDRESS)
    except ValueError:
        return None
    return encoder.take_buffer()


def decoder_options(info: OpCodeInfo) -> int:
    """Options that make iced decode this opcode (AMD's 16-bit branches, MPX, ...)."""
    return info.decoder_option or (0 if info.intel_decoder64 else DecoderOptions.AMD)


def decode(code: bytes, info: OpCodeInfo) -> tuple[Instruction, ConstantOffsets]:
    """The instruction at the start of `code`."""
    decoder = Decoder(64, code, options=decoder_options(info), ip=CODE_ADDRESS)
    ins = decoder.decode()
    return ins, decoder.get_constant_offsets(ins)


def _same_rest(a: Instruction, b: Instruction) -> bool:
    return (
        a.code == b.code
        and a.len == b.len
        and all(a.op_kind(i) == b.op_kind(i) for i in range(a.op_count))
        and a.memory_displacement == b.memory_displacement
        and a.memory_index_scale == b.memory_index_scale
        and a.immediate8 == b.immediate8
        and a.is_broadcast == b.is_broadcast
        and a.zeroing_masking == b.zeroing_masking
        and a.rounding_control == b.rounding_control
        and a.segment_prefix == b.segment_prefix
        and a.has_lock_prefix == b.has_lock_prefix
        and a.has_rep_prefix == b.has_rep_prefix
        and a.has_repne_prefix == b.has_repne_prefix
    )


def _field_bits(variant: Variant, code: bytes, ins: Instruction) -> dict[str, dict[int, int]]:
    """slot -> {value bit: position} by flipping each bit of `code`."""
    base = slots(variant, ins)
    found: dict[str, dict[int, int]] = {name: {} for name, _ in base}
    fixed = {str(i) for i, k in enumerate(variant.kinds) if k in FIXED or k == "SEG_REG"}
    for position in range(len(code) * 8):
        flipped = bytearray(code)
        flipped[position >> 3] ^= 1 << (position & 7)
        other, _ = decode(bytes(flipped), variant.info)
        if not _same_rest(ins, other):
            continue
        others = slots(variant, other)
        if len(others) != len(base):  # the mask became k0, the base became RIP-relative, ...
            continue
        changed = [(n, r, s) for (n, r), (_, s) in zip(base, others, strict=True) if r != s]
        if len(changed) != 1:
            continue
        name, old, new = changed[0]
        if name in fixed or not new or _group(old) != _group(new):
            continue
        difference = register_number(old) ^ register_number(new)
        if difference & (difference - 1) == 0 and difference:
            found[name].setdefault(difference, position)
    return found


def _verify(variant: Variant, code: bytes, bits: dict[str, dict[int, int]], ins: Instruction) -> bool:
    """Random register numbers must decode back to themselves."""
    rng = random.Random(5)
    base = slots(variant, ins)
    for _ in range(8):
        flipped, wanted = bytearray(code), {}
        for name, register in base:
            change = rng.getrandbits(5) & sum(bits[name])
            wanted[name] = register_number(register) ^ change
            for value, position in bits[name].items():
                if change & value:
                    flipped[position >> 3] ^= 1 << (position & 7)
        if wanted.get("base") in (4, 5, 12, 13) or wanted.get("index") == 4 or wanted.get("mask") == 0:
            continue
        other, _ = decode(bytes(flipped), variant.info)
        got = {n: register_number(r) for n, r in slots(variant, other)}
        if "XCHG" in CODE[variant.code] and 0 in wanted.values():
            continue  # XCHG RAX, RAX is NOP
        registers = [v for k, v in wanted.items() if k not in ("base", "mask")]
        if other.code != ins.code and len(set(registers)) == len(registers):
            return False
        if other.code == ins.code and got != wanted:
            return False
    return True


def _complete(variant: Variant, bits: dict[str, dict[int, int]], ins: Instruction) -> bool:
    """Whether every set bit of the example's register numbers is one that the fields can clear."""
    for name, register in slots(variant, ins):
        fixed = name.isdigit() and (variant.kinds[int(name)] in FIXED or _group(register) == "H")
        if not fixed and register_number(register) & ~sum(bits[name]):
            return False
    return True


def _constants(template: Template, ins: Instruction, offsets: ConstantOffsets) -> None:
    if offsets.has_displacement and offsets.displacement_size == 1:
        raw = template.example[offsets.displacement_offset]
        scale = ins.memory_displacement // raw if raw else 1
        template.displacement = (offsets.displacement_offset, 1, scale)
        if ins.memory_index == Register.NONE:  # else a SIB byte follows ModRM
            template.modrm = offsets.displacement_offset - 1
    elif offsets.has_displacement:
        template.displacement = (offsets.displacement_offset, offsets.displacement_size, 1)
    if offsets.has_immediate:
        template.immediates.append((offsets.immediate_offset, offsets.immediate_size))
    if offsets.has_immediate2:
        template.immediates.append((offsets.immediate_offset2, offsets.immediate_size2))


def make(variant: Variant) -> Template | None:
    """The template of a variant, or None where its example cannot be encoded and decoded back."""
    ins = Builder(variant, Register.R11).build()
    code = encode(ins)
    if code is None:
        return None
    decoded, offsets = decode(code, variant.info)
    if decoded.code != variant.code or decoded.len != len(code):
        return None
    bits = _field_bits(variant, code, decoded)
    if not _verify(variant, code, bits, decoded) or not _complete(variant, bits, decoded):
        return None
    word = int.from_bytes(code, "little")
    for name, register in slots(variant, decoded):
        for value, position in bits[name].items():
            if register_number(register) & value:
                word ^= 1 << position
    template = Template(word, len(code), example=code)
    for name, values in bits.items():
        top = max(values, default=0).bit_length()
        template.fields[name] = [values.get(1 << i, -1) for i in range(top)]
    _constants(template, decoded, offsets)
    for offset, size in [template.displacement[:2]] if template.displacement else []:
        template.base = _clear(template.base, offset, size)
    for offset, size in template.immediates:
        template.base = _clear(template.base, offset, size)
    return template


def _clear(word: int, offset: int, size: int) -> int:
    return word & ~(((1 << (8 * size)) - 1) << (8 * offset))
