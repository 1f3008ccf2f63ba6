"""RISC-V's vector instructions under the VTYPE that code sets. Machine code is that of llvm-mc."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from cyclescope.analyze.choose.source import Choice, read_block
from cyclescope.analyze.read.assemblers import tools
from cyclescope.isa.operand import Configuration
from cyclescope.isa.riscv64.configuration import LMULS, SEWS
from cyclescope.isa.riscv64.shapes import takes_configuration
from cyclescope.isa.riscv64.types import sets_type
from cyclescope.isa.riscv64.vector_types import cost_names, form_under, setting
from cyclescope.isa.table import load_table
from cyclescope.session.predict import predict

E64_M1, E64_M4, E64_M1_TU = "d7f7860d", "d7f7a60d", "d7f78609"  # vsetvli a5, a3, ...
E32_MF2 = "577072c5"  # vsetivli zero, 4, e32, mf2, ta, mu
BY_REGISTER = "d7f7e680"  # vsetvl a5, a3, a4
LOAD, MASKED_LOAD, MULTIPLY, STORE = "07f40502", "07f40500", "575405b3", "27740502"
AND, ADD, INDEXED, CARRY = "d7a02166", "57040c03", "07e40507", "57040c41"
BRANCH = "e39606fe"  # bnez a3, -20
ADDI = "93061600"  # addi a3, a2, 1
WHOLE = Choice(whole=True)


def forms(*words, choice=WHOLE):
    return [one.form.id for one in read_block(bytes.fromhex("".join(words)), "riscv64", choice)]


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        (E64_M1, Configuration(64, Fraction(1))),
        (E64_M4, Configuration(64, Fraction(4))),
        (E64_M1_TU, Configuration(64, Fraction(1), tail_undisturbed=True)),
        (E32_MF2, Configuration(32, Fraction(1, 2), mask_undisturbed=True)),
        (BY_REGISTER, None),
        ("d7f7460c", None),  # a multiplier that is reserved
    ],
)
def test_what_an_instruction_sets(word, wanted):
    code = bytes.fromhex(word)
    assert sets_type(code)
    assert setting(code) == wanted


def test_other_instructions_set_nothing():
    assert not any(sets_type(bytes.fromhex(word)) for word in (LOAD, ADD, AND, ADDI, "0100"))


def test_instructions_are_forms_under_what_is_set_in_front_of_them():
    assert forms(LOAD, E64_M1, LOAD, MASKED_LOAD, E64_M4, ADD, BY_REGISTER, ADD) == [
        "VLE64_V", "VSETVLI", "VLE64_V@e64,m1", "VLE64_V@e64,m1,masked", "VSETVLI", "VADD_VV@e64,m4",
        "VSETVL", "VADD_VV",
    ]  # fmt: skip


def test_a_loop_begins_with_what_it_ends_with():
    # bnez goes back by five instructions
    loop = (ADD, E64_M4, ADD, ADDI, ADDI, BRANCH)
    assert forms(*loop)[0] == "VADD_VV@e64,m4"
    assert forms(*loop[:-1])[0] == "VADD_VV"


def test_a_loop_that_sets_nothing_has_what_is_set_in_front_of_it():
    found = forms(E64_M1, ADDI, ADD, LOAD, ADDI, STORE, ADDI, BRANCH, choice=Choice())
    assert found == ["VADD_VV@e64,m1", "VLE64_V@e64,m1", "ADDI", "VSE64_V@e64,m1", "ADDI", "BNE"]


@pytest.mark.skipif(not tools("riscv64"), reason="needs an assembler for riscv64")
@pytest.mark.parametrize(("between", "wanted"), [("", "VADD_VV@e64,m1"), ("ret", "VADD_VV")])
def test_a_label_that_one_runs_into_and_branches_back_to_is_no_function(between, wanted):
    text = f"vsetvli a5, a3, e64, m1, ta, ma\n{between}\nloop: vadd.vv v8, v8, v24\nbnez a3, loop\n"
    first, *_ = read_block(text, "riscv64", Choice())
    assert first.form.id == wanted


CALL_RA, CALL_REGISTER, ECALL = "ef000010", "e7800700", "73000000"  # jal ra, 256; jalr ra, a5; ecall
C_JALR, C_EBREAK = "8297", "0290"
SPIN = "e39e06fe"  # bnez a3, -4: the block is the loop of it and what is in front


@pytest.mark.parametrize("call", [CALL_RA, CALL_REGISTER, ECALL, C_JALR])
def test_calls_keep_no_type(call):
    """Neither functions nor Linux have to: what is set behind them counts again."""
    assert forms(E64_M4, LOAD, call, LOAD, E64_M1, LOAD)[1::2] == [
        "VLE64_V@e64,m4",
        "VLE64_V",
        "VLE64_V@e64,m1",
    ]
    assert forms(E64_M4, call, LOAD, SPIN, choice=Choice())[0] == "VLE64_V"


@pytest.mark.parametrize("other", [C_EBREAK, ADDI])
def test_other_instructions_keep_the_type(other):
    assert forms(E64_M4, other, LOAD)[-1] == "VLE64_V@e64,m4"


needs_riscv64 = pytest.mark.skipif(not tools("riscv64"), reason="needs an assembler for riscv64")


@needs_riscv64
@pytest.mark.parametrize(
    ("first", "second", "wanted"),
    [
        ("e64,m4", "e64,m4", "VLE64_V@e64,m4"),
        ("e64,m4", "e64,m1", "VLE64_V"),
    ],
)
def test_a_type_is_that_of_all_ways_to_a_loop(first, second, wanted):
    text = (
        f" beqz a0, .L1\n vsetvli a5, a3, {first}, ta, ma\n j .L3\n.L1:\n vsetvli a5, a3, {second}, ta, ma\n"
        ".L3:\n vle64.v v8, (a1)\n addi a1, a1, 8\n bne a1, a2, .L3\n"
    )
    assert next(iter(read_block(text, "riscv64"))).form.id == wanted


@needs_riscv64
def test_a_loop_that_nothing_runs_into_is_entered_by_branches():
    text = (
        " vsetvli a5, a3, e64, m4, ta, ma\n j .L3\n.L2:\n vsetvli a5, a3, e8, m1, ta, ma\n ret\n"
        ".L3:\n vle64.v v8, (a1)\n addi a1, a1, 8\n bne a1, a2, .L3\n"
    )
    assert next(iter(read_block(text, "riscv64"))).form.id == "VLE64_V@e64,m4"


def test_groups_of_registers_are_accessed_as_a_whole():
    (_, one) = read_block(bytes.fromhex(E64_M4 + ADD), "riscv64", WHOLE)
    assert one.registers[0] == ("V", 8)
    assert one.further[0] == tuple(("V", number) for number in (9, 10, 11))


def test_what_is_reserved_or_not_a_vector_stays():
    table = load_table("riscv64")
    eight = Configuration(8, Fraction(8))
    wide = table["VWADD_VV"]
    assert form_under(wide, bytes.fromhex(ADD), eight) is wide  # twice as wide has no room
    assert form_under(table["ADDI"], bytes.fromhex(ADDI), eight) is table["ADDI"]
    assert form_under(table["VADD_VV"], bytes.fromhex(ADD), None) is table["VADD_VV"]


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("VADD_VV@e32,m2", "VADD_VV@m2"),
        ("VFADD_VV@e32,m2", "VFADD_VV@e32,m2"),
        ("VLE64_V@e32,m1", "VLE64_V@m2"),  # twice as many registers as SEW says
        ("VLUXEI32_V@e64,m2", "VLUXEI32_V@m2/m1"),
        ("VMAND_MM@e64,m1", "VMAND_MM@b64"),
        ("VFMACC_VF@e32,mf2", "VFMACC_VF@e32,mf2"),
    ],
)
def test_names_of_costs(form, name):
    table = load_table("riscv64")
    assert name in cost_names(table[form])
    assert cost_names(table["ADDI"]) == ()


MASKED, UNMASKED = bytes(4), (1 << 25).to_bytes(4, "little")


def test_policies_that_do_not_apply_hide_nothing():
    """Code sets policies for all that follows: under every one of them a form exists, or under none."""
    policies = list(product((False, True), repeat=2))
    forms = [form for form in load_table("riscv64") if takes_configuration(form)]
    assert len(forms) > 600
    for form, sew, lmul in product(forms[::7], SEWS, LMULS):
        for code in (MASKED, UNMASKED):
            found = [form_under(form, code, Configuration(sew, lmul, *policy)) for policy in policies]
            assert len({one.configuration is None for one in found}) == 1, (form.id, sew, lmul)


def test_masked_off_elements_are_waited_for_under_a_mask_alone():
    mu, table = Configuration(32, Fraction(1), mask_undisturbed=True), load_table("riscv64")
    add = table["VADD_VV"]
    assert form_under(add, UNMASKED, mu).id == "VADD_VV@e32,m1"
    assert not form_under(add, UNMASKED, mu).operands[0].read
    assert form_under(add, MASKED, mu).operands[0].read
    assert form_under(table["VSE32_V"], MASKED, mu).id == "VSE32_V@e32,m1,masked"  # writes no vector


@pytest.mark.parametrize("machine", ["sifive-x390", "sifive-p670", "spacemit-x60"])
def test_a_policy_is_no_cost(machine):
    divide = "57256082"  # vdiv.vv v10, v0, v0: unmasked
    agnostic, undisturbed = "d7f7060d", "d7f70605"  # vsetvli a5, a3, e32, m1, ta, ma and ta, mu
    ports = [
        predict(bytes.fromhex(first + divide), machine, choice=WHOLE).bounds["ports"]
        for first in (agnostic, undisturbed, BY_REGISTER)
    ]
    assert ports[0] == ports[1] < ports[2]


def test_a_type_that_is_not_known_is_said():
    notes = predict(bytes.fromhex(BY_REGISTER + ADD), "spacemit-x60", choice=WHOLE).notes
    assert any(note.startswith("SEW and LMUL are not known") for note in notes)
    known = predict(bytes.fromhex(E64_M1 + ADD), "spacemit-x60", choice=WHOLE).notes
    assert not any("LMUL" in note for note in known)


def cycles(first, machine="spacemit-x60"):
    found = predict(bytes.fromhex("".join((first, LOAD, MULTIPLY, STORE))), machine, choice=WHOLE)
    return found.bounds["ports"], found.lcd


def test_costs_and_dependencies_are_those_of_the_type():
    narrow, wide, unknown = cycles(E64_M1), cycles(E64_M4), cycles(BY_REGISTER)
    assert narrow[0] == 6  # a load and a store of 3 cycles, as llvm-mca has them
    assert narrow[0] < wide[0] < unknown[0]
    # old elements behind VL stay: the load waits for the vector that it overwrites
    assert cycles(E64_M1_TU)[1] > narrow[1]


def test_masks_cost_by_the_ratio():
    table = load_table("riscv64")
    assert cost_names(table["VMAND_MM@e8,m8"])[-1] == "VMAND_MM@b1"
    assert cost_names(table["VMAND_MM@e8,mf8"])[-1] == "VMAND_MM@b64"
