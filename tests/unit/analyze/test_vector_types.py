"""RISC-V's vector instructions under the VTYPE that code sets. Machine code is that of llvm-mc."""

from __future__ import annotations

from fractions import Fraction

import pytest

from cyclescope.analyze.source import Choice, read_block
from cyclescope.analyze.vector_types import cost_names, form_under, is_setting, setting
from cyclescope.infer.predict import predict
from cyclescope.isa.riscv64.configuration import Configuration
from cyclescope.isa.table import load_table

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
    assert is_setting(code)
    assert setting(code) == wanted


def test_other_instructions_set_nothing():
    assert not any(is_setting(bytes.fromhex(word)) for word in (LOAD, ADD, AND, ADDI, "0100"))


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
