"""The simulated core with what was found of a core: ways through memory, ports, the stack pointer."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.analyze.depend import graph
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.model.facts import (
    CONSUMERS,
    STACK_ENGINE,
    STACK_MOVES,
    STACK_UPDATE,
    CoreAnswer,
    Fact,
    consumer_subject,
)
from cyclescope.model.machine import EVENLY, GROUPED, IDEAL, STATIC
from tests.support.code.blocks import block, changed, measured, predicted
from tests.support.made.ways import FACTS


def simulated(text, *facts, machine=None, late=False):
    predictor = Predictor(machine or measured(*facts))
    return predictor.simulated(predictor.graph(list(block(text).instructions)), late)


@pytest.mark.parametrize(
    "text",
    [
        "mov [rdi], rax; mov rax, [rdi]; imul rax, rax",
        "mov [rdi + rcx], rax; mov rax, [rdi + rcx]; imul rax, rax",
        "mov [rdi], rax; add rax, [rdi]",
        "add rbx, [rdi]; mov [rdi], rbx",
    ],
)
def test_the_simulated_core_passes_values_as_fast_as_was_found_out(text):
    """A load whose value was renamed waits for no store: the chain takes what it takes by bounds."""
    found = predicted(text, *FACTS)
    assert simulated(text, *FACTS) == pytest.approx(found.cycles, abs=0.02)


def test_a_measured_way_through_memory_is_the_simulated_cores_too():
    """What an addition to memory takes to the next one, whatever is guessed of its flags."""
    slow = {"latencies": {"op1.data->op1.data": 1.0, "op1.address->flags.ZF": 9.0}}
    machine = changed(measured(), ADD_M64_R64=slow)
    assert simulated("add [rdi], rax", machine=machine) == pytest.approx(1, abs=0.02)


def test_accesses_of_unknown_operations_take_simulated_ports_too():
    machine = changed(measured(), PUSH_R64={"operations": None})
    assert simulated("push rax; push rbx", machine=machine) == pytest.approx(2, abs=0.02)


@pytest.mark.parametrize("binding", ["", IDEAL, STATIC, GROUPED])
def test_ports_are_bound_as_was_found_out(binding):
    text = "add rax, rbx; cmp rax, rbx; cmp rax, rbx; add rcx, rbx; cmp rcx, rbx"
    core = msgspec.structs.replace(measured().core, binding=binding)
    machine = msgspec.structs.replace(measured(), core=core)
    ideal, likely, late = (
        simulated(text),
        simulated(text, machine=machine),
        simulated(text, machine=machine, late=True),
    )
    assert (likely == ideal) is (binding in ("", IDEAL))
    assert late > ideal
    assert (late == likely) is (binding == STATIC)
    assert late == simulated(text, late=True), "whatever was found out"


def test_the_upper_end_is_that_of_ports_chosen_late_where_a_better_way_was_found_out():
    """What holds for the kernels of a probe need not be all that a core does."""
    text = "add rax, rbx; cmp rax, rbx; cmp rax, rbx; add rcx, rbx; cmp rcx, rbx"
    core = msgspec.structs.replace(measured().core, binding=EVENLY)
    found = Predictor(msgspec.structs.replace(measured(), core=core)).predict(block(text))
    assert found.upper == simulated(text, late=True) > found.cycles
    assert found.interval[1] >= found.upper


def test_a_scheduler_that_binds_at_dispatch_is_a_bound():
    """A chain waits for what only hangs on it: only a simulation knows."""
    core = msgspec.structs.replace(measured().core, binding=EVENLY)
    machine = msgspec.structs.replace(measured(), core=core)
    text = "add rax, rbx; cmp rax, rbx; cmp rdx, rbx; cmp rdx, rbx"
    found, plain = (Predictor(one).predict(block(text)) for one in (machine, measured()))
    assert "scheduler" not in plain.bounds
    assert found.cycles == found.bounds["scheduler"] == simulated(text, machine=machine)
    assert found.cycles > plain.cycles
    assert found.lower == plain.lower


@pytest.mark.parametrize(("cycles", "chain"), [(0.0, 1), (0.02, 1), (1.0, 2), (0.98, 2), (-0.01, 1)])
def test_when_a_stack_pointer_that_was_counted_is_in_its_register(cycles, chain):
    fact = Fact(STACK_ENGINE, STACK_UPDATE, CoreAnswer.VALUE, cycles, 0.05)
    text = "add rsp, rbx; push rax; pop rcx"
    assert predicted(text, fact).bounds["loop_carried"] == chain
    assert predicted(text).bounds["loop_carried"] == 1  # nobody asked
    assert simulated(text, fact) == pytest.approx(chain, abs=0.02)


@pytest.mark.parametrize(("answer", "busy"), [(CoreAnswer.EXECUTED, 2), (CoreAnswer.ELIMINATED, 1)])
def test_moves_of_the_stack_pointer_are_executed_where_that_was_found(answer, busy):
    free = {"eliminated": True, "operations": (), "latencies": {"op2->op1": 0.0}}
    machine = changed(measured(Fact(STACK_ENGINE, STACK_MOVES, answer, 0.25, 0.01)), MOV_89_R64_R64=free)
    found = predicted("mov rax, rsp; mov rbx, rcx; add rdx, rax", machine=machine)
    assert sum(found.port_cycles) == busy
    chain = predicted("mov rax, rsp; add rsp, rax", machine=machine)
    assert chain.bounds["loop_carried"] == busy


@pytest.mark.parametrize(("answer", "cycles"), [(CoreAnswer.EXECUTED, 1), (CoreAnswer.ELIMINATED, 1)])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_move_of_the_stack_pointer_adds_what_was_counted(monkeypatch, compiled, answer, cycles):
    """One that is executed does it in its own cycle; of one that is not, the copy comes later."""
    if not compiled:
        monkeypatch.setattr(graph, "chains", lambda *_: None)
    free = {"eliminated": True, "operations": (), "latencies": {"op2->op1": 0.0}}
    update = Fact(STACK_ENGINE, STACK_UPDATE, CoreAnswer.VALUE, 1.0, 0.05)
    facts = update, Fact(STACK_ENGINE, STACK_MOVES, answer, 0.25, 0.01)
    machine = changed(measured(*facts), MOV_89_R64_R64=free)
    found = predicted("push rcx; mov rax, rsp; add rax, rbx; mov rsp, rax", machine=machine)
    assert found.bounds["loop_carried"] == cycles + 1


def test_results_come_later_to_operations_of_another_kind():
    early = consumer_subject("ADDSD (XMM, XMM)", "MULSD (XMM, XMM)")
    fact = Fact(CONSUMERS, early, CoreAnswer.VALUE, 1.0, 0.05)
    assert predicted("addsd xmm0, xmm1; mulsd xmm0, xmm2", fact).bounds["loop_carried"] == 1 + 1 + 1
    assert predicted("addsd xmm0, xmm1; addsd xmm0, xmm2", fact).bounds["loop_carried"] == 2
    assert predicted("mulsd xmm0, xmm1; mulsd xmm0, xmm2", fact).bounds["loop_carried"] == 2
    assert simulated("addsd xmm0, xmm1; mulsd xmm0, xmm2", fact) == pytest.approx(3, abs=0.02)
    assert simulated("addsd xmm0, xmm1; addsd xmm0, xmm2", fact) == pytest.approx(2, abs=0.02)
