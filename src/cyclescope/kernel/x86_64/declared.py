"""What the instruction table says a form reads and writes, as locations of the architectural state.

The table's rules: 8- and 16-bit registers merge (the operand is a source as well), 32-bit ones zero
the upper half; legacy SSE writes leave bits 128 and above alone, VEX, EVEX and XOP writes zero them.
A memory operand stands for the whole page its pointer points into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.register import domain, register_number
from cyclescope.kernel.differential import WRITE, Declared, SeenAccess, Specimen
from cyclescope.kernel.locations import EXIT, FIRST_PAGE, SECOND_PAGE, STACK_PAGE, location_set, members
from cyclescope.kernel.state import SECOND_WINDOW, STACK_TOP
from cyclescope.kernel.x86_64.locations import X86

_PUSHED = X86.X87 + 7  # the x87 register a push fills: the top of the stack is register 0
_EMPTIES = frozenset(("EMMS", "FEMMS", "FNINIT", "FFREE", "FFREEP"))
_PARTS = {"XMM": 1, "YMM": 2, "ZMM": 3}
_BRANCHES = frozenset(("branch", "call", "return"))


def declared(specimen: Specimen) -> Declared:
    """What the table declares for a form with these registers."""
    form = specimen.form
    flags_written = form.flags_written | form.flags_undefined
    reads = [*_registers(specimen, lambda op: op.read, written=False), *_addresses(specimen)]
    reads += [*_memory(specimen, lambda op: op.read), *_flags(form.flags_read), *_control(form)]
    writes = [*_registers(specimen, lambda op: op.write, written=True), *_control_written(form)]
    writes += [*_memory(specimen, lambda op: op.write), *_flags(flags_written), *_x87_stack(form)]
    if form.attributes & _BRANCHES:
        writes.append(EXIT)
    undefined = form.flags_undefined & ~form.flags_written
    status = 1 << X86.MXCSR if "mxcsr" in form.attributes else 0
    return Declared(location_set(reads), location_set(writes), location_set(_flags(undefined)), status)


def exception(form: InstructionForm, access: SeenAccess) -> str:
    """Why the table rightly does not declare an access, or ""."""
    x87 = X86.X87 <= access.location < X86.MXCSR
    if form.mnemonic in _EMPTIES and access.kind == WRITE and x87:
        return "marks x87 registers as empty: the table has the registers as operands, not their tags"
    return ""


def _flags(mask: int) -> Iterator[int]:
    return (X86.FLAGS + n for n in members(mask))


# --- registers ----------------------------------------------------------------------------------


def _registers(specimen: Specimen, wanted: Callable[[Operand], bool], written: bool) -> Iterator[int]:
    form = specimen.form
    for position, op in enumerate(form.operands):
        if not op.is_register or not wanted(op):
            continue
        for number in _numbers(specimen, position, op):
            yield from _register(op, number, form.is_vex and written)
            if op.cls == "ST" and number == 0 and written and "x87-1" in form.attributes:
                yield _PUSHED


def _numbers(specimen: Specimen, position: int, op: Operand) -> range:
    number = specimen.numbers.get((position, 0))
    if number is None:
        number = register_number(op.fixed)[1]
    return range(number, number + {"block4": 4, "pair": 2}.get(op.fixed, 1))


def _register(op: Operand, number: int, zeroes: bool) -> Iterator[int]:
    kind = domain(op.cls)
    if kind == "v":
        parts = 3 if zeroes else _PARTS[op.cls]
        yield from (first + number for first in (X86.XMM, X86.YMM, X86.ZMM)[:parts])
        return
    if kind == "h":
        yield X86.GENERAL + number - 4
        return
    first = {"r": X86.GENERAL, "k": X86.MASK, "m": X86.X87, "x": X86.X87}.get(kind)
    if first is not None:  # segment and control registers are no locations
        yield first + number


# --- memory -------------------------------------------------------------------------------------


def _addresses(specimen: Specimen) -> Iterator[int]:
    """Registers that addresses are made of."""
    for (position, part), number in specimen.numbers.items():
        op = specimen.form.operands[position]
        if part == 2 and op.cls.startswith("VSIB_"):
            parts = _PARTS[op.cls.removeprefix("VSIB_")]
            yield from (first + number for first in (X86.XMM, X86.YMM, X86.ZMM)[:parts])
        elif part:
            yield X86.GENERAL + number


def _memory(specimen: Specimen, wanted: Callable[[Operand], bool]) -> Iterator[int]:
    general = specimen.kernel.state.general
    for op in specimen.form.operands:
        if not op.is_memory or not wanted(op):
            continue
        if not op.implicit:
            yield FIRST_PAGE
            continue
        pointer = general[register_number(op.fixed)[1]]
        yield {SECOND_WINDOW: SECOND_PAGE, STACK_TOP: STACK_PAGE}.get(pointer, FIRST_PAGE)


# --- control registers and the x87 stack --------------------------------------------------------


def _control(form: InstructionForm) -> Iterator[int]:
    if "mxcsr" in form.attributes:
        yield X86.MXCSR
    if "x87" in form.attributes:
        yield X86.FCW
        yield X86.FSW


def _control_written(form: InstructionForm) -> Iterator[int]:
    """Status flags are sticky; the x87 control word is written only by forms that load it."""
    if "mxcsr" in form.attributes:
        yield X86.MXCSR
    if "x87" in form.attributes:
        yield X86.FSW
    if "x87_control" in form.attributes:
        yield X86.FCW


def _x87_stack(form: InstructionForm) -> Iterator[int]:
    """Registers that a pop leaves empty."""
    for attribute in form.attributes:
        if attribute.startswith("x87+"):
            yield from (X86.X87 + n for n in range(int(attribute[4:])))
