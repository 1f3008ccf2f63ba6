"""Operands as LLVM numbers them: results first, then what is read, tied operands a second time.

Tables made of LLVM's have its numbers already (`InstructionSet.llvm_operands`). On x86-64 an operand of
memory is five of LLVM's (base, scale, index, displacement, segment), registers that the encoding fixes are
none, and conditional instructions have their condition as a last one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache

import msgspec

from cyclescope.isa.dataflow import Node
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.registry import instruction_set
from cyclescope.isa.table import load_table

MEMORY_PARTS = 5
WHOLE = 32  # bits: a narrower result is merged into its register, which LLVM says of no instruction
_CONDITIONAL = re.compile(r"(CMOV|SETCC|JCC)(_|\d|r|m)")


class LlvmOperand(msgspec.Struct, frozen=True):
    """One of LLVM's operands: the position of ours, and which part of an address it is."""

    position: int
    part: int = -1


def operands(form: InstructionForm) -> tuple[LlvmOperand, ...]:
    """LLVM's operands of an x86-64 form, without the condition."""
    shown = _shown(form)
    replaced = (form.mnemonic, len(form.operands)) in _replacing()
    read: list[LlvmOperand] = []
    for i, op in shown:
        if op.kind in ("memory", "address"):
            read += [LlvmOperand(i, part) for part in _parts(op)]
        elif not op.is_register or _is_read(op, replaced):
            read.append(LlvmOperand(i))
    return (*results(form), *read)


def is_llvms(form: InstructionForm) -> bool:
    """Whether a form's operands are LLVM's, in its order."""
    return instruction_set(form.isa).llvm_operands


def results(form: InstructionForm) -> tuple[LlvmOperand, ...]:
    """Those of them that are written, the first ones, of an x86-64 form."""
    return tuple(LlvmOperand(i) for i, op in _shown(form) if op.is_register and op.write and op.cls != "ST")


def _shown(form: InstructionForm) -> list[tuple[int, Operand]]:
    """Our operands that are any of LLVM's."""
    return [(i, op) for i, op in enumerate(form.operands) if not op.implicit and not _is_fixed(op)]


def _is_read(op: Operand, replaced: bool) -> bool:
    """Whether LLVM has a register among what is read; registers of the x87 stack are nowhere else."""
    if not op.write or op.cls == "ST":
        return True
    return op.read and not (replaced and op.width < WHOLE)


def _parts(op: Operand) -> tuple[int, ...]:
    """An absolute address has a displacement and a segment alone."""
    return (3, 4) if op.cls.startswith("Moffs") else tuple(range(MEMORY_PARTS))


@cache
def _replacing() -> frozenset[tuple[str, int]]:
    """Mnemonics and numbers of operands whose first one is a result, but for bits that narrow ones leave."""
    table = load_table("x86-64")
    firsts = (((form.mnemonic, len(form.operands)), form.operands[0]) for form in table if form.operands)
    whole = {key for key, op in firsts if op.is_register and op.write and not op.read and op.width >= WHOLE}
    return frozenset(whole | {(form.mnemonic, 1) for form in table if form.llvm == "SETCCr"})


def _is_fixed(op: Operand) -> bool:
    return (op.is_register and bool(op.fixed)) or (op.kind == "immediate" and op.cls == "1")


def has_condition(form: InstructionForm) -> bool:
    """Whether LLVM has one opcode for all conditions, and the condition as a last operand."""
    return bool(_CONDITIONAL.match(form.llvm))


def has_rounding(form: InstructionForm) -> bool:
    """Whether LLVM has the rounding mode of the encoding as a last operand."""
    return "rounding" in form.attributes


def is_named(form: InstructionForm) -> bool:
    """Whether LLVM's name stands for the form: prefixes are instructions of their own there."""
    return bool(form.llvm) and (is_llvms(form) or form.attributes.isdisjoint(("lock", "rep", "repne")))


def implicit_results(form: InstructionForm) -> tuple[str, ...]:
    """LLVM's names of the registers that are written and no operands of an x86-64 form; flags are one."""
    return _implicit(form, [op for op in form.operands if op.write], form.flags_written)


def implicit_sources(form: InstructionForm) -> tuple[str, ...]:
    """The same of those that are read."""
    return _implicit(form, [op for op in form.operands if op.read], form.flags_read)


def _implicit(form: InstructionForm, some: Iterable[Operand], flags: int) -> tuple[str, ...]:
    named = [op.fixed or op.name for op in some if op.is_register and (op.implicit or _is_fixed(op))]
    return (*dict.fromkeys(named), *(["EFLAGS"] if flags else []))


def only(names: tuple[str, ...]) -> tuple[str, ...]:
    """A name that is alone; of several nobody knows in which order LLVM has them."""
    return names if len(names) == 1 else ()


def opcode_forms(table: Iterable[InstructionForm]) -> dict[str, list[InstructionForm]]:
    """Forms by LLVM's opcode, where it stands for them."""
    found: dict[str, list[InstructionForm]] = {}
    for form in table:
        opcode = form.llvm if is_named(form) else ""
        if opcode:
            found.setdefault(opcode, []).append(form)
    return found


def untied(form: InstructionForm) -> tuple[LlvmOperand, ...]:
    """LLVM's operands without the second mention of tied ones, the order in which WINIC counts them."""
    if is_llvms(form):
        return tuple(LlvmOperand(i) for i, op in enumerate(form.operands) if not op.implicit)
    return tuple(dict.fromkeys(operands(form)))


def untied_name(form: InstructionForm, node: Node) -> str | None:
    """A number among `untied`, or the name of a fixed register; None for memory and what is in an address."""
    return _name(form, node, lambda one: untied(form).index(one))


def tied_name(form: InstructionForm, node: Node, is_result: bool) -> str | None:
    """The same with all of LLVM's numbers: what is read and written has two, that of the result is first."""
    every = _every(form)
    if is_result:
        return _name(form, node, every.index)
    return _name(form, node, lambda one: len(every) - 1 - every[::-1].index(one))


def _every(form: InstructionForm) -> tuple[LlvmOperand, ...]:
    if not is_llvms(form):
        return operands(form)
    shown = [(i, op) for i, op in enumerate(form.operands) if not op.implicit]
    written = [LlvmOperand(i) for i, op in shown if op.is_register and op.write]
    return (*written, *(LlvmOperand(i) for i, op in shown if not (op.is_register and op.write) or op.read))


def _name(form: InstructionForm, node: Node, number: Callable[[LlvmOperand], int]) -> str | None:
    if node.part == "flag":
        return instruction_set(form.isa).registers.conditions or "EFLAGS"
    op = form.operands[node.operand]
    if not op.is_register:
        return None
    if op.implicit or op.fixed:
        return op.fixed or op.name
    return str(number(LlvmOperand(node.operand)))
