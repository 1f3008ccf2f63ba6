"""Instructions of AArch64 with an operand of another kind: shifted, extended, under another condition.

`ADDXrs@lsl4` is ADDXrs with its second source shifted to the left by 4. What a shift costs depends on its
kind and distance, so that a form of the table, which has none, is not all there is to measure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cache

import msgspec

from cyclescope.errors import UsageError
from cyclescope.isa.fields import Field, FieldValues
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.variants import Variants

# Measured by default, by class of operand: on both sides of the shifts that several cores do for nothing.
_SHIFTS = ("lsl1", "lsl4", "lsl5", "lsr4", "asr4")
_EXTENSIONS = ("uxth", "uxtw", "uxtx", "sxtb", "sxth", "sxtw", "sxtx", "uxtw2", "uxtx2", "sxtw4")
_MEASURED = {
    "arith_shift": _SHIFTS,
    "logical_shift": (*_SHIFTS, "ror4"),
    "arith_extend": _EXTENSIONS,
    "ro_Xextend": ("*",),
    "ro_Wextend": ("*",),
    "ccode": ("eq", "hs", "mi", "vs", "hi", "ge", "gt"),
    "movimm": ("lsl16",),
}


def variants(form: InstructionForm, globs: tuple[str, ...] = ()) -> list[InstructionForm]:
    """The form with other operands: those that are measured by default, or those that a glob matches."""
    place = _place(form)
    if place is None:
        return []
    wanted = globs or _wanted(form, place)
    return [
        _variant(form, place, value, text)
        for value, text in _texts(form, place)
        if any(fnmatchcase(text, glob) for glob in wanted)
    ]


def variant(form: InstructionForm, text: str) -> InstructionForm:
    """The form with one other operand. Raises UsageError for one that it cannot have."""
    found = variants(form, (text,))
    if not found:
        some = [each.id for each in variants(form, ("*",))][:3]
        remedy = f"there are {', '.join(some)}" if some else "it has no operand to shift or extend"
        raise UsageError(f"{form.id} has no variant {text!r}", remedy)
    return found[0]


def _wanted(form: InstructionForm, place: int) -> tuple[str, ...]:
    cls = form.operands[_fields(form)[place].operand].cls
    return next((globs for prefix, globs in _MEASURED.items() if cls.startswith(prefix)), ())


def _fields(form: InstructionForm) -> tuple[Field, ...]:
    return form.bits.fields if form.bits else ()


def _place(form: InstructionForm) -> int | None:
    """Position of the field that says how an operand is shifted or extended, or of the condition."""
    for number, field in enumerate(_fields(form)):
        op = form.operands[field.operand]
        shifts = "_shift" in op.cls and op.cls.startswith(("arith", "logical_shift", "movimm"))
        if (shifts or "extend" in op.cls or op.cls == "ccode") and "branch" not in form.attributes:
            return number
    return None


@cache
def _texts(form: InstructionForm, place: int) -> tuple[tuple[int, str], ...]:
    """(value, name) of every value of the field but that of the table's form."""
    assert form.syntax is not None
    notation = next((n for field, n in form.syntax.places if field == place), None)
    if notation is None:
        return ()
    values = _fields(form)[place].values.legal
    named = [(value, re.sub(r"[^a-z0-9]", "", notation.text(value).lower())) for value in values]
    return tuple((value, name) for value, name in named if name)


def _variant(form: InstructionForm, place: int, value: int, name: str) -> InstructionForm:
    assert form.bits is not None
    old = form.bits.fields[place]
    field = Field(old.operand, old.positions, _only(old.values.width, value))
    fields = (*form.bits.fields[:place], field, *form.bits.fields[place + 1 :])
    return msgspec.structs.replace(
        form, id=f"{form.id}@{name}", bits=msgspec.structs.replace(form.bits, fields=fields)
    )


@cache
def _only(width: int, value: int) -> FieldValues:
    return FieldValues(width, ("range", value, value), ())


class _Variants:
    """See `isa.variants.Variants`."""

    def named(self, plain: InstructionForm, text: str) -> InstructionForm | None:
        """The form with another operand."""
        return next((each for each in variants(plain, (text,)) if each.id == f"{plain.id}@{text}"), None)

    def measured(self, plain: InstructionForm) -> list[InstructionForm]:
        """The form itself, and shifted and extended."""
        return [plain, *variants(plain)]

    def chosen(self, forms: Sequence[InstructionForm], text: str) -> list[InstructionForm]:
        """Forms with the operands that a glob matches. Raises UsageError where there are none."""
        glob = text.strip().lower()
        return [each for form in forms for each in variants(form, (glob,))] or [variant(forms[0], glob)]

    def with_features(
        self, forms: Iterable[InstructionForm], wanted: Callable[[str], object]
    ) -> Iterable[InstructionForm]:
        """None: an operand needs no feature."""
        return ()


VARIANTS: Variants = _Variants()
