"""The rules of vector configurations against what QEMU executes, recorded by `tools.fixed_width.vectors`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cyclescope.isa.operand import Configuration
from cyclescope.isa.riscv64.configuration import LMULS, SEWS
from cyclescope.isa.riscv64.legality import ELEMENT_GROUPS, features, illegal
from cyclescope.isa.riscv64.overlap import conflict
from cyclescope.isa.riscv64.shapes import takes_configuration
from cyclescope.isa.riscv64.vector import default_forms
from cyclescope.isa.table import load_table
from cyclescope.isa.text import example

TABLE = load_table("riscv64")
RECORDED = Path(__file__).parent / "recorded/riscv64_vectors.txt"
LINES = [line.split() for line in RECORDED.read_text().splitlines()]
CONFIGURATIONS = [Configuration(sew, lmul) for sew in SEWS for lmul in LMULS if lmul * 64 >= sew]


def test_legal_configurations():
    """But for an extension that QEMU lacks, and groups of elements that need longer registers."""
    forms = [line for line in LINES if len(line) == 2]
    assert len(forms) > 600
    for form_id, bits in forms:
        form, legal = TABLE[form_id], 0
        for number, configuration in enumerate(CONFIGURATIONS):
            part = configuration.lmul < 1 and re.fullmatch(ELEMENT_GROUPS, form.mnemonic)
            if not part and "ZVBC32E" not in features(form, configuration):
                legal |= (not illegal(form, configuration)) << number
        assert (form_id, legal) == (form_id, int(bits, 16))


def verdict(form, registers):
    fields = [field for field in form.bits.fields if field.is_register]
    for field, number in zip(fields, registers, strict=True):
        if number not in field.values.allowed:
            return "mask" if number == 0 else "no group"
    return conflict(form, registers)


def test_registers():
    """QEMU allows what is reserved: a source as the mask, sources with two widths of elements."""
    reserved = 0
    for form_id, numbers, executed in (line for line in LINES if len(line) == 3):
        why = verdict(TABLE[form_id], [int(number) for number in numbers.split(",")])
        if executed == "1" and why:
            assert why == "mask" or "two widths" in why, (form_id, numbers)
            reserved += 1
        else:
            assert (form_id, numbers, not why) == (form_id, numbers, executed == "1")
    assert 0 < reserved < len(LINES) / 10


@pytest.fixture(scope="module")
def every():
    return [form for plain in TABLE for form in default_forms(plain)]


def test_every_default_configuration_has_registers(every):
    assert len(every) > 3500
    for form in every:
        fields = [field for field in form.bits.fields if field.is_register]
        values = form.syntax.read(example(form), len(form.bits.fields))
        numbers = [value for field, value in zip(form.bits.fields, values, strict=True) if field in fields]
        assert conflict(form, numbers) == ""
        assert form.bits.encode(values)


def test_every_vector_form_has_a_default_configuration(every):
    assert {form.llvm for form in every} == {form.id for form in TABLE if takes_configuration(form)}
