"""How far one pass of a loop gets: the pointer it moves, and by how many elements."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from cyclescope.analyze.block import BlockInstruction, Register, Unroll
from cyclescope.isa.form import InstructionForm

_GENERAL = ("R", "X", "S")  # general registers and the stack pointer
_ADDING = {"ADD": 1, "SUB": -1, "ADDS": 1, "SUBS": -1, "ADDI": 1, "ADDI16SP": 1}
_FULL = {"R16": "R64", "R32": "R64", "R8l": "R64", "R8h": "R64"}


def find_unroll(instructions: Sequence[BlockInstruction]) -> Unroll | None:
    """What a pass does to the register that most addresses move by; None where that is no constant."""
    steps = _steps(instructions)
    uses: Counter[Register] = Counter()
    strides: dict[Register, int] = {}
    widths: dict[Register, list[int]] = {}
    for one in instructions:
        for position, address in enumerate(one.memory):
            if address is None or one.form is None or _is_stack(one, position):
                continue
            for register, scale in ((address.base, 1), (address.index, address.scale)):
                if register is not None and steps.get(_full(register)):
                    moved = _full(register)
                    uses[moved] += 1
                    strides[moved] = max(strides.get(moved, 0), abs(steps[moved]) * scale)
                    widths.setdefault(moved, []).append(one.form.operands[position].width // 8)
    if not uses:
        return None
    chosen = max(uses, key=lambda register: uses[register])
    element = min(_element(instructions), *filter(None, widths[chosen] or [1]), 64)
    return Unroll(
        chosen, steps[chosen], strides[chosen], max(widths[chosen]), max(strides[chosen] // element, 1)
    )


def _is_stack(one: BlockInstruction, position: int) -> bool:
    """Whether x86 implies the access: PUSH, MOVS."""
    assert one.form is not None
    return one.form.encoding is not None and one.form.operands[position].implicit


def _full(register: Register) -> Register:
    return _FULL.get(register[0], register[0]), register[1]


def _steps(instructions: Sequence[BlockInstruction]) -> dict[Register, int]:
    """Constant change per pass of every general register that is only added to."""
    steps: dict[Register, int] = {}
    lost: set[Register] = set()
    for one in instructions:
        if one.form is None:
            continue
        for position, op in enumerate(one.form.operands):
            register = one.registers[position]
            if register is None or not op.write or register[0][0] not in _GENERAL:
                continue
            change = _change(one, register) if not op.implicit else None
            if change is None:
                lost.add(_full(register))
            else:
                steps[_full(register)] = steps.get(_full(register), 0) + change
    return {register: step for register, step in steps.items() if register not in lost and step}


def _change(one: BlockInstruction, register: Register) -> int | None:
    """What an instruction adds to the register it writes, None where that is no constant."""
    assert one.form is not None
    name = one.form.mnemonic.removeprefix("C.")
    if name in ("INC", "DEC"):
        return 1 if name == "INC" else -1
    value = next((v for v in one.immediates if v is not None), None)
    address = next((a for a in one.memory if a is not None), None)
    if address is not None and address.writeback and address.base == register:
        return address.displacement if address.writeback == "pre" else value
    if name in _ADDING and value is not None and _reads_only(one, register):
        return _ADDING[name] * value
    own = address is not None and address.base == register and address.index is None
    return address.displacement if address is not None and own and name == "LEA" else None


def _reads_only(one: BlockInstruction, register: Register) -> bool:
    assert one.form is not None
    operands = zip(one.form.operands, one.registers, strict=True)
    return {used for op, used in operands if op.read and used and not op.implicit} == {register}


def _element(instructions: Sequence[BlockInstruction]) -> int:
    """Bytes of the smallest element that is computed with or moved, 64 where none is known.

    Floating-point elements count wherever they are, others where memory is accessed.
    """
    found = [64]
    for one in instructions:
        element = one.form.element if one.form is not None and _is_vector(one.form) else ""
        match = re.fullmatch(r"(b?f|i)(\d+)", element)
        if match and (match[1] != "i" or any(one.memory)):
            found.append(int(match[2]) // 8)
    return min(found)


def _is_vector(form: InstructionForm) -> bool:
    return form.vector_width > 0 or any(op.file in ("v", "f") for op in form.operands)
