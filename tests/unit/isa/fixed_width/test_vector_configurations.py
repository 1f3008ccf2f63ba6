"""RISC-V's vector instructions under a configuration."""

from __future__ import annotations

from fractions import Fraction

import pytest

from cyclescope.errors import UsageError
from cyclescope.isa.dataflow import pairs
from cyclescope.isa.encode import encode
from cyclescope.isa.find.pattern import select, select_known
from cyclescope.isa.form import model_form_id
from cyclescope.isa.operand import Configuration
from cyclescope.isa.register import units
from cyclescope.isa.riscv64.configuration import parse, setup_code, vtype
from cyclescope.isa.riscv64.legality import configurations, illegal
from cyclescope.isa.riscv64.overlap import conflict
from cyclescope.isa.riscv64.vector import configured
from cyclescope.isa.table import load_table
from cyclescope.isa.text import assembly, example

TABLE = load_table("riscv64")
M1 = Fraction(1)


def ids(*patterns, expand=True):
    return [form.id for form in select(TABLE, patterns, expand)]


def op(form_id, name):
    return next(found for found in TABLE[form_id].operands if found.name == name)


@pytest.mark.parametrize(
    ("text", "configuration", "value"),
    [
        ("e8,m1", Configuration(8, M1), 0b11_000_000),
        ("e32,mf2", Configuration(32, Fraction(1, 2)), 0b11_010_111),
        ("e64,m8,tu", Configuration(64, Fraction(8), tail_undisturbed=True), 0b10_011_011),
        ("e16,m2,mu,masked", Configuration(16, Fraction(2), False, True, True), 0b01_001_001),
        ("e32,m1,masked,vl4", Configuration(32, M1, masked=True, vl=4), 0b11_010_000),
    ],
)
def test_text(text, configuration, value):
    assert parse(text) == configuration
    assert str(configuration) == text
    assert vtype(configuration) == value


def test_plain():
    assert str(parse("e32,m2,tu,mu,masked,vl4").plain) == "e32,m2,vl4"


@pytest.mark.parametrize("text", ["E32", "e32,m1", " e32, m1,ta,ma"])
def test_defaults_need_not_be_said(text):
    assert parse(text) == Configuration(32, M1)


@pytest.mark.parametrize(
    "text",
    [
        "", "m1", "e7,m1", "e128,m1", "e32,m3", "e32,mf1", "e32,m0", "e32,mf0", "e32,m1,ta,tu",
        "e32,m1,tu,tu", "e8,m1,x", "e32,m1,vl0", "e32,m1,vl4,vl5", "e32,m1,vl2048", "e32,m1,", "e32,m1,,tu",
    ],
)  # fmt: skip
def test_no_configuration(text):
    with pytest.raises(UsageError, match="no vector configuration"):
        parse(text)


def test_setup_is_vsetvli():
    configuration = parse("e32,m2,tu")
    form = TABLE["VSETVLI"]
    assert setup_code(configuration) == encode(form, (31, 0), immediates=(vtype(configuration),))
    assert assembly(form, (31, 0), immediates=(vtype(configuration),)) == "vsetvli t6, zero, e32, m2, tu, ma"


def test_setup_of_a_length():
    code = setup_code(parse("e8,m1,vl100"))
    assert code[:4] == encode(TABLE["ADDI"], (31, 0), immediates=(100,))
    assert code[4:] == encode(TABLE["VSETVLI"], (31, 31), immediates=(0b11_000_000,))


def test_made_once():
    form = TABLE["VADD_VV@e32,m1"]
    assert form is TABLE.get("VADD_VV@e32,m1") is configured(TABLE["VADD_VV"], parse("e32,m1"))
    assert form.id == "VADD_VV@e32,m1"
    assert (form.llvm, model_form_id(form), form.mnemonic) == ("VADD_VV", "VADD_VV", "VADD.VV")
    assert form.configuration == parse("e32,m1")
    assert form not in list(TABLE)


def test_ids_are_canonical():
    for form_id in ("VADD_VV@e32", "VADD_VV@E32,m1", "VADD_VV@e64,mf2", "VADD@e32,m1", "ADD@e32,m1"):
        assert TABLE.get(form_id) is None
        with pytest.raises(KeyError):
            TABLE[form_id]


@pytest.mark.parametrize(
    ("form_id", "groups", "elements"),
    [
        ("VADD_VV@e32,m1", (1, 1, 1), ("i32", "i32", "i32")),
        ("VADD_VV@e16,m8", (8, 8, 8), ("i16", "i16", "i16")),
        ("VADD_VV@e16,mf4", (1, 1, 1), ("i16", "i16", "i16")),
        ("VFADD_VV@e64,m2", (2, 2, 2), ("f64", "f64", "f64")),
        ("VWADD_VV@e16,m2", (4, 2, 2), ("i32", "i16", "i16")),
        ("VWADD_WV@e16,m2", (4, 4, 2), ("i32", "i32", "i16")),
        ("VWADD_VV@e16,mf2", (1, 1, 1), ("i32", "i16", "i16")),
        ("VNSRL_WV@e8,m4", (4, 8, 4), ("i8", "i16", "i8")),
        ("VSEXT_VF8@e64,m8", (8, 1), ("i64", "i8")),
        ("VRGATHEREI16_VV@e8,m2", (2, 2, 4), ("i8", "i8", "i16")),
        ("VRGATHEREI16_VV@e64,m4", (4, 4, 1), ("i64", "i64", "i16")),
        ("VREDSUM_VS@e32,m8", (1, 8, 1), ("i32", "i32", "i32")),
        ("VWREDSUM_VS@e32,m8", (1, 8, 1), ("i64", "i32", "i64")),
        ("VMSEQ_VV@e8,m8", (1, 8, 8), ("i1", "i8", "i8")),
        ("VMADC_VV@e8,m4", (1, 4, 4), ("i1", "i8", "i8")),
        ("VMAND_MM@e8,m8", (1, 1, 1), ("i1", "i1", "i1")),
        ("VCOMPRESS_VM@e8,m4", (4, 4, 1), ("i8", "i8", "i1")),
        ("VIOTA_M@e16,m4", (4, 1), ("i16", "i1")),
        ("VFWCVT_F_X_V@e8,m1", (2, 1), ("f16", "i8")),
        ("VFWCVT_X_F_V@e16,m1", (2, 1), ("i32", "f16")),
        ("VFNCVT_X_F_W@e32,m1", (1, 2), ("i32", "f64")),
        ("VFNCVT_F_X_W@e32,m1", (1, 2), ("f32", "i64")),
        ("VFCLASS_V@e32,m1", (1, 1), ("i32", "f32")),
        ("VFNCVTBF16_F_F_W@e16,m1", (1, 2), ("bf16", "f32")),
        ("VLE32_V@e32,m4", (4,), ("i32",)),
        ("VLE16_V@e32,m4", (2,), ("i16",)),
        ("VLSEG3E8_V@e8,m2", (6,), ("i8",)),
        ("VLUXEI64_V@e16,m2", (2, 8), ("i16", "i64")),
        ("VSOXSEG2EI8_V@e32,m4", (8, 1), ("i32", "i8")),
        ("VLM_V@e8,m8", (1,), ("i1",)),
        ("VMV_X_S@e16,m8", (1,), ("i16",)),
        ("VMV4R_V@e32,m1", (4, 4), ("", "")),
        ("VAESDF_VS@e32,m4", (4, 1), ("i32", "i32")),
    ],
)  # fmt: skip
def test_operands(form_id, groups, elements):
    vectors = [op for op in TABLE[form_id].operands if op.file == "v" and not op.fixed]
    assert tuple(op.group for op in vectors) == groups
    assert tuple(op.element for op in vectors) == elements


def test_registers_are_where_groups_begin():
    wide, narrow = TABLE["VWADD_VV@e32,m2,masked"], TABLE["VLSEG3E8_V@e8,m2"]
    assert wide.bits.fields[0].values.legal == tuple(range(4, 32, 4))  # 0 is the mask's
    assert wide.bits.fields[1].values.legal == tuple(range(2, 32, 2))
    assert narrow.bits.fields[0].values.legal == tuple(range(0, 27, 2))
    assert units(narrow.bits.fields[0].values.registers[8], "riscv64") == tuple(f"v{n}" for n in range(8, 14))


def test_masks_are_said_by_the_form():
    plain, masked = TABLE["VADD_VV@e32,m1"], TABLE["VADD_VV@e32,m1,masked"]
    assert [op.name for op in plain.operands if not op.implicit] == ["op1", "op2", "op3"]
    assert op(masked.id, "op4").fixed == "V0"
    assert assembly(plain, (8, 9, 10)) == "vadd.vv v8, v9, v10"
    assert assembly(masked, (8, 9, 10)) == "vadd.vv v8, v9, v10, v0.t"
    assert encode(plain, (8, 9, 10)) == encode(TABLE["VADD_VV"], (8, 9, 10, 1))
    assert encode(masked, (8, 9, 10)) == encode(TABLE["VADD_VV"], (8, 9, 10, 0))
    assert op("VADC_VVM@e32,m1", "op4").fixed == "V0"
    assert encode(TABLE["VADC_VIM@e32,m1"], (8, 9), immediates=(3,)) == encode(
        TABLE["VADC_VIM"], (8, 9, 0), immediates=(3,)
    )
    with pytest.raises(ValueError, match="no legal value"):
        encode(masked, (0, 9, 10))


@pytest.mark.parametrize(
    ("form_id", "read"),
    [
        ("VADD_VV@e32,m1", False),
        ("VADD_VV@e32,m1,masked", False),
        ("VADD_VV@e32,m1,tu", True),
        ("VADD_VV@e32,m1,mu,masked", True),
        ("VADD_VV@e32,m1,tu,masked", True),
        ("VMACC_VV@e32,m1", True),
        ("VSLIDEUP_VX@e32,m1", True),
        ("VSLIDEDOWN_VX@e32,m1", False),
        ("VMV_S_X@e32,m1", False),
        ("VMV_S_X@e32,m1,tu", True),
        ("VMSEQ_VV@e32,m1,tu", False),
        ("VMSEQ_VV@e32,m1,mu,masked", True),
        ("VLE32_V@e32,m1", False),
        ("VAESDF_VV@e32,m1", True),
    ],
)
def test_old_elements_are_read_where_they_stay(form_id, read):
    result = op(form_id, "op1")
    assert (result.read, result.write) == (read, True)


def test_what_stays_by_definition_is_unconditional():
    assert not op("VMACC_VV@e32,m1,tu", "op1").conditional
    assert not op("VSLIDEUP_VX@e32,m1,tu", "op1").conditional
    assert op("VADD_VV@e32,m1,tu", "op1").conditional


@pytest.mark.parametrize(
    ("form_id", "features"),
    [
        ("VADD_VV@e32,m1", ("ZVE32X",)),
        ("VADD_VV@e32,mf2", ("ZVE64X",)),
        ("VADD_VV@e64,m1", ("ZVE64X",)),
        ("VMULH_VV@e64,m1", ("V",)),
        ("VMULH_VV@e32,m1", ("ZVE32X",)),
        ("VFADD_VV@e16,m1", ("ZVFH",)),
        ("VFADD_VV@e32,m1", ("ZVE32F",)),
        ("VFADD_VV@e64,m1", ("ZVE64D",)),
        ("VFWCVT_F_F_V@e16,m1", ("ZVFHMIN",)),
        ("VFWCVT_F_F_V@e32,m1", ("ZVE64D",)),
        ("VFWCVT_X_F_V@e32,m1", ("ZVE64F",)),
        ("VLUXEI64_V@e8,m1", ("RV64", "ZVE64X")),
        ("VCLMUL_VV@e64,m1", ("ZVBC", "ZVE64X")),
        ("VSHA2MS_VV@e32,m1", ("ZVKNHA|ZVKNHB",)),
    ],
)  # fmt: skip
def test_features(form_id, features):
    assert TABLE[form_id].features == features


@pytest.mark.parametrize(
    ("form_id", "text", "reason"),
    [
        ("VADD_VV", "e64,mf2", "LMUL is at least SEW/64"),
        ("VWADD_VV", "e64,m1", "elements of 128 bits"),
        ("VWADD_VV", "e32,m8", "16 registers"),
        ("VSEXT_VF4", "e16,m1", "elements of 4 bits"),
        ("VFADD_VV", "e8,m1", "floating-point elements of 8 bits"),
        ("VFADD_VF", "e8,m1", "16 bits or more"),
        ("VLUXEI64_V", "e8,m2", "16 registers"),
        ("VLSEG8E8_V", "e8,m2", "8 groups of 2 registers"),
        ("VLE64_V", "e8,m4", "32 registers"),
        ("VAESDF_VV", "e64,m1", "defined for e32"),
        ("VAESDF_VV", "e32,m1,vl6", "groups of 4 elements"),
        ("VSM3ME_VV", "e32,m1,vl4", "groups of 8 elements"),
        ("VADC_VVM", "e32,m1,masked", "no masked variant"),
        ("VADD_VV", "e32,m1,mu", "masked,mu"),
        ("VSE32_V", "e32,m1,tu", "writes no vector"),
        ("VCPOP_M", "e8,m1,tu", "writes no vector"),
        ("ADD", "e32,m1", "no vector configuration"),
        ("VL1RE8_V", "e8,m1", "no vector configuration"),
        ("TH_VMAQA_VV", "e8,m1", "no vector configuration"),
    ],
)
def test_illegal(form_id, text, reason):
    assert reason in illegal(TABLE[form_id], parse(text))
    with pytest.raises(UsageError, match=reason):
        configured(TABLE[form_id], parse(text))
    with pytest.raises(UsageError, match=reason):
        select(TABLE, [f"{form_id}@{text}"])


def default(form_id):
    return [str(configuration) for configuration in configurations(TABLE[form_id])]


def test_default_configurations():
    sews = ["e8,m1", "e16,m1", "e32,m1", "e64,m1"]
    assert default("VADD_VV") == [*sews, "e32,mf2", "e32,m2", "e32,m4", "e32,m8", "e32,m1,masked"]
    assert default("VADC_VVM") == [*sews, "e32,mf2", "e32,m2", "e32,m4", "e32,m8"]
    assert default("VFWADD_VV") == ["e16,m1", "e32,m1", "e32,mf2", "e32,m2", "e32,m4", "e32,m1,masked"]
    assert default("VLE16_V") == ["e16,m1", "e16,mf2", "e16,m2", "e16,m4", "e16,m8", "e16,m1,masked"]
    assert default("VMV_X_S") == sews
    assert default("VMAND_MM") == ["e8,m1", "e8,mf2", "e8,m2", "e8,m4", "e8,m8"]
    assert default("VMV2R_V") == ["e32,m1"]
    assert default("VAESDF_VV") == ["e32,m1", "e32,m2", "e32,m4", "e32,m8"]
    assert default("ADD") == default("VL1RE8_V") == default("VSETVLI") == []


def test_patterns():
    assert ids("VADD_VV") == ids("vadd.vv v1, v2, v3") == [f"VADD_VV@{text}" for text in default("VADD_VV")]
    assert ids("VADD_VV", expand=False) == ["VADD_VV"]
    assert ids("VADD_VV@e32,m1") == ids("vadd.vv@e32") == ["VADD_VV@e32,m1"]
    assert ids("VADD_VV@e64,m?") == [f"VADD_VV@e64,m{n}" for n in (1, 2, 4, 8)]
    assert len(ids("VADD_VV@*")) == 2 * 22
    assert ids("vw*_VV@e32,m4,masked,tu")[:2] == ["VWADDU_VV@e32,m4,tu,masked", "VWADD_VV@e32,m4,tu,masked"]
    assert ids("vadd.vv@e8,m1", "VADD_VV@e*,m1", "ADD")[0] == "ADD"
    assert ids("vadd.vv@e8,m1", "VADD_VV@e8,m1") == ["VADD_VV@e8,m1"]
    with pytest.raises(UsageError, match=r"no configuration of VADD_VV matches 'e9\*'"):
        select(TABLE, ["VADD_VV@e9*"])


def test_what_is_known_of_an_instruction():
    def found(patterns, *known):
        return [form.id for form in select_known(TABLE, patterns, known)]

    other, usual = "VADD_VV@e64,m8", "VADD_VV@e32,m1"
    assert found(["vadd.vv"], other, "VSUB_VV@e8,m1", "ADD") == [other]
    assert found(["vadd.vv"], other, usual) == [usual, other]
    assert found(["vadd.vv"], "VSUB_VV@e8,m1") == ids("vadd.vv")
    assert found(["VADD_VV@e16,m2", "ADD"], other) == ["ADD", "VADD_VV@e16,m2"]
    assert len(found([], other)) == len(ids()) - len(default("VADD_VV")) + 1


def test_features_that_only_a_configuration_needs():
    found = select(TABLE, ["isa:zvfh"], expand=False)
    assert {form.features for form in found} == {("ZVFH",), ("ZFA", "ZFH|ZVFH")}
    assert "VFADD_VV@e16,m1" in {form.id for form in found}
    assert {form.id for form in select(TABLE, ["isa:V"])} > {"VMULH_VV@e64,m1"}
    assert {"VLE64_V@e64,m2", "VADD_VV@e64,m1"} < {form.id for form in select(TABLE, ["isa:zve64x"])}
    with pytest.raises(UsageError, match="no instruction form"):
        select(TABLE, ["isa:ZVX"])


def test_everything_is_under_its_default_configurations():
    found = select(TABLE, [])
    assert not [form.id for form in found if form.configuration is None and configurations(form)]
    assert {model_form_id(form) for form in found} == {f.id for f in TABLE if "optional" not in f.attributes}
    assert select(TABLE, [], expand=False) == list(TABLE)


@pytest.mark.parametrize(
    ("form_id", "registers", "why"),
    [
        ("VADD_VV@e32,m2", (2, 2, 4), ""),
        ("VWADD_VV@e32,m1", (8, 9, 10), ""),  # highest register of the result
        ("VWADD_VV@e32,m1", (8, 8, 10), "op1 overlaps op2"),
        ("VWADD_VV@e32,mf2", (8, 8, 10), "op1 overlaps op2"),  # a part of a register
        ("VNSRL_WV@e32,m1", (8, 8, 10), ""),  # lowest register of the source
        ("VNSRL_WV@e32,m1", (9, 8, 10), "op1 overlaps op2"),
        ("VNSRL_WV@e32,m1", (7, 8, 9), "op2 and op3: elements of two widths in one register"),
        ("VWMACC_VV@e32,m1", (8, 9, 10), "op1 and op3: elements of two widths in one register"),
        ("VRGATHER_VV@e32,m1", (8, 9, 8), "op1 overlaps op3"),
        ("VSLIDEUP_VI@e32,m1", (8, 8), "op1 overlaps op2"),
        ("VSLIDEDOWN_VI@e32,m1", (8, 8), ""),
        ("VMSEQ_VV@e32,m2", (8, 8, 8), ""),
        ("VMSEQ_VV@e32,m2", (9, 8, 8), "op1 overlaps op2"),
        ("VMSEQ_VV@e32,m1,masked", (0, 8, 9), ""),
        ("VMSBF_M@e8,m1,masked", (8, 8), "op1 overlaps op2"),
        ("VREDSUM_VS@e32,m4", (9, 8, 9), ""),
        ("VREDSUM_VS@e32,m1,masked", (0, 8, 9), ""),
        ("VLUXSEG2EI32_V@e32,m1", (8, 10, 9), "op1 overlaps op3"),
        ("VLUXEI32_V@e32,m1", (8, 10, 8), ""),
        ("VLUXEI16_V@e32,m1", (8, 10, 8), "op1 overlaps op3"),
        ("VSUXEI16_V@e32,m1", (8, 10, 8), "op1 and op3: elements of two widths in one register"),
    ],
)
def test_overlap(form_id, registers, why):
    assert conflict(TABLE[form_id], registers) == why


@pytest.mark.parametrize(
    ("form_id", "apart"),
    [
        ("VADD_VV@e32,m1", False),
        ("VWADD_VV@e32,m1", False),
        ("VWADD_VV@e32,mf2", True),
        ("VSEXT_VF4@e32,m1", True),
        ("VSEXT_VF4@e32,m4", False),
        ("VNSRL_WV@e32,mf2", False),
        ("VRGATHER_VV@e32,m1", True),
        ("VMSEQ_VV@e8,m1", False),
        ("VMSBF_M@e8,m1", True),
        ("VLUXEI8_V@e64,m1", True),
        ("VLUXEI64_V@e64,m1", False),
        ("VWREDSUM_VS@e32,mf2", False),
    ],
)
def test_results_without_any_overlap(form_id, apart):
    assert op(form_id, "op1").early_clobber is apart


def test_examples_have_groups_apart():
    assert example(TABLE["VWADD_VV@e32,m4"]) == "vwadd.vv v8, v4, v16"
    assert example(TABLE["VMSEQ_VV@e8,m8,masked"]) == "vmseq.vv v1, v8, v16, v0.t"


def test_vl_and_vtype_are_no_data():
    (reason,) = {pair.excluded for pair in pairs(TABLE["VADD_VV"]) if pair.source.name == "VTYPE"}
    assert "selects a mode" in reason
    found = pairs(TABLE["VADD_VV@e32,m1,masked"])
    assert not any(pair.excluded for pair in found)
    wanted = {(pair.source.name, pair.target.name) for pair in found}
    assert wanted == {("op2", "op1"), ("op3", "op1"), ("op4", "op1")}


def test_fault_only_first_loads_set_vl():
    assert op("VLE8FF_V@e8,m1", "VL").write
    assert not op("VLE8_V@e8,m1", "VL").write


def test_plans_are_not_shared_between_configurations():
    signatures = [TABLE[f"VADD_VV@{text}"].signature for text in default("VADD_VV")]
    assert len(set(signatures)) == len(signatures)
    assert TABLE["VADD_VV@e32,m1"].signature == TABLE["VSUB_VV@e32,m1"].signature
