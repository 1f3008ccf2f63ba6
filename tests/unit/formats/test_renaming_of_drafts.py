"""What renamers do, in drafts of scheduling models: what LLVM is told, what not, and what is read again."""

from __future__ import annotations

import re

import msgspec
import pytest

from cyclescope.errors import CyclescopeError
from cyclescope.formats.exchange import ImportRequest
from cyclescope.formats.llvm.drafts import read
from cyclescope.formats.llvm.renaming import BREAKING, MOVES, ZEROS, renaming
from cyclescope.formats.llvm.scheduling import WIDTH, write
from cyclescope.model.facts import (
    DEPENDENCY_BREAKING,
    ITSELF,
    MOVE_ELIMINATION,
    ZERO_IDIOMS,
    CoreAnswer,
    Fact,
)
from cyclescope.model.library import shipped
from cyclescope.model.machine import FormCost, Operation
from tests.support.made.models import exchanged
from tests.support.programs.tablegen import TBLGENS, generated

XOR, MOV, PXOR, SBB = "XOR_31 (R64, R64)", "MOV_89 (R64, R64)", "VPXOR (YMM, YMM, YMM)", "SBB_19 (R64, R64)"
VMOV, ADD = "VMOVAPS_28 (YMM, YMM)", "ADD_01 (R64, R64)"
ONE = (Operation((0, 1)),)
MOVED = FormCost(1.0, (), {"op2->op1": 0.0}, eliminated=True)
ZERO = FormCost(1.0, ONE, {"op1->op1": 1.0, "op2->op1": 1.0}, idiom="zero")
BROKEN, PLAIN = (msgspec.structs.replace(ZERO, idiom=idiom) for idiom in ("breaking", ""))


def machine(costs, isa="x86-64", **facts):
    """A machine of these costs, with answers by probe and subject."""
    found = tuple(Fact(probe, subject, answer) for (probe, subject), answer in facts.get("facts", {}).items())
    return msgspec.structs.replace(exchanged(1, isa), forms=costs, facts=found)


def said(model):
    return {opcode: (one.function, one.predicate) for opcode, one in renaming(model).said.items()}


def test_moves_and_idioms_are_written_as_llvm_writes_them():
    text = write(machine({XOR: ZERO, MOV: MOVED, VMOV: MOVED, PXOR: ZERO, SBB: BROKEN})).text
    flat = " ".join(text.split())
    assert (
        "def : IsOptimizableRegisterMove<[ InstructionEquivalenceClass<[MOV64rr, VMOVAPSYrr], TruePred> ]>;"
    ) in flat
    same = "CheckSameRegOperand<1, 2>"
    assert f"def : IsZeroIdiomFunction<[ DepBreakingClass<[XOR64rr, VPXORYrr], {same}> ]>;" in flat
    assert f"def : IsDepBreakingFunction<[ DepBreakingClass<[SBB64rr], {same}> ]>;" in flat
    assert "def Znver9Integers : RegisterFile<10000, [GR64], [1], [1]>;" in flat
    assert "def Znver9Vectors : RegisterFile<10000, [VR256X], [1], [1]>;" in flat
    assert max(map(len, text.splitlines())) <= WIDTH + 1
    number = re.search(r"InstRW<\[Znver9Write(\d+)OrZero\], \(instrs XOR64rr, VPXORYrr\)", flat)[1]
    zero = f"Znver9Write{number}Zero"
    assert f"def {zero} : Znver9Cost<[], [], 0, 1>;" in flat
    assert (
        f"def Znver9Write{number}OrZero : SchedWriteVariant<[ "
        f"SchedVar<MCSchedPredicate<{same}>, [{zero}]>, SchedVar<NoSchedPred, [Znver9Write{number}]> ]>;"
    ) in flat


def test_a_machine_without_any_has_nothing_of_it():
    text = write(machine({XOR: PLAIN, MOV: PLAIN})).text
    for word in ("RegisterFile", MOVES, ZEROS, BREAKING, "SchedVar<", "not said"):
        assert word not in text


def test_llvm_and_we_say_the_same_of_zen_4():
    """Which sources are compared, and in which registers: as LLVM's X86ScheduleZnver4.td has them."""
    found = said(shipped("znver4"))
    assert found["CMP64rr"][1] == "CheckSameRegOperand<0, 1>"
    assert found["VPXORYrr"] == (ZEROS, "CheckSameRegOperand<1, 2>")
    assert found["SBB64rr"] == (BREAKING, "CheckSameRegOperand<1, 2>")
    assert found["MOV32rr"] == found["XCHG64rr"] == found["VMOVUPSYrr"] == (MOVES, "TruePred")


@pytest.mark.parametrize(
    ("cost", "broken", "idle", "function"),
    [
        (PLAIN, CoreAnswer.BREAKING, CoreAnswer.ZERO, ZEROS),
        (PLAIN, None, CoreAnswer.ZERO, ZEROS),
        (PLAIN, CoreAnswer.BREAKING, CoreAnswer.EXECUTED, BREAKING),
        (PLAIN, CoreAnswer.BREAKING, None, BREAKING),
        (ZERO, CoreAnswer.BREAKING, None, ZEROS),
        (ZERO, CoreAnswer.BREAKING, CoreAnswer.EXECUTED, BREAKING),
        (ZERO, CoreAnswer.DEPENDENT, None, ""),
        (BROKEN, None, CoreAnswer.EXECUTED, BREAKING),
        (PLAIN, CoreAnswer.DEPENDENT, CoreAnswer.EXECUTED, ""),
        (PLAIN, None, CoreAnswer.EXECUTED, ""),
    ],
)
def test_what_probes_found_goes_before_what_forms_say(cost, broken, idle, function):
    facts = {(DEPENDENCY_BREAKING, XOR): broken, (ZERO_IDIOMS, XOR): idle}
    facts = {key: answer for key, answer in facts.items() if answer}
    assert said(machine({XOR: cost}, facts=facts)).get("XOR64rr", ("",))[0] == function


def test_moves_that_probes_found():
    both = machine({MOV: PLAIN}, facts={(MOVE_ELIMINATION, MOV): CoreAnswer.ELIMINATED})
    assert said(both) == {"MOV64rr": (MOVES, "TruePred")}
    itself = (MOVE_ELIMINATION, MOV + ITSELF)
    apart = {(MOVE_ELIMINATION, MOV): CoreAnswer.ELIMINATED, itself: CoreAnswer.EXECUTED}
    assert said(machine({MOV: PLAIN}, facts=apart)) == {
        "MOV64rr": (MOVES, "CheckNot<CheckSameRegOperand<0, 1>>")
    }
    assert said(machine({MOV: MOVED}, facts={(MOVE_ELIMINATION, MOV): CoreAnswer.EXECUTED})) == {}
    assert said(machine({MOV: MOVED}, facts={(MOVE_ELIMINATION, MOV): CoreAnswer.NONE})) == said(both)


def test_constants_are_those_that_probes_ask_with():
    """A move of RISC-V is an addition of nothing; of a form alone nobody knows the constant."""
    asked = {(MOVE_ELIMINATION, "ADDI"): CoreAnswer.ELIMINATED}
    assert said(machine({"ADDI": PLAIN}, "riscv64", facts=asked)) == {"ADDI": (MOVES, "CheckZeroOperand<2>")}
    broken = {(DEPENDENCY_BREAKING, "EORXrs"): CoreAnswer.BREAKING}
    assert said(machine({"EORXrs": PLAIN}, "aarch64", facts=broken)) == {
        "EORXrs": (BREAKING, "CheckAll<[CheckSameRegOperand<1, 2>, CheckZeroOperand<3>]>")
    }
    found = renaming(machine({"ADDI": MOVED}, "riscv64"))
    assert (found.said, [*found.unsaid.values()]) == ({}, [["ADDI"]])


@pytest.mark.parametrize(
    ("name", "cost", "words"),
    [
        ("FXCH (ST0, STi)", MOVED, "as many sources as results"),
        ("CMPXCHG (R64, R64)", MOVED, "as many sources as results, one or two"),
        ("IMUL (R64, R64)", MOVED, "as many sources as results"),
        ("LEA_B_D8 (R64)", MOVED, "an address"),
        ("NOT (R64)", BROKEN, "two or more"),
        ("PSHUFD (XMM, XMM, I8)", MOVED, "for which ones it holds"),
        ("CMP_38 (R8h, R8l)", BROKEN, "several kinds"),
        ("ADD_LOCK (M64, R64)", BROKEN, "no opcode"),
    ],
)
def test_what_llvm_has_no_words_for_is_a_comment(name, cost, words):
    text = write(machine({name: cost, ADD: PLAIN})).text
    *_, comment = text.partition("// The ports")[0].rstrip().split("\n\n")
    told = " ".join(comment.replace("// ", "").split())
    assert told.startswith("Eliminated or an idiom, and not said to LLVM: ")
    assert words in told
    assert told.endswith(f": {name}")
    assert all(len(line) <= WIDTH for line in comment.splitlines())
    assert MOVES not in text and BREAKING not in text


def test_forms_of_one_opcode_have_to_agree():
    low, high = "CMP_38 (R8l, R8l)", "CMP_38 (R8h, R8h)"
    assert said(machine({low: BROKEN, high: BROKEN})) == {"CMP8rr": (BREAKING, "CheckSameRegOperand<0, 1>")}
    found = renaming(machine({low: BROKEN, high: PLAIN}))
    assert (found.said, found.unsaid) == ({}, {"LLVM has one opcode for forms that differ": [low]})


def again(text, tmp_path):
    (tmp_path / "read.td").write_text(text)
    return read(tmp_path / "read.td", ImportRequest("again", "a draft")).model


def test_drafts_give_it_back(tmp_path):
    unknown = "PXOR (XMM, XMM)"
    costs = {XOR: ZERO, MOV: MOVED, SBB: BROKEN, ADD: PLAIN, unknown: FormCost(1.0, None, idiom="zero")}
    text = write(machine(costs)).text
    found = again(text, tmp_path).forms
    assert "PXORrr" in text
    assert unknown not in found, "it has no cost"
    assert {name: (found[name].eliminated, found[name].idiom) for name in costs if name != unknown} == {
        XOR: (False, "zero"), MOV: (True, ""), SBB: (False, "breaking"), ADD: (False, ""),
    }  # fmt: skip
    assert found[XOR].operations == ONE
    assert found[XOR].latencies["op2->op1"] == 1.0


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("def : IsZeroIdiomFunction<[", "def : IsSomething<[", "no function of drafts"),
        ("SchedVar<NoSchedPred, [", "SchedVar<NoSchedPred, [Other", "'OtherZnver9Write"),
        ("RegisterFile<10000,", "RegisterFile<x,", "not of a draft"),
    ],
)
def test_what_is_no_draft_is_refused(old, new, line, tmp_path):
    text = write(machine({XOR: ZERO, MOV: MOVED})).text
    assert old in text
    with pytest.raises(CyclescopeError, match=line):
        again(text.replace(old, new), tmp_path)


@pytest.mark.skipif(not TBLGENS, reason="no llvm-tblgen with its includes")
@pytest.mark.parametrize("tblgen", TBLGENS, ids=lambda one: str(one[1]))
@pytest.mark.parametrize("isa", ["x86-64", "aarch64", "riscv64"])
def test_llvm_takes_it(isa, tblgen, tmp_path):
    """And makes of it the functions that llvm-mca calls."""
    model = shipped("znver4") if isa == "x86-64" else _asked(isa)
    made = generated(write(model).text, "-gen-subtarget", tblgen, tmp_path)
    for function in ("isZeroIdiom", "isDependencyBreaking", "isOptimizableRegisterMove"):
        assert f"{function}(const MCInst &MI" in made
    assert all(f"case X::{one}:" in made for one in said(model))


def _asked(isa):
    """A machine whose probes found one of each."""
    move, zero, broken = {
        "aarch64": ("FMOVDr", "EORv16i8", "EORXrs"), "riscv64": ("ADDI", "XOR", "SUB")
    }[isa]  # fmt: skip
    facts = {
        (MOVE_ELIMINATION, move): CoreAnswer.ELIMINATED,
        (MOVE_ELIMINATION, move + ITSELF): CoreAnswer.EXECUTED,
        (ZERO_IDIOMS, zero): CoreAnswer.ZERO, (DEPENDENCY_BREAKING, broken): CoreAnswer.BREAKING,
    }  # fmt: skip
    return machine(dict.fromkeys((move, zero, broken), PLAIN), isa, facts=facts)
