"""Fields of fixed-width encodings: where values are, which are legal, how they are written and read."""

from __future__ import annotations

import pytest

from cyclescope.isa.encode import default_immediates, encode, field_values
from cyclescope.isa.fields import BitEncoding, Field, FieldValues, Notation, Syntax, default_value
from cyclescope.isa.notation import FUNCTIONS, bit_mask
from cyclescope.isa.table import load_table
from cyclescope.isa.text import assembly, example

SPLIT = Field(0, (7, 8, 2, 3, 4), FieldValues(5, (), ()))
SHIFTS = Notation(2, ("list", ["", ", lsl #1", ", lsl #2", ", lsl #3"]))
SIGNED = Notation(3, ("number", "#", "", 4, 0, 1, 10, [[7, "top"]]))
HEX = Notation(4, ("number", "[", "]", 1, 16, 0, 16, []))


@pytest.fixture(scope="module")
def arm():
    return load_table("aarch64")


@pytest.fixture(scope="module")
def riscv():
    return load_table("riscv64")


# --- bits ----------------------------------------------------------------------------------------


def test_bits_go_where_the_positions_say():
    assert SPLIT.runs == ((7, 0b11, 0), (2, 0b111, 2))
    assert SPLIT.insert(0b10101) == 1 << 7 | 1 << 2 | 1 << 4
    assert [SPLIT.extract(SPLIT.insert(value)) for value in range(32)] == list(range(32))


def test_an_instruction_is_its_fixed_bits_and_legal_fields():
    encoding = BitEncoding(0x8000, 0xFE00, 2, (Field(0, (0, 1), FieldValues(2, ("bits", "b"), ())),))
    assert encoding.encode([3]) == b"\x03\x80"
    assert encoding.matches(0x8003)
    assert encoding.matches(0x81F3)  # bits that say nothing
    assert not encoding.matches(0x8002)  # no legal value
    assert not encoding.matches(0x0003)
    with pytest.raises(ValueError, match="2 is no legal value of operand 1"):
        encoding.encode([2])
    with pytest.raises(ValueError, match="argument"):
        encoding.encode([])


def test_bits_that_should_be_ones_are_encoded_and_not_asked_for():
    encoding = BitEncoding(0x8010, 0xFF00, 2, ())
    assert encoding.encode([]) == b"\x10\x80"
    assert encoding.matches(0x8000)


@pytest.mark.parametrize(
    ("rule", "legal"),
    [
        ((), list(range(8))),
        (("bits", "a5"), [0, 2, 5, 7]),
        (("range", 2, 5), [2, 3, 4, 5]),
    ],
)
def test_legal_values(rule, legal):
    values = FieldValues(3, rule, ())
    assert list(values.legal) == legal
    assert [value for value in range(-1, 9) if value in values.allowed] == legal


def test_legal_values_by_function():
    values = FieldValues(13, ("mask", "bit_mask_64"), ())
    assert len(values.legal) == 64 * 63 + 64 * (31 + 15 + 7 + 3 + 1)  # rotations beyond the size are taken
    assert 0b1_000000_111111 not in values.allowed
    assert 0b1_000000_000000 in values.allowed


# --- texts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("notation", "value", "text"),
    [
        (SHIFTS, 0, ""),
        (SHIFTS, 3, ", lsl #3"),
        (SIGNED, 1, "#4"),
        (SIGNED, 4, "#-16"),
        (SIGNED, 7, "top"),
        (HEX, 15, "[0x1f]"),
        (Notation(14, ("function", "shifted", [])), 0x1001, "#1, lsl #12"),
        (Notation(16, ("function", "system_register", [[0xDA10, "NZCV"]])), 0xDA10, "NZCV"),
        (Notation(16, ("function", "system_register", [])), 0xDA10, "S3_3_C4_C2_0"),
        (Notation(11, ("function", "vector_type", [])), 0b11010001, "e32, m2, ta, ma"),
        (Notation(11, ("function", "vector_type", [])), 0b00000111, "e8, mf2, tu, mu"),
        (Notation(11, ("function", "vector_type", [])), 0b100, "4"),
    ],
)
def test_a_value_is_written_and_read(notation, value, text):
    assert notation.text(value) == text
    assert notation.read(text) == value


@pytest.mark.parametrize(
    ("notation", "text"),
    [(SHIFTS, ", lsl #4"), (SIGNED, "#2"), (SIGNED, "#-4"), (SIGNED, "#x"), (HEX, "[0x20]")],
)
def test_what_cannot_be_written_is_not_read(notation, text):
    with pytest.raises(ValueError):
        notation.read(text)


@pytest.mark.parametrize(
    ("notation", "text", "value"),
    [(SIGNED, "4", 1), (SIGNED, "#0x4", 1), (SIGNED, "-0x10", 4), (SHIFTS, ", lsl 3", 3), (HEX, "[31]", 15)],
)
def test_a_number_is_read_however_it_is_spelled(notation, text, value):
    assert notation.read(text) == value


def test_masks_of_one_run_of_ones():
    """By the architecture's definition: every rotation of every run, in elements of every size."""
    found = {bit_mask(value, 64) for value in range(1 << 13) if legal_mask(value)}
    expected = set()
    for size in (2, 4, 8, 16, 32, 64):
        for run in range(1, size):
            for rotation in range(size):
                ones = (1 << run) - 1
                element = (ones >> rotation | ones << size - rotation) & (1 << size) - 1
                expected.add(sum(element << at for at in range(0, 64, size)))
    assert found == expected
    assert len(found) == 5334


def legal_mask(value):
    try:
        bit_mask(value, 64)
    except ValueError:
        return False
    return True


def test_masks_of_32_bits_have_no_elements_of_64():
    with pytest.raises(ValueError, match="no bit mask"):
        FUNCTIONS["bit_mask_32"](0x1000)
    assert FUNCTIONS["bit_mask_32"](0b000000_000111) == "#0xff"


def test_lines():
    syntax = Syntax("ld {0}{1}, {{{2}}}, {3}", ((0, SIGNED), (1, SHIFTS), (2, HEX), (0, SIGNED)))
    assert syntax.text([1, 2, 3]) == "ld #4, lsl #2, {[0x13]}, #4"
    assert syntax.read("ld #4, lsl #2, {[0x13]}, #4", 3) == (1, 2, 3)
    for wrong in ("ld #4, lsl #2, {[0x13]}, #8", "st #4, {[0x13]}, #4", "ld #4, {[0x13]}"):
        with pytest.raises(ValueError):
            syntax.read(wrong, 3)
    with pytest.raises(ValueError, match="everything"):
        syntax.read("ld #4, {[0x13]}, #4", 4)


# --- forms ---------------------------------------------------------------------------------------


def test_encoding_by_registers_and_immediates(arm, riscv):
    assert encode(arm["ADDXrs"], [0, 1, 2]).hex() == "2000028b"
    assert encode(arm["ADDXrs"], [0, 1, 2], immediates=[3]).hex() == "200c028b"
    assert assembly(arm["LDRXui"], [3, 4], immediates=[2]) == "ldr x3, [x4, #16]"
    assert encode(riscv["C_ADDI"], [10], immediates=[1]).hex() == "0505"
    assert assembly(riscv["ADD"], [10, 11, 12]) == "add a0, a1, a2"


@pytest.mark.parametrize(
    ("registers", "more"),
    [([0, 1], {}), ([0, 1, 2, 3], {}), ([0, 1, 2], {"immediates": [0, 0]}), ([0, 1, 2], {"displacement": 8}),
     ([0, 1, 2], {"index": 3}), ([0, 1, 32], {})],
)  # fmt: skip
def test_other_operands_are_refused(arm, registers, more):
    with pytest.raises(ValueError):
        encode(arm["ADDXrs"], registers, **more)


def test_plain_values(arm):
    """No shift, no offset; a number that is not 0, which could be a special case."""
    assert default_immediates(arm["ADDXrs"]) == (0,)
    assert default_immediates(arm["ADDXri"]) == (1,)
    assert default_immediates(arm["LDRXui"]) == (0,)
    assert field_values(arm["LDRXui"], [1, 2]) == [1, 2, 0]
    assert default_value(Field(0, (0, 1, 2), FieldValues(3, ("bits", "f0"), ())), "") == 4


@pytest.mark.parametrize(
    ("isa", "name", "text"),
    [
        ("aarch64", "FMADDDrrr", "fmadd d1, d2, d3, d4"),
        ("aarch64", "CASPALX", "caspal x2, x3, x4, x5, [x1]"),
        ("aarch64", "LDRXroX", "ldr x1, [x2, x3]"),
        ("riscv64", "VADD_VV", "vadd.vv v1, v2, v3"),
        ("riscv64", "LW", "lw a0, 0(a1)"),
        ("x86-64", "IMUL (R64, R64)", ""),
    ],
)
def test_examples(isa, name, text):
    assert example(load_table(isa)[name]) == text


@pytest.mark.parametrize("isa", ["aarch64", "riscv64"])
def test_every_form_has_an_example_that_encodes(isa):
    for form in load_table(isa):
        assert example(form).split()[0].upper().startswith(form.mnemonic), form.id
