"""Which register plays which role in a kernel.

Pools are disjoint by role: rings that the form under test writes, sources it only reads, address
registers, and the registers of helper instructions. Registers that a form uses implicitly are in no
pool.
"""

from __future__ import annotations

from functools import cached_property

import msgspec

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.register import domain, register_number
from cyclescope.kernel.state import PointerRegisters

COUNTER, STACK, BASE, ALIAS = 15, 4, 14, 13
CONSTANT, TEMPORARY = 12, 9  # a value that never changes; scratch of helper instructions
NARROW_BASE = 7  # RDI: base where no REX prefix is possible
VECTOR_ONES, VECTOR_ZERO, VECTOR_CONSTANT = 15, 14, 13  # helpers' all-ones, zero, form's value
VECTOR_INDICES = (7, 6)  # index registers of gathers and scatters in latency chains
MASK_ONES, MASKS = 7, 8
_FRAME, _RSI, _RDI = 5, 6, 7  # RBP, and what string instructions have for addresses
POINTERS = PointerRegisters(
    STACK, (BASE, ALIAS, _RSI, _RDI), (STACK, _FRAME, _RDI, _RSI, BASE), (_FRAME,)
)  # as nanoBench has them


class X86RegisterRoles(msgspec.Struct, frozen=True, dict=True):
    """Registers of the kernels of one form (or of all forms with the same signature)."""

    form: InstructionForm

    @cached_property
    def narrow(self) -> bool:
        """Whether the form cannot have a REX prefix, because of a high-byte register."""
        return "high_byte" in self.form.attributes

    @cached_property
    def implicit(self) -> frozenset[tuple[str, int]]:
        """(domain, number) of registers the form uses without an encoding field."""
        found = set()
        for op in self.form.operands:
            if op.fixed and op.fixed not in ("block4", "pair"):
                try:
                    cls, number = register_number(op.fixed)
                except KeyError:
                    continue
                number -= 4 if cls == "R8h" else 0
                found.add(("r" if domain(cls) == "h" else domain(cls), number))
        return frozenset(found)

    @cached_property
    def base(self) -> int:
        """Base register of the form's memory operand."""
        return NARROW_BASE if self.narrow else BASE

    @cached_property
    def index(self) -> int:
        """Index register (holding 0) of the indexed variants."""
        candidates = (6, 5) if self.narrow else (3, 5, 6, 7, 1)
        return next(n for n in candidates if ("r", n) not in self.implicit)

    @cached_property
    def _has_address(self) -> bool:
        """Whether an index register may be part of the form's address (LEA has one, but no memory)."""
        slots = self.form.encoding.slots if self.form.encoding else ()
        return self.form.memory >= 0 or any(slot.part == 2 for slot in slots)

    def _free(self, kind: str, numbers: tuple[int, ...]) -> list[int]:
        return [n for n in numbers if (kind, n) not in self.implicit]

    @cached_property
    def general_ring(self) -> list[int]:
        """General registers the form may write in throughput sequences."""
        if self.narrow:
            return self._free("r", (0, 1, 2, 3))
        taken = {self.index} if self._has_address else set()
        order = (0, 1, 2, 5, 6, 7, 8, 9, 10, 3, 13)
        return [n for n in self._free("r", order) if n not in taken]

    @cached_property
    def general_chain(self) -> list[int]:
        """General registers for operands in latency chains."""
        numbers = (1, 2, 0) if self.narrow else (1, 2, 5, 6, 7, 0)
        return [n for n in self._free("r", numbers) if n != self.index]

    @cached_property
    def general_sources(self) -> list[int]:
        """General registers that are only read."""
        return self._free("r", (3, 2, 1) if self.narrow else (12, 11, 10, 9))

    @cached_property
    def general_chain_sources(self) -> list[int]:
        """General registers that are only read in latency chains (helpers need 9 and 12)."""
        return self._free("r", (3, 2, 1) if self.narrow else (11, 10, 8))

    @cached_property
    def vector_ring(self) -> list[int]:
        """Vector registers the form may write in throughput sequences."""
        top = 32 if "evex" in self.form.attributes else 16
        return self._free("v", tuple(range(top - 4)))

    @cached_property
    def vector_chain(self) -> list[int]:
        """Vector registers for operands in latency chains."""
        return self._free("v", (1, 2, 3, 4, 5, 6, 7))

    @cached_property
    def vector_sources(self) -> list[int]:
        """Vector registers that are only read."""
        top = 32 if "evex" in self.form.attributes else 16
        return self._free("v", (top - 1, top - 2, top - 3, top - 4))

    @cached_property
    def vector_chain_sources(self) -> list[int]:
        """Vector registers that are only read in latency chains (helpers need 13 to 15)."""
        return self._free("v", (12, 11, 10, 9))

    def pool(self, op: Operand, use: str) -> list[int]:
        """Numbers for a register operand; `use` is `ring`, `chain`, `source` or `chain_source`."""
        kind = domain(op.cls)
        if kind in ("r", "h"):
            table = {
                "ring": self.general_ring,
                "chain": self.general_chain,
                "source": self.general_sources,
                "chain_source": self.general_chain_sources,
            }
            return self._class_numbers(op, table[use])
        if kind == "v":
            return self._vector_numbers(op, use)
        if kind == "k":
            numbers = [1, 2, 3, 4, 5] if use in ("ring", "chain") else [MASK_ONES, 6]
            return [n & ~1 for n in numbers[1:4:2]] if op.fixed == "pair" else numbers
        if kind == "m":
            return [0, 1, 2, 3, 4, 5, 6] if use in ("ring", "chain") else [7, 6]
        return {"x": self._x87_registers, "?": [0]}.get(kind, [0]) if op.cls != "SEG" else [0]

    @property
    def _x87_registers(self) -> list[int]:
        """Below ST(0); only six registers are in use where the form pushes or pops."""
        return [1, 2, 3] if self.form.x87_pops else [1, 2, 3, 4, 5, 6, 7]

    def _class_numbers(self, op: Operand, numbers: list[int]) -> list[int]:
        if op.cls == "R8h":
            return [n + 4 for n in numbers if n < 4]
        if op.cls == "R8l" and self.narrow:
            return [n for n in numbers if n < 4]
        return numbers

    def _vector_numbers(self, op: Operand, use: str) -> list[int]:
        if op.fixed == "block4":
            return [8, 4] if use.startswith("chain") else [24, 20, 16]
        table = {
            "ring": self.vector_ring,
            "chain": self.vector_chain,
            "source": self.vector_sources,
            "chain_source": self.vector_chain_sources,
        }
        return table[use]


def physical(op: Operand, number: int) -> tuple[str, int]:
    """Register file and number: AH is part of general register 0."""
    kind = domain(op.cls)
    return ("r", number - 4) if kind == "h" else (kind, number)
