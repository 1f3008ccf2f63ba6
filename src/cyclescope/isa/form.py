"""Instruction forms: what an instruction is, without any value of its operands."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import msgspec

from cyclescope.isa.fields import BitEncoding, Syntax
from cyclescope.isa.operand import Configuration, Operand
from cyclescope.once import once

FLAGS = ("CF", "PF", "AF", "ZF", "SF", "OF", "DF")  # of x86-64
ALL_FLAGS = (*FLAGS, "N", "Z", "C", "V")  # AArch64's behind them


class Slot(msgspec.Struct, frozen=True):
    """A register number the encoder has to be given.

    `part` is 0 for a register operand, 1 for the base and 2 for the index of an address.
    """

    operand: int
    part: int


class Encoding(msgspec.Struct, frozen=True):
    """Template: `base` XOR the scattered register numbers, with constants filled in.

    `scatter[i][n]` is the pattern to XOR for register number `n` in slot `i`; where the number would
    mean something else (RSP as a base, k0 as a mask) it is longer than any instruction, so that
    encoding as with others fails. `displacement` is (byte offset, bytes, scale of the encoded value);
    `immediates` are (byte offset, bytes). `modrm` is the offset of a ModRM byte with an 8-bit
    displacement, where an index can be added, else -1.
    """

    base: int
    length: int
    slots: tuple[Slot, ...]
    scatter: tuple[tuple[int, ...], ...]
    displacement: tuple[int, int, int] | None
    immediates: tuple[tuple[int, int], ...]
    modrm: int


class MemoryOperand(NamedTuple):
    """An operand in memory: its position, its bytes, whether it is loaded, whether it is stored."""

    position: int
    size: int
    read: bool
    write: bool


class InstructionForm(msgspec.Struct, frozen=True, dict=True, eq=False):
    """One instruction form with everything the table knows about it.

    `flags_*` are bit masks in the order of `ALL_FLAGS`; a flag that is written conditionally is read
    as well. `element` is the type of the values the form works on (`f32`, `f64`, `f16`, `i8`,
    `int`, ...). `template` makes the `encoding`. AArch64 and RISC-V have `bits` and `syntax` in its
    place. `configuration` is that of a vector instruction of RISC-V; forms of the table have none. `isa` is
    the instruction set, whose record says what holds of all of its forms.
    """

    id: str
    mnemonic: str
    operands: tuple[Operand, ...]
    flags_read: int
    flags_written: int
    flags_undefined: int
    features: tuple[str, ...]
    attributes: frozenset[str]
    element: str
    llvm: str
    uops_info: str
    code: str
    template: Callable[[], Encoding | None] | None
    signature: int
    bits: BitEncoding | None = None
    syntax: Syntax | None = None
    configuration: Configuration | None = None
    isa: str = ""

    @property
    def names(self) -> dict[str, str]:
        """Names of the form in other tools; absent where theirs is unknown."""
        pairs = {"llvm": self.llvm, "uops_info": self.uops_info, "iced": self.code}
        return {tool: name for tool, name in pairs.items() if name}

    @once
    def encoding(self) -> Encoding | None:
        """How x86-64 encodes the form, None where no template exists; made when first asked for."""
        return None if self.template is None else self.template()

    @once
    def memory(self) -> int:
        """Position of the explicit memory operand, or -1."""
        for index, op in enumerate(self.operands):
            if op.is_memory and not op.implicit:
                return index
        return -1

    @once
    def addressed(self) -> Operand | None:
        """The memory that its explicit operands say; with fields, each part of the address is one."""
        said = (op for op in self.operands if op.is_memory and (self.bits is not None or not op.implicit))
        return next(said, None)

    @property
    def is_encodable(self) -> bool:
        """Whether the table can encode the form."""
        return self.bits is not None or self.encoding is not None

    @property
    def has_fields(self) -> bool:
        """Whether its encoding is fixed bits and fields, one per operand that is encoded."""
        return self.bits is not None

    @once
    def register_keys(self) -> tuple[tuple[int, int], ...]:
        """Operand, and part of it, of each register that the encoding asks for, in its order."""
        if self.bits is not None:
            return tuple((field.operand, 0) for field in self.bits.fields if field.is_register)
        return tuple((slot.operand, slot.part) for slot in self.encoding.slots) if self.encoding else ()

    @once
    def alike(self) -> tuple[int, ...]:
        """Registers that it reads, and that make an idiom of it where all are one: not a mask that zeroes."""
        zeroing = "zeroing" in self.attributes
        read = ((n, op) for n, op in enumerate(self.operands) if op.is_register and op.read)
        return tuple(n for n, op in read if not (zeroing and op.cls == "K"))

    @once
    def vector_encoding(self) -> str:
        """How vectors of x86-64 are encoded, as `legacy` ones wait for the upper halves that `vex` leaves."""
        if not any(op.cls in ("XMM", "YMM", "ZMM") for op in self.operands if op.is_register):
            return ""
        return "vex" if self.is_vex else "legacy"

    @once
    def accesses(self) -> tuple[MemoryOperand, ...]:
        """The operands that are accessed memory, implicit ones among them."""
        return tuple(
            MemoryOperand(position, max(op.width // 8, 1), op.read, op.write)
            for position, op in enumerate(self.operands)
            if op.is_memory
        )

    @property
    def is_vex(self) -> bool:
        """Whether the encoding is VEX, EVEX or XOP (zeroes upper halves, needs AVX state)."""
        return not self.attributes.isdisjoint(("vex", "evex", "xop"))

    @once
    def x87_pops(self) -> int:
        """How many x87 registers the form pops, less than 0 where it pushes."""
        return next((int(a[3:]) for a in self.attributes if a.startswith(("x87+", "x87-"))), 0)

    @once
    def vector_width(self) -> int:
        """Widest vector register in bits: 0, 64 (MMX), 128, 256 or 512."""
        widths = [op.width for op in self.operands if op.cls in ("MM", "XMM", "YMM", "ZMM")]
        index = [op.cls for op in self.operands if op.cls.startswith("VSIB_")]
        widths += [{"VSIB_XMM": 128, "VSIB_YMM": 256, "VSIB_ZMM": 512}[cls] for cls in index]
        return max(widths, default=0)

    @once
    def on_masks_or_x87(self) -> bool:
        """Whether its registers are masks or those of the x87 stack, and none is a vector."""
        return not self.vector_width and any(op.cls in ("K", "ST") for op in self.operands)


def model_form_id(form: InstructionForm) -> str:
    """The id that machine models and the table know a form by: without configuration or kind of operand."""
    return form.id.partition("@")[0]


@cache
def flag_names(mask: int) -> tuple[str, ...]:
    """Names of the flags in a bit mask."""
    return tuple(name for bit, name in enumerate(ALL_FLAGS) if mask >> bit & 1)
