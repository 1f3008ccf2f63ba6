"""Register values as linear expressions of unknowns, as far as addresses need them.

A value is a number plus multiples of unknowns: `RAX at the start + 8`. Moves, additions, subtractions,
shifts and multiplications by constants keep it so; every other result is an unknown of its own, the same
whenever the same instruction computes it from the same values. Sums are taken not to wrap, and moves of 32
bits to keep the value: compilers index arrays that way.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import msgspec

from cyclescope.analyze.decode.block import Address, BlockInstruction
from cyclescope.analyze.decode.locations import Location, location_of
from cyclescope.isa.dataflow import AMOUNT
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.record import ResultKind

Terms = tuple[tuple[int, int], ...]  # (unknown, factor), by unknown


class Value(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """`constant` plus the `terms`."""

    constant: int
    terms: Terms = ()

    def plus(self, other: Value, factor: int = 1) -> Value:
        """The sum with a multiple of another value."""
        if not other.terms:
            return Value(self.constant + factor * other.constant, self.terms)
        if not self.terms and factor == 1:
            return Value(self.constant + other.constant, other.terms)
        sums = dict(self.terms)
        for unknown, times in other.terms:
            sums[unknown] = sums.get(unknown, 0) + factor * times
        terms = tuple(sorted((u, times) for u, times in sums.items() if times))
        return Value(self.constant + factor * other.constant, terms)

    def times(self, factor: int) -> Value:
        """A multiple."""
        return Value(0).plus(self, factor)


class KnownValues:
    """What registers and memory hold, while a block is gone through."""

    def __init__(self) -> None:
        self._registers: dict[Location, Value] = {}
        self._memory: dict[Value, Value] = {}
        self._unknowns: dict[Hashable, Value] = {}

    def unknown(self, key: Hashable) -> Value:
        """The unknown with this key."""
        value = self._unknowns.get(key)
        if value is None:
            value = self._unknowns[key] = Value(0, ((len(self._unknowns), 1),))
        return value

    def register(self, location: Location) -> Value:
        """What a register holds."""
        value = self._registers.get(location)
        return self.unknown(("at the start", location)) if value is None else value

    def set(self, location: Location, value: Value) -> None:
        """Write a register."""
        self._registers[location] = value

    def loaded(self, address: Value) -> Value:
        """What memory holds: what was stored there, else the same unknown whenever it is asked for."""
        value = self._memory.get(address)
        return self.unknown(("in memory", address)) if value is None else value

    def store(self, address: Value, value: Value) -> None:
        """Write memory."""
        self._memory[address] = value

    def address(self, instruction: BlockInstruction, address: Address) -> Value:
        """The address of an access."""
        value = Value(0 if address.writeback == "post" else address.displacement)
        if address.rip_relative and not address.symbol:
            value = Value(address.displacement + instruction.address + len(instruction.code))
        base, index = location_of(address.base), location_of(address.index)
        if base is not None:
            value = value.plus(self.register(base))
        if index is not None:
            value = value.plus(self.register(index), address.scale)
        if address.symbol or address.segment:
            for name in filter(None, (address.symbol, address.segment)):
                value = value.plus(self.unknown(("name", name)))
        return value


class OperandsSeen(msgspec.Struct, frozen=True, gc=False):
    """What a rule sees of an instruction: its operands' values by position, None for what has none."""

    form: InstructionForm
    operands: tuple[Value | None, ...]
    addresses: tuple[Value | None, ...]

    def explicit(self) -> list[Value | None]:
        """Values of the operands that a programmer writes."""
        ops = zip(self.form.operands, self.operands, strict=True)
        return [value for op, value in ops if not op.implicit]


Rule = Callable[[OperandsSeen], "Value | None"]


def _moved(step: OperandsSeen) -> Value | None:
    return step.explicit()[1]


def _address(step: OperandsSeen) -> Value | None:
    return next((value for value in step.addresses if value is not None), None)


def _two(step: OperandsSeen) -> tuple[Value, Value] | None:
    """The last two operands: of `add a, b` and `add d, a, b` alike. A fourth would shift the third."""
    values = step.explicit()
    if not 2 <= len(values) <= 3 or values[-2] is None or values[-1] is None:
        return None
    return values[-2], values[-1]


def _sum(step: OperandsSeen, factor: int = 1) -> Value | None:
    terms = _two(step)
    return None if terms is None else terms[0].plus(terms[1], factor)


def _difference(step: OperandsSeen) -> Value | None:
    return _sum(step, -1)


def _exclusive_or(step: OperandsSeen) -> Value | None:
    values = _two(step)
    return Value(0) if values is not None and values[0] == values[1] else None


def _counted(step: OperandsSeen, change: int = 1) -> Value | None:
    value = step.explicit()[0]
    return None if value is None else value.plus(Value(change))


def _counted_down(step: OperandsSeen) -> Value | None:
    return _counted(step, -1)


def _shifted(step: OperandsSeen) -> Value | None:
    values = _two(step)
    if values is None or values[1].terms or not 0 <= values[1].constant < 64:
        return None
    return values[0].times(1 << values[1].constant)


def _product(step: OperandsSeen) -> Value | None:
    values = _two(step)
    return None if values is None or values[1].terms else values[0].times(values[1].constant)


def _loaded(step: OperandsSeen) -> Value | None:
    pairs = zip(step.form.operands, step.operands, strict=True)
    return next((value for op, value in pairs if op.is_memory), None)


def _alternative(step: OperandsSeen) -> Value | None:
    """AArch64 writes a move as an OR with the zero register."""
    values = step.explicit()
    return values[2] if len(values) > 2 and values[1] == Value(0) else None


def _bit_field(step: OperandsSeen) -> Value | None:
    """AArch64 writes a shift to the left as a move of a bit field."""
    _, source, rotated, last = step.explicit()
    bits = step.form.operands[0].width
    if source is None or rotated is None or last is None or rotated.constant != last.constant + 1:
        return None
    return source.times(1 << bits - rotated.constant)


_RULES: dict[ResultKind, Rule] = {
    ResultKind.MOVED: _moved, ResultKind.ADDRESS: _address, ResultKind.LOADED: _loaded, ResultKind.SUM: _sum,
    ResultKind.DIFFERENCE: _difference, ResultKind.UP: _counted, ResultKind.DOWN: _counted_down,
    ResultKind.SHIFTED: _shifted, ResultKind.PRODUCT: _product, ResultKind.SAME_IS_ZERO: _exclusive_or,
    ResultKind.OF_ZERO: _alternative, ResultKind.BIT_FIELD: _bit_field,
}  # fmt: skip


def rule_of(form: InstructionForm, position: int, kind: ResultKind | None) -> Rule | None:
    """The rule for the value that a form writes to the operand at a position, None where there is none."""
    if kind is None or position < 0:
        return None
    operand = form.operands[position]
    if not (operand.file == "r" or operand.cls in ("R64", "R32")):  # shorter ones merge
        return None
    places = enumerate(form.operands)
    first = next((n for n, op in places if op.write and not op.implicit and op.role != "base"), -1)
    return _RULES[kind] if position == first else None


def keeps_value(op: Operand) -> bool:
    """Whether what is stored to an operand in memory is the value of a register, and nothing else."""
    return not op.read and op.width >= 32


def is_overwritten(op: Operand) -> bool:
    """Whether an operand is a register whose old value the instruction does not look at."""
    return op.is_register and op.write and not op.read


def implied_amount(op: Operand) -> int:
    """Bytes that AArch64 increases a base by where the register for it is the zero register: `GPR64pi16`."""
    return int(op.cls.removeprefix(AMOUNT))


def stack_change(form: InstructionForm) -> int:
    """Bytes that pushes and pops move the stack pointer by."""
    if "stack" not in form.attributes:
        return 0
    implicit = [op for op in form.operands if op.is_memory and op.implicit]
    return sum((op.read - op.write) * max(op.width // 8, 1) for op in implicit)


def comes_back(form: InstructionForm) -> bool:
    """Whether a form calls what returns to behind it, or returns from there."""
    return not form.attributes.isdisjoint(("call", "return"))


def moved_by(form: InstructionForm, position: int) -> int:
    """Bytes by which a form moves a pointer that it implies: the stack's, or a string's, which goes up as
    programs leave the direction flag.
    """
    op = form.operands[position]
    if not op.implicit or op.is_memory:
        return 0
    if op.fixed == "RSP":
        return stack_change(form)
    if "string" not in form.attributes or not form.attributes.isdisjoint(("rep", "repne")):
        return 0
    return next((one.width // 8 for one in form.operands if one.is_memory and one.fixed == op.fixed), 0)
