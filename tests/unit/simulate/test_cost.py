"""What latencies say of operations: who waits for which source, and when."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.model.facts import CLEARING, CONSUMERS, VECTOR_STATES, CoreAnswer, Fact, consumer_subject
from cyclescope.model.machine import EXTRACTED, MEASURED, FormCost, Operation, Provenance
from cyclescope.simulate.cost import Ends, Latencies
from tests.support.code.blocks import LOAD, LOADS, A, B, C, block, changed, toy

TWO = Operation((A, B, C), 2.0)


def simulated(machine, text, kind=MEASURED):
    """Cycles on the simulated core of a machine of some kind."""
    machine = msgspec.structs.replace(machine, provenance=Provenance(kind))
    predictor = Predictor(machine)
    return predictor.simulated(predictor.graph(block(text).instructions))


def shifts(cycles):
    """A machine whose shifts by CL take so many cycles from flags to everything."""
    known = toy().forms["SHL (R64, CL)"].latencies
    latencies = {pair: cycles if pair.startswith("flags") else 1.0 for pair in known}
    return changed(toy(), SHL_R64_CL={"latencies": latencies})


@pytest.mark.parametrize(
    ("cycles", "kind", "expected"), [(0, MEASURED, 1), (1, MEASURED, 2), (0, EXTRACTED, 2)]
)
def test_a_pair_of_no_cycles_is_no_dependency_where_it_was_measured(cycles, kind, expected):
    """An operation takes a cycle at least; LLVM's zeros are operands that are needed later than others."""
    assert simulated(shifts(cycles), "shl rax, cl; shl rbx, cl", kind) == pytest.approx(expected)


def test_what_no_pair_has_cycles_for_ends_no_chain():
    """The flags of the second shift are made of those of the first by nobody."""
    text = "shl rax, cl; shl rbx, cl; cmovc rcx, rax"
    assert Predictor(msgspec.structs.replace(shifts(0), provenance=Provenance(MEASURED))).predict(
        block(text), simulate=False
    ).bounds["loop_carried"] == pytest.approx(2)


@pytest.mark.parametrize(("cycles", "is_none"), [(0.0, True), (1.0, False)])
def test_what_is_stored_waits_for_no_flag_that_no_result_waits_for(cycles, is_none):
    """A shift reads flags to keep them where its count is 0: no chain through memory shows that."""
    flags = [f"flags.{name}" for name in ("CF", "PF", "AF", "ZF", "SF", "OF")]
    form = block("shl dword ptr [rdx], cl").instructions[0].form
    known = {f"{flag}->flags.CF": cycles for flag in flags} | {"op1.data->op1.data": 1.0}
    ends = Ends.of(form, known)
    latencies = Latencies(ends, FormCost(operations=(TWO,), latencies=known), toy().core)
    stored = next(target for target in ends.targets if target.part == "data")
    read = [source for source in ends.sources if source.name in flags]
    assert len(read) == len(flags)
    assert {latencies.between(flag, stored) is None for flag in read} == {is_none}


@pytest.mark.parametrize(("text", "expected"), [("lea rax, [rcx+rax]", 1), ("lea rax, [rax+rcx]", 2)])
def test_a_source_that_is_needed_a_cycle_later_is_so_by_the_second_operation(text, expected):
    known = {"op2.address->op1": 2.0, "op2.index->op1": 1.0}
    machine = changed(toy(), LEA_B_I_R64={"latencies": known, "operations": (TWO,), "slots": 2.0})
    assert simulated(machine, text) == pytest.approx(expected)
    assert simulated(machine, f"{text}; lea rbx, [rax+rcx]; cmp rax, rbx") == pytest.approx(
        max(expected, 5 / 3), rel=0.02
    )


@pytest.mark.parametrize("index", [{}, {"op2.index->op1": LOAD + 2}])
def test_an_operation_takes_no_longer_where_an_index_does_on_the_way_to_its_load(index):
    form, known = block("popcnt rax, [rcx]").instructions[0].form, {"op2.address->op1": LOAD + 1, **index}
    cost = FormCost(operations=(Operation((LOADS,)), Operation((B,))), latencies=known)
    assert Latencies(Ends.of(form, known), cost, toy().core).own == 1.0


@pytest.mark.parametrize(("back", "expected"), [(1.0, 1), (7.0, 7)])
def test_what_an_update_stored_waits_for_no_load_where_none_is_needed(back, expected):
    """Flags are said to come when a load has the data: where these are back before, nothing waits for it."""
    known = {
        "op1.address->op1.data": 7.0, "op1.address->flags.ZF": 5.0, "op1.data->op1.data": back,
        "op1.data->flags.ZF": 5.0, "op2->op1.data": 2.0, "op2->flags.ZF": 1.0,
    }  # fmt: skip
    machine = changed(toy(), ADD_M64_R64={"latencies": known, "slots": 2.0})
    assert simulated(machine, "add [rdx], rbx; add rax, 24") == pytest.approx(expected, rel=0.02)


CLEARED = FormCost(2.0, (Operation((A, B), 2.0),), throughput=1.0)
CHAIN = "vaddpd ymm0, ymm0, ymm1; vpaddd ymm2, ymm2, ymm3; vzeroupper"


def clearing(longer=None):
    """A machine that has VZEROUPPER, of which a probe found how much longer chains take by it."""
    machine = msgspec.structs.replace(toy(), forms=toy().forms | {"VZEROUPPER": CLEARED})
    facts = () if longer is None else (Fact(VECTOR_STATES, CLEARING, CoreAnswer.VALUE, longer, 0.06),)
    return msgspec.structs.replace(machine, facts=facts, provenance=Provenance(MEASURED))


def test_what_clears_all_vectors_makes_none_wait_for_another():
    """The chain of each register goes through it, and through nothing else."""
    assert simulated(clearing(), CHAIN) == pytest.approx(5)  # VADDPD takes 4, and what is unknown 1
    assert simulated(clearing(), "vmulpd ymm0, ymm4, ymm5; vzeroupper; vpaddd ymm0, ymm0, ymm1") < 3


@pytest.mark.parametrize(("longer", "expected"), [(0.0, 4), (-0.05, 4), (0.46, 5), (1.0, 5)])
def test_what_takes_chains_no_longer_needs_no_cycle_and_no_port(longer, expected):
    found = Predictor(clearing(longer)).predict(block(CHAIN), simulate=False)
    assert found.bounds["loop_carried"] == expected
    assert sum(found.port_cycles) == pytest.approx(2.0 + 2.0 * (expected == 5))
    assert simulated(clearing(longer), CHAIN) == pytest.approx(expected)


@pytest.mark.parametrize(("then", "expected"), [("vaddpd", 4), ("vpaddd", 4 + 1 + 1)])
def test_what_takes_chains_no_longer_is_no_other_kind_of_operation(then, expected):
    """VADDPD has its results a cycle sooner for its own kind, with or without VZEROUPPER between them."""
    early = consumer_subject("VADDPD (YMM, YMM, YMM)", "VPADDD (YMM, YMM, YMM)")
    machine = clearing(0.0)
    facts = *machine.facts, Fact(CONSUMERS, early, CoreAnswer.VALUE, 1.0, 0.05)
    machine = msgspec.structs.replace(machine, facts=facts)
    text = f"vzeroupper; {then} ymm0, ymm0, ymm1"
    text = f"vaddpd ymm0, ymm0, ymm1; {text}" if then != "vaddpd" else text
    assert Predictor(machine).predict(block(text), simulate=False).bounds["loop_carried"] == expected
    assert simulated(machine, text) == pytest.approx(expected)


def test_what_takes_chains_no_longer_is_no_quicker_alone():
    assert Predictor(clearing(0.0)).predict(block("vzeroupper"), simulate=False).cycles == 1.0


@pytest.mark.parametrize(
    ("text", "cycles"), [("leave", 4), ("leave; sub rsp, 8", 4), ("leave; lea rbp, [rsp+8]", 2)]
)
def test_a_frame_is_left_by_what_is_loaded_and_the_stack_pointer_by_the_old_frame(text, cycles):
    """The frame pointer waits for its load; the stack pointer comes from the old one in a cycle."""
    machine = changed(toy(), LEAVE={"latencies": {}})
    machine = msgspec.structs.replace(machine, provenance=Provenance(MEASURED))
    assert Predictor(machine).predict(block(text), simulate=False).bounds["loop_carried"] == cycles


def test_what_is_borrowed_of_another_model_is_no_sooner_than_a_load():
    """LLVM says that the frame pointer of LEAVE takes a cycle."""
    machine = changed(toy(), LEAVE={"latencies": {}})
    machine = msgspec.structs.replace(machine, provenance=Provenance(MEASURED))
    for borrowed, expected in ((1.0, 4.0), (5.0, 5.0)):
        other = changed(toy(), LEAVE={"latencies": {"RBP->RBP": borrowed}})
        found = Predictor(machine, other).predict(block("leave"), simulate=False)
        assert found.bounds["loop_carried"] == expected
