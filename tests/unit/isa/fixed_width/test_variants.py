"""AArch64 with shifted and extended operands and other conditions."""

from __future__ import annotations

import pytest

from cyclescope.errors import UsageError
from cyclescope.isa.aarch64.variants import variants
from cyclescope.isa.decode import decoder
from cyclescope.isa.encode import default_immediates, encode
from cyclescope.isa.find.pattern import select, select_known
from cyclescope.isa.form import model_form_id
from cyclescope.isa.table import load_table


@pytest.fixture(scope="module")
def table():
    return load_table("aarch64")


def ids(table, *patterns):
    return [form.id for form in select(table, patterns)]


def code_text(form):
    registers = [1] * sum(field.is_register for field in form.bits.fields)
    code = encode(form, registers, immediates=default_immediates(form))
    return decoder("aarch64").decode(code).text


def test_a_form_is_measured_with_its_variants(table):
    assert ids(table, "ADDXrs") == [
        "ADDXrs",
        *(f"ADDXrs@{v}" for v in ("lsl1", "lsl4", "lsl5", "lsr4", "asr4")),
    ]
    assert ids(table, "FADDDrr") == ["FADDDrr"]
    assert [form.id for form in select(table, ["ADDXrs"], expand=False)] == ["ADDXrs"]


def test_a_pattern_chooses_variants(table):
    assert ids(table, "ADDXrs@lsl7") == ["ADDXrs@lsl7"]
    assert ids(table, "ANDWrs@ror3?")[:2] == ["ANDWrs@ror30", "ANDWrs@ror31"]
    with pytest.raises(UsageError, match="has no variant 'ror4'"):
        ids(table, "ADDXrs@ror4")  # sums are not rotated
    with pytest.raises(UsageError) as caught:
        ids(table, "FADDDrr@lsl4")
    assert caught.value.remedy == "it has no operand to shift or extend"


def test_an_id_names_one_variant(table):
    form = table["LDRXroW@sxtw3"]
    assert form.id == "LDRXroW@sxtw3" and model_form_id(form) == "LDRXroW"
    assert table.get("LDRXroW@sxtw1") is None and table.get("NONE@lsl1") is None


@pytest.mark.parametrize(
    ("form_id", "text"),
    [
        ("ADDXrs@asr4", "add x1, x1, x1, asr #4"),
        ("ADDXrx@sxtw4", "add x1, x1, w1, sxtw #4"),
        ("LDRXroX@lsl3", "ldr x1, [x1, x1, lsl #3]"),
        ("CSELXr@hi", "csel x1, x1, x1, hi"),
        ("MOVZXi@lsl16", "movz x1, 1, lsl #16"),
    ],
)
def test_the_code_is_that_of_the_variant(table, form_id, text):
    assert code_text(table[form_id]) == text


def test_every_variant_encodes_itself(table):
    found = [each for form in table for each in variants(form)]
    assert len(found) > 500 and len({form.id for form in found}) == len(found)
    for form in found[::7]:
        assert code_text(form) != code_text(table[model_form_id(form)])


def test_what_is_known_of_a_form_with_variants_is_found_once(table):
    """A form that is both usual and known was found twice, and `show` ended at the second one."""
    usual = [form.id for form in select(table, ["ADDXrs"])]
    assert [form.id for form in select_known(table, ["ADDXrs"], set(usual))] == usual
