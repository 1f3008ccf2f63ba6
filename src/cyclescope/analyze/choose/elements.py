"""How wide the elements are that a loop works on, as far as its instructions show it.

Compilers load and store whole vectors by whichever move is shortest: `vmovups` and `ldr q` say nothing about
what they move. Arithmetic does. Where it works on several widths, or where there is none, the width of what
such moves access is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from cyclescope.analyze.decode.block import BlockInstruction
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.registry import instruction_set


class Elements:
    """Widths of elements in code of an instruction set."""

    def __init__(self, isa: str) -> None:
        self._rules = instruction_set(isa).arithmetic.elements

    def worked_on(self, instructions: Iterable[BlockInstruction]) -> int:
        """Bytes of what vector and floating-point arithmetic works on, 0 where widths differ."""
        forms = [one.form for one in instructions if one.form is not None]
        if any(self._changes_width(form) or _gathers(form) for form in forms):
            return 0
        floats = {_width(form.element) for form in forms if self._computes_floats(form)}
        integers = {_width(form.element) for form in forms if self._computes_integers(form)}
        found = (floats | integers) - {0}
        return found.pop() if len(found) == 1 else 0

    def accessed(self, form: InstructionForm, op: Operand, worked: int) -> int:
        """Bytes of the elements that a memory operand has, 0 where it is not known.

        `worked` is what the loop's arithmetic works on, 0 where that is not known.
        """
        rules = self._rules
        pair = re.fullmatch(rules.pairs, form.mnemonic) is not None
        whole = rules.parts.get(form.mnemonic, op.width // 8 // (2 if pair else 1))
        if rules.typed:
            own = whole if form.vector_width == 0 else 0 if self._is_untyped(form) else _width(op.element)
        else:
            own = self._listed(form) if _moves_vectors(form) else whole
        return own or min(worked, whole)

    def _changes_width(self, form: InstructionForm) -> bool:
        return re.fullmatch(self._rules.changing, form.mnemonic) is not None

    def _computes_floats(self, form: InstructionForm) -> bool:
        return form.element[:1] in ("f", "b") and re.fullmatch(self._rules.floats, form.mnemonic) is not None

    def _computes_integers(self, form: InstructionForm) -> bool:
        """Whether a form computes with integers in vectors."""
        vectors = form.element[:1] == "i" and (form.vector_width > 0 or _moves_vectors(form))
        return vectors and re.fullmatch(self._rules.integers, form.mnemonic) is not None

    def _listed(self, form: InstructionForm) -> int:
        """Bytes of the elements that structure loads and stores name, else 0."""
        match = re.fullmatch(self._rules.listed, form.id)
        if match is None:
            return 0
        return self._rules.letters[match["letter"]] if match["letter"] else int(match["bits"]) // 8

    def _is_untyped(self, form: InstructionForm) -> bool:
        """Whether an instruction moves vectors of anything; a mask counts elements."""
        moves = re.fullmatch(self._rules.untyped, form.mnemonic) is not None
        return moves and "masked" not in form.attributes


def _gathers(form: InstructionForm) -> bool:
    """Whether vectors of addresses are loaded beside the data, in elements of another width perhaps."""
    return any(op.cls.startswith("VSIB_") for op in form.operands)


def _moves_vectors(form: InstructionForm) -> bool:
    """Whether vector registers are operands, whatever part of them."""
    return any(op.file == "v" for op in form.operands)


def _width(element: str) -> int:
    """Bytes of a type such as `f32`, 0 for others."""
    match = re.fullmatch(r"(?:b?f|i)(\d+)", element)
    return int(match[1]) // 8 if match else 0
