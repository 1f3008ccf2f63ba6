"""Links through memory: stores, and loads that get their value by store forwarding.

They always use another base register than the form under test. Some CPUs rename memory: a load of 32
or 64 bits gets its value from the register that an earlier store stored, whatever the address. A
vector register in between rules that out. Stores for narrower loads are of 32 bits, for the same
reason and because the time that a byte takes from a general register varies.
"""

from __future__ import annotations

from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.place import Place
from cyclescope.kernel.x86_64.helpers.breakers import Breakers
from cyclescope.kernel.x86_64.registers import ALIAS, CONSTANT, VECTOR_CONSTANT, VECTOR_ONES

_CLASSES = {32: "XMM", 64: "XMM", 128: "XMM", 256: "YMM", 512: "ZMM"}
NARROWEST = 32  # bits of a store
SCRATCH_VECTOR = 8  # on the way between general registers and memory


class MemoryLinks(Breakers):
    """Links from and to memory at the alias base register."""

    def _general_to_memory(self, source: Place, target: Place) -> list[Instruction]:
        name = self._transfer_name(target.width, to_vector=True)
        middle = Place("v", SCRATCH_VECTOR, 128)
        move = self.make(name, SCRATCH_VECTOR, source.number)
        return [move, *self._vector_to_memory(middle, target)]

    def _memory_to_general(self, source: Place, target: Place) -> list[Instruction]:
        if source.width < 32:
            name = {8: "MOVZX (R32, M8)", 16: "MOVZX (R32, M16)"}[source.width]
            return [self._memory(name, (target.number, ALIAS), source)]
        name = self._transfer_name(source.width, to_vector=False)
        load = self._memory_to_vector(source, Place("v", SCRATCH_VECTOR, 128))
        return [*load, self.make(name, target.number, SCRATCH_VECTOR)]

    def _transfer_name(self, width: int, *, to_vector: bool) -> str:
        general = f"R{width}"
        pair = f"XMM, {general}" if to_vector else f"{general}, XMM"
        return f"{'V' if self.avx else ''}MOV{'D' if width == 32 else 'Q'} ({pair})"

    def store_constant(self, width: int) -> list[Instruction]:
        """Memory := a constant, in a way that cannot be renamed; nothing where the CPU has no such store."""
        target = Place("mem", width=max(width, NARROWEST))
        if not self.has_vector_move(target.width):
            return []
        return self._vector_to_memory(Place("v", VECTOR_CONSTANT, 128), target)

    def _memory(self, form_id: str, registers: tuple[int, ...], place: Place) -> Instruction:
        return self.make(form_id, *registers, displacement=place.offset)

    def _vector_name(self, width: int, store: bool) -> str:
        mnemonic = {32: "MOVD", 64: "MOVQ"}.get(width, "MOVUPS")
        prefix = "V" if self.avx else ""
        pair = (f"M{width}", _CLASSES[width]) if store else (_CLASSES[width], f"M{width}")
        return f"{prefix}{mnemonic} ({pair[0]}, {pair[1]})"

    def has_vector_move(self, width: int) -> bool:
        """Whether this CPU moves vectors of so many bits to and from memory."""
        return width in _CLASSES and self.has(self._vector_name(width, True))

    def _vector_to_memory(self, source: Place, target: Place) -> list[Instruction]:
        return [self._memory(self._vector_name(target.width, True), (ALIAS, source.number), target)]

    def _memory_to_vector(self, source: Place, target: Place) -> list[Instruction]:
        return [self._memory(self._vector_name(source.width, False), (target.number, ALIAS), source)]

    def overwrite(self, kind: str, number: int) -> dict[str, tuple[Instruction, ...]]:
        """A register := a constant, by a move that some cores eliminate, of a vector by a load as well, whose
        port is no other vector instruction's; nothing for registers of other kinds.
        """
        if kind == "r":
            return {"": (self.constant_from(number, CONSTANT),)}
        if kind != "v":
            return {}
        move = self.vector_constant(number, VECTOR_CONSTANT, 128)
        if number > VECTOR_ONES:  # which only EVEX reaches
            return {"": (move,)}
        load = self._memory_to_vector(Place("mem", width=128), Place("v", number))
        return {"": (move,), "by a load": tuple(load)}

    def _mmx_to_memory(self, source: Place, target: Place) -> list[Instruction]:
        name = "MOVD (M32, MM)" if target.width == 32 else "MOVQ (M64, MM)"
        return [self._memory(name, (ALIAS, source.number), target)]

    def _memory_to_mmx(self, source: Place, target: Place) -> list[Instruction]:
        name = "MOVD (MM, M32)" if source.width == 32 else "MOVQ (MM, M64)"
        return [self._memory(name, (target.number, ALIAS), source)]

    def _x87_to_memory(self, source: Place, target: Place) -> list[Instruction]:
        """Store ST(0); `number` 1 says that the form pushed it, so it is popped."""
        name = "FSTP" if source.number else "FST"
        return [self._memory(f"{name} (M{target.width})", (ALIAS,), target)]

    def _memory_to_x87(self, source: Place, target: Place) -> list[Instruction]:
        """Load ST(0) in place of the old one, unless the form popped that (`number` 1)."""
        drop = [] if target.number else [self.make("FSTP (STi)", 0)]
        return [*drop, self._memory(f"FLD (M{source.width})", (ALIAS,), source)]

    def _mask_to_memory(self, source: Place, target: Place) -> list[Instruction]:
        letter = {8: "B", 16: "W", 32: "D", 64: "Q"}[target.width]
        name = f"KMOV{letter} (M{target.width}, K)"
        return [self._memory(name, (ALIAS, source.number), target)]

    def _memory_to_mask(self, source: Place, target: Place) -> list[Instruction]:
        letter = {8: "B", 16: "W", 32: "D", 64: "Q"}[source.width]
        name = f"KMOV{letter} (K, M{source.width})"
        return [self._memory(name, (target.number, ALIAS), source)]
