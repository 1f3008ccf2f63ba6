"""The generator of the tables of AArch64 and RISC-V: its rules one by one, on instructions made up here."""

from __future__ import annotations

import shutil

import pytest

from cyclescope.isa.fields import Notation
from tools.fixed_width import operands, probe, records, rules, samples, text, values
from tools.fixed_width.generate import feature_names
from tools.fixed_width.operands import Op
from tools.fixed_width.records import Field, McOperand, Record
from tools.fixed_width.samples import Sample
from tools.packing import Interner

PLAIN = {"tied": [-1, -1, -1], "early": [], "reads": [], "writes": [], "flags": []}


def answer(name, asm, *registers):
    return probe.Answer(name, list(registers), asm)


def addition():
    """`add $Rd, $Rn$shift`: two registers of two bits, and a shift."""
    mc = [McOperand("Rd", "GPR", 0, True, True), McOperand("Rn", "GPR", 1, True, False),
          McOperand("shift", "shift_op", 2, False, False)]  # fmt: skip
    fields = [Field("Rd", "GPR", 0, True, [0, 1]), Field("Rn", "GPR", 1, True, [2, 3]),
              Field("shift", "shift_op", 2, False, [4, 5])]  # fmt: skip
    return Record("ADD", "add\t$Rd, $Rn$shift", 1, 0x40, 0, mc, {}, fields, [[]], dict(PLAIN))


def answered(rd, rn, shift):
    written = f", lsl #{shift}" if shift else ""
    return answer("ADD", f"add x{rd}, x{rn}{written}", f"X{rd}", f"X{rn}", str(shift))


def tried(illegal=()):
    """What every other value of each field makes of `add x1, x2, lsl #1`."""
    base = [1, 2, 1]
    return Sample(base, answered(*base)), [
        {
            v: None if (place, v) in illegal else answered(*base[:place], v, *base[place + 1 :])
            for v in range(4)
        }
        for place in range(3)
    ]


# --- TableGen ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("add\t$Rd, $Rn", "add\t$Rd, $Rn"),
        ("add{\t$Rd.16b, $Rn.16b|.16b\t$Rd, $Rn}", "add\t$Rd.16b, $Rn.16b"),
        ("setf8{\t$Rn}", "setf8\t$Rn"),
        ("ld1d\t\\{$ZAt[$Rs, $imm]\\}, $Pg/z", "ld1d\t{$ZAt[$Rs, $imm]}, $Pg/z"),
        ("lw\t$rd, ${imm12}(${rs1})", "lw\t$rd, ${imm12}(${rs1})"),
    ],
)
def test_one_dialect(given, expected):
    assert records.first_variant(given) == expected


def test_features_that_predicates_ask_for():
    both = dag("all_of", "FeatureA", "FeatureB")
    data = {
        "P": {"AssemblerCondDag": dag("any_of", "FeatureAll", both, "FeatureC")},
        "N": {"AssemblerCondDag": dag("all_of", dag("not", "FeatureA"))},
        "Mode": {},
    } | {f"Feature{letter}": {"Name": letter.lower()} for letter in "ABC"}  # fmt: skip
    assert records._features(data, ["P", "Mode"]) == [["a", "b"], ["c"]]
    assert records._features(data, ["N"]) == [["-a"]]
    assert records._features(data, []) == [[]]


def dag(operator, *arguments):
    parts = [a if isinstance(a, dict) else {"kind": "def", "def": a} for a in arguments]
    return {"kind": "dag", "operator": {"kind": "def", "def": operator}, "args": [[p, None] for p in parts]}


@pytest.mark.parametrize(
    ("alternatives", "expected"),
    [
        ([[]], ["BASE"]),
        ([["sve2"]], ["SVE2"]),
        ([["sve"], ["sme"]], ["SVE|SME"]),
        ([["fp8", "ssve"], ["fp8", "sve2", "dot"]], ["FP8", "SSVE|SVE2+DOT"]),
        ([["experimental-zvfbfa", "64bit"]], ["ZVFBFA", "RV64"]),
        ([["-64bit"]], ["RV32"]),
    ],
)
def test_names_of_features(alternatives, expected):
    assert feature_names(alternatives) == expected


def test_an_operand_that_is_tied_is_the_result():
    record = addition()
    record.description["tied"] = [-1, 0, -1]
    assert record.canonical(1) == 0
    assert record.field_of("Rn") == record.field_of("Rd") == 0
    assert record.field_of("nothing") == -1


# --- samples -------------------------------------------------------------------------------------


def test_code_of_a_record():
    assert samples.encoded(addition(), [1, 2, 3]) == bytes((0x40 | 1 | 2 << 2 | 3 << 4,))


def test_values_that_are_tried():
    assert samples.values_to_try(Field("x", "c", 0, False, list(range(4)))) == list(range(16))
    wide = samples.values_to_try(Field("x", "c", 0, False, list(range(20))))
    assert {0, 1, 2, 1 << 19, (1 << 20) - 1, (1 << 12) - 1} <= set(wide)
    assert len(wide) < 120
    assert set(range(1 << 12)) <= set(
        samples.values_to_try(Field("x", "csr_sysreg", 0, False, list(range(12))))
    )


def test_what_llvm_is_asked_for():
    record = addition()
    record.alternatives = [["zba", "-64bit"]]
    assert probe.features("riscv64", record) == "-64bit,+zba"
    assert probe.features("aarch64", record) == "+all"


@pytest.mark.skipif(
    not (shutil.which("g++") and shutil.which("llvm-config-22")),
    reason="needs g++ and llvm-22-dev",
)
def test_llvm_describes_and_decodes(tmp_path):
    program = probe.build(tmp_path)
    asked = probe.Probe(program, "aarch64")
    ldp = next(d for d in asked.describe() if d["name"] == "LDPXpost")
    assert (ldp["defs"], ldp["tied"], ldp["flags"]) == (3, [-1, -1, -1, 0, -1], ["load"])
    add, nothing = asked.decode([("+all", bytes.fromhex("200c028b")), ("+all", b"\xff\xff\xff\xff")])
    assert (add.opcode, add.operands, add.text) == (
        "ADDXrs",
        ["X0", "X1", "X2", "3"],
        "add x0, x1, x2, lsl #3",
    )
    assert nothing is None
    narrow, wide = probe.Probe(program, "riscv64").decode(
        [("-64bit,+zca", b"\x01\x20"), ("+zca", b"\x01\x20")])  # fmt: skip
    assert (narrow.opcode, wide) == ("C_JAL", None)  # in 64 bits C.ADDIW, which has no zero register


# --- texts ---------------------------------------------------------------------------------------


def test_a_line_comes_apart():
    sample, trials = tried()
    written = text.take_apart(addition(), sample, trials)
    assert written.template == "add {0}, {1}{2}"
    assert written.places[0] == (0, {n: f"x{n}" for n in range(4)})
    assert written.places[1] == (1, {n: f"x{n}" for n in range(4)})
    assert written.places[2] == (2, {0: "", 1: ", lsl #1", 2: ", lsl #2", 3: ", lsl #3"})


def test_a_line_by_an_alias_does_not():
    sample, trials = tried()
    sample.answer.text = "mov x1, x2"
    with pytest.raises(text.NotApartError):
        text.take_apart(addition(), sample, trials)
    known = {("GPR", 2): {0: "x0"}, ("shift_op", 2): {0: ""}}
    assert text.from_template(addition(), known).template == "add {0}, {1}{2}"


def test_what_is_written_by_an_alias_for_some_values_only():
    sample, trials = tried()
    trials[0][3] = answer("ADD", "mov x3, x2", "X3", "X2", "1")
    assert sorted(text.take_apart(addition(), sample, trials).places[0][1]) == [0, 1, 2]


def test_what_another_operand_is_written_differently_for():
    """ADD of an extended register is written with LSL where the result is the stack pointer."""
    sample, trials = tried()
    trials[0][3] = answer("ADD", "add x3, x2, uxtx #1", "X3", "X2", "1")
    assert sorted(text.take_apart(addition(), sample, trials).places[0][1]) == [0, 1, 2]


def test_an_index_without_a_shift():
    record = addition()
    record.text = "ldr\t$Rd, [$Rn, $shift]"
    record.fields[2].cls = "ro_Xextend64"
    written = text.Written("ldr {0}, [{1}, {2}]", [(0, {}), (1, {}), (2, {0: "lsl #3", 1: "lsl #3"})])
    text._unshifted_index(record, written)
    assert written.template == "ldr {0}, [{1}{2}]"
    assert written.places[2] == (2, {0: "", 1: ", lsl #3"})


# --- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        ({n: f"x{n}" if n < 31 else "xzr" for n in range(32)}, "number"),
        ({n: f"#{16 * (n - 64 if n >= 32 else n)}" for n in range(64)}, "number"),
        ({n: f"#{32 - n}" for n in range(32)}, "number"),
        ({n: f"#{n:#x}" for n in range(16)}, "number"),
        ({n: ("eq", "ne", "hs", "lo")[n] for n in range(4)}, "list"),
        ({n: f"{{ v{n}, v{(n + 1) % 8} }}" for n in range(8)}, "list"),
        (dict.fromkeys(range(4), "same"), "list"),
    ],
)
def test_a_rule_gives_the_texts_again(texts, kind):
    width = (len(texts) - 1).bit_length()
    found = values.rule(texts, width)
    assert found[0] == kind
    notation = Notation(width, tuple(found))
    assert {value: notation.text(value) for value in texts} == texts


def test_wide_fields_need_a_rule():
    shifted = {n: f"#{n & 0xFFF}" + (", lsl #12" if n >> 12 else "") for n in range(0, 0x2000, 77)}
    assert values.rule(shifted, 14)[:2] == ["function", "shifted"]
    with pytest.raises(ValueError, match="no rule"):
        values.rule({n: "x" * (n % 7) for n in range(0, 900, 9)}, 14)


def test_legal_values():
    sample, trials = tried(illegal={(2, 3)})
    everywhere = {0, 1, 2, 3}
    assert values.legal(addition(), 0, sample, trials, everywhere) == []
    assert values.legal(addition(), 2, sample, trials, {0, 1, 2}) == ["bits", "7"]


def test_registers_that_clash_are_no_illegal_values():
    """The first register must not be the second, which is 2 in the sample."""
    sample, trials = tried(illegal={(0, 2)})
    assert values.clashes(addition(), 0, sample, trials) == [2]
    assert values.legal(addition(), 0, sample, trials, {0, 1, 2, 3}) == []
    assert values.legal(addition(), 0, sample, trials, {0, 1, 3}) == ["bits", "b"]  # nowhere legal


def test_tables_of_one_class_are_merged_where_they_agree():
    merged = values.Merged()
    first = merged.add(("GPR", 2), {0: "a", 1: "b"})
    assert merged.add(("GPR", 2), {1: "b", 2: "c"}) is first
    assert first == {0: "a", 1: "b", 2: "c"}
    assert merged.add(("GPR", 2), {1: "x"}) == {1: "x"}
    assert merged.largest() == {("GPR", 2): first}


# --- operands and rules --------------------------------------------------------------------------


def test_operands_of_an_addition():
    sample, trials = tried()
    names = [values.registers(f, t) for f, t in zip(addition().fields, trials, strict=True)]
    assert names[:2] == [{n: f"X{n}" for n in range(4)}] * 2
    found = operands.explicit("aarch64", addition(), sample, names)
    assert [(op.name, op.kind, op.width, op.read, op.write) for op in found] == [
        ("op1", "register", 64, False, True), ("op2", "register", 64, True, False),
        ("op3", "immediate", 2, False, False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("template", "roles"),
    [
        ("ldr\t$Rd, [$Rn, $shift]", {1: "base", 2: "offset"}),
        ("lw\t$Rd, ${shift}(${Rn})", {1: "base", 2: "offset"}),
        ("add\tza[$Rd, $shift], $Rn", {}),
        ("ldr\t$shift, [$Rd, $Rn]", {0: "base", 1: "index"}),
    ],
)
def test_parts_of_an_address(template, roles):
    record = addition()
    record.text = template
    assert operands.address_roles(record) == roles


@pytest.mark.parametrize(
    ("isa", "name", "width"),
    [("aarch64", "W1_WZR", 64), ("aarch64", "Q0_Q1", 256), ("aarch64", "Z3", 0), ("aarch64", "LR_XZR", 128),
     ("riscv64", "X3", 64), ("riscv64", "F2_H", 16), ("riscv64", "V8M2", 0), ("riscv64", "X8_X9", 128)],
)  # fmt: skip
def test_widths_of_registers(isa, name, width):
    assert operands.register_width(isa, name) == width


def test_rules_are_counted():
    record = addition()
    record.name = "FMOVXDHighr"
    applied = rules.Rules("aarch64")
    ops = [Op("op1", "register", "V128", write=True)]
    assert applied.apply(record, "fmov", ops) == set()
    assert ops[0].read
    assert applied.applied == {"insert_reads_the_rest": 1}


def test_no_memory_without_an_address():
    record = addition()
    record.description = PLAIN | {"flags": ["load", "store"]}
    assert rules.Rules("aarch64").apply(record, "dmb", []) == set()
    base = [Op("op2", "register", "GPR64sp", role="base")]
    assert rules.Rules("aarch64").apply(record, "swp", base) == {"load", "store"}


@pytest.mark.parametrize(
    ("features", "expected"),
    [(["ZBA"], False), (["XTHEADBA"], True), (["ZCA", "RV32"], True), (["ZHINX"], True), (["ZCMP"], True),
     (["P"], True), (["ZBKB|P"], False), (["BASE"], False)],
)  # fmt: skip
def test_optional_extensions(features, expected):
    assert rules.optional(features) == expected


def test_interner():
    intern = Interner()
    assert [intern([1]), intern([2]), intern([1])] == [0, 1, 0]
    assert intern.values == [[1], [2]]
