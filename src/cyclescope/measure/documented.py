"""Accesses outside the instruction table's model: the documented exceptions, each with its reason."""

from __future__ import annotations

import msgspec

from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.locations import X87


class Documented(msgspec.Struct, frozen=True):
    """Forms by mnemonic, the access, the locations, and why the table does not declare it."""

    mnemonics: frozenset[str]
    access: str
    locations: range
    reason: str


EXCEPTIONS = (
    Documented(
        frozenset(("EMMS", "FEMMS", "FNINIT", "FFREE", "FFREEP")),
        "write",
        range(X87, X87 + 8),
        "marks x87 registers as empty: the table has the registers as operands, not their tags",
    ),
)


def documented(form: InstructionForm, access: str, location: int) -> str:
    """Why the table rightly does not declare an access, or ""."""
    for rule in EXCEPTIONS:
        if form.mnemonic in rule.mnemonics and access == rule.access and location in rule.locations:
            return rule.reason
    return ""
