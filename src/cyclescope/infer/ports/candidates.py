"""Forms that may be blocking instructions, and the register files that forms work on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from cyclescope.isa.dataflow import MODES
from cyclescope.isa.find.pattern import select
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.record import BlockingRules
from cyclescope.isa.register import domain
from cyclescope.isa.registry import instruction_set, mnemonics
from cyclescope.isa.table import Table

_STATE = frozenset((*MODES, "VL", "VTYPE"))  # read, and never written by a blocking instruction
_FLOATS = ("f16", "bf16", "f32", "f64")


@cache  # all forms are asked for them again and again
def domains(form: InstructionForm) -> frozenset[str]:
    """Register files that a form works on, by letters of its instruction set; `m` for memory.

    Flags count as general registers, `r`; what stands for vectors is `v` as well, and the widest are `z`.
    """
    rules = _rules(form)
    found = _files(form) - {""}
    if any(file in rules.in_vectors and not _has_own_units(file, form, rules) for file in found):
        found.add("v")
    if form.element in _FLOATS and rules.floats and "s" not in found:  # a conversion names no register of it
        found.add(rules.floats)
    if form.flags_read or form.flags_written or not found:
        found.add("r")
    found |= {"m" for o in form.operands if o.is_memory}
    if _has_widest(form, rules, "v" in found):
        found.add("z")
    return frozenset(found - {"?"})


def _rules(form: InstructionForm) -> BlockingRules:
    return instruction_set(form.isa).blocking


def _files(form: InstructionForm) -> set[str]:
    """Register files of a form's registers, with "" for those that are none."""
    letters = _rules(form).files
    files = (op.file or domain(op.cls) for op in form.operands if op.is_register)
    return {letters.get(file, file) for file in files}


def _has_own_units(file: str, form: InstructionForm, rules: BlockingRules) -> bool:
    """Whether masks are all that a form works on."""
    return file == "k" and bool(rules.own_units) and form.mnemonic.startswith(rules.own_units)


def _has_widest(form: InstructionForm, rules: BlockingRules, vectors: bool = False) -> bool:
    """Whether it works on the widest vectors, also such from memory that leave less in a register."""
    if not rules.widest:
        return False
    return any(
        op.cls == rules.widest or (vectors and op.is_memory and _read(op) == rules.widest_bits)
        for op in form.operands
    )


def _read(op: Operand) -> int:
    """Bits that an operand of memory is read as: one element may be read as several."""
    _, _, times = op.cls.partition("_1to")
    return op.width * int(times or 1)


def memory_of(form: InstructionForm) -> Operand | None:
    """The memory that a form's explicit operands say."""
    return form.addressed


def accesses_of(form: InstructionForm) -> int:
    """Micro-operations that accesses to memory may take: a store one for the address, one for the datum."""
    return sum(op.read + 2 * op.write for op in form.operands if op.is_memory)


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


def is_candidate(form: InstructionForm) -> bool:
    """Whether a form's operands let it be a blocking instruction."""
    rules = _rules(form)
    if form.id in (rules.accesses or instruction_set(form.isa).roles.plain_moves):
        return True
    if not form.attributes.isdisjoint(rules.left_out) or any(op.is_memory for op in form.operands):
        return False
    return _is_quick(form, rules) and _is_plain_vector(form) and _are_whole(form, rules)


def _is_quick(form: InstructionForm, rules: BlockingRules) -> bool:
    """Whether neither fetching nor flags, of which each would wait for the one before, limit a form."""
    if not form.is_encodable or (form.flags_read and form.flags_written):
        return False
    return not rules.longest or form.encoding is None or form.encoding.length <= rules.longest


def _is_plain_vector(form: InstructionForm) -> bool:
    """Whether a vector instruction works on one whole register."""
    vector = form.configuration
    if vector is None:
        return True
    return vector.lmul == 1 and not (vector.masked or vector.tail_undisturbed or vector.vl)


def _are_whole(form: InstructionForm, rules: BlockingRules) -> bool:
    """Whether a form writes one of registers that are as wide as units, which may be independent."""
    registers = [op for op in form.operands if op.is_register and op.fixed not in _STATE]
    if (
        any(op.fixed or op.group > 1 or "?" in op.file for op in registers)
        or sum(op.write for op in registers) != 1
    ):
        return False
    if any(op.cls == rules.few and op.read and op.write for op in registers):
        return False
    if not form.attributes.isdisjoint(rules.only_widest) and any(op.cls != rules.widest for op in registers):
        return False
    whole = [re.fullmatch(rules.classes, op.cls) is not None for op in registers]
    beside = (re.fullmatch(rules.beside, op.cls) is not None for op in registers)
    return any(whole) and all(one or other for one, other in zip(whole, beside, strict=True))


def files_of(form: InstructionForm) -> set[str]:
    """Register files that a candidate blocks; `m` alone for loads and stores, `z` for the widest vectors."""
    if memory_of(form) is not None:
        return {"m"}
    return {"z"} if _has_widest(form, _rules(form)) else _files(form) - {""}


def preference(form: InstructionForm, waits: bool = False) -> tuple[object, ...]:
    """Best first: no store, no move, writes only, neither reads nor writes flags, few operands, VEX.

    Moves between registers may be eliminated now and then, and keep no port busy then. What `waits` for what
    it overwrites runs no faster than the registers let it that others leave it.
    """
    flags = bool(form.flags_read), bool(form.flags_written)
    kept = stores(form), is_move(form), waits, updates(form)
    return *kept, *flags, len(form.operands), not form.is_vex, form.id


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


@cache
def flags_by_mnemonic(table: Table) -> Mapping[str, int]:
    """Flags that any form of a mnemonic writes: a shift by 0 leaves them as they are, and holds them up."""
    found: dict[str, int] = {}
    for form in table:
        found[form.mnemonic] = found.get(form.mnemonic, 0) | form.flags_written
    return found


def updates(form: InstructionForm) -> bool:
    """Whether a form reads a register that it writes."""
    return any(op.is_register and op.read and op.write for op in form.operands)
