"""The decoder of AArch64 and RISC-V against what LLVM says, recorded and where it is installed."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cyclescope.errors import UnsupportedInstruction, UsageError
from cyclescope.isa.decode import TableDecoder, decoder
from cyclescope.isa.find.pattern import select
from cyclescope.isa.table import load_table
from tools.fixed_width.probe import Answer
from tools.fixed_width.verify import differences, standard_features

ISAS = ("aarch64", "riscv64")
RECORDED = Path(__file__).parent / "recorded"
ALIASES = {"BFMWri", "BFMXri", "SBFMWri", "SBFMXri", "UBFMWri", "UBFMXri", "MOVZWi", "MOVZXi", "MOVNWi",
           "MOVNXi", "ORRWri", "ORRXri", "MRS", "MSR"}  # fmt: skip
SYSTEM = {"MRS", "MSR", "MSRR", "MRRS"}  # LLVM takes more numbers for registers


def recorded(isa):
    for line in (RECORDED / f"{isa}.txt").read_text().splitlines():
        code, opcode, operands, text = line.split("\t")
        yield bytes.fromhex(code), Answer(opcode, operands.split(), text)


@pytest.mark.parametrize("isa", ISAS)
def test_instructions_are_the_ones_that_llvm_reads(isa):
    answers = list(recorded(isa))
    assert len(answers) > 300
    for code, answer in answers:
        found = list(differences(decoder(isa).decode(code), answer))
        allowed = ["not decoded"] if answer.opcode in SYSTEM else ["text"] if answer.opcode in ALIASES else []
        if "unshifted" in _exceptions(answer):
            allowed = ["text"]
        assert not found or found == allowed, (code.hex(), answer)


def _exceptions(answer):
    """LLVM writes a shift behind an index that has none, and newer vector types by a name."""
    unshifted = re.search(r"roX$", answer.opcode) or "alt" in answer.text
    return {"unshifted"} if unshifted else set()


def drawn(form, draw):
    """Legal values, of registers different ones where the form needs that."""
    while True:
        values = [draw.choice(field.values.legal) for field in form.bits.fields]
        registers = [v for v, field in zip(values, form.bits.fields, strict=True) if field.is_register]
        if "unique_registers" not in form.attributes or len(set(registers)) == len(registers):
            return values


@pytest.mark.parametrize("isa", ISAS)
def test_the_form_found_is_the_most_specific_that_matches(isa):
    forms = [form for form in load_table(isa) if "optional" not in form.attributes]
    forms.sort(key=lambda form: -form.bits.mask.bit_count())
    draw, fresh = random.Random("decoder"), TableDecoder(load_table(isa))
    for chosen in draw.sample(forms, 300):
        length = chosen.bits.length
        word = chosen.bits.fixed | draw.getrandbits(8 * length) & ~chosen.bits.mask
        matching = [form for form in forms if form.bits.length == length and form.bits.matches(word)]
        found = fresh.find(word, length)
        assert found in matching if matching else found is None
        assert not matching or found.bits.mask.bit_count() == matching[0].bits.mask.bit_count()


@pytest.mark.skipif(shutil.which("llvm-mc-22") is None, reason="needs llvm-mc of LLVM 22")
@pytest.mark.parametrize("isa", ISAS)
def test_llvm_reads_every_form_the_same(isa):
    table, draw = load_table(isa), random.Random("every form")
    chosen = [f for f in table if "optional" not in f.attributes and f.mnemonic not in SYSTEM]
    codes = [form.bits.encode(drawn(form, draw)) for form in chosen]
    given = "\n".join(" ".join(f"0x{byte:02x}" for byte in code) for code in codes)
    features = standard_features(table)
    command = [
        "llvm-mc-22",
        "--disassemble",
        f"--triple={isa}-linux-gnu",
        f"--mattr={features}",
        "-show-inst",
    ]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    names = re.findall(r"<MCInst #\d+ (\w+)", done.stdout)
    assert names == [form.id for form in chosen]


@pytest.mark.parametrize(
    ("isa", "code", "sources", "targets"),
    [
        ("aarch64", "20fc5fc8", ("r1",), ("r0",)),  # ldaxr x0, [x1]
        ("aarch64", "1f2003d5", (), ()),  # nop
        ("aarch64", "2000029a", ("r1", "r2", "NZCV"), ("r0",)),  # adc x0, x1, x2
        ("aarch64", "e103028b", ("r2",), ("r1",)),  # add x1, xzr, x2
        ("aarch64", "e07bc1a8", ("SP",), ("SP", "r0", "r30")),  # ldp x0, x30, [sp], #16
        ("riscv64", "3385c500", ("r11", "r12"), ("r10",)),  # add a0, a1, a2
        ("riscv64", "13000000", (), ()),  # nop
        ("riscv64", "2e95", ("r10", "r11"), ("r10",)),  # c.add a0, a1
        ("riscv64", "57842002", ("v8", "v2", "v1", "VL", "VTYPE"), ("v8",)),  # vadd.vv v8, v2, v1
        ("riscv64", "57842000", ("v8", "v2", "v1", "v0", "VL", "VTYPE"), ("v8",)),  # with v0.t
    ],
)
def test_registers_that_are_read_and_written(isa, code, sources, targets):
    found = decoder(isa).decode(bytes.fromhex(code))
    assert (found.sources, found.targets) == (sources, targets)


def test_values_and_registers_of_operands():
    found = decoder("aarch64").decode(bytes.fromhex("200c028b"))  # add x0, x1, x2, lsl #3
    assert [found.value(n) for n in range(4)] == [0, 1, 2, 3]
    assert [found.register(n) for n in range(4)] == ["X0", "X1", "X2", ""]
    assert found.units(2) == ("r2",)
    assert found.text == "add x0, x1, x2, lsl #3"


@pytest.mark.parametrize(
    ("line", "expected"),
    [("b.ne #8", "Z"), ("csel x0, x1, x2, hs", "C"), ("ccmp x0, x1, #0, gt", "NZV"), ("b.hi #8", "ZC"),
     ("fcsel d0, d1, d2, lt", "NV"), ("b.al #8", ""), ("adc x0, x1, x2", "C"), ("add x0, x1, x2", "")],
)  # fmt: skip
def test_a_condition_reads_its_flags(line, expected):
    table = load_table("aarch64")
    (form,) = select(table, [line], expand=False)
    code = form.bits.encode(form.syntax.read(line, len(form.bits.fields)))
    assert "".join(decoder("aarch64").decode(code).flags_read) == expected


def test_all_of_a_piece_of_code():
    code = bytes.fromhex("3385c5002e9513000000")
    assert [(d.form.id, d.length) for d in decoder("riscv64").decode_all(code)] == [
        ("ADD", 4), ("C_ADD", 2), ("ADDI", 4),
    ]  # fmt: skip
    with pytest.raises(UnsupportedInstruction, match="7b000000 at byte 6"):
        list(decoder("riscv64").decode_all(code[:6] + b"\x7b\0\0\0" + code[6:]))


@pytest.mark.parametrize("isa", ISAS)
def test_code_that_ends_within_an_instruction(isa):
    assert decoder(isa).decode(b"\x33\x85\xc5") is None
    assert decoder(isa).decode(b"") is None
    assert decoder(isa).decode(b"\x33\x85\xc5\x00", 4) is None


def test_lengths():
    found = decoder("riscv64")
    assert [found.length(bytes((low, 0))) for low in (0x01, 0x03, 0x1F, 0x3F, 0x13)] == [2, 4, 6, 8, 4]
    assert decoder("aarch64").length(b"\x01") == 4


def test_optional_extensions_are_asked_for():
    table = load_table("riscv64")
    form = table["TH_ADDSL"]
    code = form.bits.encode([10, 11, 12, 1])
    assert decoder("riscv64").decode(code) is None
    assert TableDecoder(table, {"XTHEADBA"}).decode(code).form is form


def test_other_isas_have_no_decoder():
    with pytest.raises(UsageError, match="x86-64"):
        decoder("x86-64")
