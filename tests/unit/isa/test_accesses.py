"""What the table says of operands, memory and flags, against iced-x86's view of the machine code.

Where the table says more or less than iced, a rule below says which forms, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from iced_x86 import Instruction, MemorySizeExt, MemorySizeInfo, OpKind, Register, RegisterExt

from cyclescope.isa.form import InstructionForm, flag_names
from cyclescope.isa.operand import BLOCKS, Operand
from tests.unit.isa.access import Access, Reported, declared, example, reported
from tests.unit.isa.decoding import REGISTERS, explicit, shown

PARTIAL = {"R8l", "R8h", "R16"}
COUNTED = {"SHL", "SHR", "SAR", "SAL", "ROL", "ROR", "RCL", "RCR", "SHLD", "SHRD"}


class Seen(NamedTuple):
    """A form, an example of it, and what iced says."""

    form: InstructionForm
    instruction: Instruction
    reported: Reported


@pytest.fixture(scope="module")
def seen(table) -> list[Seen]:
    found = []
    for form in table:
        # VIA's PadLock, which iced describes with prefixes that the opcode has anyway
        if form.encoding is not None and not any(f.startswith("PADLOCK") for f in form.features):
            instruction = example(form)
            found.append(Seen(form, instruction, reported(form, instruction)))
    assert len(found) > 17_100
    return found


# --- rules: what the table adds to iced ----------------------------------------------------------


def merged(form: InstructionForm, position: int, said: Access) -> Access:
    """Masked-off elements keep the old value of a register, and are not stored to memory."""
    op = form.operands[position]
    merging = {"masked", "zeroing"} & form.attributes == {"masked"}
    if position != 0 or not merging or not said.write or op.cls == "K" or "BLENDM" in form.mnemonic:
        return said
    return said | Access(read=op.is_register, conditional=True)


def selected(form: InstructionForm, position: int, said: Access) -> Access:
    """A blend with zeros reads one source only."""
    zeroing_blend = "BLENDM" in form.mnemonic and "zeroing" in form.attributes
    return Access() if zeroing_blend and position == 2 else said


def kept(op: Operand, said: Access) -> Access:
    """What is written in part, or under a condition, passes the old value on."""
    through = op.is_register and said.write and (op.cls in PARTIAL or said.conditional)
    return said | Access(read=through)


def expected(form: InstructionForm, position: int, said: Access) -> Access:
    """Access of an explicit operand."""
    if form.mnemonic == "INSERTQ" and position == 0:
        return said | Access(read=True)  # the upper bits of the low half stay
    said = selected(form, position, merged(form, position, said))
    return kept(form.operands[position], said)


# --- comparisons ---------------------------------------------------------------------------------


def differences(seen: list[Seen], compare: Callable[[Seen], Iterator[object]]) -> dict[str, list[object]]:
    found = {one.form.id: list(compare(one)) for one in seen}
    return {form: wrong for form, wrong in found.items() if wrong}


def test_explicit_operands(seen):
    def compare(one):
        for position, said in one.reported.operands.items():
            wanted, got = expected(one.form, position, said), declared(one.form.operands[position])
            if wanted != got:
                yield position, got, wanted

    assert differences(seen, compare) == {}


def test_the_mask_operand(seen):
    """Read by all, cleared by gathers and scatters."""
    cleared = 0
    for form in (one.form for one in seen if "masked" in one.form.attributes):
        mask = form.operands[1]
        assert (mask.cls, mask.implicit, mask.read) == ("K", False, True), form.id
        assert mask.write == ("vsib" in form.attributes and "PF" not in form.mnemonic), form.id
        cleared += mask.write
    assert cleared > 30


def full(op: Operand) -> str:
    return REGISTERS[RegisterExt.full_register(getattr(Register, op.fixed))]


def test_implicit_registers(seen):
    def compare(one):
        got = {full(op): op for op in one.form.operands if op.implicit and op.is_register}
        wanted = dict(one.reported.registers)
        if "x87-1" in one.form.attributes:  # a push: another register is the top of the stack
            wanted.setdefault("ST0", Access(write=True))
        for name in block(one):
            wanted.pop(name)
        assert len(got) == sum(op.implicit and op.is_register for op in one.form.operands)
        for name in got.keys() | wanted.keys():
            if name not in got or name not in wanted or declared(got[name]) != kept(got[name], wanted[name]):
                yield name, got.get(name), wanted.get(name)

    assert differences(seen, compare) == {}


def block(one: Seen) -> list[str]:
    """Registers of a block behind its first."""
    names = []
    for i, position in zip(shown(one.form, one.instruction), explicit(one.form), strict=True):
        size = BLOCKS.get(one.form.operands[position].fixed, 1)
        first = RegisterExt.full_register(one.instruction.op_register(i)) if size > 1 else 0
        names += [REGISTERS[first + n] for n in range(1, size)]
    return names


def test_blocks_have_their_registers(seen):
    blocks = [one for one in seen if block(one)]
    assert len(blocks) == 36
    for one in blocks:
        assert set(block(one)) <= one.reported.registers.keys()


def memory_of(one: Seen) -> dict[str, tuple[int, Access]]:
    """Accesses of the table by base register."""
    form = one.form
    found = {op.fixed: (op.width, declared(op)) for op in form.operands if op.implicit and op.is_memory}
    if form.memory >= 0:
        op = form.operands[form.memory]
        found[REGISTERS[one.instruction.memory_base]] = op.width, declared(op)
    return found


def reported_memory(one: Seen) -> dict[str, tuple[int, Access]]:
    """Accesses of iced by base register, with what the table has differently."""
    form = one.form
    found = dict(one.reported.memory)
    if form.mnemonic in ("MOVDIR64B", "ENQCMD", "UMONITOR", "LLWPCB"):
        del found["RAX" if form.operands[0].cls == "R64" else "EAX"]  # an address in a register operand
    if form.memory >= 0:
        base = REGISTERS[one.instruction.memory_base]
        width, said = found.get(base, (form.operands[form.memory].width, Access()))  # hints access nothing
        found[base] = width, merged(form, form.memory, said)
    if form.mnemonic == "CLZERO":
        found["RAX"] = (512, Access(write=True))
    if {"rep", "repne"} & form.attributes:  # iced leaves the width open
        width = element_width(one.instruction)
        found = {base: (width, said) for base, (_, said) in found.items()}
    return found


def element_width(ins: Instruction) -> int:
    return MemorySizeExt.size(ins.memory_size) * 8


def test_memory(seen):
    def compare(one):
        wanted, got = reported_memory(one), memory_of(one)
        if wanted != got:
            yield got, wanted

    assert differences(seen, compare) == {}


def test_memory_classes(seen):
    """The class says the width in memory, the broadcast and the index registers."""
    for form, ins, _ in seen:
        if form.memory < 0 or form.operands[form.memory].cls.startswith("Moffs"):
            continue
        op, size = form.operands[form.memory], MemorySizeInfo(ins.memory_size)
        if "vsib" in form.attributes:
            assert op.cls == "VSIB_" + REGISTERS[ins.memory_index].rstrip("0123456789"), form.id
        elif "broadcast" in form.attributes:
            bits, copies = op.cls.removeprefix("M").split("_1to")
            assert (int(bits), int(bits)) == (op.width, size.size * 8), form.id
            assert copies == str(broadcast_size(ins) // size.size), form.id
        else:
            assert op.cls == f"M{size.size * 8}", form.id


def broadcast_size(ins: Instruction) -> int:
    return MemorySizeInfo(ins.op_code().memory_size).size


@pytest.mark.parametrize("kind", ["read", "written", "undefined"])
def test_flags(seen, kind):
    def compare(one):
        form, said = one.form, one.reported
        wanted = set(getattr(said, f"flags_{kind}"))
        counted = form.mnemonic in COUNTED and any(op.fixed == "CL" for op in form.operands)
        repeated = {"rep", "repne"} & form.attributes and said.flags_written
        assert ("conditional_flags" in form.attributes) == bool(counted or repeated), form.id
        if kind == "read" and (counted or repeated):  # a count of zero leaves the flags alone
            wanted |= said.flags_written | said.flags_undefined
        got = set(flag_names(getattr(form, f"flags_{kind}")))
        if got != wanted:
            yield got, wanted

    assert differences(seen, compare) == {}


def test_widths_of_registers(seen):
    widths = {"K": 64, "ST": 80, "SEG": 16, "TMM": 8192}
    for form, ins, _ in seen:
        for i, position in zip(shown(form, ins), explicit(form), strict=True):
            op = form.operands[position]
            if op.is_register:
                assert ins.op_kind(i) == OpKind.REGISTER
                size = RegisterExt.size(ins.op_register(i)) * 8
                assert op.width == widths.get(op.cls, size), form.id


def test_features(seen):
    from tools.x86_64.generate import features

    for one in seen:
        assert list(one.form.features) == features(one.instruction), one.form.id
