"""RISC-V's vector instructions under random configurations."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from cyclescope.isa.decode import decoder
from cyclescope.isa.operand import Configuration
from cyclescope.isa.register import units
from cyclescope.isa.riscv64.configuration import LMULS, SEWS, parse
from cyclescope.isa.riscv64.legality import all_configurations
from cyclescope.isa.riscv64.overlap import conflict
from cyclescope.isa.riscv64.shapes import takes_configuration
from cyclescope.isa.table import load_table

TABLE = load_table("riscv64")
FORMS = [form for form in TABLE if takes_configuration(form)]
RESULTS = [form for form in FORMS if form.operands[0].write and "SEG" not in form.mnemonic]


@st.composite
def configurations(draw):
    masked = draw(st.booleans())
    undisturbed = draw(st.booleans()), draw(st.booleans()) and masked
    vl = draw(st.sampled_from((0, 1, 7, 2047)))
    return Configuration(draw(st.sampled_from(SEWS)), draw(st.sampled_from(LMULS)), *undisturbed, masked, vl)


@st.composite
def instructions(draw, forms=FORMS):
    """(configured form, legal values of its fields)"""
    plain = draw(st.sampled_from(forms))
    found = draw(st.sampled_from(legal(plain)))
    writes = any(op.write and op.file == "v" for op in plain.operands)
    undisturbed = draw(st.booleans()) and writes, draw(st.booleans()) and writes and found.masked
    found = Configuration(found.sew, found.lmul, *undisturbed, found.masked, draw(st.sampled_from((0, 8))))
    form = TABLE[f"{plain.id}@{found}"]
    return form, tuple(draw(st.sampled_from(f.values.legal)) for f in form.bits.fields)


@cache
def legal(form):
    return list(all_configurations(form))


def registers(form, values, position):
    """Registers of an operand."""
    for field, value in zip(form.bits.fields, values, strict=True):
        if field.operand == position:
            return frozenset(units(field.values.registers[value], "riscv64"))
    return frozenset(units(form.operands[position].fixed, "riscv64"))


@given(configurations())
def test_text_is_read_again(configuration):
    assert parse(str(configuration)) == configuration


@given(instructions())
def test_the_decoder_finds_the_form_of_the_table(one):
    form, values = one
    found = decoder("riscv64").decode(form.bits.encode(values))
    assert found.form is TABLE[form.llvm]
    assert found.text == form.syntax.text(values)


@given(instructions())
def test_groups_are_as_many_registers_as_there_are_bits(one):
    form, values = one
    lmul, sew = form.configuration.lmul, form.configuration.sew
    for position, op in enumerate(form.operands):
        if op.file == "v":
            found = registers(form, values, position)
            assert len(found) == op.group
            width = int(op.element.lstrip("bfi") or 0)
            if width > 1 and op.group > 1 and "SEG" not in form.mnemonic and op.cls == "VR":
                assert Fraction(op.group) == lmul * width / sew


@given(instructions())
def test_registers_apart_never_conflict(one):
    form, values = one
    vectors = [registers(form, values, k) for k, op in enumerate(form.operands) if op.file == "v"]
    numbers = [v for f, v in zip(form.bits.fields, values, strict=True) if f.is_register]
    if sum(map(len, vectors)) == len(frozenset().union(*vectors)):
        assert conflict(form, numbers) == ""


@given(instructions(RESULTS))
def test_overlaps_of_different_widths_are_at_an_end(one):
    """What is allowed of a wider and a narrower operand: the lowest or highest registers of the wider one."""
    form, values = one
    numbers = [v for f, v in zip(form.bits.fields, values, strict=True) if f.is_register]
    if conflict(form, numbers):
        return
    result = form.operands[0]
    for position, op in enumerate(form.operands[1:], 1):
        if op.file == result.file == "v" and op.group != result.group and "RED" not in form.mnemonic:
            wide, narrow = registers(form, values, 0), registers(form, values, position)
            if op.group > result.group:
                wide, narrow = narrow, wide
            ordered = sorted(wide, key=lambda name: int(name[1:]))
            end = ordered[: len(narrow)] if op.group > result.group else ordered[-len(narrow) :]
            assert not wide & narrow or set(end) == narrow
