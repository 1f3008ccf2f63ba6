"""Forms that may be blocking instructions, and the register files that forms work on."""

from __future__ import annotations

from functools import cache

from cyclescope.isa.dataflow import MODES
from cyclescope.isa.find.pattern import select
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.register import domain
from cyclescope.isa.registry import instruction_sets, mnemonics
from cyclescope.isa.table import Table

_MOST_BYTES = 8  # of a blocking instruction: longer ones are limited by fetching
_LEFT_OUT = frozenset(
    ("x87", "d3now", "masked", "rep", "repne", "string", "branch", "call", "return", "stack",
     "high_byte", "lock", "vsib")
)  # fmt: skip
_APART = frozenset(
    ("atomic", "exclusive", "branch", "call", "return", "trap", "side_effects", "writeback", "compressed",
     "predicated", "merging", "zeroing", "unique_registers", "optional")
)  # fmt: skip
_STATE = frozenset((*MODES, "VL", "VTYPE"))  # read, and never written by a blocking instruction
_WHOLE = ("GPR64", "GPR", "FPR64", "V128", "ZPR64", "PPR64", "PPR8", "PPRAny", "VR")  # begin LLVM's classes
_CLASSES = ("R64", "XMM", "K", "MM")
_FLOATS = ("f16", "bf16", "f32", "f64")
_NARROW = ("R32", "R8l")
_WIDEST = "ZMM"  # whose operations may need other units than those of shorter vectors
_FILES = {"h": "r", "m": "x", "x": "s"}  # register files that go by another letter here


def domains(form: InstructionForm) -> frozenset[str]:
    """Register files that a form works on: `r`, `v`, `k`, `x` for MMX, `s` for the x87 stack, `m` for memory.

    Flags count as `r`; MMX and x87 work on the units of vectors. Vectors of 512 bits are `z` as well.
    """
    if form.bits is not None:
        return _domains(form)
    found = {_file(o.cls) for o in form.operands if o.is_register}
    if not found.isdisjoint("xs") or ("k" in found and not form.mnemonic.startswith("K")):
        found.add("v")
    if form.element in _FLOATS and "s" not in found:  # a conversion from memory names no vector register
        found.add("v")
    if form.flags_read or form.flags_written or not found:
        found.add("r")
    found |= {"m" for o in form.operands if o.is_memory}
    if any(o.cls == _WIDEST for o in form.operands):
        found.add("z")
    return frozenset(found - {"?"})


def _domains(form: InstructionForm) -> frozenset[str]:
    """Of AArch64 and RISC-V: `r`, `v`, `f`, `p` for predicates, `m`. Predicates work on units of vectors."""
    found = {o.file for o in form.operands if o.is_register}
    if "p" in found:
        found.add("v")
    if form.flags_read or form.flags_written or not found - {"?"}:
        found.add("r")
    found |= {"m" for o in form.operands if o.is_memory}
    return frozenset(found - {"?"})


def memory_of(form: InstructionForm) -> Operand | None:
    """The memory that a form's explicit operands say."""
    if form.bits is None:
        return form.operands[form.memory] if form.memory >= 0 else None
    return next((op for op in form.operands if op.is_memory), None)


def is_locked(form: InstructionForm) -> bool:
    """Whether an access to memory keeps all others waiting."""
    return "lock" in form.attributes


def register_bits(form: InstructionForm) -> int:
    """Bits of a form's widest register, or group of registers."""
    return max((op.width * op.group for op in form.operands if op.is_register), default=0)


@cache
def candidates(table: Table) -> tuple[InstructionForm, ...]:
    """Forms that may be blocking instructions; vectors of RISC-V one register long."""
    return tuple(form for form in select(table, ()) if is_candidate(form))


def _is_fixed_width_candidate(form: InstructionForm) -> bool:
    if any(form.id in record.roles.plain_moves for record in instruction_sets() if record.fixed_width):
        return True
    if not form.attributes.isdisjoint(_APART) or any(op.is_memory for op in form.operands):
        return False
    vector = form.configuration
    if vector is not None and (vector.lmul != 1 or vector.masked or vector.tail_undisturbed or vector.vl):
        return False
    registers = [op for op in form.operands if op.is_register and op.fixed not in _STATE]
    if any(op.fixed or op.group > 1 for op in registers) or sum(op.write for op in registers) != 1:
        return False
    return all(op.cls.startswith(_WHOLE) and op.file in "rvfp" for op in registers)


def is_candidate(form: InstructionForm) -> bool:
    """Whether a form's operands let it be a blocking instruction."""
    if form.bits is not None:
        return _is_fixed_width_candidate(form)
    if form.encoding is None or not form.attributes.isdisjoint(_LEFT_OUT):
        return False
    if form.encoding.length > _MOST_BYTES:
        return False
    registers = [op for op in form.operands if op.is_register]
    if "evex" in form.attributes and (form.memory >= 0 or any(op.cls != _WIDEST for op in registers)):
        return False
    if form.flags_read and form.flags_written:  # each would wait for the one before
        return False
    if any(op.fixed for op in registers) or any(op.is_memory and op.implicit for op in form.operands):
        return False
    if form.memory >= 0:
        moves = form.mnemonic in mnemonics("accesses") and len(form.operands) == 2 and len(registers) == 1
        return moves and registers[0].cls in ("R64", "XMM")
    if any(op.cls == "MM" and op.read and op.write for op in registers):  # too few to hide the latency
        return False
    if sum(op.write for op in registers) != 1 or not any(op.cls in (*_CLASSES, _WIDEST) for op in registers):
        return False
    return all(op.cls in (*_CLASSES, *_NARROW, _WIDEST) for op in registers)


def files_of(form: InstructionForm) -> set[str]:
    """Register files that a candidate blocks; `m` alone for loads and stores, `z` for vectors of 512 bits."""
    if memory_of(form) is not None:
        return {"m"}
    if any(op.cls == _WIDEST for op in form.operands):
        return {"z"}
    if form.bits is not None:
        return {op.file for op in form.operands if op.is_register} - {"?"}
    return {_file(op.cls) for op in form.operands if op.is_register}


def _file(cls: str) -> str:
    return _FILES.get(domain(cls), domain(cls))


def preference(form: InstructionForm) -> tuple[object, ...]:
    """Best first: no store, no move, writes only, neither reads nor writes flags, few operands, VEX.

    Moves between registers may be eliminated now and then, and keep no port busy then.
    """
    flags = bool(form.flags_read), bool(form.flags_written)
    return stores(form), is_move(form), updates(form), *flags, len(form.operands), not form.is_vex, form.id


def is_move(form: InstructionForm) -> bool:
    """Whether a form moves values between registers, by its name."""
    return memory_of(form) is None and is_called_move(form)


def is_called_move(form: InstructionForm) -> bool:
    """Whether a form is a move by its name, wherever from and to."""
    return any(part in form.mnemonic for part in mnemonics("moving"))


def stores(form: InstructionForm) -> bool:
    """Whether a form writes memory, which may take an address and a datum: two micro-operations."""
    op = memory_of(form)
    return op is not None and op.write


def updates(form: InstructionForm) -> bool:
    """Whether a form reads a register that it writes."""
    return any(op.is_register and op.read and op.write for op in form.operands)
