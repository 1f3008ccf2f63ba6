from __future__ import annotations

import pytest

from cyclescope.isa.table import load_table
from cyclescope.kernel.locations import members
from cyclescope.kernel.locations import names as location_names
from cyclescope.kernel.x86_64.declared import declared
from cyclescope.kernel.x86_64.differential import specimen

TABLE = load_table("x86-64")
NAMES = location_names("x86-64")


def names(locations):
    return {NAMES[n] for n in members(locations)}


def table(form):
    return declared(specimen(TABLE[form]))


def test_a_legacy_register_write_keeps_the_upper_part():
    assert names(table("PADDD (XMM, XMM)").writes) == {"XMM1"}


def test_a_vex_register_write_zeroes_the_upper_part():
    found = table("VPADDD (XMM, XMM, XMM)")
    assert names(found.writes) == {"XMM1", "ZMM1[255:128]", "ZMM1[511:256]"}
    assert names(found.reads) == {"XMM2", "XMM3"}


def test_a_byte_write_is_a_read_too():
    found = table("MOV_88 (R8l, R8l)")
    assert names(found.reads) == {"RCX", "RDX"}
    assert names(found.writes) == {"RCX"}


def test_a_high_byte_belongs_to_its_register():
    assert "RAX" in names(table("LAHF").writes)


def test_addresses_are_read():
    found = table("MOV (M64, R64)")
    assert names(found.reads) == {"R14", "RCX"}
    assert names(found.writes) == {"memory"}


def test_a_gather_reads_its_index():
    form = next(f for f in TABLE if f.mnemonic == "VPGATHERDD" and "evex" in f.attributes)
    index = next(n for (_, part), n in specimen(form).numbers.items() if part == 2)
    assert f"XMM{index}" in names(declared(specimen(form)).reads)


def test_string_pointers_lead_to_different_memory():
    found = table("MOVSB")
    assert {"memory", "RSI", "RDI", "flags.DF"} <= names(found.reads)
    assert "memory at the second pointer" in names(found.writes)


@pytest.mark.parametrize(("form", "stack"), [("CALL_NEAR (Rel32)", "writes"), ("RET_NEAR", "reads")])
def test_calls_and_returns_use_the_stack_and_go_elsewhere(form, stack):
    found = table(form)
    assert "stack memory" in names(getattr(found, stack))
    assert "next instruction" in names(found.writes)


def test_undefined_flags_are_written():
    found = table("AND_21 (R64, R64)")
    assert names(found.undefined) == {"flags.AF"}
    assert "flags.AF" in names(found.writes)


def test_a_push_fills_the_register_above_the_top():
    found = table("FLD (STi)")
    assert {"x87 register 0", "x87 register 7", "x87 status word"} <= names(found.writes)


def test_a_pop_empties_the_top():
    assert "x87 register 0" in names(table("FADDP (STi, ST0)").writes)


def test_only_its_loads_write_the_x87_control_word():
    assert "x87 control word" in names(table("FLDCW (M16)").writes)
    assert "x87 control word" not in names(table("FADDP (STi, ST0)").writes)
    assert "x87 control word" in names(table("FADDP (STi, ST0)").reads)


def test_floating_point_uses_mxcsr():
    found = table("ADDPS (XMM, XMM)")
    assert "MXCSR" in names(found.reads) & names(found.writes)
