"""What holds for the instruction tables of AArch64 and RISC-V as a whole, and some facts of each."""

from __future__ import annotations

import json
import lzma
import re
import time
from collections import Counter
from importlib import resources
from string import Formatter

import pytest

from cyclescope.isa.dataflow import pairs, sources, targets
from cyclescope.isa.form import flag_names
from cyclescope.isa.register import file_of, units
from cyclescope.isa.table import load_table

ISAS = ("aarch64", "riscv64")
COUNTS = {"aarch64": 7491, "riscv64": 2804}
ATTRIBUTES = {
    "memory", "writeback", "predicated", "merging", "zeroing", "atomic", "exclusive", "acquire", "release",
    "branch", "conditional_branch", "indirect", "call", "return", "trap", "side_effects", "unique_registers",
    "optional", "compressed", "apart_vs1", "apart_vs2", "apart_mask",
}  # fmt: skip


def packed(isa):
    return resources.files(f"cyclescope.isa.{isa}").joinpath("tables/forms.json.xz").read_bytes()


@pytest.fixture(scope="module", params=ISAS)
def table(request):
    return load_table(request.param)


@pytest.fixture(scope="module")
def arm():
    return load_table("aarch64")


@pytest.fixture(scope="module")
def riscv():
    return load_table("riscv64")


def operand(form, name):
    return next(op for op in form.operands if op.name == name)


def names(form):
    return [node.name for node in sources(form)], [node.name for node in targets(form)]


# --- the whole -----------------------------------------------------------------------------------


def test_size(table):
    assert len(table) == COUNTS[table.isa]


def test_both_files_are_small_and_name_their_source():
    assert sum(len(packed(isa)) for isa in ISAS) < 150_000
    for isa in ISAS:
        text = load_table(isa).source["forms"]
        assert "LLVM 22.1.8" in text
        assert "Apache-2.0 WITH LLVM-exception" in text


def test_both_load_in_some_times_what_unpacking_takes():
    """Four times; commands read one of them at their start."""

    def least(read):
        times = []
        for _ in range(5):
            begin = time.process_time()
            for isa in ISAS:
                read(isa)
            times.append(time.process_time() - begin)
        return min(times)

    assert least(load_table.__wrapped__) < 10 * least(lambda isa: json.loads(lzma.decompress(packed(isa))))


@pytest.mark.parametrize("isa", ISAS)
def test_nothing_in_a_file_is_unused(isa):
    data = json.loads(lzma.decompress(packed(isa)))
    columns = {"places": 2, "signatures": 3, "features": 5, "attributes": 6, "layouts": 11}
    for name, column in columns.items():
        assert {form[column] for form in data["forms"]} == set(range(len(data[name]))), name
    assert {n for layout in data["layouts"] for n in layout} == set(range(len(data["fields"])))
    assert {f[1] for f in data["fields"]} == set(range(len(data["values"])))
    assert {n for place in data["places"] for _, n in place} == set(range(len(data["notations"])))


def test_ids_are_the_names_of_llvm_and_unique(table):
    assert max(Counter(form.id for form in table).values()) == 1
    assert all(form.llvm == form.id and form.names == {"llvm": form.id} for form in table)


def test_every_bit_is_fixed_or_in_one_field_or_says_nothing(table):
    for form in table:
        held = [position for field in form.bits.fields for position in field.positions]
        assert len(set(held)) == len(held), form.id
        assert not form.bits.mask & sum(1 << position for position in held), form.id
        assert not form.bits.fixed & ~form.bits.mask, form.id
        assert max(held, default=0) < 8 * form.bits.length, form.id


def test_every_field_has_a_legal_value_and_an_operand(table):
    for form in table:
        for field in form.bits.fields:
            assert len(field.values.legal) > 0, form.id
            assert field.is_register == form.operands[field.operand].is_register, form.id
            if field.is_register:
                assert len(field.values.registers) == 1 << len(field.positions)


def test_every_operand_without_a_field_is_fixed_or_implied(table):
    for form in table:
        held = {field.operand for field in form.bits.fields}
        for position, op in enumerate(form.operands):
            assert position in held or op.implicit or op.fixed or op.kind == "immediate", form.id


def test_operands_are_named_by_their_number_or_register(table):
    for form in table:
        found = [op.name for op in form.operands]
        assert len(set(found)) == len(found), form.id
        for op in form.operands:
            if op.is_memory:
                assert re.fullmatch(r"\[(op\d+|SP|X2|X3|PC|SSP|GCSPR)\]", op.name), form.id
            elif op.implicit:
                assert op.name == op.fixed, form.id
            else:
                assert re.fullmatch(r"op\d+", op.name), form.id


def test_registers_have_a_file(table):
    state = re.compile(r"[A-Z]+|Matrix.*|Tile.*|ZTR|Sysp.*")
    for form in table:
        for op in form.operands:
            if op.is_register and op.file == "?":
                assert state.fullmatch(op.cls), (form.id, op.cls)


def test_features_and_attributes(table):
    assert all(form.features and all(form.features) for form in table)
    assert set().union(*(form.attributes for form in table)) <= ATTRIBUTES
    assert {"optional", "compressed", "apart_mask"} & set().union(*(f.attributes for f in table)) == (
        set() if table.isa == "aarch64" else {"optional", "compressed", "apart_mask"}
    )


def test_memory_is_reached_through_a_base(table):
    for form in table:
        memory = [op for op in form.operands if op.is_memory]
        assert len(memory) <= 1, form.id
        for op in memory:
            base = op.name[1:-1]
            assert ("memory" in form.attributes) and (op.read or op.write), form.id
            assert not base.startswith("op") or operand(form, base).role == "base", form.id


def test_templates_have_a_place_for_every_text(table):
    for form in table:
        found = {name for _, name, _, _ in Formatter().parse(form.syntax.template) if name is not None}
        assert found == {str(n) for n in range(len(form.syntax.places))}, form.id


# --- facts ---------------------------------------------------------------------------------------


def test_a_shifted_operand(arm):
    form = arm["ADDXrs"]
    assert (form.mnemonic, form.features, form.flags_written) == ("ADD", ("BASE",), 0)
    assert names(form) == (["op2", "op3"], ["op1"])
    assert [op.kind for op in form.operands] == ["register"] * 3 + ["immediate"]
    assert form.bits.encode([0, 1, 2, 0]).hex() == "2000028b"
    assert form.syntax.text([0, 1, 2, 3]) == "add x0, x1, x2, lsl #3"


def test_write_back_is_a_result_with_the_name_of_the_base(arm):
    form = arm["LDPXpost"]
    assert names(form) == (["op1", "[op1].data"], ["op1", "op2", "op3"])
    assert {"writeback", "memory", "unique_registers"} <= form.attributes
    assert operand(form, "op1").early_clobber
    assert operand(form, "[op1]").width == 128


def test_addresses_are_operands_of_their_own(arm, riscv):
    nodes = {node.name: node.part for node in sources(arm["LDRXroX"])}
    assert nodes == {"op2": "address", "op3": "index", "[op2].data": "data"}
    nodes = {node.name: (node.part, node.domain) for node in sources(riscv["VLUXEI8_V"])}
    assert nodes["op2"] == ("address", "r")
    assert nodes["op3"] == ("index", "v")


@pytest.mark.parametrize(
    ("name", "read", "written"),
    [
        ("ADDSXrs", "", "NZCV"),
        ("ADCXr", "C", ""),
        ("ADCSXr", "C", "NZCV"),
        ("CSELXr", "NZCV", ""),
        ("CCMPXr", "NZCV", "NZCV"),
        ("CFINV", "C", "C"),
        ("SETF8", "C", "NZV"),
        ("FCMPDrr", "", "NZCV"),
        ("FADDDrr", "", ""),
        ("MRS", "NZCV", ""),
        ("MSR", "NZCV", "NZCV"),
    ],
)
def test_single_flags(arm, name, read, written):
    form = arm[name]
    assert "".join(flag_names(form.flags_read)) == read
    assert "".join(flag_names(form.flags_written)) == written
    found = [op for op in form.operands if op.name == "NZCV"]
    assert bool(found) == bool(read or written)


def test_what_llvm_has_wrong_is_right(arm, riscv):
    assert operand(arm["FMOVXDHighr"], "op1").read
    assert operand(arm["MRS"], "NZCV").read
    assert not operand(arm["MRS"], "NZCV").write
    assert not any(
        op.is_memory for form in ("FDOTv8f16", "DMB", "MOVA_4ZMXI_V_S") for op in arm[form].operands
    )
    assert operand(arm["LDTADDX"], "[op3]").write
    assert arm["STLXRX"].bits.encode([1, 2, 3]).hex() == "62fc01c8"  # ones for the second register
    target = operand(riscv["VADD_VV"], "op1")
    assert (target.read, target.write, target.conditional) == (True, True, True)
    assert not operand(riscv["VMV1R_V"], "op1").read
    assert {"branch", "call"} <= riscv["JAL"].attributes


def test_flags_are_one_source_and_one_target(arm):
    assert names(arm["CSELXr"]) == (["op2", "op3", "NZCV"], ["op1"])
    assert names(arm["ADCSXr"]) == (["op2", "op3", "NZCV"], ["op1", "NZCV"])


def test_predicates_and_tied_operands(arm):
    form = arm["ADD_ZPmZ_S"]
    assert names(form) == (["op1", "op2", "op4"], ["op1"])
    assert operand(form, "op2").role == "mask"
    assert {"predicated", "merging"} <= form.attributes
    assert form.features == ("SVE|SME",)


def test_orderings(arm, riscv):
    wanted = {
        "LDADDALX": {"atomic", "acquire", "release"}, "CASX": {"atomic"}, "LDXRX": {"exclusive"},
        "STLXRX": {"exclusive", "release"}, "LDARX": {"acquire"}, "STLRX": {"release"}, "LDRXui": set(),
    }  # fmt: skip
    every = {"atomic", "exclusive", "acquire", "release"}
    assert {name: arm[name].attributes & every for name in wanted} == wanted
    assert riscv["AMOADD_W_AQRL"].attributes & every == {"atomic", "acquire", "release"}
    assert riscv["LR_D_AQ"].attributes & every == {"exclusive", "acquire"}


@pytest.mark.parametrize(
    ("isa", "name", "width"),
    [
        ("aarch64", "LDRBBui", 8), ("aarch64", "LDRSWui", 32), ("aarch64", "LDPQi", 256),
        ("aarch64", "LD1i8", 8),
        ("aarch64", "LD2Twov4s", 256), ("aarch64", "CASPX", 128), ("aarch64", "LD1B_IMM", 0),
        ("aarch64", "LDPSWi", 64), ("aarch64", "STXPX", 128), ("aarch64", "STLXPW", 64),
        ("aarch64", "LDCLRP", 128),
        ("aarch64", "SWPPAL", 128), ("aarch64", "RCWSWPP", 128), ("aarch64", "LDAPi", 128),
        ("aarch64", "STTPQi", 256), ("aarch64", "CASX", 64), ("aarch64", "LDADDX", 64),
        ("aarch64", "LD64B", 512), ("riscv64", "LW", 32), ("riscv64", "FLD", 64), ("riscv64", "C_LWSP", 32),
        ("riscv64", "AMOADD_D", 64), ("riscv64", "VLE8_V", 0),
    ],
)  # fmt: skip
def test_memory_widths(isa, name, width):
    found = next(op for op in load_table(isa)[name].operands if op.is_memory)
    assert (found.width, found.cls) == (width, f"M{width}")


def test_modes_carry_no_data(arm):
    found = {f"{p.source.name}->{p.target.name}": p.excluded for p in pairs(arm["FADDDrr"])}
    assert found["op2->op1"] == ""
    assert "mode" in found["FPCR->op1"]


def test_vector_results_that_overlap_nothing(riscv):
    assert riscv["VWADD_VV"].attributes >= {"apart_vs1", "apart_vs2", "apart_mask"}
    assert "apart_vs2" not in riscv["VADD_VV"].attributes


def test_optional_extensions(riscv):
    optional = {name for form in riscv if "optional" in form.attributes for name in form.features}
    assert {"RV32", "ZCMP", "XTHEADBA", "ZFINX"} <= optional
    common = {name for form in riscv if "optional" not in form.attributes for name in form.features}
    assert {"BASE", "ZBA", "ZVE32X", "D", "ZCA", "ZAAMO"} <= common
    assert not any(name.startswith("X") for name in common)


# --- registers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("isa", "name", "expected"),
    [
        ("aarch64", "W3", ("r3",)), ("aarch64", "LR", ("r30",)), ("aarch64", "XZR", ()),
        ("aarch64", "WSP", ("SP",)),
        ("aarch64", "Q31_Q0", ("v31", "v0")), ("aarch64", "D7", ("v7",)), ("aarch64", "PN9", ("p9",)),
        ("aarch64", "X28_FP", ("r28", "r29")), ("aarch64", "ZAS1", ("ZA",)), ("aarch64", "NZCV", ("NZCV",)),
        ("aarch64", "X0", ("r0",)), ("riscv64", "X0", ()), ("riscv64", "X10", ("r10",)),
        ("riscv64", "F9_D", ("f9",)),
        ("riscv64", "V8M4", ("v8", "v9", "v10", "v11")), ("riscv64", "X8_X9", ("r8", "r9")),
        ("riscv64", "VL", ("VL",)),
        ("riscv64", "X0_Pair", ()), ("riscv64", "X11_W", ("r11",)), ("aarch64", "", ()),
    ],
)  # fmt: skip
def test_units_of_registers(isa, name, expected):
    assert units(name, isa) == expected


def test_files_of_registers():
    assert file_of(("", "V0")) == "v"
    assert file_of(("SP",)) == "r"
    assert file_of(("NZCV",)) == "?"
    assert file_of(()) == "?"


@pytest.mark.parametrize(
    ("form_id", "element"),
    [
        ("EORv16i8", "i128"),
        ("BSLv8i8", "i64"),
        ("EOR3", "i128"),
        ("LDRQui", "i128"),
        ("ADDv16i8", "i8"),
        ("BICv4i32", "i32"),
        ("EOR_ZZZ", "int"),
        ("EORXrs", "int"),
    ],
)
def test_bitwise_instructions_work_on_no_bytes(form_id, element):
    assert load_table("aarch64")[form_id].element == element


@pytest.mark.parametrize(
    ("isa", "form_id", "access"),
    [
        ("aarch64", "LDXRX", (True, False)),
        ("aarch64", "LDAXPX", (True, False)),
        ("aarch64", "STXRX", (False, True)),
        ("aarch64", "STLXPW", (False, True)),
        ("aarch64", "LDADDX", (True, True)),
        ("aarch64", "PRFB_PRI", (True, False)),
        ("riscv64", "PREFETCH_W", (True, False)),
        ("riscv64", "LR_D", (True, False)),
        ("riscv64", "SC_D", (False, True)),
    ],
)
def test_what_llvm_calls_an_access_for_its_order_is_none(isa, form_id, access):
    memory = next(op for op in load_table(isa)[form_id].operands if op.is_memory)
    assert (memory.read, memory.write) == access
