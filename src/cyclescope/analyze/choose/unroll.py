"""How far one pass of a loop moves its pointer, in bytes and elements."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from cyclescope.analyze.choose.elements import Elements
from cyclescope.analyze.decode.block import BlockInstruction, Register, Unroll
from cyclescope.analyze.decode.known_values import implied_amount
from cyclescope.isa.dataflow import AMOUNT
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.record import ResultKind
from cyclescope.isa.registry import instruction_set

_GENERAL = ("R", "X", "S")  # general registers and the stack pointer
_Change = Callable[[int], int]
_ADDING: dict[ResultKind, _Change] = {ResultKind.SUM: operator.pos, ResultKind.DIFFERENCE: operator.neg}
_COUNTING: dict[ResultKind, _Change] = {ResultKind.UP: operator.pos, ResultKind.DOWN: operator.neg}
_FULL = {"R16": "R64", "R32": "R64", "R8l": "R64", "R8h": "R64"}


def find_unroll(instructions: Sequence[BlockInstruction], isa: str) -> Unroll | None:
    """What a pass does to the register that most addresses move by; None where that is no constant."""
    steps = _steps(instructions, instruction_set(isa).arithmetic.results)
    moved = [access for access in _accesses(instructions) if access.register in steps]
    if not moved:
        return None
    chosen, _ = Counter(access.register for access in moved).most_common(1)[0]
    own = [access for access in moved if access.register == chosen]
    step = steps[chosen]
    return Unroll(
        chosen, step, max(abs(step) * access.scale for access in own), max(access.width for access in own),
        _elements(moved, steps, instructions, Elements(isa)),
    )  # fmt: skip


class _Access(NamedTuple):
    """A memory operand whose address has a register in it, times `scale`; `width` in bytes."""

    register: Register
    scale: int
    form: InstructionForm
    operand: Operand

    @property
    def width(self) -> int:
        return self.operand.width // 8


def _accesses(instructions: Sequence[BlockInstruction]) -> Iterator[_Access]:
    for one in instructions:
        for position, address in enumerate(one.memory):
            if address is None or one.form is None or _is_stack(one, position):
                continue
            for register, scale in ((address.base, 1), (address.index, address.scale)):
                if register is not None:
                    yield _Access(_full(register), scale, one.form, one.form.operands[position])


def _elements(
    accesses: Sequence[_Access],
    steps: Mapping[Register, int],
    instructions: Sequence[BlockInstruction],
    elements: Elements,
) -> int | None:
    """How many elements of its arrays a pass moves by, None where the accesses do not say or agree."""
    worked, counts = elements.worked_on(instructions), set()
    for access in accesses:
        width = elements.accessed(access.form, access.operand, worked)
        stride = abs(steps[access.register]) * access.scale
        if width:
            counts.add(stride // width if stride % width == 0 else None)
    return counts.pop() if len(counts) == 1 else None


def _is_stack(one: BlockInstruction, position: int) -> bool:
    """Whether the instruction implies the access, as PUSH and MOVS do; with fields, all are implicit."""
    assert one.form is not None
    return not one.form.has_fields and one.form.operands[position].implicit


def _full(register: Register) -> Register:
    return _FULL.get(register[0], register[0]), register[1]


def _steps(
    instructions: Sequence[BlockInstruction], results: Mapping[str, ResultKind]
) -> dict[Register, int]:
    """Constant change per pass of every general register that is only added to."""
    steps: dict[Register, int] = {}
    lost: set[Register] = set()
    for one in instructions:
        if one.form is None:
            continue
        for position, op in enumerate(one.form.operands):
            register = one.registers[position]
            if register is None or not op.write or register[0][0] not in _GENERAL:
                continue
            change = _change(one, register, results.get(one.form.mnemonic)) if not op.implicit else None
            if change is None:
                lost.add(_full(register))
            else:
                steps[_full(register)] = steps.get(_full(register), 0) + change
    return {register: step for register, step in steps.items() if register not in lost and step}


def _change(one: BlockInstruction, register: Register, kind: ResultKind | None) -> int | None:
    """What an instruction adds to the register it writes, None where that is no constant."""
    if kind in _COUNTING:
        return _COUNTING[kind](1)
    value = next((v for v in one.immediates if v is not None), None)
    address = next((a for a in one.memory if a is not None), None)
    if address is not None and address.writeback and address.base == register:
        return address.displacement if address.writeback == "pre" else _amount(one, value)
    if kind in _ADDING and value is not None and _reads_only(one, register):
        return _ADDING[kind](value)
    own = address is not None and address.base == register and address.index is None
    return address.displacement if address is not None and own and kind is ResultKind.ADDRESS else None


def _amount(one: BlockInstruction, value: int | None) -> int | None:
    """What a base is increased by after the access: an immediate, or as many bytes as are accessed."""
    assert one.form is not None
    for op, register in zip(one.form.operands, one.registers, strict=True):
        if op.cls.startswith(AMOUNT):
            return implied_amount(op) if register is None else None
    return value


def _reads_only(one: BlockInstruction, register: Register) -> bool:
    assert one.form is not None
    operands = zip(one.form.operands, one.registers, strict=True)
    return {used for op, used in operands if op.read and used and not op.implicit} == {register}
