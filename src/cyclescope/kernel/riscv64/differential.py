"""RISC-V: specimens, and what its table declares as locations of the architectural state.

Registers of rounding and of sticky flags are declared by rule: LLVM lists FRM for vectors only, the others
never.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from cyclescope.isa.decode import decoder
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.riscv64.configuration import setup_code
from cyclescope.isa.riscv64.legality import ELEMENT_GROUPS
from cyclescope.isa.riscv64.unmeasurable import unmeasurable
from cyclescope.isa.table import Table
from cyclescope.kernel.block import Register
from cyclescope.kernel.differential import READ, Differential, SeenAccess, Specimen
from cyclescope.kernel.fixed_width.differential import FixedWidthDifferential
from cyclescope.kernel.fixed_width.numbers import number_type
from cyclescope.kernel.locations import location_set
from cyclescope.kernel.riscv64.links import RiscV64Links
from cyclescope.kernel.riscv64.locations import RISCV

_FLOATING = re.compile(r"(VM?)?F(?!ENCE)|C\.F")
_SATURATING = re.compile(r"VS(ADD|SUB)U?\.|VSMUL|VNCLIP")
_ROUNDING = re.compile(r"VA(ADD|SUB)U?\.|VSMUL|VSSR[LA]|VNCLIP")
_WHOLE = 32  # kernel flag: VL stays as the setup leaves it
_STATUS_REGISTER = "csr_sysreg"  # class of an operand that specimens set to fflags


class RiscV64Differential(FixedWidthDifferential):
    """See `kernel.differential.Differential`."""

    isa, status, unit = "riscv64", "fflags", 2
    kept = (("r", 2), ("r", 3), ("r", 4))

    def __init__(self, table: Table) -> None:
        super().__init__(RiscV64Links(table, lambda form: True))

    def unmeasurable(self, form: InstructionForm) -> str:
        """What user space cannot run, but for VSETVLI; vendors' forms whose code is a common one's."""
        if form.mnemonic.startswith("VSET"):
            return ""
        reason = unmeasurable(form)
        if reason or "optional" not in form.attributes:
            return reason
        common = decoder(self.isa).decode(self.specimen(form).kernel.code)
        return "its code is another instruction's on a common machine" if common else ""

    def setup(self, form: InstructionForm) -> bytes:
        """The form's vector configuration."""
        return setup_code(form.configuration) if form.configuration else b""

    def locations(self, register: Register, op: Operand | None, written: bool) -> Iterable[int]:
        """See `FixedWidthDifferential`."""
        kind, number = register
        first = {"r": RISCV.GENERAL, "f": RISCV.FLOAT, "v": RISCV.VECTOR}.get(kind)
        if first is not None:
            return (first + number,)
        known = {"FRM": RISCV.FRM, "VL": RISCV.VL, "VTYPE": RISCV.VTYPE}
        return (known[kind],) if kind in known else ()

    def by_rule(self, form: InstructionForm) -> tuple[set[int], set[int], int]:
        """Rounding modes, and the sticky flags of floating point and of saturation."""
        reads: set[int] = set()
        writes: set[int] = set()
        if _FLOATING.match(form.mnemonic):
            reads |= {RISCV.FRM, RISCV.FFLAGS}
            writes.add(RISCV.FFLAGS)
        if any(op.cls == _STATUS_REGISTER for op in form.operands):
            reads.add(RISCV.FFLAGS)
            writes.add(RISCV.FFLAGS)
        if _SATURATING.match(form.mnemonic):
            reads.add(RISCV.VXSAT)
            writes.add(RISCV.VXSAT)
        if _ROUNDING.match(form.mnemonic):
            reads.add(RISCV.VXRM)
        return reads, writes, 1 << RISCV.FFLAGS if _FLOATING.match(form.mnemonic) else 0

    def element(self, form: InstructionForm) -> str:
        """Of scalar floating point that of the source: the table has what the result is."""
        return number_type(form)

    def _flags(self, form: InstructionForm, values: dict[int, int]) -> int:
        """Groups of elements have to be whole."""
        whole = _WHOLE if re.fullmatch(ELEMENT_GROUPS, form.mnemonic) else 0
        return super()._flags(form, values) | whole

    def exception(self, specimen: Specimen, access: SeenAccess) -> str:
        """Agnostic elements of a result may be kept, and without any element all are."""
        form = specimen.form
        result = access.kind == READ and access.outputs == 1 << access.location
        if form.configuration is None or not result:
            return ""
        written = location_set(self._of_registers(specimen, lambda op: op.write and op.file == "v", True))
        if not written >> access.location & 1:
            return ""
        return "keeps agnostic elements past VL or masked off, as a machine may, and all where VL is 0"


def differential(table: Table) -> Differential:
    """See `kernel.differential.differential_of`."""
    return RiscV64Differential(table)
