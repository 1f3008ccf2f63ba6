"""What loops cost through memory on a core whose ways through it were found out."""

from __future__ import annotations

import shutil

import msgspec
import pytest

from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.model.facts import (
    FORWARDING,
    LOOPED,
    RENAMING,
    STACKED,
    VECTOR,
    CoreAnswer,
    Fact,
    LoadWork,
    MemoryWay,
    forwarding_subject,
    transfer_subject,
    worked_subject,
)
from cyclescope.model.machine import FormCost
from tests.support.code.blocks import FORWARD, LOAD, block, changed, measured, predicted
from tests.support.made.ways import FACTS, FAILED, SLOW

pytestmark = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("mov [rdi], rax; mov rax, [rdi]; imul rax, rax", 3),
        ("mov [rdi + rcx], rax; mov rax, [rdi + rcx]; imul rax, rax", SLOW + 3),
        ("mov [rdi], rax; imul rdi, rdi, 3; mov rax, [rdi]; imul rax, rax", 3),  # another address
        ("mov [rdi + 8], rax; add rdi, 8; mov rax, [rdi]; imul rax, rax", SLOW + 3),
        ("mov [rdi], rax; mov rax, [rdi + 4]; imul rax, rax", FAILED + 3),
        ("mov [rdi], rax; add rax, [rdi]", 1),  # the addition is all that is left
        ("mov [rdi], rax; mov rax, [rdi]; add [rdi], rax; mov rax, [rdi]", 1),
        ("add rbx, [rdi]; mov [rdi], rbx", 1),
    ],
)
def test_ways_take_what_was_found_out(text, cycles):
    assert predicted(text, *FACTS).bounds["loop_carried"] == pytest.approx(cycles)


@pytest.mark.parametrize(("operation", "own", "cycles"), [(1, 1, 3), (2, 2, 4), (2, 2.5, 4.5), (2, 9, 5)])
def test_what_an_update_stored_is_there_as_soon_as_for_its_own_next_operation(operation, own, cycles):
    """A cycle is what a store takes that is no update; the operation's own cycles are the form's."""
    added = Fact(RENAMING, worked_subject(LoadWork.ADDED), CoreAnswer.RENAMED, 1.0, 0.05)
    latencies = {"op1.data->op1.data": own, "op1.address->flags.ZF": LOAD + operation}
    machine = changed(measured(*FACTS, added), ADD_M64_I8={"latencies": latencies})
    found = predicted("mov [rdi], rax; add qword ptr [rdi], 1; add rax, [rdi]", machine=machine)
    assert found.bounds["loop_carried"] == pytest.approx(cycles)


ON_STACK = (
    Fact(FORWARDING, forwarding_subject(64, 64, 0), CoreAnswer.FORWARDED, SLOW, 0.05),
    Fact(FORWARDING, forwarding_subject(32, 32, 0), CoreAnswer.FORWARDED, SLOW, 0.05),
    Fact(RENAMING, MemoryWay.BASE, CoreAnswer.FORWARDED, SLOW, 0.05),
    Fact(RENAMING, MemoryWay.STACK, CoreAnswer.RENAMED, 0.0, 0.05),
    Fact(RENAMING, MemoryWay.STACK_UPDATED, CoreAnswer.RENAMED, 0.0, 0.05),
    Fact(RENAMING, transfer_subject(64, STACKED), CoreAnswer.RENAMED, 0.0, 0.05),
    Fact(RENAMING, transfer_subject(32, STACKED), CoreAnswer.RENAMED, 0.0, 0.05),
    Fact(RENAMING, worked_subject(LoadWork.SIGNED, 32, 32, STACKED), CoreAnswer.FORWARDED, SLOW + 1, 0.05),
    Fact(RENAMING, worked_subject(LoadWork.ADDED, kind=STACKED), CoreAnswer.FORWARDED, SLOW + 2, 0.05),
)


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("mov [rsp + 8], rax; mov rax, [rsp + 8]; imul rax, rax", 3),
        ("mov [rbp + 8], rax; mov rax, [rbp + 8]; imul rax, rax", SLOW + 3),
        ("mov [rsp + 8], eax; movsxd rax, dword ptr [rsp + 8]; imul rax, rax", SLOW + 4),
        ("mov [rsp + 8], rax; add rcx, [rsp + 8]; mov rax, rcx", SLOW + 4),
        ("mov [rsp + 8], rax; add qword ptr [rsp + 8], 1; mov rax, [rsp + 8]", 1),
        ("add qword ptr [rsp + 8], 1", 1),
    ],
)
def test_what_is_stored_by_the_stack_pointer_has_ways_of_its_own(text, cycles):
    own = {"op1.data->op1.data": SLOW + 1}
    machine = changed(measured(*ON_STACK), ADD_M64_I8={"latencies": own})
    assert predicted(text, machine=machine).bounds["loop_carried"] == pytest.approx(cycles)


@pytest.mark.parametrize(
    ("between", "overwritten"),
    [
        ("sub rsp, 32; add rsp, 32", False),
        ("push rcx; pop rdx", False),
        ("mov rbx, rsp; mov rsp, rbx", True),
        ("lea rsp, [rsp - 32]; lea rsp, [rsp + 32]", True),
    ],
)
def test_a_stack_pointer_that_is_overwritten_is_another_base(between, overwritten):
    """As where a frame is left by MOV; without the fact it is the way of the stack pointer."""
    text = f"mov [rsp + 8], rax; {between}; mov rax, [rsp + 8]; imul rax, rax"
    asked = Fact(RENAMING, MemoryWay.STACK_OVERWRITTEN, CoreAnswer.FORWARDED, SLOW, 0.05)
    found = predicted(text, machine=measured(*ON_STACK, asked)).bounds["loop_carried"]
    assert found == pytest.approx(SLOW + 3 if overwritten else 3)
    assert predicted(text, machine=measured(*ON_STACK)).bounds["loop_carried"] == pytest.approx(3)


@pytest.mark.parametrize(
    ("own", "text", "cycles"),
    [
        (1.0, "add [rdi], rax; mov rax, [rdi]", 1),
        (SLOW + 1, "add [rdi], rax; mov rax, [rdi]", SLOW + 1),
        (SLOW + 1, "add [rdi], rcx; mov rax, [rdi]; add rax, 1; mov [rdi], rax", 2 * SLOW + 2),
        (
            SLOW + 1,
            "mov [rdi], rax; mov rax, [rdi]; imul rax, rax",
            3,
        ),  # other forms are renamed all the same
    ],
)
def test_what_waits_for_its_own_stores_is_not_renamed(own, text, cycles):
    """Microcode on a Zen 5: CMPXCHG, XADD, BTS, double shifts."""
    forwarded = Fact(FORWARDING, forwarding_subject(64, 64, 0), CoreAnswer.FORWARDED, SLOW, 0.05)
    renamed = Fact(RENAMING, MemoryWay.BASE, CoreAnswer.RENAMED, 0.0, 0.05)
    added = {"op1.data->op1.data": own, "op2->op1.data": 1.0}
    machine = changed(measured(forwarded, renamed), ADD_M64_R64={"latencies": added})
    assert predicted(text, machine=machine).bounds["loop_carried"] == pytest.approx(cycles)


@pytest.mark.parametrize(("base", "said"), [("rsp", "renamed memory"), ("rbp", "forwarded")])
def test_what_takes_less_than_a_load_is_said_to_be_renamed(base, said):
    found = predicted(f"mov [{base} + 8], rax; mov rax, [{base} + 8]", machine=measured(*ON_STACK))
    assert [one.remarks for one in found.instructions] == [(), (said,)]


OWN = (
    *FACTS,
    Fact(RENAMING, MemoryWay.REWRITTEN_SHORT, CoreAnswer.RENAMED, 0.1, 0.2),
    Fact(RENAMING, MemoryWay.UPDATED, CoreAnswer.FORWARDED, SLOW - 1, 0.05),
)
UPDATE = "mov rbx, [rsi]; add qword ptr [rbx], 1"


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("add qword ptr [rbx], 1", 1),
        (UPDATE, SLOW),
        (UPDATE + "; dec rcx; jne .", 1),  # so few that the core learns them
        ("; ".join([UPDATE] * 12) + "; dec rcx; jne .", 12),
        ("; ".join([UPDATE] * 13) + "; dec rcx; jne .", 13 * SLOW),
        ("mov [rdi + 8], rax; add rdi, 8; mov rax, [rdi]; imul rax, rax; jne .", 3),
        ("mov [rdi + rcx], rax; add rcx, 8; mov rax, [rdi + rcx - 8]; imul rax, rax", SLOW + 3),
    ],
)
def test_what_a_core_learns_of_few_loads_counts_in_short_loops(text, cycles):
    own = {"op1.data->op1.data": 1.0}
    machine = changed(measured(*OWN), ADD_M64_I8={"latencies": own})
    assert predicted(text, machine=machine).bounds["loop_carried"] == pytest.approx(cycles)


FORWARDING_ONLY = (
    *FACTS[:2],
    Fact(RENAMING, MemoryWay.BASE, CoreAnswer.FORWARDED, SLOW, 0.05),
    Fact(RENAMING, MemoryWay.UPDATED, CoreAnswer.FORWARDED, SLOW - 1, 0.05),
    Fact(RENAMING, MemoryWay.INDEXED, CoreAnswer.FORWARDED, SLOW, 0.05),
)


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("add qword ptr [rbx], 1", SLOW),
        ("add qword ptr [rbx], 1; mov rax, [rbx]", SLOW),  # another load leaves the chain as it is
        ("add qword ptr [rbx], 1; mov rax, [rbx]; cmp [rbx + 8], rax", SLOW),
        ("add qword ptr [rbx + rcx], 1", SLOW),
    ],
)
def test_an_update_of_memory_takes_its_way_where_no_base_is_renamed(text, cycles):
    """By its own latency it takes longer: that is of one update after the other, and nothing else."""
    own = {"op1.data->op1.data": SLOW + 2}
    machine = changed(measured(*FORWARDING_ONLY), ADD_M64_I8={"latencies": own})
    assert predicted(text, machine=machine).bounds["loop_carried"] == pytest.approx(cycles)


IN_SHORT = (
    *FORWARDING_ONLY,
    Fact(FORWARDING, forwarding_subject(16, 16, 0), CoreAnswer.FORWARDED, SLOW, 0.05),
    Fact(FORWARDING, forwarding_subject(64, 32, 4), CoreAnswer.FORWARDED, SLOW, 0.05),
    Fact(RENAMING, MemoryWay.REWRITTEN_SHORT, CoreAnswer.RENAMED, 0.0, 0.05),
    Fact(RENAMING, transfer_subject(64, LOOPED), CoreAnswer.RENAMED, 0.0, 0.05),
    Fact(RENAMING, transfer_subject(16, LOOPED), CoreAnswer.FORWARDED, SLOW, 0.05),
    Fact(RENAMING, worked_subject(LoadWork.ADDED, kind=LOOPED), CoreAnswer.FORWARDED, SLOW + 2, 0.05),
)
LOOP = "; dec rcx; jne ."


@pytest.mark.parametrize(
    ("text", "alone", "in_loop"),
    [
        ("mov [rdi], rax; mov rax, [rdi]; imul rax, rax", SLOW + 3, 3),
        ("mov [rdi], ax; mov ax, [rdi]; imul rax, rax", SLOW + 3, SLOW + 3),  # a size that no loop renames
        ("mov [rdi], rax; mov eax, [rdi + 4]; imul rax, rax", SLOW + 3, SLOW + 3),  # nor a part
        ("mov [rdi], rax; add rbx, [rdi]; mov rax, rbx", SLOW + 2, SLOW + 4),
        ("add qword ptr [rbx], 1", SLOW, 1),
    ],
)
def test_what_a_core_renames_in_short_loops_alone(text, alone, in_loop):
    own = {"op1.data->op1.data": SLOW + 2}
    machine = changed(measured(*IN_SHORT), ADD_M64_I8={"latencies": own})
    found = [predicted(one, machine=machine).bounds["loop_carried"] for one in (text, text + LOOP)]
    assert found == pytest.approx([alone, in_loop])


def test_what_is_computed_takes_what_is_known_and_not_the_most_of_a_range():
    latencies = {"op2->flags.CF": 1.0, "op2->flags.PF": 9.0}
    costs = {"latencies": latencies, "ranges": {"op2->flags.PF": (1.0, 9.0)}}
    machine = changed(measured(*FORWARDING_ONLY), ADD_M64_R64=costs)
    assert predicted("add [rbx], rax", machine=machine).bounds["loop_carried"] == pytest.approx(SLOW)


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("push rax; pop rax; imul rax, rax", 3),
        ("push rbp; imul rbp, rbp; push rbp; pop rbp; mov rax, rsp; pop rbp", 0),  # what was pushed first
        ("push rax; pop rbx; imul rbx, rbx; push rbx; pop rax", 3),
        ("mov [rsp], rax; push qword ptr [rsp]; pop rax; imul rax, rax", 3),
        ("mov [rsp], rax; not qword ptr [rsp]; mov rax, [rsp]; imul rax, rax", 3 + 1),  # that does more
        ("mov [rsp], rax; popcnt rax, [rsp]; imul rax, rax", SLOW + 2 + 1 + 3),
    ],
)
def test_what_only_loads_adds_nothing_to_a_way(text, cycles):
    pointer = {"latencies": {"RSP->RSP": 1.0}}  # which is nothing of what is pushed
    machine = changed(measured(*ON_STACK), POPCNT_R64_M64={"latencies": {}}, PUSH_M64=pointer)
    found = Predictor(machine).predict(block(text))
    assert found.lcd == pytest.approx(cycles)
    assert found.upper == pytest.approx(found.cycles, abs=0.3), "simulated, too"


WIDE, LATER = 9.0, 2.0  # cycles of the way to a vector, and by which loads of vectors are later than others
VECTORS = (
    Fact(FORWARDING, forwarding_subject(64, 64, 0), CoreAnswer.FORWARDED, SLOW, 0.05),
    Fact(FORWARDING, forwarding_subject(64, 64, 0, VECTOR), CoreAnswer.FORWARDED, WIDE, 0.05),
    Fact(FORWARDING, forwarding_subject(128, 64, 8, VECTOR), CoreAnswer.FORWARDED, WIDE, 0.05),
    Fact(FORWARDING, forwarding_subject(128, 128, 0, VECTOR), CoreAnswer.FORWARDED, WIDE, 0.05),
    Fact(FORWARDING, forwarding_subject(32, 64, 0, VECTOR), CoreAnswer.FAILED, FAILED, 0.05),
    Fact(RENAMING, MemoryWay.BASE, CoreAnswer.RENAMED, 0.0, 0.05),
)


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("movups [rdi], xmm0; lddqu xmm0, [rdi]", WIDE),
        ("movups [rdi], xmm0; pshufd xmm0, [rdi], 0", WIDE + 1),
        ("movq [rdi], xmm0; mov rax, [rdi]; movq xmm0, rax", WIDE - LATER + 1),
        ("movups [rdi], xmm0; mov rax, [rdi + 8]; movq xmm0, rax", WIDE - LATER + 1),
        ("movd [rdi], xmm0; mov rax, [rdi]; movq xmm0, rax", FAILED - LATER + 1),
        ("mov [rdi], rax; movq xmm0, [rdi]; movq rax, xmm0", WIDE + 1),
        ("mov [rdi], rax; mov rax, [rdi]; imul rax, rax", 3),
    ],
)
def test_what_a_load_of_a_vector_takes_longer_counts_where_it_is_one(text, cycles):
    by_address = {"latencies": {"op2.address->op1": LOAD + LATER}}
    machine = changed(
        measured(*VECTORS), MOVUPS_XMM_M128=by_address, LDDQU_XMM_M128=by_address,
        PSHUFD_XMM_M128_I8={"latencies": {"op2.address->op1": LOAD + LATER + 1}},
    )  # fmt: skip
    found = Predictor(machine).predict(block(text))
    assert found.lcd == pytest.approx(cycles)
    assert found.upper == pytest.approx(found.cycles, abs=0.3), "simulated, too"


def test_without_facts_the_way_is_the_models():
    assert predicted("mov [rdi], rax; mov rax, [rdi]").bounds["loop_carried"] == FORWARD


def test_no_fact_of_a_size_leaves_the_model_to_say():
    assert predicted("mov [rdi], eax; mov eax, [rdi]", *FACTS).bounds["loop_carried"] == FORWARD


def test_what_was_measured_of_an_instruction_itself_comes_first():
    own = {"op1.data->op1.data": 2.5}
    machine = changed(measured(*FACTS), ADD_M64_I8={"latencies": own})
    assert predicted("add qword ptr [rdi], 1", machine=machine).bounds["loop_carried"] == 2.5


def test_the_least_that_is_proved_does_not_wait_for_memory():
    found = predicted("mov [rdi + rcx], rax; mov rax, [rdi + rcx]; imul rax, rax", *FACTS)
    assert found.lower <= 3


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("fld qword ptr [rdi]; fstp qword ptr [rdi]", 6 + 7),
        ("mov [rdi], rax; fild qword ptr [rdi]; fistp qword ptr [rdi]; mov rax, [rdi]", 11 + 7 + FORWARD),
        ("kmovq [rdi], k1; kmovq k1, [rdi]", 4 + 9),
        ("mov [rdi], rax; mov rax, [rdi]; imul rax, rax", 3),
    ],
)
def test_what_no_probe_asked_of_masks_and_x87_is_not_renamed(text, cycles):
    machine = changed(
        measured(*VECTORS),
        FLD_M64={"latencies": {"op1.data->ST0": 6.0}}, FILD_M64={"latencies": {"op1.data->ST0": 11.0}},
        FSTP_M64={"latencies": {"ST0->op1.data": 7.0}}, FISTP_M64={"latencies": {"ST0->op1.data": 7.0}},
        KMOVQ_M64_K={"latencies": {"op2->op1.data": 4.0}}, KMOVQ_K_M64={"latencies": {"op2.data->op1": 9.0}},
    )  # fmt: skip
    found = Predictor(machine).predict(block(text))
    assert found.lcd == pytest.approx(cycles)
    assert found.upper == pytest.approx(found.cycles, abs=0.3), "simulated, too"


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("stosq; sub rdi, 8; mov rax, [rdi]", SLOW),
        ("stosq; sub rdi, 8; mov rcx, [rdi]", 2),  # a pointer takes nothing of what is stored
        ("stosq; sub rdi, 16; mov rax, [rdi]", 2),  # another place each time
        ("lodsq; sub rsi, 8; mov [rsi], rax", FORWARD + 1),  # no probe asks what strings load
    ],
)
def test_pointers_of_strings_are_followed(text, cycles):
    """They go up by what is accessed, and the copy of the register that is stored has no part in that."""
    stored = {"RAX->[RDI].data": 2.0, "RDI->[RDI].data": LOAD, "RAX->RDI": 0.0, "RDI->RDI": 1.0}
    loaded = {"[RSI].data->RAX": LOAD + 1, "RSI->RAX": LOAD + 1, "RAX->RSI": 0.0, "RSI->RSI": 1.0}
    plain = FormCost(4.0, None, throughput=1.0)
    machine = measured(*FACTS)
    strings = {
        name: msgspec.structs.replace(plain, latencies=latencies)
        for name, latencies in (("STOSQ", stored), ("LODSQ", loaded))
    }
    machine = msgspec.structs.replace(machine, forms={**machine.forms, **strings})
    assert predicted(text, machine=machine).bounds["loop_carried"] == pytest.approx(cycles)
