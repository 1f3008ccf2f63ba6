"""AArch64: specimens, and what its table declares as locations of the architectural state.

A write to a vector register of any width zeroes what is above it. Status flags of arithmetic are declared by
rule: LLVM lists FPCR for some forms, and FPSR for none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from cyclescope.isa.aarch64.unmeasurable import unmeasurable
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.table import Table
from cyclescope.kernel.aarch64.links import AArch64Links
from cyclescope.kernel.aarch64.locations import A64, CONDITION_FLAGS
from cyclescope.kernel.aarch64.special import is_streaming
from cyclescope.kernel.block import Register
from cyclescope.kernel.differential import Differential
from cyclescope.kernel.fixed_width.differential import FixedWidthDifferential, condition_flags
from cyclescope.kernel.fixed_width.numbers import is_floating, number_type
from cyclescope.kernel.fixed_width.operands import scalable

_SATURATING = re.compile(r"(S|U|SU|US)Q")
_SCALABLE = re.compile(r"SVE|SME|SSVE")


class AArch64Differential(FixedWidthDifferential):
    """See `kernel.differential.Differential`."""

    isa, status, unit = "aarch64", "FPSR", 4

    def __init__(self, table: Table) -> None:
        super().__init__(AArch64Links(table, lambda form: True))

    def unmeasurable(self, form: InstructionForm) -> str:
        """What user space cannot run, and what works on the matrix of SME."""
        if is_streaming(form):
            return "works in streaming mode or on the matrix of SME, which are no locations"
        return unmeasurable(form)

    def locations(self, register: Register, op: Operand | None, written: bool) -> Iterable[int]:
        """See `FixedWidthDifferential`."""
        kind, number = register
        if kind == "v":
            upper = written or (op is not None and scalable(op))
            return (A64.VECTOR + number, A64.WIDE + number)[: 1 + upper]
        if kind == "r":
            return (A64.GENERAL + number,)
        if kind == "p":
            return (A64.PREDICATE + number,)
        known = {"SP": A64.GENERAL + 31, "FFR": A64.FFR, "FPCR": A64.FPCR}
        return (known[kind],) if kind in known else ()

    def flags(self, mask: int) -> Iterable[int]:
        """N, Z, C and V."""
        return condition_flags(mask, A64.FLAGS, CONDITION_FLAGS)

    def by_rule(self, form: InstructionForm) -> tuple[set[int], set[int], int]:
        """Floating point reads FPCR and sets flags of FPSR, saturating arithmetic of vectors its QC."""
        floating = is_floating(form) or any(op.fixed == "FPCR" for op in form.operands)
        scalable_form = any(_SCALABLE.match(feature) for feature in form.features)
        if floating:
            return {A64.FPCR, A64.FPSR}, {A64.FPSR}, 1 << A64.FPSR | 1 << A64.FPCR
        if _SATURATING.match(form.mnemonic) and not scalable_form:
            return {A64.FPSR}, {A64.FPSR}, 1 << A64.FPSR
        return set(), set(), 0

    def element(self, form: InstructionForm) -> str:
        """Of scalable vectors that of the first one, where the form is one of floating point."""
        return number_type(form)


def differential(table: Table) -> Differential:
    """See `kernel.differential.differential_of`."""
    return AArch64Differential(table)
