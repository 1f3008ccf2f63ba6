"""Which register plays which role in a kernel of an instruction set with fields of bits.

Pools are in order of preference; a field takes the first register of its pool that it can hold, so that
forms with few registers (compressed ones, indexed elements) need no pools of their own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache

import msgspec

from cyclescope.isa.fields import Field
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.register import units
from cyclescope.isa.registry import instruction_set
from cyclescope.kernel.block import Register
from cyclescope.kernel.state import PointerRegisters

_UNIT = re.compile(r"([a-z])(\d+)")
RING, CHAIN, SOURCE = "ring", "chain", "source"


class Pools(msgspec.Struct, frozen=True, dict=True):
    """Registers by role. `pools` is by role (`ring`, `chain`, `source`) and register file.

    `base` holds the address that the form under test accesses, `alias` the same one for helpers; `zero` is a
    register that is set to 0 (one that always is has no role here), `constant` holds a small number,
    `counter` the loop's trips. `ones`, `nought`, `value` and `scratch` are vector
    registers: all ones, 0, the form's values, and for helpers; `addresses` and `indices` vectors of those.
    `mask` is a predicate of all ones, the form's; `truths` are two that nothing writes, of which the second
    may govern any instruction. -1 where there is none. `others` hold addresses of their own, for
    instances that are not to wait for each other's base or memory.
    """

    isa: str
    stack: int
    base: int
    alias: int
    zero: int
    constant: int
    temporary: int
    counter: int
    pools: Mapping[str, Mapping[str, tuple[int, ...]]]
    ones: int
    nought: int
    value: int
    scratch: int
    addresses: int
    indices: int
    mask: int = -1
    truths: tuple[int, ...] = ()
    others: tuple[int, ...] = ()

    @property
    def pointers(self) -> PointerRegisters:
        """Where pointers of a snippet are."""
        return PointerRegisters(self.stack, (self.base, self.alias), (self.stack, self.base, self.alias))

    @property
    def reserved(self) -> set[Register]:
        """Registers that no form under test has for an operand: all roles; of RISC-V's vectors none."""
        general = (self.base, self.alias, self.zero, self.constant, self.temporary, self.counter, self.stack)
        vectors = (self.ones, self.nought, self.value, self.scratch) if self.ones >= 0 else ()
        predicates = {("p", n) for n in (self.mask, *self.truths)}
        return {("r", n) for n in general} | {("v", n) for n in vectors} | predicates


def holds_flags(op: Operand, isa: str) -> bool:
    """Whether an operand is the register of condition flags."""
    return bool(op.fixed) and op.fixed == instruction_set(isa).registers.conditions


@cache
def register(unit: str) -> Register:
    """Register file and number of a unit's name; state is a file of its own."""
    match = _UNIT.fullmatch(unit)
    return (match[1], int(match[2])) if match else (unit, 0)


@cache
def registers_of(name: str, isa: str) -> tuple[Register, ...]:
    """The registers behind LLVM's name of one or several, in order."""
    return tuple(register(unit) for unit in units(name, isa))


@cache
def choices(field: Field, isa: str) -> Mapping[int, tuple[Register, ...]]:
    """What the legal values of a register field stand for; nothing for the zero register and for none."""
    names = field.values.registers
    return {value: registers_of(names[value], isa) for value in field.values.legal if value < len(names)}


def register_fields(form: InstructionForm) -> list[tuple[int, Field]]:
    """(operand, field) of every field that holds a register, in the order in which they are given."""
    fields = form.bits.fields if form.bits else ()
    return [(field.operand, field) for field in fields if field.is_register]


def fixed_registers(op: Operand, isa: str) -> tuple[Register, ...]:
    """Registers of an operand that the encoding leaves no choice of."""
    return registers_of(op.fixed, isa) if op.fixed else ()


def pick(
    found: Mapping[int, tuple[Register, ...]], wanted: Sequence[Register], taken: Collection[Register]
) -> int | None:
    """The value whose first register is the first wanted one that has none of the registers taken."""
    by_first: dict[Register, list[int]] = {}
    for value, registers in found.items():
        if registers:
            by_first.setdefault(registers[0], []).append(value)
    for first in wanted:
        for value in by_first.get(first, ()):
            if not any(r in taken for r in found[value]):
                return value
    return None
