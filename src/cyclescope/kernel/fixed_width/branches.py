"""Sequences of branches, calls and exclusive accesses, which need other instructions beside them."""

from __future__ import annotations

from abc import ABC, abstractmethod

from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.chain import Use
from cyclescope.kernel.fixed_width.links import Helpers
from cyclescope.kernel.fixed_width.operands import FormOperands, immediates
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import CANARY
from cyclescope.kernel.stream import Stream

COPIES = 8
BRANCH_SPACING = 16  # bytes from one taken branch to the next
Items = list[Use | Instruction]


class BranchBuilder(FormOperands, ABC):
    """What sequences of branches have in common; `unit` bytes are 1 in an offset."""

    unit = 4

    def __init__(self, form: InstructionForm, helpers: Helpers) -> None:
        super().__init__(form, helpers)
        self.length = form.bits.length if form.bits else 0

    @abstractmethod
    def streams(self) -> list[Stream] | None:
        """The sequences, or None for a form that needs none of its own."""

    def values(self, registers: dict[int, int] | None = None) -> tuple[int, ...]:
        """A value for every register field: roles, else the constant, unless another is given."""
        result = []
        for operand, field in self.fields:
            value = (registers or {}).get(operand)
            if value is None:
                value = self.role_value(self.form.operands[operand], field)
            if value is None:
                found = self.found(field)
                wanted = (("r", self.pools.constant),)
                value = next((v for v, rs in found.items() if rs[:1] == wanted), next(iter(found)))
            result.append(value)
        return tuple(result)

    def numbered(self, operand: int, number: int) -> int:
        """The value of an operand's field that is a general register."""
        field = next(field for position, field in self.fields if position == operand)
        return next(value for value, rs in self.found(field).items() if rs[:1] == (("r", number),))

    def branch(self, distance: int, registers: dict[int, int] | None = None, **others: int) -> Use:
        """The form as a branch to `distance` bytes from itself; `others` by class of immediate."""
        fields = [field for field in self.form.bits.fields if not field.is_register] if self.form.bits else []
        values = list(immediates(self.form))
        for position, field in enumerate(fields):
            op = self.form.operands[field.operand]
            if op.kind == "branch":
                values[position] = distance // self.unit & (1 << len(field.positions)) - 1
            elif op.cls in others:
                values[position] = others[op.cls]
        return Use(self.values(registers), immediates=tuple(values))

    def spaced(self, use: Use, variant: str, before: Items | None = None, taken: bool = True) -> Stream:
        """Copies of a branch, each taken one in 16 bytes of its own."""
        gap = (BRANCH_SPACING - self.length) // len(self.filler().code) if taken else 0
        items: Items = [] if before is None else list(before)
        for _ in range(COPIES):
            items += [use, *[self.filler()] * gap]
        return Stream(variant, COPIES, tuple(items), COPIES, CANARY)

    def filler(self) -> Instruction:
        """What stands between branches."""
        return self.helpers.nop()

    def direct(self) -> list[Stream]:
        """A branch that is always taken."""
        return [self.spaced(self.branch(BRANCH_SPACING), "taken")]

    def conditional(self, taken: Use | None, other: Use | None, before: Items | None = None) -> list[Stream]:
        """A branch whose condition is known; where it is not, to the next instruction either way."""
        if taken is None or other is None:
            return [self.spaced(self.branch(self.length), "to the next instruction", before, taken=False)]
        return [
            self.spaced(other, "not taken", before, taken=False),
            self.spaced(taken, "taken", before),
        ]

    def exclusive(self, partner: str, name: str) -> list[Stream]:
        """A store-exclusive after the load-exclusive that it needs."""
        load = self.helpers.form(partner)
        other = FormOperands(load, self.helpers)
        values: list[int | None] = []
        for operand, field in other.fields:
            op = load.operands[operand]
            value = other.role_value(op, field)
            used = {("r", 1)} if values else set()
            values.append(other.choose(op, field, "chain", used) if value is None else value)
        before = Instruction(load, tuple(v or 0 for v in values), 0, immediates(load))
        registers = {}
        taken = self.taken_by_roles()
        for operand, field in self.fields:
            op = self.form.operands[operand]
            if self.role_value(op, field) is None:
                value = self.choose(op, field, "source" if not op.write else "ring", taken) or 0
                registers[operand] = value
                taken |= set(self.found(field)[value])
        use = Use(self.values(registers), immediates=immediates(self.form))
        return [Stream(f"with {name}", COPIES, (before, use) * COPIES, COPIES)]
