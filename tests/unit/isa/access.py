"""Accesses as iced-x86 reports them for machine code, in the words of the table."""

from __future__ import annotations

from typing import NamedTuple

from iced_x86 import (
    Instruction,
    InstructionInfo,
    InstructionInfoFactory,
    MemorySizeExt,
    OpAccess,
    RegisterExt,
    RflagsBits,
)

from cyclescope.isa.encode import default_immediates, encode
from cyclescope.isa.form import FLAGS, InstructionForm
from cyclescope.isa.operand import BLOCKS, Operand
from cyclescope.isa.register import domain, register_number
from tests.unit.isa.decoding import REGISTERS, decode, explicit, legal_numbers, shown

FACTORY = InstructionInfoFactory()
READS = {OpAccess.READ, OpAccess.COND_READ, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE}
WRITES = {OpAccess.WRITE, OpAccess.COND_WRITE, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE}
CONDITIONS = {OpAccess.COND_READ, OpAccess.COND_WRITE, OpAccess.READ_COND_WRITE}
DISPLACEMENT = 0x40


class Access(NamedTuple):
    """Whether something is read, written, and only under a condition."""

    read: bool = False
    write: bool = False
    conditional: bool = False

    def __or__(self, other: Access) -> Access:
        return Access(*(a or b for a, b in zip(self, other, strict=True)))


def access(value: int) -> Access:
    """One of iced's OpAccess values."""
    return Access(value in READS, value in WRITES, value in CONDITIONS)


def declared(op: Operand) -> Access:
    """What the table says of an operand."""
    return Access(op.read, op.write, op.conditional)


# --- an example whose registers are all different -----------------------------------------------


def _file(cls: str, number: int) -> tuple[str, int]:
    return ("r", number - 4) if cls == "R8h" else (domain(cls), number)


def _fixed(form: InstructionForm) -> set[tuple[str, int]]:
    names = [op.fixed for op in form.operands if op.fixed not in ("", *BLOCKS)]
    return {_file(*register_number(name)) for name in names}


def distinct(form: InstructionForm) -> list[int]:
    """Register numbers per slot, none used twice and none that the form uses implicitly."""
    assert form.encoding is not None
    taken = _fixed(form)
    numbers = []
    for slot, pool in zip(form.encoding.slots, legal_numbers(form), strict=True):
        op = form.operands[slot.operand]
        cls = op.cls if slot.part == 0 else op.cls.removeprefix("VSIB_") if slot.part == 2 else "R64"
        cls = "R64" if cls.startswith("LEA") else cls
        size = BLOCKS.get(op.fixed, 1) if slot.part == 0 else 1
        free = (n for n in pool if taken.isdisjoint(_file(cls, n + i) for i in range(size)))
        numbers.append(next(free))
        taken |= {_file(cls, numbers[-1] + i) for i in range(size)}
    return numbers


def example(form: InstructionForm) -> Instruction:
    """The form with distinct registers, through the encoder and iced's decoder."""
    assert form.encoding is not None
    displacement = DISPLACEMENT if form.encoding.displacement else 0
    return decode(form, encode(form, distinct(form), displacement, default_immediates(form)))


# --- what iced-x86 says of it --------------------------------------------------------------------


class Reported(NamedTuple):
    """Accesses by explicit position, by full register, by memory base; and flags by name."""

    operands: dict[int, Access]
    registers: dict[str, Access]
    memory: dict[str, tuple[int, Access]]
    flags_read: set[str]
    flags_written: set[str]
    flags_undefined: set[str]


def reported(form: InstructionForm, ins: Instruction) -> Reported:
    """Accesses of an instruction, the explicit operands by their position in the form."""
    info = FACTORY.info(ins)
    positions = dict(zip(shown(form, ins), explicit(form), strict=True))
    return Reported(
        {position: access(info.op_access(i)) for i, position in positions.items()},
        _registers(form, ins, info),
        _memory(info),
        flag_set(ins.rflags_read),
        flag_set(ins.rflags_written | ins.rflags_cleared | ins.rflags_set),
        flag_set(ins.rflags_undefined),
    )


def flag_set(mask: int) -> set[str]:
    return {name for name in FLAGS if mask & getattr(RflagsBits, name)}


def _full(register: int) -> str:
    return REGISTERS[RegisterExt.full_register(register)]


def _registers(form: InstructionForm, ins: Instruction, info: InstructionInfo) -> dict[str, Access]:
    """Accesses by full register, the operands' own and those of addresses left out."""
    named = {_full(ins.op_register(i)) for i in shown(form, ins)} | {REGISTERS[ins.op_mask]}
    if form.memory >= 0 or "lea" in form.attributes:
        named |= {_full(ins.memory_base), _full(ins.memory_index)}
    found: dict[str, Access] = {}
    for used in info.used_registers():
        name = _full(used.register)
        if name not in named:
            found[name] = found.get(name, Access()) | access(used.access)
    return found


def _memory(info: InstructionInfo) -> dict[str, tuple[int, Access]]:
    found: dict[str, tuple[int, Access]] = {}
    for used in info.used_memory():
        base = REGISTERS[used.base]
        before = found.get(base, (0, Access()))[1]
        found[base] = (MemorySizeExt.size(used.memory_size) * 8, before | access(used.access))
    return found
