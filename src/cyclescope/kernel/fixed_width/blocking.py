"""Blocking instructions of AArch64 and RISC-V: many instances to keep ports busy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cyclescope.isa.fields import Field
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.kernel.block import BlockingSequence, Register
from cyclescope.kernel.chain import Unmeasurable, Use
from cyclescope.kernel.fixed_width.links import Helpers
from cyclescope.kernel.fixed_width.operands import FormOperands, immediates
from cyclescope.kernel.fixed_width.registers import RING, choices, fixed_registers, pick, register_fields
from cyclescope.kernel.instruction import Instruction

_MEMORY = (range(16, 24), range(8, 16))  # instances' data from the base: apart from the form's under test


def touched(form: InstructionForm, registers: Sequence[int], isa: str, write: bool) -> set[Register]:
    """Registers that an instance writes, or those that it reads."""
    found: set[Register] = set()
    for (operand, field), value in zip(register_fields(form), registers, strict=True):
        op = form.operands[operand]
        if op.write if write else op.read:
            found.update(choices(field, isa)[value])
    for op in form.operands:
        if op.is_register and (op.write if write else op.read):
            found.update(fixed_registers(op, isa))
    return found


def addresses(form: InstructionForm, registers: Sequence[int], isa: str) -> set[Register]:
    """Registers that an instance's addresses are made of."""
    found: set[Register] = set()
    for (operand, field), value in zip(register_fields(form), registers, strict=True):
        if form.operands[operand].role in ("base", "index"):
            found.update(choices(field, isa)[value])
    return found


class BlockBuilder(FormOperands):
    """Chooses registers and addresses for the instances of one form."""

    def __init__(self, form: InstructionForm, helpers: Helpers, avoid: Iterable[Register]) -> None:
        super().__init__(form, helpers)
        self.avoid = set(avoid)
        if any(op.is_register and op.fixed and op.file != "?" for op in form.operands):
            raise Unmeasurable("its registers are not for a blocking instruction to choose")
        if any(op.role == "index" or (op.role == "base" and op.write) for op in form.operands):
            raise Unmeasurable("its address is not for a blocking instruction to choose")

    def block(self) -> BlockingSequence:
        """The instances. Raises Unmeasurable where there are too few registers."""
        uses = self._uses()
        reads = self._touched(uses, write=False)
        if not any(op.is_register and op.read and op.write for op in self.form.operands):
            uses = [use for use in uses if self._touched([use], write=True).isdisjoint(reads)]
        if not uses:
            raise Unmeasurable("too few registers for a blocking instruction")
        made = tuple(Instruction(self.form, use.registers, 0, use.immediates) for use in uses)
        return BlockingSequence(
            self.form.id, made, self._touched(uses, write=False), self._touched(uses, write=True)
        )

    def _touched(self, uses: Iterable[Use], write: bool) -> frozenset[Register]:
        isa = self.pools.isa
        return frozenset().union(*[touched(self.form, use.registers, isa, write) for use in uses])

    def _uses(self) -> list[Use]:
        targets = [(operand, field) for operand, field in self.fields if self.form.operands[operand].write]
        if len(targets) > 1:
            raise Unmeasurable("it writes several registers")
        ring: list[int | None] = [None]
        if targets:
            ring = list(self._ring(*targets[0]))
        places = self._places()
        count = max(len(ring), len(places), 1)
        return [self._use(ring[i % len(ring)], places[i % len(places)]) for i in range(count)]

    def _ring(self, operand: int, field: Field) -> list[int]:
        op = self.form.operands[operand]
        found = choices(field, self.pools.isa)
        taken = self.avoid | self.taken_by_roles() | {("v", self.pools.nought)}
        values: list[int] = []
        for number in reversed(self.pools.pools[RING].get(op.file, ())):
            value = pick(found, [(op.file, number)], taken)
            if value is not None:
                values.append(value)
                taken |= set(found[value])
        if len(values) < (4 if op.read else 1):
            raise Unmeasurable("too few registers for a blocking instruction")
        return values[:8]

    def _use(self, target: int | None, offsets: tuple[int, ...] | None) -> Use:
        taken = set(self.avoid)
        values = []
        for operand, field in self.fields:
            op = self.form.operands[operand]
            value = self.role_value(op, field)
            if value is None:
                value = target if op.write else self._source(op, field, taken)
            if value is None:
                raise Unmeasurable("too few registers for a blocking instruction")
            values.append(value)
        return Use(tuple(values), immediates=offsets)

    def _source(self, op: Operand, field: Field, taken: set[Register]) -> int | None:
        """A register that nothing writes: one of the helpers' constants."""
        pools = self.pools
        constants = {
            "r": (pools.constant, pools.zero, pools.alias),
            "v": (pools.value, pools.nought, pools.ones, pools.indices),
            "f": pools.pools["source"].get("f", ()),
            "p": (pools.mask, 6, 5),
        }
        wanted = [(op.file, n) for n in constants.get(op.file, ()) if n >= 0]
        found = choices(field, pools.isa)
        value = pick(found, wanted, taken)
        if value is not None:
            taken |= set(found[value])
        return value

    def _places(self) -> list[tuple[int, ...] | None]:
        fields = [field for field in self.form.bits.fields if not field.is_register] if self.form.bits else []
        plain = immediates(self.form)
        places = [n for n, field in enumerate(fields) if self.form.operands[field.operand].role == "offset"]
        if len(places) != 1 or not any(op.is_memory for op in self.form.operands):
            return [plain]
        field = fields[places[0]]
        step, last = self.spacing(field), self.largest(field)
        fitting = ([n * step for n in some if n * step <= last] for some in _MEMORY)
        legal = [n for n in next(filter(None, fitting), []) if n in field.values.allowed]
        return [(*plain[: places[0]], n, *plain[places[0] + 1 :]) for n in legal] or [plain]
