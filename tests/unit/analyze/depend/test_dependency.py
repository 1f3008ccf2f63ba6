"""Dependencies of blocks, against latencies added up by hand on the toy machine."""

from __future__ import annotations

import shutil

import msgspec
import pytest

from cyclescope.analyze.cost.instruction import PlacedCosts
from cyclescope.analyze.depend.standing import Standings
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.model.facts import (
    COUNTED_AMONG,
    FUSED_BRANCHES,
    FUSION,
    CoreAnswer,
    Fact,
    fused_subject,
)
from cyclescope.model.machine import Operation
from cyclescope.session.machines import load_model
from tests.support.code.blocks import (
    FORWARD,
    LOAD,
    block,
    changed,
    measured,
    predict,
    predicted,
    predictor,
    toy,
)

pytestmark = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)


def lcd(text, name="toy"):
    return predict(text, name, simulate=False).lcd


def chains(text):
    found = predict(text, simulate=False)
    return [(chain.cycles, chain.iterations, chain.lines) for chain in found.loop_carried]


# --- registers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("imul rax, rax", 3),
        ("imul rax, rbx", 3),
        ("mov rax, rbx; imul rax, rcx", 0),
        ("add rbp, 1; add ebp, 1", 2),
        ("add al, 1; add ah, 1", 2),
        ("imul rax, rax; mov eax, 5", 0),
        ("mov rcx, rax; mov rax, rbx; imul rcx, rcx; mov rbx, rcx", 3),  # 2 moves and imul twice, in 2
        ("lea rax, [rax + rbx]", 1),
        ("xchg rax, rbx", 1),
        ("nop", 0),
        ("vaddpd ymm0, ymm0, ymm1", 4),
        ("vaddpd xmm0, xmm1, xmm2; vaddpd ymm1, ymm0, ymm2", 8),
        ("div rcx", 20),
        ("vaddpd ymm3, ymm2, ymm1; vzeroupper", 1),  # which leaves nothing of one register in another
        ("vaddpd ymm3, ymm3, ymm1; vzeroupper", 5),
    ],
)
def test_registers(text, cycles):
    assert lcd(text) == cycles


def test_a_chain_over_two_iterations_counts_half():
    text = "mov rcx, rax; mov rax, rbx; imul rcx, rcx; mov rbx, rcx"
    assert chains(text) == [(3, 2, (1, 3, 4, 2))]
    rows = [row.loop_carried for row in predict(text).instructions]
    assert rows == [0.5, 0.5, 1.5, 0.5]  # of one iteration


def test_eliminated_moves_take_no_time():
    free = {"eliminated": True, "operations": ()}
    machine = changed(toy(), MOV_89_R64_R64=free, MOV_8B_R64_R64=free)
    found = Predictor(machine).predict(block("mov rcx, rax; mov rax, rbx; imul rcx, rcx; mov rbx, rcx"))
    assert found.lcd == 1.5
    assert [row.remarks for row in found.instructions] == [
        ("eliminated",),
        ("eliminated",),
        (),
        ("eliminated",),
    ]


@pytest.mark.parametrize(("idiom", "cycles", "ports"), [("", 5, 4), ("breaking", 0, 4), ("zero", 0, 3)])
def test_idioms(idiom, cycles, ports):
    machine = changed(toy(), XOR_31_R64_R64={"idiom": idiom}, XOR_33_R64_R64={"idiom": idiom})
    found = Predictor(machine).predict(
        block("xor rax, rax; add rax, rbx; imul rax, rax; nop; nop; mov rcx, rax")
    )
    assert found.lcd == cycles
    assert sum(found.port_cycles) == pytest.approx(ports)
    other = Predictor(machine).predict(block("xor rax, rbx; add rax, rbx; imul rax, rax"))
    assert other.lcd == 5


def test_subtracting_with_borrow_from_itself_still_reads_the_carry():
    machine = changed(toy(), SBB_19_R64_R64={"idiom": "breaking"}, SBB_1B_R64_R64={"idiom": "breaking"})
    assert Predictor(machine).predict(block("sbb rax, rax")).lcd == 1  # the carry
    assert Predictor(machine).predict(block("sbb rax, rax; add rax, rbx")).lcd == 2  # sbb, add, carry


def test_pairs_have_latencies_of_their_own():
    late = {"latencies": {"op1->op1": 2.0, "op2->op1": 4.0, "op3->op1": 4.0}}
    machine = changed(toy(), VFMADD231PD_YMM_YMM_YMM=late)
    model = Predictor(machine)
    assert model.predict(block("vfmadd231pd ymm0, ymm1, ymm2")).lcd == 2
    assert model.predict(block("vfmadd231pd ymm0, ymm0, ymm2")).lcd == 4


# --- flags ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("adc rax, rbx; adc rcx, rdx", 2),
        ("adc rax, rbx; inc rcx; adc rdx, rsi", 2),  # INC keeps the carry
        ("adc rax, rbx; add rcx, 1; adc rdx, rsi", 1),  # ADD does not: chains of one add each
        ("cmp esi, 60; cmovg esi, eax", 2),
        ("cmp esi, 60; test edi, edi; cmovg esi, eax", 1),
        ("cmp esi, 60; imul rcx, rdx, 5; cmovz esi, eax", 1),  # IMUL leaves ZF undefined
        ("cmp esi, 60; imul rcx, rdx, 5; cmovc esi, eax", 1),  # and sets CF, from others
        ("setg al; cmp al, 1", 2),
    ],
)
def test_flags_one_by_one(text, cycles):
    assert max(lcd(text), 1) == cycles


# --- the stack ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("push rax; push rbx; push rcx", 0),
        ("pop rax; pop rbx", 0),
        ("sub rsp, 8; mov rax, [rsp]", 1),
        ("add rsp, 8; pop rbx", 2),  # what pops moved is in the register a cycle later
        ("push rax; pop rbx", 0),
        ("push rax; pop rax", FORWARD),
        ("push rax; mov rax, [rsp]", FORWARD),
        ("push rax; mov rbx, [rsp + 8]; mov rax, [rsp + 8]; pop rcx", 0),
        ("push rax; sub rsp, 16; mov rax, [rsp + 16]; add rsp, 24", FORWARD),
    ],
)
def test_the_stack(text, cycles):
    assert lcd(text) == cycles


# --- memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("mov rax, [rax]", LOAD),
        ("mov [rdi + 8], rax; mov rax, [rdi + 8]; add rax, 1", FORWARD + 1),
        ("mov [rdi + 8], rax; mov rax, [rsi + 8]", 0),
        ("mov [rdi + 8], rax; mov rax, [rdi + 16]", 0),
        ("mov [rdi + 8], rax; mov eax, [rdi + 12]", FORWARD),  # a part
        ("mov [rdi + 8], eax; mov rax, [rdi + 6]", FORWARD),  # more than that
        ("add qword ptr [rdi], 1", FORWARD + 1),
        ("mov [rdi + 8], rax; mov rax, [rdi]; add rdi, 8", FORWARD / 2),  # stored an iteration later
        ("mov rax, [rdi]; mov [rdi + 8], rax; add rdi, 8", FORWARD),
        ("mov rax, [rdi]; mov [rdi + 16], rax; add rdi, 8", FORWARD / 2),
        ("mov rax, [rdi]; mov [rdi + 48], rax; add rdi, 8", FORWARD / 6),
        ("mov rax, [rdi]; mov [rdi + 16], rax; inc rdi", 1),  # 9 iterations back at the nearest
        ("mov rax, [rdi]; mov [rdi + 80], rax; add rdi, 8", 1),  # 7 / 10: the pointer is slower
        ("mov [rdi - 8], rax; mov rax, [rdi]; add rdi, 8", 1),  # behind, never loaded again
        ("mov rax, [rdi + rcx*8]; mov [rdi + rcx*8 + 8], rax; inc rcx", FORWARD),
        ("mov rax, [rdi + rcx*8]; mov [rdi + rcx*4 + 8], rax; inc rcx", 1),  # strides differ
        ("mov rsi, rdi; mov [rsi], rax; mov rax, [rdi]", FORWARD),
        ("lea rsi, [rdi + 8]; mov [rsi], rax; mov rax, [rdi + 8]", FORWARD),
        ("mov [rdi], rax; mov rsi, rdi; add rdi, 8; mov rax, [rsi]", FORWARD),
        ("mov [rdi], rax; sub rdi, -16; mov rax, [rdi - 16]; mov rbx, [rdi]", FORWARD),
        ("shl rcx, 3; mov [rdi + rcx], rax; mov rax, [rdi + rcx]", FORWARD),
        ("movzx ecx, bl; mov [rdi + rcx*8], rax; mov rax, [rdi + rcx*8]", FORWARD),
        ("movzx esi, byte ptr [rbp - 8]; mov rax, [rsi]; mov [rsi], rax", FORWARD),  # whatever ESI was
        ("imul rcx, rcx; mov [rdi + rcx*8], rax; mov rax, [rdi + rcx*8 + 8]", 3),
        ("mov rsi, [rbp - 8]; mov [rsi], rax; mov rdx, [rbp - 8]; mov rax, [rdx]", FORWARD),
        ("mov [rbp - 8], rdi; mov rsi, [rbp - 8]; mov [rsi], rax; mov rax, [rdi]", FORWARD),
        ("mov [0x1000], rax; mov rax, [0x1000]", FORWARD),
        ("vmovsd [rdi], xmm0; vmovsd xmm0, [rdi]", FORWARD),
    ],
)
def test_memory(text, cycles):
    assert lcd(text) == pytest.approx(cycles)


def test_stores_that_have_left_the_buffer_are_in_the_cache():
    text = "mov rax, [rdi]; mov [rdi + 32], rax; add rdi, 8"
    small = Predictor(toy(store_buffer=3))
    assert lcd(text) == pytest.approx(FORWARD / 4)
    assert small.predict(block(text)).lcd == 1  # the pointer
    between = "; ".join(f"mov [rsi + {8 * n}], rcx" for n in range(62))
    near = f"mov [rdi], rax; {between}; mov rax, [rdi]"
    assert lcd(near) == FORWARD
    assert lcd(near.replace("mov rax, [rdi]", "mov [rsi], rdx; mov [rsi], rdx; mov rax, [rdi]")) == 0


@pytest.mark.parametrize(
    ("text", "zen3", "zen4"),
    [
        ("mov [rsp + 8], rax; mov rax, [rsp + 8]; add rax, 1", 1, 1),
        ("mov [rdi + 8], rax; mov rax, [rdi + 8]; add rax, 1", FORWARD + 1, 1),
        ("add qword ptr [rsp + 8], 1", 1, 1),
        ("mov [rsp + 8], al; mov al, [rsp + 8]", FORWARD, FORWARD),
        ("mov [rsp + rcx], rax; mov rax, [rsp + rcx]", FORWARD, FORWARD),
        ("vmovsd [rsp], xmm0; vmovsd xmm0, [rsp]", FORWARD, FORWARD),
        ("mov [rsp], rax; add rax, [rsp]", FORWARD + 1, FORWARD + 1),
        ("push rax; pop rax", 0, 0),
    ],
)
def test_renamed_memory(text, zen3, zen4):
    assert (lcd(text, "toy znver3"), lcd(text, "toy znver4")) == (zen3, zen4)


def test_latencies_of_memory_in_the_model_count_and_others_are_filled_in():
    text = "mov [rdi], rax; mov rax, [rdi]"
    stored = {"latencies": {"op1.address->op1.data": 2.0, "op2->op1.data": 2.0}}
    loaded = {"latencies": {"op2.address->op1": 4.0, "op2.data->op1": 3.5}}
    assert Predictor(changed(toy(), MOV_M64_R64=stored)).predict(block(text)).lcd == 2 + LOAD
    both = changed(toy(), MOV_M64_R64=stored, MOV_R64_M64=loaded)
    assert Predictor(both).predict(block(text)).lcd == 5.5
    unknown = Predictor(toy(forward_latency=0.0)).predict(block(text))
    assert unknown.lcd == LOAD + 2
    assert any("no forwarding latency: 6 cycles" in note for note in unknown.notes)


# --- masks, fusion, paths -------------------------------------------------------------------------


def test_merging_reads_the_destination_and_zeroing_does_not():
    model = predictor()
    assert model.predict(block("vaddpd zmm0{k1}, zmm1, zmm2")).lcd == 4
    assert model.predict(block("vaddpd zmm0{k1}{z}, zmm1, zmm2")).lcd == 0


@pytest.mark.parametrize(
    ("text", "busy"),
    [
        ("dec rax; jne 0", (0.0, 1.0)),
        ("cmp rax, rbx; jne 0", (0.0, 1.0)),
        ("dec rax; nop; jne 0", (0.5, 1.0)),
    ],
)
@pytest.mark.parametrize(("choosing", "shifting"), [((1,), None), ((0, 1, 2), (1,)), ((0, 1), (1, 2))])
def test_what_branches_is_executed_where_all_are_whose_place_it_takes(text, busy, choosing, shifting):
    """That is port 1. What does not branch is executed on any of ports 0, 1 and 5."""
    firsts = ("CMP_39 (R64, R64)", "DEC (R64)")
    fused = [Fact(FUSION, fused_subject(first, "JZ (Rel8)"), CoreAnswer.FUSED) for first in firsts]
    places = zip(COUNTED_AMONG, (choosing, shifting), strict=True)
    counted = [Fact(FUSED_BRANCHES, one, CoreAnswer.VALUE, 1.0, 0.1) for one, at in places if at]
    at = {"JNZ_Rel8": None, "JNZ_Rel32": None, "CMOVZ_R64_R64": choosing, "SHL_R64_I8": shifting}
    costs = {form: {"operations": (Operation(ports),) if ports else None} for form, ports in at.items()}
    for facts, expected in ((fused, (1 / 3, 1 / 3)), ([*fused, *counted], busy)):
        found = predicted(text, loop=True, machine=changed(measured(*facts), **costs))
        assert found.port_cycles[:2] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "busy"), [("cmp rax, rbx; jne 0", {}), ("dec rax; jne 0", {"pb": 1.0, "pa,b,c": 1 / 3})]
)
def test_what_is_fused_keeps_those_sets_of_ports_busy_that_its_operations_are_on(text, busy):
    """Comparisons with branches have a unit of their own, what counts and branches is on port 1."""
    firsts, unknown = ("CMP_39 (R64, R64)", "DEC (R64)"), {"operations": None}
    asked = Fact(FUSED_BRANCHES, fused_subject(firsts[0], "JZ (Rel8)"), CoreAnswer.VALUE, 0.0, 0.1)
    counted = Fact(FUSED_BRANCHES, next(iter(COUNTED_AMONG)), CoreAnswer.VALUE, 1.0, 0.1)
    fused = [Fact(FUSION, fused_subject(first, "JZ (Rel8)"), CoreAnswer.FUSED) for first in firsts]
    machine = changed(
        measured(*fused, asked, counted), JNZ_Rel8=unknown, JNZ_Rel32=unknown,
        CMOVZ_R64_R64={"operations": (Operation((1,)),)},
        CMP_39_R64_R64={"resources": {"pa,b,c": 1.0}}, DEC_R64={"resources": {"pa,b,c": 1.0}},
    )  # fmt: skip
    machine = msgspec.structs.replace(machine, resources={"pb": 1.0, "pa,b,c": 3.0})
    assert predicted(text, loop=True, machine=machine).resources == pytest.approx(busy)


def test_fusion_takes_a_slot_and_the_work_of_the_comparison():
    text = "cmp rax, rbx; jne .-3"
    plain, fused = predict(text), predict(text, "toy skylake")
    assert (plain.slots, fused.slots) == (2, 1)
    assert (sum(plain.port_cycles), sum(fused.port_cycles)) == (pytest.approx(2), pytest.approx(1))
    assert predict("inc rax; jb .-3", "toy skylake").slots == 2  # the carry is not INC's
    assert predict("inc rax; ja .-3", "toy skylake").slots == 2
    assert predict("inc rax; jge .-3", "toy skylake").slots == 1
    assert predict("cmp rax, rbx; js .-3", "toy skylake").slots == 2
    assert predict("cmp rax, rbx; jrcxz .-3", "toy skylake").slots == 2
    assert predict("cmp rax, rbx; loopne .-3", "toy skylake").slots == 2
    assert predict("test rax, rbx; js .-3", "toy skylake").slots == 1
    assert predict("inc rax; jb .-3", "toy znver3").slots == 1
    assert predict("inc rax; jne .-3", "toy znver2").slots == 2
    assert predict("cmp qword ptr [rax], 1; jne .-3", "toy skylake").slots == 2  # memory and immediate
    assert predict("cmp [rax], rbx; jne .-3", "toy skylake").slots == 1
    assert predict("cmp rax, rbx; nop; jne .-3", "toy skylake").slots == 3


@pytest.mark.parametrize(("text", "slots"), [
    ("add rax, rbx; nop", 1),
    ("add rax, rbx; nop word ptr cs:[rax+rax]", 1),
    ("nop; add rax, rbx", 1),  # the copy before ends with an addition
    ("nop; add rax, rbx; vaddpd xmm0, xmm1, xmm2", 3),
    ("nop; add rax, rbx; nop", 2),
    ("nop; add rax, rbx; jmp .-3", 3),  # elsewhere
    ("add rax, rbx; nop; nop", 2),  # a slot takes one NOP beside another instruction
    ("add rax, rbx; nop; add rcx, rbx; nop", 2),
    ("mov rax, [rbx]; nop", 2),  # nothing was asked of memory
    ("vaddpd xmm0, xmm1, xmm2; nop", 2),
])  # fmt: skip
def test_a_nop_shares_the_slot_of_what_is_before_it(text, slots):
    asked = (("ADD_01 (R64, R64)", CoreAnswer.FUSED), ("LEA_B_D8 (R64)", CoreAnswer.FUSED),
             ("PADDD (XMM, XMM)", CoreAnswer.SEPARATE))  # fmt: skip
    facts = [Fact(FUSION, fused_subject(form, "NOP (M32)"), answer) for form, answer in asked]
    assert predicted(text, *facts).slots == slots
    other = Fact(FUSION, fused_subject("MOV_89 (R64, R64)", "NOP (M32)"), CoreAnswer.SEPARATE)
    assert predicted(text, *facts, other).slots == text.count(";") + 1, "not all that were asked do"


def test_the_critical_path_is_that_of_one_iteration():
    found = predict("mov rax, [rdi]; imul rax, rbx; add rcx, rax; mov [rdi], rcx; add rdi, 8")
    assert found.cp == LOAD + 3 + 1
    assert found.critical_path.lines == (1, 2, 3)
    assert [row.critical_path for row in found.instructions] == [4, 3, 1, None, None]


def test_dependencies_are_listed_with_what_they_go_by():
    found = predict("mov [rdi], rax; mov rax, [rdi]; add rax, 1")
    edges = {(e.source, e.target, e.distance, e.by, e.cycles) for e in found.dependencies}
    assert edges == {
        (2, 0, 1, "op2", 0), (0, 1, 0, "op2.data", FORWARD), (1, 2, 0, "op1", 1),
    }  # fmt: skip


@pytest.mark.parametrize("beside", ["", "mov rdx, [rsi]; "])
@pytest.mark.parametrize("distance", [1, 2, 3, 4])
def test_what_was_stored_iterations_before_is_found_beside_what_is_always_at_one_place(distance, beside):
    text = f"mov [rdi], rax; {beside}mov rcx, [rdi-{8 * distance}]; add rdi, 8"
    (found,) = predictor().graph(block(text).instructions).memory
    assert (found.distance, found.store[0]) == (distance, 0)


def test_registers_of_the_x87_stack_are_others_behind_a_push():
    lines = block("fld st(1); fadd st(0), st(1); fld st(1); fadd st(0), st(1)").instructions
    _, first, _, second = Standings(PlacedCosts(load_model("znver3"))).of(lines)
    assert first.plain is second.plain
    assert len(set(first.places.read) | set(second.places.read)) == 3
    assert first.places.read != second.places.read


# --- old values of destinations --------------------------------------------------------------------


def waiting(text, **costs):
    machine = changed(toy(), **costs)
    return Predictor(machine).predict(block(text))


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("movsxd rax, ecx", 2),
        ("movsxd rax, ecx; movsxd rax, ecx", 4),
        ("xor eax, eax; movsxd rax, ecx", 0),  # what a zero idiom makes is there at once
        ("movsxd rax, ecx; add rax, rdx", 3),
        ("movsxd rax, eax", 2),
    ],
)
def test_false_dependencies_are_waited_for(text, cycles):
    found = waiting(text, MOVSXD_R64_R32={"latencies": {"op2->op1": 1.0, "op1.old->op1": 2.0}},
                    XOR_33_R32_R32={"idiom": "zero"}, XOR_31_R32_R32={"idiom": "zero"})  # fmt: skip
    assert found.lcd == cycles
    assert found.upper == pytest.approx(max(cycles, found.cycles), abs=0.3), "the simulated core waits, too"


def test_without_a_latency_of_the_old_value_there_is_no_dependency():
    assert lcd("movsxd rax, ecx") == 0


def test_edges_name_the_old_value():
    found = waiting("movsxd rax, ecx", MOVSXD_R64_R32={"latencies": {"op2->op1": 1.0, "op1.old->op1": 2.0}})
    assert [(edge.cycles, edge.by) for edge in found.dependencies] == [(2.0, "op1.old")]


def test_an_idiom_cuts_the_old_value_too():
    costs = {"idiom": "breaking", "latencies": {"op2->op1": 1.0, "op3->op1": 1.0, "op1.old->op1": 2.0}}
    assert waiting("vaddpd ymm0, ymm1, ymm2", VADDPD_YMM_YMM_YMM=costs).lcd == 2
    assert waiting("vaddpd ymm0, ymm1, ymm1", VADDPD_YMM_YMM_YMM=costs).lcd == 0
