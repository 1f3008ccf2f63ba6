"""Pairs of x86-64 whose target is the same whatever the source is: a form reads one and writes the other."""

from __future__ import annotations

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand

COMPARED = "what is compared with is afterwards what memory, or the destination, held, equal or not"
CLEARED = "a mask is 0 behind what it has masked, whatever it was"
ALIKE = "all elements are copies of one, so that their conflicts are the same whatever it is"
UPPER = "registers that XGETBV reads have nothing in their upper half"
COMPARISON = "only what is compared decides the flags, not what would be stored"
LENGTHS = "ZF is about the length of the second string, SF about that of the first"
SHUFFLED = "all elements are copies of one, so that their order makes no difference"
REST = "DX is read for the rest of RDX only, which 16-bit results leave"
_SHUFFLES = ("VPERMPS", "VPERMPD", "VPERMD", "VPERMQ")  # of one vector, by indices in another
# What decides ZF and SF: lengths in registers, or the first zero in a string.
_STRING_FLAGS = {"PCMPEZF": "DX", "PCMPESF": "AX", "PCMPIZF": "op2", "PCMPISF": "op1"}


def why_unreached(form: InstructionForm, source: str, target: str) -> str:
    """Why no value passes from one operand of a form to another, or ""; of an instance, "" and ""."""
    one, other = _operand(form, source), _operand(form, target)
    if form.mnemonic.startswith("VPCONFLICT") and "broadcast" in form.attributes:
        return ALIKE if not source or _is_of_memory(source) else ""
    if target.startswith("flags."):
        return _why_no_flag(form, one, source, target)
    if other is None or not other.is_register:
        return ""
    if _is_cleared(form, other):
        return CLEARED
    if one is None or not one.is_register:
        return ""
    if form.mnemonic in _SHUFFLES and "broadcast" in form.attributes:
        return SHUFFLED if one.cls != "K" and not one.write else ""
    if form.mnemonic.startswith("CMPXCHG"):
        return COMPARED if other.implicit and one is not form.operands[0] else ""
    if form.mnemonic == "XGETBV":
        return UPPER if other.fixed == "RDX" else ""
    multiplies = form.mnemonic in ("MUL", "IMUL")
    return REST if multiplies and (one.fixed, other.fixed) == ("DX", "AX") else ""


def _why_no_flag(form: InstructionForm, one: Operand | None, source: str, target: str) -> str:
    register = one is not None and one.is_register
    if form.mnemonic.startswith("CMPXCHG"):
        stored = register and one is not form.operands[0] and not (one and one.write)
        return COMPARISON if stored else ""
    if form.mnemonic in ("MUL", "IMUL"):
        return REST if one is not None and one.fixed == "DX" else ""
    told = _STRING_FLAGS.get(form.mnemonic.removeprefix("V")[:5] + target[-2:])
    return LENGTHS if told and not source.partition(".")[0].endswith(told) else ""


def _operand(form: InstructionForm, node: str) -> Operand | None:
    """The operand that a source or target is in; None of flags."""
    name = node.partition(".")[0]
    return next((op for op in form.operands if op.name == name), None)


def _is_of_memory(node: str) -> bool:
    return node.endswith((".address", ".index", ".data"))


def _is_cleared(form: InstructionForm, op: Operand) -> bool:
    """Whether an operand is the mask of a gather or a scatter, which is not the first that it writes."""
    return (
        "vsib" in form.attributes and op.is_register and op.read and op.write and op is not form.operands[0]
    )
