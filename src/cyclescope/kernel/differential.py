"""What an instruction set has to say about the check of its table against execution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import instruction_set
from cyclescope.isa.table import Table
from cyclescope.kernel.kernel import Kernel

EXIT_SPACING = 64  # bytes from the form to where its branches lead (native/arch.h)
# Kernel flags: a vector register is an index, its number from that bit, the logarithm of how many there are.
INDEXED, INDEX_SHIFT, GROUP_SHIFT = 16, 8, 13
VALUES = {"f16": 1, "bf16": 2, "f32": 3, "f64": 4}  # kernel flags: what the form's values are
READ, WRITE = "read", "write"


class Specimen(msgspec.Struct, frozen=True):
    """A form with registers: `numbers` has one per (operand position, part) with a slot or field."""

    form: InstructionForm
    numbers: Mapping[tuple[int, int], int]
    kernel: Kernel


class Declared(msgspec.Struct, frozen=True):
    """What the table says: sets of locations; `undefined` are flags whose value afterwards means nothing.

    `status` are those that hold sticky flags of arithmetic, declared by rule for many forms.
    """

    reads: int
    writes: int
    undefined: int = 0
    status: int = 0


class SeenAccess(msgspec.Struct, frozen=True):
    """A read or write that was seen: of which location, and for a read the outputs that showed it."""

    kind: str
    location: int
    outputs: int = 0


class Differential(Protocol):
    """Specimens of one instruction set, and what its table declares for them."""

    isa: str
    status: str  # what users call the register of sticky flags

    def unmeasurable(self, form: InstructionForm) -> str:
        """Why a form cannot be run, or ""."""

    def specimen(self, form: InstructionForm) -> Specimen:
        """One instance, every register a different one."""

    def declared(self, specimen: Specimen) -> Declared:
        """What the table says of it."""

    def exception(self, specimen: Specimen, access: SeenAccess) -> str:
        """Why the table rightly does not declare an access, or ""."""


def differential_of(table: Table) -> Differential:
    """The check of a table's instruction set."""
    found: Differential = instruction_set(table.isa).module("kernel", "differential").differential(table)
    return found
