"""Adjacent instructions that share a slot of the front end."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from cyclescope.analyze.decode.block import BlockInstruction
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import mnemonics
from cyclescope.model.behaviour.nops import before_nop, is_nop
from cyclescope.model.behaviour.published import CoreBehaviour


def fused_pairs(instructions: Sequence[BlockInstruction], behaviour: CoreBehaviour) -> set[int]:
    """Positions of the first instructions of pairs that the front end makes one micro-operation."""
    found: set[int] = set()
    for number, (one, branch) in enumerate(pairwise(instructions)):
        first, second = one.form, branch.form
        if second is None or "conditional_branch" not in second.attributes:
            continue
        if first is None or not _is_plain_branch(second):
            continue
        apart = first.memory >= 0 and first.mnemonic in behaviour.apart_in_memory
        if behaviour.fuses(first.mnemonic, second.mnemonic) and _fusible(one, first) and not apart:
            found.add(number)
    return found


def only_compares(instruction: BlockInstruction) -> bool:
    """Whether an instruction writes no register and no memory: all that it tells is in flags."""
    form = instruction.form
    places = zip(form.operands, instruction.registers, strict=True) if form is not None else ()
    return form is not None and not any(
        op.write and (op.is_memory or register is not None) for op, register in places
    )


def joined_moves(instructions: Sequence[BlockInstruction], behaviour: CoreBehaviour) -> set[int]:
    """Positions of moves that share a slot with the operation behind them, which works on their copy."""
    found: set[int] = set()
    if not behaviour.pairs:
        return found
    for number, (move, other) in enumerate(pairwise(instructions)):
        first, second = move.form, other.form
        if first is None or second is None or (first.mnemonic, second.mnemonic) not in behaviour.pairs:
            continue
        if "conditional_branch" in second.attributes:
            continue
        plain = not any(op.is_memory for form in (first, second) for op in form.operands)
        written, changed = (_written(one) for one in (move, other))
        if plain and written and written == changed:
            found.add(number)
    return found - {number + 1 for number in found}


def trailing_nops(instructions: Sequence[BlockInstruction], behaviour: CoreBehaviour) -> set[int]:
    """Positions of NOPs that share the slot of what is before them.

    So do as many NOPs next to each other as the core has in a slot; another kind of instruction, if at all,
    shares its slot with one.
    """
    found: set[int] = set()
    if not behaviour.trailed and behaviour.nops == 1:
        return found
    if not any([one.form is not None and is_nop(one.form) for one in instructions]):  # noqa: C419 - quicker
        return found
    leaves = not instructions[-1].form or not _LEAVING.isdisjoint(instructions[-1].form.attributes)
    room = 0  # for NOPs, in the slot of what is before
    for _ in range(1 if leaves else 2):  # in copies the last is before the first of the next
        found.clear()
        for number, one in enumerate(instructions):
            if one.form is not None and is_nop(one.form):
                if room:
                    found.add(number)
                room = room - 1 if room else behaviour.nops - 1
            else:
                room = int(one.form is not None and before_nop(one.form) in behaviour.trailed)
    return found


_LEAVING = frozenset(("branch", "conditional_branch", "call", "return"))


def _written(instruction: BlockInstruction) -> tuple[str, int] | None:
    """The register, with its class, that an instruction's first operand is, if it writes it."""
    form = instruction.form
    known = form is not None and form.operands and form.operands[0].write
    return instruction.registers[0] if known else None


def _is_plain_branch(form: InstructionForm) -> bool:
    """A conditional branch by flags, which counts nothing."""
    return form.flags_read != 0 and not form.mnemonic.startswith(mnemonics("counting"))


def _fusible(instruction: BlockInstruction, form: InstructionForm) -> bool:
    """Not what stores, nor what has memory and an immediate or an address relative to RIP."""
    if any(op.is_memory and op.write for op in form.operands):
        return False
    memory = [address for address in instruction.memory if address is not None]
    if not memory:
        return True
    return not any(op.kind == "immediate" for op in form.operands) and not memory[0].rip_relative
