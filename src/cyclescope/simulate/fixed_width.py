"""AArch64 and RISC-V instructions as the engine takes them.

An operand stands for as many locations as it has registers; the zero register is none. What is no register
file (NZCV, VL, FPCR, the stack pointer of AArch64) is one location each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from cyclescope.isa.dataflow import Node
from cyclescope.isa.encode import field_values
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.register import units
from cyclescope.kernel.instruction import Instruction
from cyclescope.simulate.cost import Ends, moves_base
from cyclescope.simulate.step import (
    FIRST_REGISTER,
    NOWHERE,
    POINTER,
    UNREAD,
    BaseMove,
    EngineAccess,
    EngineStep,
)

UNKNOWN_SIZE = 16  # bytes that an access of a length vector registers decide about takes
_NUMBER = re.compile(r"#?(-?(?:0x[0-9a-f]+|\d+))")
_SHIFT = re.compile(r"(?:lsl|[su]xt[wx]) #(\d+)")


class FixedWidth:
    """Translates the instructions of an ISA; registers get their locations when they are first seen."""

    def __init__(self, isa: str) -> None:
        self.isa = isa
        self._locations: dict[str, int] = {}

    def step(self, instruction: Instruction, ends: Ends, template: int) -> EngineStep:
        """An instruction whose template has a source and a target per register (see `counts`)."""
        values = OperandValues(instruction, self.isa)
        words, accesses = [template], []
        for nodes, nowhere in ((ends.sources, NOWHERE), (ends.targets, UNREAD)):
            for node in nodes:
                if node.part == "data":
                    accesses.append(values.access(node.operand, len(words)))
                    words.append(0)
                else:
                    words += self._registers(values, node, nowhere)
        moves = tuple(values.moves())
        return EngineStep(tuple(words), tuple(accesses), 0, moves, values.written(moves))

    def _registers(self, values: OperandValues, node: Node, nowhere: int) -> list[int]:
        found = [self._location(unit) for unit in values.units(node.operand)]
        return found + [nowhere] * (count(values.form, node, self.isa) - len(found))

    def _location(self, unit: str) -> int:
        return self._locations.setdefault(unit, FIRST_REGISTER + len(self._locations))

    def counts(self, ends: Ends) -> tuple[list[int], list[int]]:
        """Registers behind every source and every target."""
        form = ends.form
        sources = [count(form, node, self.isa) for node in ends.sources]
        return sources, [count(form, node, self.isa) for node in ends.targets]


def count(form: InstructionForm, node: Node, isa: str) -> int:
    """How many locations an end of a dependency has."""
    return 1 if node.part == "data" else _count(form, node.operand, isa)


@cache
def _count(form: InstructionForm, position: int, isa: str) -> int:
    """Registers that an operand has at most, and at least 1."""
    assert form.bits is not None
    fields = [f for f in form.bits.fields if f.operand == position and f.is_register]
    names = fields[0].values.registers if fields else (form.operands[position].fixed,)
    return max([1, *(len(units(name, isa)) for name in names if name)])


class OperandValues:
    """The registers and numbers of one instruction."""

    def __init__(self, instruction: Instruction, isa: str) -> None:
        self.form = form = instruction.form
        self.isa = isa
        assert form.bits is not None
        fields = form.bits.fields
        found = field_values(form, instruction.registers, instruction.displacement, instruction.immediates)
        pairs = list(zip(fields, found, strict=True))
        self._names = {f.operand: f.values.registers[value] for f, value in pairs if f.is_register}
        places = form.syntax.places if form.syntax else ()
        self._texts = {fields[n].operand: notation.text(found[n]) for n, notation in places}
        self._roles = {op.role: position for position, op in enumerate(form.operands) if op.role}

    def units(self, position: int) -> tuple[str, ...]:
        """The registers of an operand, without the zero register."""
        return units(self._names.get(position, self.form.operands[position].fixed), self.isa)

    def number(self, position: int) -> int:
        """A number as it is written; 0 where none is."""
        found = _NUMBER.match(self._texts.get(position, ""))
        return int(found[1], 0) if found else 0

    @property
    def target(self) -> int | None:
        """How far a direct branch goes, from its own address."""
        branches = (n for n, op in enumerate(self.form.operands) if op.kind == "branch")
        return next(map(self.number, branches), None)

    # --- memory ----------------------------------------------------------------------------------

    def access(self, position: int, word: int) -> EngineAccess:
        """The access of a memory operand. `[PC]` and the like have no register: one address for all."""
        size = self.form.operands[position].width // 8 or UNKNOWN_SIZE
        found = [(role, self._general(role)) for role in ("base", "index")]
        registers = [(n, self._scale() if role == "index" else 1) for role, n in found if n is not None]
        return EngineAccess(word, tuple(registers), self._offset(), size, vector=self._vector())

    def _general(self, role: str) -> int | None:
        """The number of the general register with a role in the address."""
        if role not in self._roles:
            return None
        return next(map(_general_number, self.units(self._roles[role])), None)

    def _vector(self) -> int:
        """The vector register that the address begins at, -1 for none."""
        names = self.units(self._roles["base"]) if "base" in self._roles else ()
        return int(names[0][1:]) if names and names[0][0] == "v" else -1

    def _scale(self) -> int:
        positions = (self._roles.get("offset", -1), self._roles["index"])
        shifts = (_SHIFT.search(self._texts.get(position, "")) for position in positions)
        return 1 << next((int(shift[1]) for shift in shifts if shift), 0)

    def _offset(self) -> int:
        offset = self.number(self._roles["offset"]) if "offset" in self._roles else 0
        syntax = self.form.syntax
        return offset * UNKNOWN_SIZE if syntax and "mul vl" in syntax.template else offset

    def moves(self) -> Iterator[BaseMove]:
        """The base that a form writes back, moved by the offset, or then by what follows the address."""
        base = self._general("base")
        if base is None or "writeback" not in self.form.attributes:
            return
        size = next((op.width // 8 for op in self.form.operands if op.is_memory), 0)
        if "offset" in self._roles:
            yield BaseMove(base, self._offset())
            return
        for position, op in enumerate(self.form.operands):
            if op.kind == "immediate" and not op.role:
                yield BaseMove(base, self.number(position))
            elif moves_base(op):
                by = next(map(_general_number, self.units(position)), None)
                yield BaseMove(base, size, by)

    def written(self, moves: tuple[BaseMove, ...]) -> tuple[int, ...]:
        """General registers that the instruction writes, but for those that it moves on."""
        operands: list[tuple[int, Operand]] = list(enumerate(self.form.operands))
        names = [u for position, op in operands if op.is_register and op.write for u in self.units(position)]
        numbers = {n for n in map(_general_number, names) if n is not None}
        return tuple(sorted(numbers - {move.register for move in moves}))


def _general_number(unit: str) -> int | None:
    """The number of a general register by its name; `POINTER` for AArch64's stack pointer."""
    if unit == "SP":
        return POINTER
    return int(unit[1:]) if unit[0] == "r" else None
