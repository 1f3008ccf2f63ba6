"""What the operands of an AArch64 or RISC-V form are in a kernel: registers, places, immediates."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from cyclescope.isa.dataflow import AMOUNT, Node
from cyclescope.isa.fields import Field, default_value
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.kernel.block import Register
from cyclescope.kernel.chain import Unmeasurable, Use
from cyclescope.kernel.fixed_width.links import SCALABLE, Helpers
from cyclescope.kernel.fixed_width.numbers import exponent_operand
from cyclescope.kernel.fixed_width.registers import (
    CHAIN,
    RING,
    SOURCE,
    choices,
    fixed_registers,
    holds_flags,
    pick,
    register_fields,
)
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.place import Place

MASK = "VMask"  # class of the operand that is v0
_ALL = ("sve_pred_enum", "sve_vec_len_specifier_enum")  # 31: all elements
_CONSTANTS = ("MUL", "SMAX", "SMIN", "UMAX", "UMIN", "EXT")  # with 0 the result is 0, or one source
_FACTOR = 3
_DYNAMIC = {
    "frmarg": 7,
    "mrs_sysreg_op": 0xDA10,
    "msr_sysreg_op": 0xDA10,
    "csr_sysreg": 1,
}  # FRM, NZCV, fflags


def immediates(form: InstructionForm) -> tuple[int, ...]:
    """A plain value for every field that is no register: no offset, no increment of a base."""
    fields = form.bits.fields if form.bits else ()
    return tuple(_plain(form, field) for field in fields if not field.is_register)


def _plain(form: InstructionForm, field: Field) -> int:
    op = form.operands[field.operand]
    if form.mnemonic in _CONSTANTS and op.kind == "immediate" and _FACTOR in field.values.allowed:
        return _FACTOR
    wanted = 31 if op.cls in _ALL else _DYNAMIC.get(op.cls, -1)
    if "writeback" in form.attributes and op.kind == "immediate":
        wanted = 0
    return wanted if wanted in field.values.allowed else default_value(field, op.role)


def scalable(op: Operand) -> bool:
    """Whether a register's length is the machine's choice."""
    return op.file in ("v", "p") and not op.width


class FormOperands:
    """Registers of one form in kernels: addresses and constants, and what is left to choose."""

    def __init__(self, form: InstructionForm, helpers: Helpers) -> None:
        self.form = form
        self.helpers = helpers
        self.pools = helpers.pools
        self.fields = register_fields(form)

    # --- registers ---------------------------------------------------------------------------------

    def found(self, field: Field) -> Mapping[int, tuple[Register, ...]]:
        """What a field's values stand for."""
        return choices(field, self.pools.isa)

    def role_value(self, op: Operand, field: Field) -> int | None:
        """The value of a field whose register has a role, None where it is free to choose."""
        found = self.found(field)
        if op.role == "mask":
            none = next((value for value, registers in found.items() if not registers), None)
            return self._value(found, ("p", self.pools.mask)) if none is None else none
        vector = op.file == "v"
        if op.cls.startswith(MASK):
            return self._value(found, ("v", 0))
        if op.role == "base":
            return self._value(found, ("v", self.pools.addresses) if vector else ("r", self.pools.base))
        if op.role == "index" and vector:  # where none is set aside, the state makes any of them 0
            return self._value(found, ("v", self.pools.indices)) if self.pools.indices >= 0 else None
        if op.role == "index":
            return self._value(found, ("r", self.pools.zero))
        return self._value(found, ("r", self.pools.zero)) if op.cls.startswith(AMOUNT) else None

    def _value(self, found: Mapping[int, tuple[Register, ...]], wanted: Register) -> int:
        exact = next((value for value, registers in found.items() if registers[:1] == (wanted,)), None)
        return next(iter(found)) if exact is None else exact

    def choose(self, op: Operand, field: Field, use: str, taken: Collection[Register]) -> int | None:
        """A register for a free field from the pool of a use, or None."""
        if op.file == "?":  # tiles of a matrix and the like: one after the other
            legal = field.values.legal
            return legal[len(taken) % len(legal)]
        files = self.pools.pools[use]
        wanted = [(op.file, number) for number in files.get(op.file, ())]
        return pick(self.found(field), wanted, taken)

    def spacing(self, field: Field) -> int:
        """What an offset's field grows by from aligned data to the next."""
        width = next((op.width for op in self.form.operands if op.is_memory), 0)
        return max(1, width // 8 // self._number(field)[0])

    def largest(self, field: Field) -> int:
        """The largest number that an offset's field can hold."""
        return (1 << len(field.positions) - self._number(field)[1]) - 1

    def _number(self, field: Field) -> tuple[int, int]:
        """Bytes that 1 in a field stands for, and whether it has a sign."""
        assert self.form.bits is not None and self.form.syntax is not None
        number = self.form.bits.fields.index(field)
        rules = (notation.rule for place, notation in self.form.syntax.places if place == number)
        return next(((int(str(r[3])), int(str(r[5]))) for r in rules if r[0] == "number"), (1, 0))

    def vector_zeros(self, use: Use) -> set[int]:
        """Vector registers that an instance has indices in, or what it adds to exponents."""
        exponent = exponent_operand(self.form)
        return {
            number
            for (operand, field), value in zip(self.fields, use.registers, strict=True)
            for kind, number in self.found(field)[value]
            if kind == "v" and (operand == exponent or self.form.operands[operand].role == "index")
        }

    def taken_by_roles(self) -> set[Register]:
        """Registers of implicit operands, addresses and constants."""
        taken = set(self.pools.reserved)
        for op in self.form.operands:
            taken.update(fixed_registers(op, self.pools.isa))
        return taken


class ChainOperands(FormOperands):
    """Registers, places and dependency breaking of one form's operands in latency chains."""

    def __init__(self, form: InstructionForm, helpers: Helpers) -> None:
        super().__init__(form, helpers)
        self._cuts = True
        self.scratch = True  # whether the scratch vector is free for helpers
        try:
            self.values = self._assign(self.taken_by_roles() | {("v", self.pools.scratch)})
        except Unmeasurable:
            self.scratch = False
            self.values = self._assign(self.taken_by_roles())

    def _assign(self, taken: set[Register]) -> dict[int, int]:
        """A value for every register field, by operand: all registers distinct."""
        values: dict[int, int] = {}
        for operand, field in self.fields:
            op = self.form.operands[operand]
            value = self.role_value(op, field)
            uses = (CHAIN, SOURCE, RING) if op.write else (SOURCE, CHAIN, RING)
            for use in uses if value is None else ():
                value = self.choose(op, field, use, taken)
                if value is not None:
                    break
            if value is None:
                raise Unmeasurable(f"no register left for {op.name}")
            values[operand] = value
            taken |= set(self.found(field)[value])
        return values

    def use(self, changes: Mapping[int, int] | None = None) -> Use:
        """The form with the assigned registers, some of them changed."""
        values = self.values | dict(changes or {})
        return Use(tuple(values[operand] for operand, _ in self.fields))

    def registers(self, operand: int, value: int | None = None) -> tuple[Register, ...]:
        """The registers of an operand, with another value of its field if given."""
        for position, field in self.fields:
            if position == operand:
                return self.found(field)[self.values[operand] if value is None else value]
        return fixed_registers(self.form.operands[operand], self.pools.isa)

    def other_value(self, operand: int, register: Register) -> int | None:
        """The value that makes an operand begin at a register, or None."""
        field = next((field for position, field in self.fields if position == operand), None)
        return None if field is None else pick(self.found(field), [register], ())

    # --- places ------------------------------------------------------------------------------------

    def place(self, node: Node) -> Place:
        """Where the value of a node is. Raises Unmeasurable for what no helper reaches."""
        op = self.form.operands[node.operand]
        if node.part == "data":
            return Place("mem", width=op.width or SCALABLE)
        if holds_flags(op, self.pools.isa):
            return Place("flag", flag=self.helpers.flags[0])
        registers = self.registers(node.operand)
        if not registers or op.file == "?":
            raise Unmeasurable(f"{op.name} is machine state, which no helper instruction reads and writes")
        kind, number = registers[0]
        return Place(kind, number, SCALABLE if scalable(op) else 128 if kind == "v" else op.width)

    # --- breaking ----------------------------------------------------------------------------------

    def breakers(self, source: Node, skip: Node | None = None) -> list[Instruction]:
        """Instructions that cut every dependency of the form but the one on `source`."""
        cut: list[Instruction] = []
        for position, op in enumerate(self.form.operands) if self._cuts else ():
            if position == source.operand or (skip is not None and position == skip.operand):
                continue
            if op.read and op.write:
                cut += self._break(position, op)
            elif op.read and holds_flags(op, self.pools.isa):
                cut += self.helpers.cut(Place("flag", flag=self.helpers.flags[0]))
        return cut

    def _break(self, position: int, op: Operand) -> list[Instruction]:
        if op.is_memory:
            return self.helpers.cut(Place("mem", width=op.width))
        if op.role == "base":
            return [self.helpers.copy(self.pools.base, self.pools.alias)] if op.file == "r" else []
        if not op.is_register or (op.file == "?" and not holds_flags(op, self.pools.isa)):
            return []
        if ("r", self.pools.stack) in self.registers(position):
            return []
        return self.cut_group(position)

    def cut_group(self, position: int, value: int | None = None, first: int = 0) -> list[Instruction]:
        """Cuts of an operand's registers, from the one numbered `first` on, with another value if given."""
        op = self.form.operands[position]
        place = self.place(Node(op.name, "register", op.file, position))
        if place.kind not in ("r", "v", "f", "p"):
            return [] if first else self.helpers.cut(place)
        numbers = [number for _, number in self.registers(position, value)]
        return [
            cut
            for number in numbers[first:]
            for cut in self.helpers.cut_one(msgspec.structs.replace(place, number=number))
        ]
