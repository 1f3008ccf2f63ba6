"""Kernels for differential execution: one instance of a form, and the state it starts from.

The state says by its values what the runner may do with a register: what points into data, stack or
code stays a pointer (see native/values.c).
"""

from __future__ import annotations

import struct

from cyclescope.isa.encode import default_immediates
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.register import domain, register_number
from cyclescope.isa.table import Table
from cyclescope.isa.x86_64.unmeasurable import unmeasurable
from cyclescope.kernel.differential import (
    EXIT_SPACING,
    INDEX_SHIFT,
    INDEXED,
    VALUES,
    Declared,
    Differential,
    SeenAccess,
    Specimen,
)
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import Kernel
from cyclescope.kernel.state import CODE_BASE, FIRST_WINDOW, SECOND_WINDOW, STACK_TOP, MachineState
from cyclescope.kernel.x86_64.declared import declared, exception
from cyclescope.kernel.x86_64.registers import STACK, X86RegisterRoles, physical
from cyclescope.kernel.x86_64.values import origin, pattern

PAGE_MIDDLE = 0x800
_MMX = 8  # kernel flag: the x87 registers hold MMX values
_CODE_POINTERS = struct.pack("<8Q", *[CODE_BASE + EXIT_SPACING] * 8)
_MEMORY_VALUES = {"LDMXCSR": "mxcsr", "VLDMXCSR": "mxcsr", "FLDCW": "fcw"}
_REQUIRED = {"XGETBV": {1: 0}, "RDPRU": {1: 1}, "DIV": {2: 0}, "IDIV": {2: 0}}
_POINTER_OPERANDS = {"MOVDIR64B", "ENQCMD", "ENQCMDS"}  # op1 is a register that holds an address
_MMX_STATE = {"EMMS", "FEMMS"}
_POINTERS = {"RSP": STACK_TOP, "RBP": STACK_TOP, "RDI": SECOND_WINDOW}


class X86Differential:
    """See `kernel.differential.Differential`."""

    isa, status = "x86-64", "MXCSR"

    def unmeasurable(self, form: InstructionForm) -> str:
        """See `unmeasurable.unmeasurable`."""
        return unmeasurable(form)

    def specimen(self, form: InstructionForm) -> Specimen:
        """See `specimen`."""
        return specimen(form)

    def declared(self, specimen: Specimen) -> Declared:
        """See `declared`."""
        return declared(specimen)

    def exception(self, specimen: Specimen, access: SeenAccess) -> str:
        """See `exception`."""
        return exception(specimen.form, access)


def specimen(form: InstructionForm) -> Specimen:
    """One instance of a form that has an encoding template, every register a different one."""
    assert form.encoding is not None
    numbers = _assign(form)
    instruction = Instruction(
        form,
        tuple(numbers[slot.operand, slot.part] for slot in form.encoding.slots),
        _displacement(form),
        _immediates(form),
    )
    kernel = Kernel(instruction.code, 1, _state(form, numbers), b"", _flags(form, numbers), (instruction,))
    return Specimen(form, numbers, kernel)


# --- registers ----------------------------------------------------------------------------------


def _assign(form: InstructionForm) -> dict[tuple[int, int], int]:
    assert form.encoding is not None
    roles = X86RegisterRoles(form)
    taken = set(roles.implicit)
    numbers: dict[tuple[int, int], int] = {}
    for slot in form.encoding.slots:
        op = form.operands[slot.operand]
        vector_index = slot.part == 2 and op.cls.startswith("VSIB_")
        if slot.part and not vector_index:
            numbers[slot.operand, slot.part] = roles.base if slot.part == 1 else roles.index
            taken.add(("r", numbers[slot.operand, slot.part]))
    for slot in form.encoding.slots:
        if (slot.operand, slot.part) in numbers:
            continue
        op = form.operands[slot.operand]
        number, used = _pick(op, slot.part, roles.narrow, taken)
        numbers[slot.operand, slot.part] = number
        taken |= used
    return numbers


def _pick(
    op: Operand, part: int, narrow: bool, taken: set[tuple[str, int]]
) -> tuple[int, set[tuple[str, int]]]:
    """A free register for an operand, and what it occupies."""
    size = {"block4": 4, "pair": 2}.get(op.fixed, 1)
    for number in range(7, 16) if part == 2 else _candidates(op, narrow):
        kind, first = ("v", number) if part == 2 else physical(op, number)
        used = {(kind, first + n) for n in range(size)}
        if not used & taken:
            return number, used
    return 0, set()


def _candidates(op: Operand, narrow: bool) -> tuple[int, ...] | range:
    kind = domain(op.cls)
    if kind == "h":
        return range(4, 8)
    if kind == "r":
        return (1, 2, 3, 0) if narrow else (1, 2, 3, 8, 9, 10, 11, 12, 0, 6, 7)
    if kind == "v":
        return (4, 8, 12) if op.fixed == "block4" else range(1, 16)
    if kind == "k":
        return (2, 4, 6) if op.fixed == "pair" else range(1, 8)
    return {"m": range(1, 8), "x": range(1, 7)}.get(kind, range(1))


# --- values -------------------------------------------------------------------------------------


def _displacement(form: InstructionForm) -> int:
    start = origin(form)
    return start + PAGE_MIDDLE if start else 0


def _immediates(form: InstructionForm) -> tuple[int, ...]:
    """The usual values; branches lead to the first exit."""
    if not any(op.kind == "branch" for op in form.operands):
        return default_immediates(form)
    assert form.encoding is not None
    return (EXIT_SPACING - form.encoding.length,)


def _flags(form: InstructionForm, numbers: dict[tuple[int, int], int]) -> int:
    flags = VALUES.get(form.element, 0)
    if not form.attributes.isdisjoint(("mmx", "d3now")) or form.mnemonic in _MMX_STATE:
        flags |= _MMX
    for (position, part), number in numbers.items():
        if part == 2 and form.operands[position].cls.startswith("VSIB_"):
            flags |= INDEXED | number << INDEX_SHIFT
    return flags


def _state(form: InstructionForm, numbers: dict[tuple[int, int], int]) -> MachineState:
    general = [n + 1 for n in range(16)]
    general[STACK] = STACK_TOP
    for (position, part), number in numbers.items():
        op = form.operands[position]
        if op.cls == "R8h":
            general[number - 4] *= 0x101
        elif part == 1 or _is_general(op):
            general[number] = _register_value(form, part, general[number])
    for op in form.operands:
        if op.is_memory and op.implicit:
            general[register_number(op.fixed)[1]] = _POINTERS.get(op.fixed, FIRST_WINDOW)
    for number, value in _REQUIRED.get(form.mnemonic, {}).items():
        general[number] = value
    fill = pattern(_MEMORY_VALUES.get(form.mnemonic, form.element))
    if "indirect" in form.attributes:
        fill = _CODE_POINTERS
    return MachineState(tuple(general), fill=(fill, fill))


def _is_general(op: Operand) -> bool:
    """Whether the register, or the index of the address, is a general one."""
    return not op.cls.startswith("VSIB_") if op.is_memory else domain(op.cls) == "r"


def _register_value(form: InstructionForm, part: int, usual: int) -> int:
    """A general register's value: a base is a pointer, an index 0."""
    if part:
        return FIRST_WINDOW if part == 1 else 0
    if "indirect" in form.attributes:
        return CODE_BASE + EXIT_SPACING
    return SECOND_WINDOW if form.mnemonic in _POINTER_OPERANDS else usual


def differential(table: Table) -> Differential:
    """See `kernel.differential.differential_of`."""
    return X86Differential()
