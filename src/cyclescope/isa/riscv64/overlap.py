"""Which vector registers an instruction may have together."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.riscv64.shapes import RegisterShape, shapes

_MASK = RegisterShape("m", -1, eew=1)  # v0.t


class RegisterGroup(msgspec.Struct, frozen=True):
    """The registers of an operand, with the shape of their elements."""

    op: Operand
    registers: range
    shape: RegisterShape

    def meets(self, other: RegisterGroup) -> bool:
        """Whether they share a register."""
        return self.registers.start < other.registers.stop and other.registers.start < self.registers.stop


def conflict(form: InstructionForm, registers: Sequence[int]) -> str:
    """Why registers, as `encode` takes them, are not allowed together in a configured form, or "".

    The specification's rules: a result may overlap a source of wider elements in its lowest register, one of
    narrower elements and of whole registers in the result's highest ones; some instructions allow no overlap;
    no register is a source with two widths of elements.
    """
    every = groups(form, registers)
    results = [group for group in every if group.op.write]
    sources = [group for group in every if group.op.read and not group.op.conditional]
    for result in results:
        for source in sources:
            if source.op is not result.op and result.meets(source) and not _may_meet(form, result, source):
                return f"{result.op.name} overlaps {source.op.name}"
    for k, one in enumerate(sources):
        for other in sources[:k]:
            if _width(form, one) != _width(form, other) and one.meets(other):
                return f"{other.op.name} and {one.op.name}: elements of two widths in one register"
    return ""


def groups(form: InstructionForm, registers: Sequence[int]) -> list[RegisterGroup]:
    """The vector operands of a configured form; `registers` as for `encode`."""
    assert form.bits is not None
    numbers = iter(registers)
    placed = {field.operand: next(numbers) for field in form.bits.fields if field.is_register}
    found = []
    for position, op in enumerate(form.operands):
        if op.file == "v" and (position in placed or op.fixed):
            first = placed.get(position, 0)
            shape = shapes(form).get(position, _MASK)
            found.append(RegisterGroup(op, range(first, first + op.group), shape))
    return found


def _width(form: InstructionForm, group: RegisterGroup) -> object:
    assert form.configuration is not None
    return group.shape.width(form.configuration.sew)


def _may_meet(form: InstructionForm, result: RegisterGroup, source: RegisterGroup) -> bool:
    if strict(form, result.shape, source.shape):
        return False
    if result.shape.single or source.shape is _MASK:
        return True
    assert form.configuration is not None
    sew, lmul = form.configuration.sew, form.configuration.lmul
    ours, theirs = result.shape.width(sew), source.shape.width(sew)
    if ours < theirs:
        return result.registers.start == source.registers.start
    whole = source.shape.emul(sew, lmul) >= 1
    return ours == theirs or (whole and result.registers.stop == source.registers.stop)


def strict(form: InstructionForm, result: RegisterShape, source: RegisterShape) -> bool:
    """Whether an instruction allows no overlap of a result and a source at all."""
    if source is _MASK:
        return "apart_mask" in form.attributes
    if result.count > 1:
        return True  # segments and their indices
    widened = source.kind != "m" and not source.eew and result.factor > source.factor
    return not widened and f"apart_vs{(0, 2, 1)[source.place]}" in form.attributes
