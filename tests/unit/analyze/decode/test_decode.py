"""Machine code back to the forms and values it was made of."""

from __future__ import annotations

import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from cyclescope.analyze.decode.block import Address
from cyclescope.analyze.decode.decoder import Flow, Reference, decoder
from cyclescope.analyze.decode.x86_64 import X86Decoder
from cyclescope.errors import BackendUnavailable, UsageError
from cyclescope.isa.encode import encode
from cyclescope.isa.register import register_name
from tests.property.test_isa_encoding import instructions
from tests.unit.isa.decoding import Memory, Values, choices, described, explicit, iced_register
from tests.unit.isa.test_decoding import displacement, immediates

X86 = decoder("x86-64")
AMD = decoder("x86-64", "amd")
AT = 0x1000
MPX = ("RESERVEDNOP_0F1A", "RESERVEDNOP_0F1B")  # MPX gave these bytes a meaning


def one(code: str, **more):
    return X86.instruction(bytes.fromhex(code), AT, **more)


def reader(form):
    """16-bit near branches are AMD's alone."""
    return AMD if "operand16" in form.attributes or form.id == "UD0" else X86


def read_back(form, values):
    """Explicit operands of a decoded instruction, as `described` says what was encoded."""
    code = encode(form, *values)
    got = reader(form).instruction(code, AT)
    assert got.code == code
    return got, described(form, values, len(code))


def same_form(form, got):
    """An immediate of 0 is a form of its own, whichever form the bytes were made of."""
    if got.form is None or got.form is form:
        return got.form is form
    if "lea" in form.attributes and got.memory[1].index is not None:  # added, which is another form
        return got.form.code == form.code and "_I" in got.form.id
    zero = "0" in {op.cls for op in got.form.operands}
    same = got.form.code == form.code and got.form.attributes == form.attributes
    return same and zero == all(value == 0 for value in got.immediates if value is not None)


def shown(got, position):
    """An operand as `described` has it."""
    if got.registers[position] is not None:
        return iced_register(*got.registers[position])
    address = got.memory[position]
    if address is None:
        return got.immediates[position]
    base = "RIP" if address.rip_relative else iced_register(*address.base) if address.base else "NONE"
    index = iced_register(*address.index) if address.index else "NONE"
    op = got.form.operands[position]
    size = op.width if op.is_memory else 0
    return Memory(base, index, address.scale, address.displacement, size)


def matches(wanted, got, position, length, width):
    """Whether an operand is the one described; numbers are equal modulo the width in the description."""
    op = got.form.operands[position]
    found = shown(got, position)
    if op.kind == "immediate":
        return (found - wanted) % (1 << width) == 0
    if op.kind == "branch":
        distance = wanted - 0x10000000 - length
        return (found - AT - length - distance) % (1 << 16) == 0
    if isinstance(wanted, Memory):
        shift = 0x10000000 + length if wanted.base == "RIP" else 0
        moved = (wanted.displacement - shift - found.displacement) % (1 << 64) == 0
        return moved and wanted._replace(displacement=0) == found._replace(displacement=0)
    return found == wanted


def differences(form, values):
    got, wanted = read_back(form, values)
    if not same_form(form, got):
        return [f"{form.id}: {got.code.hex()} is {got.form and got.form.id} {got.problem}"]
    wrong = []
    for position, operand in zip(explicit(form), wanted.operands, strict=True):
        if not matches(operand, got, position, len(got.code), form.operands[position].width):
            wrong.append(f"{form.id} {got.text} operand {position}: {shown(got, position)}, not {operand}")
    if wanted.mask != "NONE" and register_name(*got.registers[1]) != wanted.mask:
        wrong.append(f"{form.id}: mask {got.registers[1]}")
    return wrong


def test_every_form_of_the_table_is_read_back(table):
    wrong = []
    for form in (f for f in table if f.encoding is not None and not f.id.startswith(MPX)):
        for turn, registers in enumerate(choices(form, 2)):
            wrong += differences(form, Values(registers, displacement(form, turn), immediates(form, turn)))
    assert wrong == []


@given(instructions())
def test_random_values_are_read_back(drawn):
    form, values = drawn
    if not form.id.startswith(MPX):
        assert differences(form, values) == []


@given(st.binary(min_size=1, max_size=15))
def test_any_bytes_have_an_answer(code):
    """A form, or a reason; control flow and operands agree on the length."""
    first = next(iter(X86.steps(code, AT)))
    got = X86.instruction(code, AT)
    assert (got.form is None) == bool(got.problem)
    assert got.code == code[: first.length]
    assert (first.flow == Flow.INVALID) <= (got.form is None)
    if got.form is not None:
        assert len(got.registers) == len(got.memory) == len(got.immediates) == len(got.form.operands)


@pytest.mark.parametrize(
    ("code", "form", "text"),
    [
        ("f3c3", "RET_NEAR", "rep ret"),  # a prefix that means nothing
        ("f2e900000000", "JMP (Rel32)", "bnd jmp 0x1006"),
        ("f20f0bc0", "UD2", "ud2"),
        ("0fb6c4", "MOVZX (R32, R8h)", "movzx eax, ah"),
        ("b800000000", "MOV (R32, 0)", "mov eax, 0"),
        ("8d0437", "LEA_B_I (R32)", "lea eax, [rdi+rsi]"),
        ("488d0577000000", "LEA_R_D32 (R64)", "lea rax, [rip+0x77]"),
        ("d7", "XLAT", "xlat [rbx]"),
        ("f3a4", "MOVSB_REPE", "rep movsb"),
    ],
)
def test_forms_told_apart_by_more_than_the_opcode(code, form, text):
    got = one(code)
    assert got.form is not None
    assert got.form.id == form
    assert got.text.startswith(text)


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("06", "06 is no instruction"),
        ("f4", "privileged"),
        ("0f01c2", "privileged"),
        ("48", "no instruction"),
        ("62f4e418afd8", "62 is of APX"),
        ("d50801c0", "is of APX"),
        ("62f1", "62 is no instruction"),
    ],
)
def test_what_has_no_form_says_why(code, problem):
    got = one(code)
    assert got.form is None
    assert problem in got.problem


def test_implicit_operands_have_values():
    push = one("50")
    assert push.registers == (("R64", 0), ("R64", 4), None)
    assert push.memory == (None, None, Address(base=("R64", 4), displacement=-8))
    assert one("58").memory[2] == Address(base=("R64", 4))
    div = one("48f7f1")
    assert div.registers == (("R64", 1), ("R64", 0), ("R64", 2))
    movs = one("a4")
    assert movs.memory[:2] == (Address(base=("R64", 7)), Address(base=("R64", 6)))


@pytest.mark.parametrize(
    ("code", "address"),
    [
        ("488b44cbf8", Address(("R64", 3), ("R64", 1), 8, -8)),
        ("64488b042528000000", Address(displacement=0x28, segment="FS")),
        ("678b4704", Address(("R32", 7), displacement=4)),
        ("8b0580000000", Address(displacement=0x80, rip_relative=True)),
        ("62f2fd49920cd0", Address(("R64", 0), ("YMM", 2), 8)),
        ("3e488b07", Address(("R64", 7))),  # DS means nothing
    ],
)
def test_addresses(code, address):
    got = one(code)
    assert [a for a in got.memory if a is not None] == [address]


def test_immediates_are_signed():
    assert one("4883e8f0").immediates == (None, -16)
    assert one("6681c0ffff").immediates == (None, -1)
    assert one("48b80000000000000080").immediates == (None, -(1 << 63))


def test_references_name_what_fields_are_for():
    """A store of an immediate: the displacement counts from behind the immediate."""
    references = {AT + 2: Reference("x", -8, True, None)}
    address = one("c7050000000005000000", references=references).memory[0]
    assert address == Address(displacement=0, rip_relative=True, symbol="x")
    call = one("e800000000", references={AT + 1: Reference("sin", -4, True, None)})
    assert call.target == "sin"


def test_control_flow():
    code = bytes.fromhex("90 7402 eb00 ffe0 e800000000 c3 0f0b 06 ff10".replace(" ", ""))
    steps = list(X86.steps(code, AT))
    assert [s.flow for s in steps] == [
        Flow.NEXT, Flow.BRANCH, Flow.JUMP, Flow.JUMP, Flow.CALL, Flow.END, Flow.END, Flow.INVALID, Flow.CALL,
    ]  # fmt: skip
    assert [s.target for s in steps[1:5]] == [AT + 5, AT + 5, None, AT + 12]
    assert sum(s.length for s in steps) == len(code)
    assert steps[3].end == steps[4].address


def test_vendors_read_16_bit_branches_otherwise():
    code = bytes.fromhex("66e80000")
    assert AMD.instruction(code, AT).form.id == "CALL_NEAR_O16 (Rel16)"
    assert X86.instruction(code, AT).form is None


def test_a_missing_library_is_one_clear_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "iced_x86", None)
    decoder.cache_clear()
    try:
        with pytest.raises(BackendUnavailable, match="pip install iced-x86"):
            decoder("x86-64")
    finally:
        decoder.cache_clear()


def test_an_unknown_instruction_set():
    with pytest.raises(UsageError, match="z80"):
        decoder("z80")


@given(
    code=instructions().map(lambda drawn: encode(drawn[0], *drawn[1])) | st.binary(min_size=1, max_size=15),
    at=st.integers(0, 1 << 40) | st.just(0xFFFF_FFFF_8100_0000), behind=st.binary(max_size=4),
)  # fmt: skip
@example(code=bytes.fromhex("7510"), at=AT, behind=b"")
@example(code=bytes.fromhex("e810000000"), at=AT, behind=b"")
@example(code=bytes.fromhex("c7f800000000"), at=AT, behind=b"")
@example(code=bytes.fromhex("488b05f8ffffff"), at=0xFFFF_FFFF_8100_0000, behind=b"")
def test_what_was_read_before_is_the_same_as_what_was_not(code, at, behind):
    """Also elsewhere: branches go to another address then."""
    whole, reader = code + behind, X86Decoder()
    for place in (0, at, 0, at):
        anew = reader.instruction(whole, place, line=1)  # what a source names is never kept
        assert reader.instruction(whole, place) == replace(anew, line=0)
    assert reader.instruction(whole, 0, text="as written", line=3).line == 3
