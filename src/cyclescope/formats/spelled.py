"""Forms by mnemonic and kinds of operands, as lists of measurements spell them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.table import Table

KINDS = {
    "R8l": "gpr", "R8h": "gpr", "R16": "gpr", "R32": "gpr", "R64": "gpr", "MM": "mm", "XMM": "xmm",
    "YMM": "ymm", "ZMM": "zmm", "K": "k",
}  # fmt: skip
UNSPELLED = ("lock", "rep", "repne", "masked", "rounding", "sae")
Spelling = tuple[str, tuple[str, ...]]


def by_spelling(
    table: Table, kind: Callable[[Operand], str], backwards: bool = False
) -> Mapping[Spelling, Sequence[InstructionForm]]:
    """Forms by lower-case mnemonic and the kinds of their written operands, in Intel's or in AT&T's order.

    `kind` is empty for operands that a list has no word for; such forms are left out, and those that differ
    from another one by a prefix, a mask or rounding.
    """
    found: dict[Spelling, list[InstructionForm]] = defaultdict(list)
    for form in table:
        kinds = tuple(kind(op) for op in form.operands if not op.implicit)
        if all(kinds) and form.attributes.isdisjoint(UNSPELLED):
            other = form.uops_info.partition(" ")[0].lower()
            for name in {form.mnemonic.lower(), *([other] if other.isalnum() else [])}:
                found[name, kinds[::-1] if backwards else kinds].append(form)
    return found
