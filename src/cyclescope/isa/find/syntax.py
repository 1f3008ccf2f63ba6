"""How people write instructions: the module that reads the lines of an instruction set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

from cyclescope.isa.find import written
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import instruction_set
from cyclescope.isa.table import Table


class AssemblySyntax(Protocol):
    """What `isa/find/written.py` says of tables with fields, and `isa/NAME/written.py` of others."""

    def forms_of(self, table: Table, text: str) -> list[InstructionForm]:
        """Forms that a line can be, none where it is none."""

    def also_called(
        self, table: Table, pattern: str, found: Sequence[InstructionForm]
    ) -> list[InstructionForm]:
        """The forms that names of a table's have found, with those that the pattern is another name of."""

    def same_name(self, table: Table, mnemonic: str) -> list[InstructionForm]:
        """Forms of a mnemonic, whatever their operands."""

    def like_examples(self, text: str) -> str:
        """A line as those look that forms are named by: to find the nearest."""

    def spaced(self, pattern: str) -> str:
        """What looks like an id, with the spaces that ids have."""

    def mnemonics(self, isa: str) -> list[str]:
        """Names that the table does not have."""


def assembly_syntax(isa: str) -> AssemblySyntax:
    """That of an instruction set."""
    record = instruction_set(isa)
    found = written if record.fixed_width else record.module("isa", "written")
    return cast("AssemblySyntax", found)
