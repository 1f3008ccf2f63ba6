"""Which of our forms and pairs a row of a reference table speaks of."""

from __future__ import annotations

import re
from collections.abc import Iterable

from benchmarks.lib.reference import Reference
from cyclescope.isa.form import InstructionForm, flag_names
from cyclescope.isa.operand import Operand

# Register classes of LLVM and what our table calls them; FR32 and FR64 leave out the part above the scalar.
_CLASSES = {
    "GR8": "R8l", "GR16": "R16", "GR32": "R32", "GR64": "R64", "VR64": "MM", "VR128": "XMM",
    "VR128X": "XMM", "FR32": "XMM", "FR64": "XMM", "FR32X": "XMM", "FR64X": "XMM", "FR16X": "XMM",
    "VR256": "YMM", "VR256X": "YMM", "VR512": "ZMM",
}  # fmt: skip
_END = re.compile(r"(\d+):(\w+)")
_IGNORED = ("AF", "DF")  # AF is readable only with others, DF is no data


def match(reference: Reference, forms: Iterable[InstructionForm]) -> dict[str, InstructionForm]:
    """The form of each row that has one; of several the one with ordinary registers and immediates."""
    found: dict[str, InstructionForm] = {}
    for form in forms:
        for name in _names(form, reference.naming):
            if name in reference.rows and (name not in found or _rank(form) < _rank(found[name])):
                found[name] = form
    return found


def _names(form: InstructionForm, naming: str) -> set[str]:
    return {form.llvm} if naming == "llvm" else {form.uops_info, form.id}


def _rank(form: InstructionForm) -> tuple[bool, bool, bool]:
    """Forms without high bytes, fixed zeros and LOCK come first; otherwise the table's order decides."""
    high = any(op.cls == "R8h" for op in form.operands)
    return "lock" in form.attributes, high, bool(re.search(r"\b0\)", form.id))


def llvm_pair(form: InstructionForm, pair: str) -> list[tuple[str, str]]:
    """Our pairs for LLVM's `useIndex:Class->defIndex:Class` (or register names); [] where none fits.

    LLVM numbers what is written first, then what is read in the order of the operands; a register
    that is both has two numbers. EFLAGS stands for every flag the form reads or writes.
    """
    source, _, target = pair.partition("->")
    return [
        (a, b) for a in _end(form, source, written=False) for b in _end(form, target, written=True) if a and b
    ]


def _end(form: InstructionForm, text: str, written: bool) -> list[str]:
    if text == "EFLAGS":
        mask = form.flags_written if written else form.flags_read
        return [f"flags.{name}" for name in flag_names(mask) if name not in _IGNORED]
    numbered = _END.fullmatch(text)
    if numbered:
        op = _numbered(form, int(numbered[1]), written)
        return [op.name] if op is not None and op.cls == _class(numbered[2]) else []
    whole = f"R{text[1:]}" if text.startswith("E") else text  # EAX is part of RAX
    return [
        op.name for op in form.operands if op.is_register and {text, whole} & {op.name, op.fixed, op.cls}
    ][:1]


def _class(name: str) -> str:
    return "K" if name.startswith("VK") else _CLASSES.get(name, name)


def _numbered(form: InstructionForm, number: int, written: bool) -> Operand | None:
    explicit = [op for op in form.operands if not op.implicit]
    writes = [op for op in explicit if op.is_register and op.write]
    order = writes + [op for op in explicit if op.read or not op.is_register]
    if number >= len(order) or (number < len(writes)) != written:
        return None
    return order[number]
