"""Kernels for differential execution on AArch64 and RISC-V, and what the tables declare for them.

A specimen has registers that are all different, pointers where addresses are made, and branches that lead
to the runner's exits. The runner makes the rest of the state: see native/values.c.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator

import msgspec

from cyclescope.isa.fields import Field
from cyclescope.isa.form import ALL_FLAGS, InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.kernel.block import Register
from cyclescope.kernel.differential import (
    EXIT_SPACING,
    GROUP_SHIFT,
    INDEX_SHIFT,
    INDEXED,
    VALUES,
    Declared,
    SeenAccess,
    Specimen,
)
from cyclescope.kernel.fixed_width.links import Helpers
from cyclescope.kernel.fixed_width.operands import FormOperands, immediates
from cyclescope.kernel.fixed_width.registers import CHAIN, RING, SOURCE, choices, fixed_registers
from cyclescope.kernel.fixed_width.values import start_state
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import Kernel
from cyclescope.kernel.locations import EXIT, FIRST_PAGE, SECOND_PAGE, STACK_PAGE, location_set
from cyclescope.kernel.state import CODE_BASE, SECOND_WINDOW, STACK_TOP, MachineState

_INCREMENT = 8  # of a base that moves on, as encoded
_JUMPS = frozenset(("indirect", "return"))
_BRANCHES = frozenset(("branch", "call", "return"))


class SpecimenRegisters(FormOperands):
    """Chooses a register of its own for every field of one form."""

    def __init__(self, form: InstructionForm, helpers: Helpers, kept: Iterable[Register]) -> None:
        super().__init__(form, helpers)
        self._taken = self.taken_by_roles() | set(kept)

    def values(self) -> dict[int, int]:
        """A value of every register field, by operand."""
        found: dict[int, int] = {}
        for operand, field in self.fields:
            op = self.form.operands[operand]
            value = self._value_of(op, field)
            found[operand] = value
            self._taken |= set(self.found(field)[value])
        return found

    def _value_of(self, op: Operand, field: Field) -> int:
        apart = (op.role, op.file) in (("mask", "p"), ("index", "v"))
        role = None if apart else self.role_value(op, field)
        if role is not None:
            return role
        for use in (CHAIN, SOURCE, RING) if op.write else (SOURCE, CHAIN, RING):
            value = self.choose(op, field, use, self._taken)
            if value is not None:
                return value
        return self._any(field)

    def _any(self, field: Field) -> int:
        """A register that nothing else uses, from wherever there is one."""
        found = self.found(field)
        free = (
            value for value, registers in found.items() if registers and self._taken.isdisjoint(registers)
        )
        return next(free, next(iter(found)))


class FixedWidthDifferential(ABC):
    """See `kernel.differential.Differential`; what differs between the instruction sets is below."""

    isa: str
    status: str
    unit: int  # bytes that 1 in a branch's offset stands for
    kept: tuple[Register, ...] = ()  # registers that code may not touch

    def __init__(self, helpers: Helpers) -> None:
        self.helpers = helpers
        self._states: dict[object, MachineState] = {}

    # --- of the instruction set --------------------------------------------------------------------

    @abstractmethod
    def unmeasurable(self, form: InstructionForm) -> str:
        """Why a form cannot be run, or ""."""

    @abstractmethod
    def locations(self, register: Register, op: Operand | None, written: bool) -> Iterable[int]:
        """Where a register is that an operand stands for; an address has none."""

    @abstractmethod
    def by_rule(self, form: InstructionForm) -> tuple[set[int], set[int], int]:
        """Control and status registers that are read and written, as the table does not say it, and which of
        them hold sticky flags.
        """

    def flags(self, mask: int) -> Iterable[int]:
        """Flags in a bit mask as locations."""
        return ()

    def setup(self, form: InstructionForm) -> bytes:
        """Machine code that makes the state the form needs."""
        return b""

    def element(self, form: InstructionForm) -> str:
        """The type of the values that the form works on."""
        return form.element

    def exception(self, specimen: Specimen, access: SeenAccess) -> str:
        """Why the table rightly does not declare an access, or ""."""
        return ""

    # --- specimens ---------------------------------------------------------------------------------

    def specimen(self, form: InstructionForm) -> Specimen:
        """One instance, every register a different one."""
        fields = SpecimenRegisters(form, self.helpers, self.kept)
        values = fields.values()
        registers = tuple(values[operand] for operand, _ in fields.fields)
        instruction = Instruction(form, registers, 0, self._immediates(form))
        kernel = Kernel(
            instruction.code, 1, self._state(form, values), self.setup(form), self._flags(form, values),
            (instruction,),
        )  # fmt: skip
        return Specimen(form, {(operand, 0): value for operand, value in values.items()}, kernel)

    def _immediates(self, form: InstructionForm) -> tuple[int, ...]:
        """Plain values; branches lead to the first exit, jumps to where their register points, bases move."""
        values = list(immediates(form))
        others = [field for field in form.bits.fields if not field.is_register] if form.bits else []
        for position, field in enumerate(others):
            if form.operands[field.operand].kind == "branch":
                values[position] = EXIT_SPACING // self.unit
            elif "indirect" in form.attributes:
                values[position] = 0
            elif "writeback" in form.attributes and _INCREMENT in field.values.allowed:
                values[position] = _INCREMENT
        return tuple(values)

    def _flags(self, form: InstructionForm, values: dict[int, int]) -> int:
        flags = VALUES.get(self.element(form), 0)
        for operand, value in values.items():
            op = form.operands[operand]
            if op.role in ("index", "base") and op.file == "v":
                group = self._registers(form, operand, value)
                flags |= INDEXED | group[0][1] << INDEX_SHIFT | (len(group).bit_length() - 1) << GROUP_SHIFT
        return flags

    def _registers(self, form: InstructionForm, operand: int, value: int | None) -> tuple[Register, ...]:
        if value is None:
            return fixed_registers(form.operands[operand], self.isa)
        assert form.bits is not None
        field = next(field for field in form.bits.fields if field.operand == operand)
        return choices(field, self.isa)[value]

    def _state(self, form: InstructionForm, values: dict[int, int]) -> MachineState:
        state = start_state(form, self.helpers, self.helpers.level(form))
        if form.attributes.isdisjoint(_JUMPS):
            return state
        general = list(state.general)
        for operand, value in values.items():
            if form.operands[operand].read:
                general[self._registers(form, operand, value)[0][1]] = CODE_BASE + EXIT_SPACING
        return msgspec.structs.replace(state, general=tuple(general))

    # --- what the table says -----------------------------------------------------------------------

    def declared(self, specimen: Specimen) -> Declared:
        """What the table declares for a form with these registers."""
        form = specimen.form
        more_reads, more_writes, status = self.by_rule(form)
        reads = {*more_reads, *self._of_registers(specimen, lambda op: op.read, written=False)}
        reads |= {*self._of_memory(specimen, lambda op: op.read), *self.flags(form.flags_read)}
        writes = {*more_writes, *self._of_registers(specimen, lambda op: op.write, written=True)}
        writes |= {*self._of_memory(specimen, lambda op: op.write), *self.flags(form.flags_written)}
        if form.attributes & _BRANCHES:
            writes.add(EXIT)
        return Declared(location_set(reads), location_set(writes), 0, status)

    def _of_registers(
        self, specimen: Specimen, wanted: Callable[[Operand], bool], written: bool
    ) -> Iterator[int]:
        form = specimen.form
        for position, op in enumerate(form.operands):
            if op.is_register and wanted(op):
                for register in self._registers(form, position, specimen.numbers.get((position, 0))):
                    yield from self.locations(register, op, written)

    def _of_memory(self, specimen: Specimen, wanted: Callable[[Operand], bool]) -> Iterator[int]:
        for op in specimen.form.operands:
            if op.is_memory and wanted(op):
                yield self._page(specimen, op.name.strip("[]"))

    def _page(self, specimen: Specimen, base: str) -> int:
        """The page that a base register points into."""
        form, general = specimen.form, specimen.kernel.state.general
        position = next((n for n, op in enumerate(form.operands) if base in (op.name, op.fixed)), None)
        if position is None:
            return FIRST_PAGE
        kind, number = next(
            iter(self._registers(form, position, specimen.numbers.get((position, 0)))), ("", 0)
        )
        number = self.helpers.pools.stack if kind == "SP" else number
        pointer = general[number] if kind in ("r", "SP") else 0
        return {SECOND_WINDOW: SECOND_PAGE, STACK_TOP: STACK_PAGE}.get(pointer, FIRST_PAGE)


def condition_flags(mask: int, first: int, names: tuple[str, ...]) -> Iterator[int]:
    """Locations of the flags in a bit mask, of a register whose first flag is at `first`."""
    return (first + n for n, name in enumerate(names) if mask >> ALL_FLAGS.index(name) & 1)
