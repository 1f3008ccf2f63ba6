"""What links of AArch64 and RISC-V have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.fixed_width.registers import Pools
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.paths import Links
from cyclescope.kernel.place import Place

SCALABLE = 2048  # bits, at most: the width of registers and memory whose length the machine chooses
FLOAT_SCRATCH = 8  # f register of RISC-V's links
CONSTANT_VALUE = 5  # of a general register whose dependency is cut


class Helpers(Links, ABC):
    """Links and what else kernels are made of. Numbers are of registers in the place's file."""

    pools: Pools
    stores: Mapping[tuple[str, int], str] = {}
    loads: Mapping[tuple[str, int], str] = {}
    flags: tuple[str, ...] = ()  # of the condition register, the one to link with first

    @property
    def group(self) -> int:
        """Scalable registers that a store of a link writes at once."""
        return 1

    def make(self, form_id: str, *values: int) -> Instruction:
        """An instruction with the values of its fields, in their order."""
        form = self._table[form_id]
        fields = form.bits.fields if form.bits else ()
        both = list(zip(fields, values, strict=True))
        registers = tuple(value for field, value in both if field.is_register)
        return Instruction(form, registers, 0, tuple(value for field, value in both if not field.is_register))

    def conflict(self, form: InstructionForm, registers: Sequence[int]) -> str:
        """Why registers, each legal, are not so together, or ""."""
        return ""

    @abstractmethod
    def nop(self) -> Instruction:
        """NOP."""

    @abstractmethod
    def constant(self, number: int) -> Instruction:
        """General register := a constant, without reading anything."""

    @abstractmethod
    def copy(self, number: int, source: int) -> Instruction:
        """General register := a register that never changes."""

    @abstractmethod
    def xor(self, number: int, source: int) -> Instruction:
        """General register := itself XOR another."""

    def xor_vector(self, number: int, source: int) -> Instruction | None:
        """Vector register := itself XOR another; None where vectors are no addresses."""
        return None

    @abstractmethod
    def cut(self, place: Place) -> list[Instruction]:
        """Instructions that give a place the form's value, whatever it was before."""

    def cut_one(self, place: Place) -> list[Instruction]:
        """The same for a register of several that an operand is: nothing where another one's cut does it."""
        return self.cut(place)

    @abstractmethod
    def again(self, source: Place, target: Place, value: int) -> tuple[list[Instruction], tuple[str, ...]]:
        """target := the value in register `value`, but only when the source is there; and the keys."""

    def transfer(self, place: Place, source: Place) -> Instruction | None:
        """The move from a general register alone, without restoring the value; None where there is none."""
        return None

    def to_mask(self, instructions: list[Instruction]) -> list[Instruction]:
        """A way to a mask register, so that the mask is all ones in the end."""
        return instructions

    def fill(self, place: Place) -> tuple[Instruction, str] | None:
        """An instruction that leaves a place's value, and its key."""
        step = self.step(place, place)
        return (step.instructions[0], step.keys[0]) if step and len(step.instructions) == 1 else None

    @abstractmethod
    def level(self, form: InstructionForm) -> int:
        """How much vector state a form needs."""

    def _memory(self, names: Mapping[tuple[str, int], str], register: Place, memory: Place) -> Instruction:
        """A load or store at the alias base register."""
        name = names[register.kind, memory.width]
        fields = [field for field in self._table[name].bits.fields if field.is_register]  # type: ignore[union-attr]
        values = [register.number] * (len(fields) - 1) + [self.pools.alias]
        return self.make(name, *values, *self._offset(memory))

    def _offset(self, memory: Place) -> tuple[int, ...]:
        return (0,)

    def load(self, target: Place, width: int) -> Instruction | None:
        """A plain load into a register, None where there is none."""
        name = self.loads.get((target.kind, width))
        return (
            self._memory(self.loads, target, Place("mem", width=width)) if name and self.has(name) else None
        )

    def fits(self, source: Place, target: Place) -> bool:
        """Whether there is a load or store of that width."""
        for place, other, names in ((source, target, self.loads), (target, source, self.stores)):
            if place.kind == "mem":
                name = names.get((other.kind, place.width))
                return name is not None and self.has(name)
        return True

    def detail(self, source: Place, target: Place) -> str:
        """Flags, bits of memory, and the kind of vector."""
        if source.kind == "flag":
            return f".{source.flag}"
        if "mem" in (source.kind, target.kind):
            return f".{source.width if source.kind == 'mem' else target.width}"
        if target.kind == "v":
            return ".z" if SCALABLE in (source.width, target.width) else ".128"
        return ""
