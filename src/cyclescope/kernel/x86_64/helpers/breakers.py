"""Helper instructions that cut a dependency: constants for every register file."""

from __future__ import annotations

from collections.abc import Callable

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.x86_64.registers import CONSTANT, MASK_ONES

CONSTANT_VALUE = 5  # of a general register whose dependency is cut


class Breakers:
    """Helper instructions that this CPU executes, above all those that cut a dependency.

    `legal` says whether a form may be used; forms of extensions the CPU lacks are replaced by older
    ones (MOVD for VMOVD), or the link does not exist.
    """

    def __init__(self, table: Table, legal: Callable[[InstructionForm], bool]) -> None:
        self._table = table
        self._legal = legal
        self._made: dict[tuple[str, tuple[int, ...]], Instruction] = {}
        self.avx = self.has("VPXOR (XMM, XMM, XMM)")
        self.avx512 = self.has("VPTESTNMB (K, ZMM, ZMM)") and self.has("KMOVQ (K, R64)")

    @property
    def widest(self) -> int:
        """Bits of the widest vector registers that helper instructions work on."""
        return 512 if self.avx512 else 256 if self.has("VPAND (YMM, YMM, YMM)") else 128

    def has(self, form_id: str) -> bool:
        """Whether this CPU executes a form."""
        form = self._table.get(form_id)
        return form is not None and self._legal(form)

    def form(self, form_id: str) -> InstructionForm:
        """A form of the table."""
        return self._table[form_id]

    def make(self, form_id: str, *registers: int, **values: object) -> Instruction:
        """An instruction of a form; one without other values is made once for all kernels."""
        if values:
            return Instruction(self._table[form_id], registers, **values)  # type: ignore[arg-type]
        key = form_id, registers
        if key not in self._made:
            self._made[key] = Instruction(self._table[form_id], registers)
        return self._made[key]

    # --- breaking a dependency -------------------------------------------------------------------

    def constant(self, number: int) -> Instruction:
        """General register := a constant, without reading anything and without flags."""
        return self.make("MOV (R32, I32)", number, immediates=(CONSTANT_VALUE,))

    def constant_from(self, number: int, source: int) -> Instruction:
        """General register := a register that never changes."""
        return self.make("MOV_89 (R64, R64)", number, source)

    def zero(self, number: int) -> Instruction:
        """General register := 0 by the zero idiom (writes flags)."""
        return self.make("XOR_31 (R32, R32)", number, number)

    def vector_constant(self, number: int, source: int, width: int) -> Instruction:
        """Vector register := a register that never changes."""
        if width == 512:
            return self.make("VMOVAPS (ZMM, ZMM)", number, source)
        cls = "YMM" if width == 256 else "XMM"
        suffix = "_EVEX" if max(number, source) > 15 else "_28"
        name = f"VMOVAPS{suffix} ({cls}, {cls})" if self.avx else "MOVAPS_0F28 (XMM, XMM)"
        return self.make(name, number, source)

    def vector_zero(self, number: int) -> Instruction:
        """Vector register := 0 by the zero idiom that needs no execution port."""
        if not self.avx:
            return self.make("PXOR (XMM, XMM)", number, number)
        if number < 16:
            return self.make("VPXOR (XMM, XMM, XMM)", number, number, number)
        return self.make("VPXORD (XMM, XMM, XMM)", number, number, number)

    def flags_constant(self) -> Instruction:
        """All arithmetic flags from a register that never changes."""
        return self.make("TEST (R64, R64)", CONSTANT, CONSTANT)

    def mask_constant(self, number: int) -> Instruction:
        """Mask register := all ones from a register that never changes."""
        return self.make("KMOVQ (K, K)", number, MASK_ONES)

    def mask_zero(self, number: int) -> Instruction:
        """Mask register := 0 by the zero idiom; 64 bits where this CPU has them."""
        name = "KXORQ (K, K, K)" if self.has("KXORQ (K, K, K)") else "KXORW (K, K, K)"
        return self.make(name, number, number, number)
