"""Forms of x86-64 by one of iced-x86's codes, and by what tells them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cyclescope.isa.form import InstructionForm

_EVEX = ("masked", "zeroing", "broadcast", "rounding", "sae")  # what an EVEX prefix may say
UNSAID = (False,) * len(_EVEX)
_PREFIXES = ("lock", "rep", "repne")
_WITHOUT = (False,) * len(_PREFIXES)
_MARKED = ("R8l", "R8h")  # classes of operands that marks tell apart
_Key = tuple[object, ...]


class FormsOfCode(NamedTuple):
    """The forms of one of iced's codes by what tells them apart; `only` where there is one.

    With `prefixed` an EVEX prefix may say more of an instruction: masks, broadcasts, rounding. `plain` are
    those without and with memory where instructions of the code differ in nothing else but prefixes, which
    with `repeated` tell forms apart.
    """

    by_key: dict[_Key, InstructionForm]
    only: InstructionForm | None
    prefixed: bool
    plain: tuple[InstructionForm | None, InstructionForm | None] | None
    repeated: bool

    @classmethod
    def of(cls, same: Sequence[InstructionForm], prefixed: bool) -> FormsOfCode:
        """Those of a code."""
        forms = {_key_of(form): form for form in same}
        marked = any(key[-1] for key in forms) or any(op.cls in _MARKED for f in same for op in f.operands)
        without, within = (forms.get((memory, *UNSAID, *_WITHOUT, ())) for memory in (False, True))
        return cls(
            forms, next(iter(forms.values())) if len(forms) == 1 else None, prefixed,
            None if marked or prefixed else (without, within),
            any(not form.attributes.isdisjoint(_PREFIXES) for form in same),
        )  # fmt: skip


def _marks_of(form: InstructionForm) -> tuple[tuple[int, str], ...]:
    """What tells forms of one opcode apart by operand: AH to BH, an immediate 0, the address of LEA."""
    masked = "masked" in form.attributes
    explicit = [op for i, op in enumerate(form.operands) if not op.implicit and not (masked and i == 1)]
    special = (op.cls if op.cls in ("R8h", "0") or op.kind == "address" else "" for op in explicit)
    return tuple((i, mark) for i, mark in enumerate(special) if mark)


def _key_of(form: InstructionForm) -> _Key:
    memory = any(not op.implicit and op.kind in ("memory", "address") for op in form.operands)
    said = (name in form.attributes for name in (*_EVEX, *_PREFIXES))
    return memory, *said, _marks_of(form)
