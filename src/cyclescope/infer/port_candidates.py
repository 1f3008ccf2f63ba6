"""Forms that may be blocking instructions, and the register files that forms work on."""

from __future__ import annotations

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.register import domain

MOST_BYTES = 8  # of a blocking instruction: longer ones are limited by fetching
_LEFT_OUT = frozenset(
    ("evex", "x87", "d3now", "masked", "rep", "repne", "string", "branch", "call", "return", "stack",
     "high_byte", "lock", "vsib")
)  # fmt: skip
_PLAIN_MOVES = ("MOV", "VMOVUPS", "MOVUPS")  # a load or a store and nothing else
_CLASSES = ("R64", "XMM", "K", "MM")
_FLOATS = ("f16", "bf16", "f32", "f64")
_NARROW = ("R32", "R8l")
_FILES = {"h": "r", "m": "x", "x": "s"}  # register files that go by another letter here


def domains(form: InstructionForm) -> frozenset[str]:
    """Register files that a form works on: `r`, `v`, `k`, `x` for MMX, `s` for the x87 stack, `m` for memory.

    Flags count as `r`; MMX and x87 work on the units of vectors.
    """
    found = {_file(o.cls) for o in form.operands if o.is_register}
    if not found.isdisjoint("xs") or ("k" in found and not form.mnemonic.startswith("K")):
        found.add("v")
    if form.element in _FLOATS and "s" not in found:  # a conversion from memory names no vector register
        found.add("v")
    if form.flags_read or form.flags_written or not found:
        found.add("r")
    found |= {"m" for o in form.operands if o.is_memory}
    return frozenset(found - {"?"})


def is_candidate(form: InstructionForm) -> bool:
    """Whether a form's operands let it be a blocking instruction."""
    if form.encoding is None or not form.attributes.isdisjoint(_LEFT_OUT):
        return False
    if form.encoding.length > MOST_BYTES:
        return False
    registers = [op for op in form.operands if op.is_register]
    if form.flags_read and form.flags_written:  # each would wait for the one before
        return False
    if any(op.fixed for op in registers) or any(op.is_memory and op.implicit for op in form.operands):
        return False
    if form.memory >= 0:
        moves = form.mnemonic in _PLAIN_MOVES and len(form.operands) == 2 and len(registers) == 1
        return moves and registers[0].cls in ("R64", "XMM")
    if any(op.cls == "MM" and op.read and op.write for op in registers):  # too few to hide the latency
        return False
    if sum(op.write for op in registers) != 1 or not any(op.cls in _CLASSES for op in registers):
        return False
    return all(op.cls in (*_CLASSES, *_NARROW) for op in registers)


def files_of(form: InstructionForm) -> set[str]:
    """Register files that a candidate blocks; `m` alone for loads and stores."""
    if form.memory >= 0:
        return {"m"}
    return {_file(op.cls) for op in form.operands if op.is_register}


def _file(cls: str) -> str:
    return _FILES.get(domain(cls), domain(cls))


def preference(form: InstructionForm) -> tuple[object, ...]:
    """Best first: writes only, reads no flags, few operands, VEX."""
    return updates(form), bool(form.flags_read), len(form.operands), not form.is_vex, form.id


def updates(form: InstructionForm) -> bool:
    """Whether a form reads a register that it writes."""
    return any(op.is_register and op.read and op.write for op in form.operands)
