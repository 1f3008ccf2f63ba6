"""Throughput sequences of AArch64 and RISC-V: independent instances of a form."""

from __future__ import annotations

from functools import cached_property

import msgspec

from cyclescope.isa.fields import Field
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.kernel.block import Register
from cyclescope.kernel.chain import Unmeasurable, Use
from cyclescope.kernel.fixed_width.links import Helpers
from cyclescope.kernel.fixed_width.operands import MASK, FormOperands, immediates
from cyclescope.kernel.fixed_width.registers import RING, SOURCE, fixed_registers, holds_flags, pick
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import CANARY, LONG
from cyclescope.kernel.place import Place
from cyclescope.kernel.stream import BASES, LENGTHS, MAXIMUM, Stream

_LONGEST_GROUP = 8  # registers of RISC-V
_REACH = 1024  # bytes that the addresses of instances are spread over


def _with_value(use: Use, place: int, value: int | None) -> Use:
    registers = list(use.registers)
    registers[place] = value or 0
    return msgspec.structs.replace(use, registers=tuple(registers))


class StreamBuilder(FormOperands):
    """Builds the sequences of one form; forms with the same signature share them."""

    def __init__(self, form: InstructionForm, helpers: Helpers) -> None:
        super().__init__(form, helpers)
        self._reserved: dict[int, int] = {}
        self._kept: set[Register] = set()

    # --- instances ---------------------------------------------------------------------------------

    def instances(self, wanted: int) -> list[Use]:
        """Up to `wanted` independent instances. Raises Unmeasurable where not even one has registers."""
        self._reserved = self._sources()
        used: set[Register] = set()
        result: list[Use] = []
        for position in range(wanted):
            use = self._instance(position, used)
            if use is None and result and self._is_renamed:
                used.clear()
                use = self._instance(position, used)
            if use is None:
                break
            result.append(use)
        if not result:
            raise Unmeasurable("no registers left for an instance")
        return result

    @cached_property
    def _is_renamed(self) -> bool:
        """Whether the registers that instances write may be written again: none is read."""
        return not any(op.read and op.write for op in self.form.operands if op.is_register and not op.fixed)

    def _sources(self) -> dict[int, int]:
        """Registers of what is only read, the same in all instances."""
        taken = self.taken_by_roles()
        values: dict[int, int] = {}
        for operand, field in self.fields:
            op = self.form.operands[operand]
            value = self.role_value(op, field)
            if value is None and not op.write:
                value = self._beside_mask(op, field, taken)
                value = self.choose(op, field, SOURCE, taken) if value is None else value
                value = self._last(op, field, taken) if value is None else value
            if value is not None:
                values[operand] = value
                taken |= set(self.found(field)[value])
        return values

    def _beside_mask(self, op: Operand, field: Field, taken: set[Register]) -> int | None:
        """The group of v0 for a second source of eight registers, where no mask needs it: so that more than
        one group is left for results.
        """
        found = self.found(field)
        value = pick(found, [("v", 0)], taken)
        long = value is not None and len(found[value]) == _LONGEST_GROUP
        second = any(kind == "v" for kind, _ in taken - self.taken_by_roles())
        masked = any(other.cls.startswith(MASK) for other in self.form.operands)
        return value if long and second and not masked and op.file == "v" else None

    def _last(self, op: Operand, field: Field, taken: set[Register]) -> int | None:
        """The register that the ring reaches last."""
        ring = self.pools.pools[RING].get(op.file, ())
        found = self.found(field)
        for number in reversed(ring):
            for value, registers in found.items():
                if registers[:1] == ((op.file, number),) and taken.isdisjoint(registers):
                    return value
        return None

    def _instance(self, position: int, used: set[Register]) -> Use | None:
        taken = self.taken_by_roles() | used | self._kept
        for operand, field in self.fields:
            if operand in self._reserved:
                taken |= set(self.found(field)[self._reserved[operand]])
        values: list[int] = []
        written: set[Register] = set()
        for operand, field in self.fields:
            op = self.form.operands[operand]
            value = self._reserved.get(operand)
            if value is None:
                value = self.choose(op, field, RING, taken | written)
            if value is None:
                return None
            values.append(value)
            if operand not in self._reserved:
                written |= set(self.found(field)[value])
        used |= written
        return Use(tuple(values), immediates=self._offsets(position))

    def _offsets(self, position: int) -> tuple[int, ...] | None:
        """The offset of an instance's data, in the field's own units; None where there is no such field."""
        fields = self.form.bits.fields if self.form.bits else ()
        others = [field for field in fields if not field.is_register]
        places = [n for n, field in enumerate(others) if self._is_offset(field)]
        memory = next((op for op in self.form.operands if op.is_memory), None)
        if len(places) != 1 or memory is None or "writeback" in self.form.attributes:
            return None
        field = others[places[0]]
        step = self.spacing(field)
        reach = min(1 << max(len(field.positions) - 2, 0), step * (_REACH * 8 // max(memory.width, 64)))
        legal = [n for n in range(0, reach, step) if n in field.values.allowed] or [0]
        values = list(immediates(self.form))
        values[places[0]] = legal[position % len(legal)]
        return tuple(values)

    def _is_offset(self, field: Field) -> bool:
        op = self.form.operands[field.operand]
        return op.role == "offset" and "extend" not in op.cls and not field.values.rule

    # --- sequences ---------------------------------------------------------------------------------

    def streams(self) -> list[Stream]:
        """All sequences of the form. Raises Unmeasurable with the reason."""
        uses = self.instances(MAXIMUM)
        lengths = [n for n in LENGTHS if n < len(uses)] + [len(uses)]
        result = [self._stream("plain", uses[:n]) for n in lengths]
        breaks = self._breakers()
        if breaks:
            result += [self._stream("broken", uses[:n], breaks) for n in {lengths[0], lengths[-1]}]
        result.append(msgspec.structs.replace(self._stream("unrolled", uses), flags=CANARY | LONG))
        return result + self._with_bases()

    def _with_bases(self) -> list[Stream]:
        """Instances with bases and memory of their own, where one would wait for the other's."""
        place = next((n for n, (operand, _) in enumerate(self.fields) if self._is_shared(operand)), None)
        if place is None or len(self.pools.others) < 1:
            return []
        self._kept = {("r", number) for number in self.pools.others}
        uses = self.instances(LENGTHS[1])
        self._kept = set()
        found = self.found(self.fields[place][1])
        bases = [("r", number) for number in (self.pools.base, *self.pools.others)]
        values = [pick(found, [base], ()) for base in bases]
        if None in values or len(uses) < len(bases):
            return []
        moved = [_with_value(use, place, values[n % len(values)]) for n, use in enumerate(uses)]
        return [self._stream(BASES, moved)]

    def _is_shared(self, operand: int) -> bool:
        """Whether an operand is the base of what one instance writes and the next one reads."""
        op = self.form.operands[operand]
        both = any(other.is_memory and other.read and other.write for other in self.form.operands)
        return op.role == "base" and op.file == "r" and (op.write or both)

    def _stream(self, variant: str, uses: list[Use], breaks: tuple[Instruction, ...] = ()) -> Stream:
        items: list[Use | Instruction] = []
        for use in uses:
            items += [*breaks, use]
        return Stream(variant, len(uses), tuple(items), len(uses))

    def _breakers(self) -> tuple[Instruction, ...]:
        """What cuts dependencies through fixed registers, flags and a base that moves on."""
        result: list[Instruction] = []
        for op in self.form.operands:
            if not (op.is_register and op.read and op.write):
                continue
            if op.role == "base" and op.file == "r":
                result.append(self.helpers.copy(self.pools.base, self.pools.alias))
            elif holds_flags(op, self.pools.isa):
                result += self.helpers.cut(Place("flag", flag=self.helpers.flags[0]))
            elif op.fixed and op.file in ("r", "v", "p"):
                registers = fixed_registers(op, self.pools.isa)
                result += [i for kind, n in registers if n != self.pools.stack
                           for i in self.helpers.cut(Place(kind, n, 64))]  # fmt: skip
        return tuple(result)
