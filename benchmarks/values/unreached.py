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
KEPT = "a count of 0 leaves each flag what it was; nothing else comes from a flag"
CARRY = "what is carried in comes out in the operand, what is carried out was in it"
POSITIVE = "behind a shift to the right the upper bit is 0"
OTHER_END = "of a double shift the flag is about the end that the other operand is at"
EXCHANGED = "it gets what the other operand held, whatever it was"
STAYS = "the destination is read only where it stays what it was, and no flag is about it"
POINTERS = "by how much pointers and counts go on is not decided by data"
REPEATED = "counts and pointers of repeated forms stay what they are: with others they lead nowhere"
LOADED = "what is loaded once and more takes its place, whatever it was"
ONE_BY_ONE = "a repeated form loads each element on its own, and compares further ones as far as it gets"
GOT_POINTER = "it has got a pointer in the round before, and pointers stay what they are"
UNMASKED = "without a mask the other source is taken"
REST = "it is read for the rest of its register only, which 16-bit results leave"
_SHUFFLES = ("VPERMPS", "VPERMPD", "VPERMD", "VPERMQ")  # of one vector, by indices in another
_SHIFTS = ("SHL", "SAL", "SHR", "SAR", "ROL", "ROR", "RCL", "RCR", "SHLD", "SHRD")
# Operands of double shifts of which no bit gets where the flag is about; of some where the count is small.
_OTHER_END = {("SHRD", "op1", "flags.SF"), ("SHRD", "op2", "flags.CF"), ("SHLD", "op2", "flags.CF"),
              ("SHLD", "op2", "flags.SF")}  # fmt: skip
_LOWEST = {("SHRD", "op2", "flags.PF")}
_MOVED_ON = ("RSI", "RDI", "RCX", "ECX")
# What decides ZF and SF: lengths in registers, or the first zero in a string.
_STRING_FLAGS = {"PCMPEZF": "DX", "PCMPESF": "AX", "PCMPIZF": "op2", "PCMPISF": "op1"}


def why_unreached(form: InstructionForm, source: str, target: str) -> str:
    """Why no value passes from one operand of a form to another, or ""; of an instance, "" and ""."""
    one, other = _operand(form, source), _operand(form, target)
    if form.mnemonic.startswith("VPCONFLICT") and "broadcast" in form.attributes:
        return ALIKE if not source or _is_of_memory(source) else ""
    if form.mnemonic in _SHIFTS and source.startswith("flags."):
        return _why_no_carry(form, source, target)
    if "string" in form.attributes:
        return _why_not_moved(form, source, target)
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
    if form.mnemonic == "XADD":
        return EXCHANGED if source == target == "op2" else ""
    if form.mnemonic.startswith(("VBLENDM", "VPBLENDM")) and "masked" not in form.attributes:
        return UNMASKED if source == "op2" else ""
    if form.mnemonic.startswith("CMPXCHG"):
        return COMPARED if other.implicit and one is not form.operands[0] else ""
    if form.mnemonic == "XGETBV":
        return UPPER if other.fixed == "RDX" else ""
    multiplies = form.mnemonic in ("MUL", "IMUL")
    return REST if multiplies and (one.fixed, other.fixed) == ("DX", "AX") else ""


def _why_no_carry(form: InstructionForm, source: str, target: str) -> str:
    """A flag before a shift or a rotation."""
    through = form.mnemonic in ("RCL", "RCR") and source == "flags.CF"
    if not through:
        return KEPT if source != target else ""
    counted = any(op.fixed == "CL" for op in form.operands)
    out = target == "flags.CF" or (form.mnemonic == "RCL" and target == "flags.OF")
    return CARRY if out and not counted else ""


def _why_not_moved(form: InstructionForm, source: str, target: str) -> str:
    """A string instruction's pointers and counts."""
    repeats = is_repeated(form)
    if repeats and source in _MOVED_ON:
        return REPEATED
    if form.mnemonic.startswith("LODS") and source == target:
        return LOADED
    compares = repeats and form.mnemonic.startswith(("CMPS", "SCAS"))
    if compares and source in ("RAX", "EAX") and target == "RDI":
        return GOT_POINTER
    return POINTERS if target in _MOVED_ON and source != target and not compares else ""


def is_repeated(form: InstructionForm) -> bool:
    """Whether a form has the prefix that repeats it."""
    return not form.attributes.isdisjoint(("rep", "repne"))


def _why_no_flag(form: InstructionForm, one: Operand | None, source: str, target: str) -> str:
    register = one is not None and one.is_register
    if form.mnemonic.startswith("CMPXCHG"):
        stored = register and one is not form.operands[0] and not (one and one.write)
        return COMPARISON if stored else ""
    if form.mnemonic in ("MUL", "IMUL"):
        return REST if one is not None and _is_rest(form, one) else ""
    if form.mnemonic == "SHR" and target == "flags.SF":
        return POSITIVE
    if form.mnemonic in ("BSF", "BSR"):
        return STAYS if one is form.operands[0] else ""
    counted = any(op.fixed == "CL" for op in form.operands)
    if (form.mnemonic, source.partition(".")[0], target) in (_OTHER_END if counted else _OTHER_END | _LOWEST):
        return OTHER_END
    told = _STRING_FLAGS.get(form.mnemonic.removeprefix("V")[:5] + target[-2:])
    return LENGTHS if told and not source.partition(".")[0].endswith(told) else ""


def _operand(form: InstructionForm, node: str) -> Operand | None:
    """The operand that a source or target is in; None of flags."""
    name = node.partition(".")[0]
    return next((op for op in form.operands if op.name == name), None)


def _is_rest(form: InstructionForm, one: Operand) -> bool:
    """Whether an operand of a product is no factor: DX, or the first of three."""
    return one.fixed == "DX" or (
        one is form.operands[0] and sum(not op.implicit for op in form.operands) == 3
    )


def _is_of_memory(node: str) -> bool:
    return node.endswith((".address", ".index", ".data"))


def _is_cleared(form: InstructionForm, op: Operand) -> bool:
    """Whether an operand is the mask of a gather or a scatter, which is not the first that it writes."""
    return (
        "vsib" in form.attributes and op.is_register and op.read and op.write and op is not form.operands[0]
    )
