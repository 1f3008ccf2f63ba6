"""What the generator of the shipped machines makes of LLVM's costs, and what came of it."""

from __future__ import annotations

import pytest

from cyclescope.analyze.choose.source import Choice
from cyclescope.analyze.predict.prediction import FRONT_END
from cyclescope.model.library import llvm_model
from cyclescope.session.machines import load_model
from cyclescope.session.predict import predict
from tools.machines.corrections import corrected
from tools.machines.costs import ELIMINATED, Cost
from tools.machines.folded import Register, registers, settled

REGISTERS = registers()
PLAIN, STORING = Register("", {}, False, False), Register("", {}, False, True)
NAMES = ("op1->op1", "op2.address->op1")
KNOWN = {"op1->op1": 3}


@pytest.mark.parametrize(
    ("own", "register", "in_order", "wanted"),
    [
        ((2, 10), PLAIN, False, [3, 10]),  # LLVM's read comes later than the load takes
        ((10, 10), PLAIN, False, [3, 10]),  # LLVM does not say that the read comes late
        ((2, 10), PLAIN, True, [3, 10]),
        ((10, 10), PLAIN, True, [10, 10]),  # in order, all operands are taken together
        ((1, 2), PLAIN, False, [3, 8]),  # a load that LLVM forgot
        ((2, 10), STORING, False, [3, 8]),  # the result does not wait for the store
        ((2, 10), PLAIN._replace(only_less=True), False, [2, 10]),
    ],
)
def test_operands_beside_a_load(own, register, in_order, wanted):
    assert settled(NAMES, own, KNOWN, register, 5, in_order) == wanted


def test_a_class_that_is_not_made_of_the_register_forms_stays():
    """LLVM's divisions of a register take 76 cycles on Skylake, those of memory 29."""
    assert settled(NAMES, (24, 29), {"op1->op1": 76}, PLAIN, 5, False) == [24, 29]
    assert settled(NAMES, (2, 10), {}, PLAIN, 5, False) == [2, 10]


def test_which_form_has_a_register_in_place_of_memory():
    assert REGISTERS["VADDPS (YMM, K, YMM, M32_1to8)"].name == "VADDPS (YMM, K, YMM, YMM)"
    assert REGISTERS["ADD (M32, R32)"].writes
    assert not REGISTERS["ADD (R32, M32)"].writes
    assert REGISTERS["FSUBR (M64)"].name == "FSUBR (ST0, STi)"
    assert REGISTERS["FIADD (M16)"].name == "FADD (ST0, STi)"
    assert REGISTERS["VPSRLD (YMM, YMM, M128)"].only_less
    assert "BT (M32, R32)" not in REGISTERS  # its register is a part of the address
    assert "MOV (M32, R32)" not in REGISTERS
    assert len(REGISTERS) > 8000


def test_corrections_by_what_makers_published():
    ports = ["AGU0", "AGU1", "AGU2", "ALU0", "ALU1", "ALU2", "ALU3"]
    lea = Cost(1, [[[0, 1, 2], 1, 1]], [1], 0)
    assert corrected("LEA_B_D8 (R64)", lea, ports, False).operations == [[[3, 4, 5, 6], 1, 1]]
    assert corrected("MOV (R64, M64)", lea, ports, False) == lea
    assert corrected("LEA_B_D8 (R64)", lea, ["0", "1", "5"], False) == lea
    exchange = Cost(15, [[[0], 2, 1]], [17, 17], 0)
    assert corrected("FXCH (ST0, STi)", exchange, ports, False) == Cost(1, [], [0, 0], ELIMINATED)
    assert corrected("FXCH (ST0, STi)", exchange, ports, True) == exchange


@pytest.mark.parametrize("machine", ["skylake", "znver4", "haswell", "icelake-server"])
def test_the_x87_stack_has_the_latencies_of_its_classes(machine):
    forms = load_model(machine).forms
    for name in ("FADD", "FMUL", "FSUB"):
        stack = forms[f"{name} (ST0, STi)"].latencies["op1->op1"]
        assert stack >= 3
        assert forms[f"{name} (M64)"].latencies["ST0->ST0"] == stack
        assert forms[f"{name} (M64)"].latencies["op1.address->ST0"] > stack


def whole(text, machine):
    return predict(text, machine, choice=Choice(whole=True), syntax="att")


def test_x87_chains():
    forms = load_model("skylake").forms
    add, multiply = (forms[f"{name} (ST0, STi)"].latencies["op1->op1"] for name in ("FADD", "FMUL"))
    assert whole("fadd %st(1), %st; fmul %st(2), %st", "skylake").lcd == add + multiply
    two = whole("faddl (%rsi); fxch %st(1); faddl 8(%rsi); fxch %st(1)", "skylake")
    assert two.lcd == add  # two sums, each at the top of the stack in turn
    # pushed, multiplied, popped into a register further down: the sum alone is carried on
    assert whole("fldl (%rsi); fmul %st(1), %st; faddp %st, %st(2)", "skylake").lcd == add


@pytest.mark.parametrize("machine", ["znver1", "znver3", "znver4", "znver5"])
def test_x87_on_zen_may_take_longer(machine):
    text = "fadd %st(1), %st"
    zen, intel = whole(text, machine), whole(text, "skylake")
    assert zen.interval[1] / zen.lcd > intel.interval[1] / intel.lcd
    assert any("x87" in note for note in zen.notes)
    assert not any("x87" in note for note in intel.notes)


@pytest.mark.parametrize(
    "machine",
    [
        *("sandybridge", "ivybridge", "haswell", "skylake", "icelake-server", "icelake-client", "rocketlake"),
        *("tigerlake", "alderlake", "raptorlake", "sapphirerapids", "emeraldrapids", "graniterapids"),
    ],
)
def test_a_counter_in_memory_on_intel(machine):
    """Published: 5 to 6 cycles."""
    texts = ("addl $1, (%rax)", "notl (%rax)", "subl %ecx, (%rax)")
    cycles = {whole(text, machine).cycles for text in texts}
    assert len(cycles) == 1
    assert 5 <= cycles.pop() <= 6


@pytest.mark.parametrize("machine", ["alderlake", "sapphirerapids", "lunarlake", "raptorlake"])
@pytest.mark.parametrize("line", ["nop", "movq %rax, %rbx", "addq $1, %rax; xorl %eax, %eax"])
def test_what_is_eliminated_takes_a_slot(machine, line):
    code = f"{line}\n" * 12
    found = whole(code, machine)
    assert found.bounds[FRONT_END] == pytest.approx(
        12 * (1 + line.count(";")) / load_model(machine).width.slots
    )
    assert llvm_model("alderlake").forms["NOP"].slots == 0  # as LLVM has it, to compare with LLVM


def test_exchanged_registers_are_not_entangled():
    """Each operand gets the other's value: a chain takes both ways in turn, it is in neither all the time."""
    text = "xchgq %rax, %rbx; imulq %rcx, %rax"
    assert whole(text, "znver4").lcd == pytest.approx(3 / 2)
