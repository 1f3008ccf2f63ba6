"""What holds for the instruction table as a whole."""

from __future__ import annotations

import ast
import json
import lzma
import re
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest

import cyclescope.isa
from cyclescope.errors import UsageError
from cyclescope.isa import table as module
from cyclescope.isa.form import FLAGS, flag_names
from cyclescope.isa.operand import BLOCKS
from cyclescope.isa.register import register_number
from cyclescope.isa.table import load_table

PACKAGE = Path(cyclescope.isa.__file__).parent
ATTRIBUTES = {
    # encoding
    "legacy", "vex", "evex", "xop", "d3now", "lock", "rep", "repne", "operand16", "high_byte",
    # operands
    "memory", "lea", "vsib", "masked", "zeroing", "broadcast", "rounding", "sae", "unique_registers",
    # state
    "mxcsr", "x87", "x87_control", "x87+1", "x87+2", "x87-1", "mmx", "conditional_flags", "stack",
    # what it does
    "branch", "conditional_branch", "call", "return", "indirect", "far", "interrupt", "string", "nop",
    "nontemporal", "serializing", "state_save",
}  # fmt: skip
ENCODINGS = {"legacy", "vex", "evex", "xop", "d3now"}
REGISTER_WIDTHS = {
    "R8l": 8, "R8h": 8, "R16": 16, "R32": 32, "R64": 64, "MM": 64, "XMM": 128, "YMM": 256, "ZMM": 512,
    "K": 64, "ST": 80, "SEG": 16, "BND": 128, "TMM": 8192, "CR": 64,
}  # fmt: skip
ELEMENTS = {"f16", "bf16", "f32", "f64", "f80", "f128", "int"} | {
    f"i{bits}" for bits in (8, 16, 32, 52, 64, 128, 256, 512)
}


def share(forms, chosen):
    return sum(map(bool, map(chosen, forms))) / len(forms)


# --- the whole -----------------------------------------------------------------------------------


def test_size(table):
    assert len(table) >= 17_000
    by_encoding = Counter(next(iter(form.attributes & ENCODINGS)) for form in table)
    assert by_encoding["evex"] > 12_000
    assert by_encoding["legacy"] > 2_500
    assert by_encoding["vex"] > 1_500
    assert by_encoding["xop"] > 150
    assert by_encoding["d3now"] > 40


def test_nearly_all_forms_have_a_template(table):
    assert share(table, lambda form: form.encoding) > 0.998


def test_the_file_is_small_and_names_its_sources(table):
    file = resources.files("cyclescope.isa.x86_64").joinpath("tables/forms.json.xz")
    assert len(file.read_bytes()) < 300_000
    assert table.isa == "x86-64"
    assert "iced-x86" in table.source["forms"]
    assert "llvm-mc-22" in table.source["llvm_names"]
    assert all("(" in text or "synthesised" in text for text in table.source.values())  # with a licence


def test_nothing_in_the_file_is_unused():
    file = resources.files("cyclescope.isa.x86_64").joinpath("tables/forms.json.xz")
    data = json.loads(lzma.decompress(file.read_bytes()))
    assert data["flags"] == list(FLAGS)
    columns = {"signatures": 2, "features": 4, "attributes": 5}
    for name, column in columns.items():
        assert {form[column] for form in data["forms"]} == set(range(len(data[name])))
    assert {form[8][2] for form in data["forms"] if form[8]} == set(range(len(data["layouts"])))


def test_loaded_once_and_found_by_id(table):
    assert load_table("x86-64") is table
    assert all(table[form.id] is form and table.get(form.id) is form for form in table)
    assert table.get("NO SUCH FORM") is None


def test_encodings_are_made_once_when_asked_for(monkeypatch):
    made = []
    original = module._scatter
    monkeypatch.setattr(module, "_scatter", lambda positions: made.append(positions) or original(positions))
    table = load_table.__wrapped__("x86-64")
    add, xor = table["ADD_01 (R64, R64)"], table["XOR_31 (R64, R64)"]
    assert made == []
    assert add.encoding is add.encoding
    assert len(made) == len(add.encoding.slots)
    assert xor.encoding.scatter is add.encoding.scatter  # of one layout
    assert len(made) == len(add.encoding.slots)


def test_an_unknown_architecture_is_a_usage_error():
    with pytest.raises(UsageError, match="x86-64"):
        load_table("vax")


# --- names ---------------------------------------------------------------------------------------


def test_ids_are_unique(table):
    assert [i for i, n in Counter(form.id for form in table).items() if n > 1] == []


def test_ids_are_strings_like_those_of_uops_info(table):
    shape = re.compile(r"[A-Z0-9_]+( \([\w, ]+\))?( \[\w+\])?")
    assert [form.id for form in table if not shape.fullmatch(form.id)] == []


def test_llvm_names(table):
    assert share(table, lambda form: form.llvm) >= 0.95


def test_uops_info_names_are_unique(table):
    names = Counter(form.uops_info for form in table if form.uops_info)
    assert names.total() >= 0.95 * len(table)
    assert names.total() == len(names)


def test_an_llvm_name_is_shared_by_variants_of_one_instruction_only(table):
    """LOCK, high bytes, special immediates and size prefixes make several forms of one LLVM opcode."""
    mnemonics: dict[str, set[str]] = {}
    for form in table:
        if form.llvm:
            mnemonics.setdefault(form.llvm, set()).add(form.mnemonic)
    shared = {name: found for name, found in mnemonics.items() if len(found) > 1}
    assert len(shared) < 0.01 * len(mnemonics)


def test_names_by_tool(table):
    names = table["IMUL (R64, R64)"].names
    assert names == {"llvm": "IMUL64rr", "uops_info": "IMUL (R64, R64)", "iced": "IMUL_R64_RM64"}
    unknown = next(form for form in table if not form.uops_info)
    assert "uops_info" not in unknown.names


# --- forms ---------------------------------------------------------------------------------------


def test_attributes_are_known(table):
    assert set().union(*(form.attributes for form in table)) == ATTRIBUTES
    assert all(len(form.attributes & ENCODINGS) == 1 for form in table)


def test_attributes_that_imply_others(table):
    implied = {
        "zeroing": "masked", "masked": "evex", "broadcast": "memory", "vsib": "memory", "lock": "memory",
        "conditional_branch": "branch", "high_byte": "legacy", "rounding": "evex", "sae": "evex",
    }  # fmt: skip
    for form in table:
        for one, other in implied.items():
            assert one not in form.attributes or other in form.attributes, form.id
        assert not {"rounding", "sae"} <= form.attributes
        assert form.is_vex == bool(form.attributes & {"vex", "evex", "xop"})


def test_features_have_names(table):
    assert all(form.features and all(form.features) for form in table)
    assert "BASE" in table["ADD_01 (R64, R64)"].features
    assert table["VPADDD (YMM, YMM, YMM)"].features == ("AVX2",)


def test_flags_fit_their_mask(table):
    every = 0
    for form in table:
        every |= form.flags_read | form.flags_written | form.flags_undefined
        assert form.flags_written & form.flags_undefined == 0, form.id
    assert flag_names(every) == FLAGS


def test_mxcsr(table):
    """Arithmetic rounds and raises; moves, logic and integers do neither."""
    uses = ("ADDPS", "VSQRTSD", "CVTSI2SS", "CMPPS", "UCOMISD", "VFMADD231PD", "LDMXCSR", "VCVTPH2PS")
    plain = ("MOVAPS", "ANDPS", "PADDD", "SHUFPS", "RCPPS", "VPERMILPS", "VBLENDPS", "CVTDQ2PD", "ADD")
    for form in table:
        if form.mnemonic in uses:
            assert "mxcsr" in form.attributes, form.id
        if form.mnemonic in plain:
            assert "mxcsr" not in form.attributes, form.id
    assert {form.mnemonic for form in table} >= {*uses, *plain}


def test_element_types(table):
    assert {form.element for form in table} <= ELEMENTS
    wanted = {"ADDPS (XMM, XMM)": "f32", "VADDPD (YMM, YMM, YMM)": "f64", "VADDPH (ZMM, ZMM, ZMM)": "f16"}
    wanted |= {"ADD_01 (R64, R64)": "i64", "PADDB (XMM, XMM)": "i8", "VFMADD231SD (XMM, XMM, XMM)": "f64"}
    assert {name: table[name].element for name in wanted} == wanted


def test_derived_facts(table):
    assert table["MOV (R64, M64)"].memory == 1
    assert table["LODSQ"].memory == -1  # implicit
    widths = {"ADD_01 (R64, R64)": 0, "PADDB (MM, MM)": 64, "VGATHERDPD (YMM, VSIB_XMM, YMM)": 256}
    assert {name: table[name].vector_width for name in widths} == widths


# --- operands ------------------------------------------------------------------------------------


def test_operand_kinds_and_classes(table):
    for form in table:
        for op in form.operands:
            if op.kind == "register":
                assert REGISTER_WIDTHS[op.cls] == op.width, form.id
            elif op.kind == "memory":
                assert re.fullmatch(r"M\d+(_1to\d+)?|VSIB_[XYZ]MM|Moffs\d+", op.cls), form.id
            elif op.kind == "immediate":
                assert op.cls in {"0", "1", "I8", "I16", "I32", "I64"}, form.id
            else:
                assert op.kind in {"address", "branch"}, form.id


def test_operand_names_are_in_order(table):
    for form in table:
        explicit = [op.name for op in form.operands if not op.implicit]
        assert explicit == [f"op{n + 1}" for n in range(len(explicit))], form.id
        assert len({op.name for op in form.operands}) == len(form.operands), form.id


def test_implicit_operands_are_named_by_their_register(table):
    for form in table:
        for op in (op for op in form.operands if op.implicit):
            assert op.name == (f"[{op.fixed}]" if op.is_memory else op.fixed), form.id
            register_number(op.fixed)
        assert all(register_number(op.fixed) for op in form.operands if op.fixed not in ("", *BLOCKS))


def test_a_conditional_register_write_is_a_read(table):
    for form in table:
        for op in form.operands:
            if op.conditional and op.write and op.is_register:
                assert op.read, form.id


def test_every_register_has_an_access_but_those_of_hints(table):
    idle = {
        form.mnemonic
        for form in table
        for op in form.operands
        if op.is_register and not (op.read or op.write) and "nop" not in form.attributes
    }
    blends = {"VPBLENDMB", "VPBLENDMW", "VPBLENDMD", "VPBLENDMQ", "VBLENDMPS", "VBLENDMPD"}  # with zeros
    assert idle - blends <= {"UD0", "UD1", "FFREE", "FFREEP"}  # these free a register without looking


# --- the package ---------------------------------------------------------------------------------


def imported(source: str) -> set[str]:
    """Top-level names of all modules a source imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
            found |= {str(a.value).partition(".")[0] for a in node.args if isinstance(a, ast.Constant)}
    return found


def test_the_check_of_imports_sees_all_kinds():
    text = "def f():\n import a.b\n from c.d import e\n importlib.import_module('g.h')"
    assert imported(text) == {"a", "c", "g"}


def test_iced_is_for_developers_only():
    modules = sorted(PACKAGE.rglob("*.py"))
    assert len(modules) >= 11
    assert [str(m) for m in modules if "iced_x86" in imported(m.read_text())] == []


def test_forms_are_made_when_they_are_asked_for():
    table = load_table.__wrapped__("x86-64")
    one = table["IMUL (R64, R64)"]
    assert one in table.of_code(one.code)
    assert table["IMUL (R64, R64)"] is one
    assert one in list(table), "the same object, among all"
    assert table.forms[:3] == list(table)[:3]
    assert table.of_code("no code") == []


def test_the_forms_of_an_opcode_are_found_without_making_others():
    table = load_table.__wrapped__("x86-64")
    found = table.of_opcode("ADD64mr")
    assert [one.id for one in found] == [one.id for one in load_table("x86-64") if one.llvm == "ADD64mr"]
    assert len(found) > 1, "with LOCK, and without"
    assert sum(one is not None for one in table.forms._made) == len(found)
    assert table.of_opcode("no opcode") == []
    assert [one.llvm for one in load_table("riscv64").of_opcode("ADD")] == ["ADD"]
