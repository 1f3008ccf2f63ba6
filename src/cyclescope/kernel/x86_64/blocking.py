"""Kernels that keep ports busy: many blocking instructions around a few of the form under test.

A blocking instruction is a form of one micro-operation. Its instances must not wait for the form
under test, or the kernel would measure a latency: they read only registers that nothing in the kernel
writes. What the form under test reads is for the caller to avoid.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.register import domain
from cyclescope.kernel.block import BlockingSequence, Register
from cyclescope.kernel.chain import Unmeasurable, Use
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.x86_64.registers import BASE, CONSTANT, MASK_ONES, X86RegisterRoles, physical
from cyclescope.kernel.x86_64.values import immediates

# Counted from the end that throughput sequences reach last; RSI, RDI and RCX may be implicit.
_WRITTEN = {
    "r": (10, 9, 8, 7, 6, 5, 2, 1),
    "v": (11, 10, 9, 8, 7, 6, 5, 4),
    "k": (5,),  # each that holds a value is one less for what is in flight, of few
    "m": (6, 5, 4, 3, 2, 1),
}
_READ = {"r": (CONSTANT, 11, 3), "v": (15, 14, 13, 12, 7), "k": (MASK_ONES, 6), "m": (7, 0)}
NAMED_LONGER = frozenset(("v", number) for number in range(8, 16))  # to name them takes a byte more
_LOADS, _STORES = -128, -64  # displacements; the form under test has its data from 0 on
_REACH = 64  # bytes of loads or stores


def written(form: InstructionForm, registers: Sequence[int]) -> set[Register]:
    """Registers that an instance writes, implicit ones included."""
    return _touched(form, registers, write=True)


def read(form: InstructionForm, registers: Sequence[int]) -> set[Register]:
    """Registers that an instance reads, those of addresses and implicit ones included."""
    return _touched(form, registers, write=False) | addresses(form, registers)


def addresses(form: InstructionForm, registers: Sequence[int]) -> set[Register]:
    """Registers that an instance's addresses may be made of."""
    implicit, explicit = _of_addresses(form)
    return {*implicit, *[(file, registers[place]) for place, file in explicit]}


@cache
def _of_addresses(form: InstructionForm) -> tuple[tuple[Register, ...], tuple[tuple[int, str], ...]]:
    """Implicit registers of addresses, and places of others among those chosen, with their files."""
    explicit = [
        (place, "v" if slot.part == 2 and form.operands[slot.operand].cls.startswith("VSIB_") else "r")
        for place, slot in enumerate(form.encoding.slots if form.encoding else ())
        if slot.part
    ]
    implicit = any(op.is_memory and op.implicit for op in form.operands)
    return tuple(X86RegisterRoles(form).implicit) if implicit else (), tuple(explicit)


def _touched(form: InstructionForm, registers: Sequence[int], write: bool) -> set[Register]:
    implicit, explicit = _accessed(form, write)
    return {*implicit, *[physical(op, registers[place]) for place, op in explicit]}


@cache
def _accessed(
    form: InstructionForm, write: bool
) -> tuple[tuple[Register, ...], tuple[tuple[int, Operand], ...]]:
    """Implicit registers that a form writes, or reads, and operands with their places among those chosen."""
    implicit = [place for place in X86RegisterRoles(form).implicit if _implicit_access(form, place, write)]
    explicit = [
        (place, op)
        for place, slot in enumerate(form.encoding.slots if form.encoding else ())
        if slot.part == 0
        and (op := form.operands[slot.operand]).is_register
        and (op.write if write else op.read)
    ]
    return tuple(implicit), tuple(explicit)


def _implicit_access(form: InstructionForm, place: Register, write: bool) -> bool:
    fixed = [op for op in form.operands if op.fixed and op.is_register and domain(op.cls) in (place[0], "h")]
    accesses = [op.write if write else op.read for op in fixed]
    return any(accesses) if accesses else not write  # a register of an implicit address is read


def block_of(form: InstructionForm, avoid: Iterable[Register] = ()) -> BlockingSequence:
    """Blocking instances of a form that touch none of the registers to avoid.

    Raises Unmeasurable where there are too few registers.
    """
    builder = _BlockBuilder(form, set(avoid))
    uses = builder.uses()
    made = tuple(Instruction(form, u.registers, u.displacement, immediates(form), None) for u in uses)
    reads = frozenset().union(*[read(form, use.registers) for use in uses])
    writes = frozenset().union(*[written(form, use.registers) for use in uses])
    return BlockingSequence(form.id, made, reads, writes)


class _BlockBuilder:
    """Chooses registers and addresses for the instances of one form."""

    def __init__(self, form: InstructionForm, avoid: set[Register]) -> None:
        self.form = form
        self.avoid = avoid
        self.slots = form.encoding.slots if form.encoding else ()
        if self._needs_more:
            raise Unmeasurable("its registers are not for a blocking instruction to choose")

    @property
    def _needs_more(self) -> bool:
        return any(op.is_register and op.fixed for op in self.form.operands) or any(
            s.part == 2 and self.form.operands[s.operand].cls.startswith("VSIB_") for s in self.slots
        )

    def uses(self) -> list[Use]:
        """One instance per register of the ring, or one where nothing is written."""
        ring = self._ring()
        places = self._displacements()
        count = max(len(ring), len(places), 1)
        return [
            self._use(ring[i % len(ring)] if ring else None, places[i % len(places)]) for i in range(count)
        ]

    def _written(self) -> list[Operand]:
        return [op for op in self.form.operands if op.is_register and op.write]

    def _ring(self) -> list[int]:
        targets = self._written()
        if not targets:
            return []
        if len(targets) > 1:
            raise Unmeasurable("it writes several registers")
        file = domain(targets[0].cls)
        source = [n for n in _READ.get(file, ()) if (file, n) not in self.avoid][:1]
        numbers = [n for n in _WRITTEN.get(file, ()) if n not in source]
        free = [n for n in numbers if physical(targets[0], n) not in self.avoid]
        least = 4 if targets[0].read else 1
        if len(free) < least:
            raise Unmeasurable("too few registers for a blocking instruction")
        return free

    def _use(self, target: int | None, displacement: int) -> Use:
        taken = set(self.avoid)
        numbers = []
        for slot in self.slots:
            op = self.form.operands[slot.operand]
            if slot.part == 1:
                numbers.append(BASE)
            elif slot.part == 2:
                numbers.append(self._free("r", taken))
            elif op.write:
                assert target is not None
                numbers.append(target)
            else:
                numbers.append(self._source(op, taken))
        return Use(tuple(numbers), displacement)

    def _source(self, op: Operand, taken: set[Register]) -> int:
        return self._free(domain(op.cls), taken)

    @staticmethod
    def _free(file: str, taken: set[Register]) -> int:
        """A register of a file that nothing writes and no other source is."""
        for number in _READ.get(file, ()):
            if (file, number) not in taken:
                taken.add((file, number))
                return number
        raise Unmeasurable("too few registers for a blocking instruction")

    def _displacements(self) -> list[int]:
        if self.form.memory < 0:
            return [0]
        op = self.form.operands[self.form.memory]
        step = max(op.width // 8, 8)
        first = _STORES if op.write else _LOADS
        return list(range(first, first + _REACH, step))
