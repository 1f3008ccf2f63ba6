"""Throughput sequences: independent instances of a form.

Written registers come from a ring, sources are only read, memory operands advance by their width
within four cache lines. Where a form reads and writes the same implicit register or flag, a second
sequence breaks that dependency before every instance.
"""

from __future__ import annotations

from functools import cached_property

import msgspec

from cyclescope.isa.encode import takes_index
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.register import register_number
from cyclescope.kernel.chain import Unmeasurable, Use
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import CANARY, LONG
from cyclescope.kernel.stream import LENGTHS, MAXIMUM, UPDATES, Stream
from cyclescope.kernel.x86_64.helpers.links import X86Helpers
from cyclescope.kernel.x86_64.operands import ADDRESS_REGISTERS
from cyclescope.kernel.x86_64.registers import ALIAS, MASKS, X86RegisterRoles, physical


class X86StreamBuilder:
    """Builds the sequences of one form; forms with the same signature share them."""

    def __init__(self, form: InstructionForm, helpers: X86Helpers) -> None:
        self.form = form
        self.helpers = helpers
        self.roles = X86RegisterRoles(form)
        self.slots = form.encoding.slots if form.encoding else ()
        self._pools: dict[tuple[str, str], list[tuple[int, tuple[str, int]]]] = {}

    # --- instances -------------------------------------------------------------------------------

    def instances(self, wanted: int) -> list[Use]:
        """Up to `wanted` independent instances."""
        used: set[tuple[str, int]] = set()
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
        written = [op for op in self.form.operands if op.is_register and op.write and not op.fixed]
        return not any(op.read for op in written)

    def _instance(self, position: int, used: set[tuple[str, int]]) -> Use | None:
        numbers: list[int] = []
        written: set[tuple[str, int]] = set()
        sources: set[tuple[str, int]] = set()
        for slot in self.slots:
            op = self.form.operands[slot.operand]
            number = self._number(op, slot.part, used, written, sources)
            if number is None:
                return None
            numbers.append(number)
            if slot.part == 0 and op.is_register:
                (written if op.write else sources).add(physical(op, number))
        used |= written
        return Use(tuple(numbers), self._offset(position))

    def _number(
        self,
        op: Operand,
        part: int,
        used: set[tuple[str, int]],
        written: set[tuple[str, int]],
        sources: set[tuple[str, int]],
    ) -> int | None:
        """A register for an operand that neither other instances use nor this one's other operands."""
        if part == 1:
            return self.roles.base
        if part == 2:
            return self._index_number(op)
        if not op.write:
            for n, place in self._pool(op, "source"):
                if place not in sources:
                    return n
        ring = self._pool(op, "ring")
        reserved = self._reserved if op.write else ()
        for n, place in ring if op.write else reversed(ring):
            if place not in used and place not in written and place not in sources and place not in reserved:
                return n
        return None

    def _pool(self, op: Operand, use: str) -> list[tuple[int, tuple[str, int]]]:
        """Numbers of a pool with the registers they are."""
        key = op.name, use
        if key not in self._pools:
            self._pools[key] = [(n, physical(op, n)) for n in self.roles.pool(op, use)]
        return self._pools[key]

    @cached_property
    def _reserved(self) -> set[tuple[str, int]]:
        """Source registers, which the ring must not contain."""
        taken: set[tuple[str, int]] = set()
        for slot in self.slots:
            op = self.form.operands[slot.operand]
            if slot.part == 0 and op.is_register and not op.write:
                pool = [n for n in self.roles.pool(op, "source") if physical(op, n) not in taken]
                if pool:
                    taken.add(physical(op, pool[0]))
        return taken

    def _index_number(self, op: Operand) -> int:
        if op.cls.startswith("VSIB_"):
            return self.roles.vector_sources[-1]
        return self.roles.index

    def _offset(self, position: int) -> int:
        """Advance by the operand's width, wrapping within what an 8-bit displacement reaches, both ways for
        what is read and written: a core may take longer to load what it has just stored than to go around.
        """
        step, reach = self._steps
        if self._updates:
            return (position * step + reach) % (2 * reach) - reach
        return position * step % reach

    @cached_property
    def _steps(self) -> tuple[int, int]:
        """Bytes between two instances, and to where they begin again; 0 and 1 where all have one place."""
        encoding = self.form.encoding
        if self.form.memory < 0 or encoding is None or encoding.displacement is None:
            return 0, 1
        op = self.form.operands[self.form.memory]
        least = 8 if self._updates else 1  # a load does not wait for its neighbour's store
        width = max(op.width // 8, least)
        _, size, scale = encoding.displacement
        if size != 1:
            return 0, 1
        return max(width, scale) if width % scale == 0 else scale, min(128 * scale, 1024)

    @cached_property
    def _updates(self) -> bool:
        """Whether the form reads and writes the memory that it addresses."""
        op = self.form.operands[self.form.memory] if self.form.memory >= 0 else None
        return op is not None and op.read and op.write

    # --- sequences -------------------------------------------------------------------------------

    def streams(self) -> list[Stream]:
        """All sequences of the form. Raises Unmeasurable with the reason."""
        most = UPDATES if self._updates else MAXIMUM
        uses = self.instances(most)
        lengths = [n for n in LENGTHS if n < len(uses)] + [len(uses)]
        result = [self._stream("plain", uses[:n]) for n in lengths]
        breaks = self._breakers()
        if breaks is not None:
            result += [self._broken(uses[:n], breaks) for n in {lengths[0], lengths[-1]}]
        result.append(self._unrolled(uses))
        if self.form.memory >= 0 and takes_index(self.form):
            indexed = [Use(use.registers, use.displacement, self.roles.index) for use in uses]
            result.append(self._stream("indexed", indexed))
        same = self._same_register()
        if same is not None:
            result.append(same)
        setup = self._emptied(uses)
        return [msgspec.structs.replace(one, setup=setup) for one in result] if setup else result

    def _emptied(self, uses: list[Use]) -> bytes:
        """What takes the values of masks that nobody uses, of a form that writes masks."""
        masks = [n for n, s in enumerate(self.slots) if self.form.operands[s.operand].cls == "K"]
        written = [op for op in self.form.operands if op.cls == "K" and op.write and not op.read]
        used = {use.registers[place] for use in uses for place in masks}
        free = (n for n in range(MASKS) if n not in used) if written else ()
        return b"".join(self.helpers.mask_zero(number).code for number in free)

    def _stream(self, variant: str, uses: list[Use]) -> Stream:
        items: list[Use | Instruction] = []
        for use in uses:
            items += [*self._mandatory(use), use]
        return Stream(variant, len(uses), tuple(items), len(uses))

    def _unrolled(self, uses: list[Use]) -> Stream:
        plain = self._stream("unrolled", uses)
        return msgspec.structs.replace(plain, flags=CANARY | LONG)

    def _broken(self, uses: list[Use], breaks: list[Instruction]) -> Stream:
        items: list[Use | Instruction] = []
        for use in uses:
            items += [*self._mandatory(use), *breaks, use]
        return Stream("broken", len(uses), tuple(items), len(uses))

    def _mandatory(self, use: Use) -> list[Instruction]:
        """What every instance needs to do its work at all: address registers and masks reset."""
        return [*self._resets, *self._refill(use)] if "vsib" in self.form.attributes else self._resets

    @cached_property
    def _resets(self) -> list[Instruction]:
        """Address registers that the form moves on, reset."""
        addresses = ADDRESS_REGISTERS & self._addresses()
        return [
            self.helpers.constant_from(register_number(op.name)[1], ALIAS)
            for op in self.form.operands
            if op.implicit and op.write and op.name in addresses
        ]

    def _refill(self, use: Use) -> list[Instruction]:
        """Gathers and scatters clear their mask; AVX2 has it in a vector register."""
        result = []
        for slot, number in zip(self.slots, use.registers, strict=True):
            op = self.form.operands[slot.operand]
            if slot.part or not (op.read and op.write):
                continue
            if op.cls == "K":
                result.append(self.helpers.mask_constant(number))
            elif slot.operand == 2:
                name = f"VPCMPEQD ({op.cls}, {op.cls}, {op.cls})"
                result.append(self.helpers.make(name, number, number, number))
        return result

    def _breakers(self) -> list[Instruction] | None:
        """Zero idioms for implicit registers and flags that are read and written, or None."""
        result: list[Instruction] = []
        needed = False
        for op in self.form.operands:
            if not (op.is_register and op.fixed and op.read and op.write) or op.name == "RSP":
                continue
            broken = self._break_fixed(op)
            if broken is None:
                continue
            needed = True
            result += broken
        flags = self.form.flags_read and self.form.flags_written
        if flags and not any(i.form.mnemonic == "XOR" for i in result):
            needed = True
            result.append(self.helpers.flags_constant())
        return result if needed else None

    def _break_fixed(self, op: Operand) -> list[Instruction] | None:
        if op.name in ADDRESS_REGISTERS & self._addresses():
            return None
        kind, number = physical(op, register_number(op.fixed)[1])
        if kind == "r":
            return [self.helpers.zero(number)]
        if kind == "x" and not number:
            return [self.helpers.make("FSTP (STi)", 0), self.helpers.make("FLD1")]
        return [self.helpers.vector_zero(number)] if kind == "v" else None

    def _addresses(self) -> set[str]:
        """Implicit address registers of the form."""
        return {o.fixed for o in self.form.operands if o.is_memory and o.implicit}

    # --- the same register twice -----------------------------------------------------------------

    def _same_register(self) -> Stream | None:
        """One register for two sources: a chain, unless the form is a zero idiom."""
        attributes = self.form.attributes
        merging = "masked" in attributes and "zeroing" not in attributes
        if merging or not attributes.isdisjoint(("memory", "unique_registers", "high_byte", "vsib")):
            return None
        reads = [s for s in self.slots if s.part == 0 and s.operand in self.form.alike]
        classes = {self.form.operands[s.operand].cls for s in reads}
        if len(reads) < 2 or len(classes) != 1 or any(o.fixed for o in self.form.operands if o.implicit):
            return None
        use = self._on_one_register(self.instances(1)[0], classes.pop())
        items = (*(self._breakers() or ()), use)  # a chain through flags would hide what the register does
        return Stream("same register", 1, items * 4, 4)

    def _on_one_register(self, use: Use, cls: str) -> Use:
        """The instance with the first of its registers of a class in place of all others of that class."""
        some = [self.form.operands[slot.operand].cls == cls for slot in self.slots]
        number = use.registers[some.index(True)]
        numbers = zip(some, use.registers, strict=True)
        return Use(tuple(number if of_class else other for of_class, other in numbers))
