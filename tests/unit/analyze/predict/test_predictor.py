"""Predictions on the toy machine: bounds, bracket, rows, and what is refused."""

from __future__ import annotations

import shutil
import sys

import msgspec
import pytest

from cyclescope.analyze.decode.block import Block, Unroll
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.model.machine import EXTRACTED, MEASURED, FormCost, MachineModel, Operation, Provenance
from tests.support.code.blocks import FORWARD, block, changed, predict, predictor, toy

pytestmark = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)
# a loads and multiplies, stores; counted by hand: 2 loads, 1 store, multiplication on a, additions on a b c
KERNEL = "mov rax, [rdi]; imul rax, [rsi]; add rax, rdx; mov [rdi], rax; add rdi, 8; cmp rdi, rcx; jne .-20"


# --- bounds ---------------------------------------------------------------------------------------


def test_bounds_of_a_kernel_counted_by_hand():
    found = predict(KERNEL, loop=True)
    assert found.bounds["ports"] == 2  # the loads
    assert found.full == ("load",)
    assert found.bounds["front_end"] == 7 / 4
    assert found.bounds["loop_carried"] == 1
    assert found.bounds["taken_branches"] == 1
    assert found.cp == 4 + 3 + 1  # load, multiplication, addition; the store goes to memory
    assert (found.cycles, found.bottleneck, found.lower) == (2, "ports", 2)
    assert list(found.alone) == ["ports", "front_end", "loop_carried", "taken_branches"]
    assert found.gap == ("front_end", 0.25)
    assert found.throughput == 2


def test_ports_of_a_kernel_counted_by_hand():
    found = predict(KERNEL)
    # imul on a; add, add, cmp, jne on a, b or c: 5 operations on 3 ports
    assert found.ports == pytest.approx({"a": 5 / 3, "b": 5 / 3, "c": 5 / 3, "load": 2, "store": 1}, abs=1e-5)
    assert found.ports_fixed == pytest.approx({"a": 1 + 4 / 3, "b": 4 / 3, "c": 4 / 3, "load": 2, "store": 1})
    assert found.port_cycles == pytest.approx([5 / 3, 5 / 3, 5 / 3, 2, 1], abs=1e-5)
    rows = [sum(row.ports.values()) for row in found.instructions]
    assert rows == pytest.approx([1, 2, 1, 1, 1, 1, 1])
    assert found.instructions[1].ports == pytest.approx({"a": 1, "load": 1})
    assert found.instructions[2].ports_fixed == pytest.approx({"a": 1 / 3, "b": 1 / 3, "c": 1 / 3})


def test_the_even_split_decides_where_it_is_asked_for():
    text = "imul rax, rbx, 3; add rcx, 1; add rdx, 1; add rsi, 1"
    free, fixed = predict(text), predict(text, fixed=True)
    assert (free.cycles, free.bounds["ports"]) == (4 / 3, pytest.approx(4 / 3))
    assert (fixed.cycles, fixed.bottleneck, fixed.full) == (2, "ports_fixed", ("a",))
    assert fixed.bounds["ports"] == free.bounds["ports"]
    assert fixed.port_cycles == pytest.approx([2, 1, 1, 0, 0])
    assert "ports" not in fixed.alone
    assert "ports_fixed" not in free.alone


def test_a_port_may_be_busy_for_many_cycles():
    slow = {"operations": (Operation((0,), 1, 12), Operation((0, 1, 2)))}
    model = Predictor(changed(toy(), DIV_R64=slow))
    assert model.predict(block("xor edx, edx; div rcx; mov eax, 7")).bounds["ports"] == 12


def test_shared_resources_and_units_that_are_no_ports():
    machine = changed(
        toy(), IMUL_R64_R64={"resources": {"path": 3.0}}, VADDPD_YMM_YMM_YMM={"throughput": 2.5},
        VMULPD_YMM_YMM_YMM={"throughput": 1.03}, DIV_R64={"throughput": 7.0},
    )  # fmt: skip
    model = Predictor(msgspec.structs.replace(machine, resources={"path": 2.0}))
    found = model.predict(block("imul rax, rbx; imul rcx, rdx"))
    assert (found.bounds["resources"], found.resources) == (3, {"path": 3})
    found = model.predict(block("imul rax, rbx; imul rcx, rdx; imul rsi, rdx"))
    assert found.full == ("path",)
    assert (found.cycles, found.lower) == (4.5, 3)  # its port is sure, the resource is not
    assert model.predict(block("vaddpd ymm0, ymm1, ymm2; vaddpd ymm3, ymm1, ymm2")).cycles == 5
    assert "units" not in model.predict(block("vmulpd ymm0, ymm1, ymm2")).bounds  # its port explains it
    assert model.predict(block("xor edx, edx; mov eax, ebx; div rcx")).bounds["units"] == 7


@pytest.mark.parametrize(("whole", "cycles"), [(False, 1.5), (True, 2.0)])
def test_slots_of_an_instruction_are_in_one_cycle_where_the_core_divides_none(whole, cycles):
    three = {"slots": 3.0, "operations": (Operation((0, 1, 2)),), "latencies": {}}
    found = Predictor(changed(toy(whole=whole), LEA_B_R64=three)).predict(
        block("lea rax, [rbx]; lea rcx, [rdx]")
    )
    assert (found.bounds["front_end"], found.cycles) == (cycles, cycles)
    assert found.lower == 1.5, "that much is sure"


MIXED = "vaddpd ymm0, ymm1, ymm2; vsubpd ymm3, ymm1, ymm2"
CUT = "xor edx, edx; mov eax, ebx;"


def test_what_makes_one_form_slow_makes_others_of_the_same_operations_slow():
    """They share it, as far as is known; that is not sure, and no more than their own throughput is."""
    both = {"throughput": 2.5, "operations": (Operation((0, 1)),)}
    machine = changed(toy(), VADDPD_YMM_YMM_YMM=both, VSUBPD_YMM_YMM_YMM=both)
    found = Predictor(machine).predict(block(MIXED))
    assert (found.bounds["units"], found.lower) == (5, 2.5)
    apart = changed(machine, VSUBPD_YMM_YMM_YMM=both | {"operations": (Operation((1, 2)),)})
    assert Predictor(apart).predict(block(MIXED)).bounds["units"] == 2.5


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        (f"{CUT} div rcx; {CUT} idiv rcx", 7 + 9),
        ("divps xmm0, xmm1; sqrtpd xmm2, xmm1", 3 + 8),
        (f"{CUT} div rcx; divps xmm0, xmm1", 7),  # general registers have their own
        ("divps xmm0, xmm1; rsqrtps xmm2, xmm1", 4),  # an estimate is no division
    ],
)
def test_divisions_and_roots_share_what_divides(text, cycles):
    costs = {
        "DIV_R64": 7.0, "IDIV_R64": 9.0, "DIVPS_XMM_XMM": 3.0, "SQRTPD_XMM_XMM": 8.0, "RSQRTPS_XMM_XMM": 4.0,
    }  # fmt: skip
    ports = {name: (Operation((n % 3,)),) for n, name in enumerate(costs)}
    slow = {name: {"throughput": one, "operations": ports[name]} for name, one in costs.items()}
    found = Predictor(changed(toy(), **slow)).predict(block(text))
    assert found.bounds["units"] == cycles
    assert "rcx" in text or found.lower <= max(costs.values()), "that they share it is not sure"


def test_a_form_has_the_unit_of_forms_of_its_operations_for_as_long_as_it_takes():
    both = {"throughput": 2.5, "operations": (Operation((0, 1)),)}
    machine = changed(
        toy(), VADDPD_YMM_YMM_YMM=both | {"resources": {"unit": 2.4, "pa,b": 2.0}}, VSUBPD_YMM_YMM_YMM=both,
        VMULPD_YMM_YMM_YMM={"resources": {"unit": 1.0}},
    )  # fmt: skip
    with_unit = msgspec.structs.replace(machine, resources={"unit": 1.0, "pa,b": 2.0})
    found = Predictor(with_unit).predict(block(f"{MIXED}; vmulpd ymm4, ymm1, ymm2"))
    assert (found.resources["unit"], found.bounds["resources"]) == (6, 6)
    two = changed(with_unit, VSUBPD_YMM_YMM_YMM=both | {"resources": {"other": 2.0}})
    two = msgspec.structs.replace(two, resources={"unit": 1.0, "other": 1.0})
    found = Predictor(changed(two, VDIVPD_YMM_YMM_YMM=both)).predict(block("vdivpd ymm0, ymm1, ymm2"))
    assert found.resources == {}, "which of two it is nobody knows"


def test_locked_instructions_wait_for_memory():
    forms = {name: cost for name, cost in toy().forms.items() if "_LOCK" not in name}
    model = Predictor(msgspec.structs.replace(toy(), forms=forms))
    found = model.predict(block("lock add [rdi], rax; lock add [rsi], rax"))
    assert (found.bounds["locked"], found.bottleneck) == (2 * FORWARD, "locked")
    assert any("locked" in note for note in found.notes)
    assert found.lower < found.cycles


@pytest.mark.parametrize(
    ("text", "chunks"),
    [  # measured on a Zen 4, cycles per iteration, where more than two stores a cycle need
        ("mov [rsi], rax; mov [rsi + 24], rax", 0),
        ("mov [rsi], rax; mov [rsi + 32], rax", 2),
        ("mov [rsi + 24], rax; mov [rsi + 32], rax", 2),
        ("mov [rsi], rax; mov [rsi + 64], rax; mov [rsi + 8], rax; mov [rsi + 72], rax", 4),
        ("mov [rsi], rax; mov [rsi + 8], rax; mov [rsi + 64], rax; mov [rsi + 72], rax", 2),
        ("mov [rsi], rax; mov [rsi + 64], rax; mov [rsi + 72], rax", 2),
        ("mov [rsi], rax; mov [rsi + 8], rax; mov [rsi + 16], rax; mov [rsi + 64], rax", 2),
        ("mov [rsi], rax; mov [rdi], rax", 2),
        ("mov [rsi], rax; mov [rsi + 8], rax; add rsi, 16", 0.5),  # 16 bytes further on, of 32
        ("push rax; push rbx; push rcx; push rdx; add rsp, 32", 0),
        ("push rax; push rbx", 0.5),
    ],
)
def test_stores_to_different_places(text, chunks):
    assert predict(text, "toy znver4").bounds.get("stores", 0) == pytest.approx(chunks)
    assert "stores" not in predict(text).bounds


@pytest.mark.parametrize(
    ("text", "cycles"),
    [  # measured on a Zen 4
        ("mov [rsi], rax; mov rax, [rsi]", 1),
        ("mov [rsi], rax; mov rax, [rsi]; add rax, 1", 1),
        ("mov [rsi], rax; mov rax, [rsi]; imul rax, rax", 3),
        ("mov [rsi], rax; mov rbx, [rsi]; mov [rsi], rbx; mov rax, [rsi]", 2),
        ("add qword ptr [rsi], 1; add qword ptr [rsi], 1", 2),
        ("push rax; pop rax; add rax, 1", 1),
    ],
)
def test_renamed_memory_is_followed_one_step_a_cycle(text, cycles):
    found = predict(text, "toy znver4")
    assert max(found.lcd, found.bounds.get("renamed_memory", 0)) == cycles
    assert "renamed_memory" not in predict(text).bounds


def test_taken_branches():
    assert "taken_branches" not in predict("cmp rax, rbx; jne .-3").bounds
    assert predict("cmp rax, rbx; jne .-3", loop=True).bounds["taken_branches"] == 1
    assert predict("jmp .+2; cmp rax, rbx; jne .-3", loop=True).bounds["taken_branches"] == 2


# --- the bracket ----------------------------------------------------------------------------------


def test_the_lower_end_assumes_nothing_about_memory():
    found = predict("mov [rdi], rax; mov rax, [rdi]; add rax, 1")
    assert (found.lower, found.cycles) == (1, FORWARD + 1)


def test_ranges_are_taken_from_both_ends():
    ranged = {"latencies": {"op2->op1": 1.0, "op1->op1": 4.0},
              "ranges": {"op1->op1": (2.0, 6.0), "op2->flags.CF": (0.0, 9.0)}}  # fmt: skip
    model = Predictor(changed(toy(), IMUL_R64_R64=ranged))
    found = model.predict(block("imul rax, rbx"))
    assert (found.lower, found.cycles) == (2, 4)  # a value counts before its range
    assert model.predict(block("imul rax, rbx; adc rbx, 0")).lcd == 10  # no value: the most


def test_a_dependency_that_the_model_does_not_have_is_no_bound():
    without = {"latencies": {"op1->op1": 3.0}}  # whether it waits for what it multiplies by was withheld
    model = changed(toy(), IMUL_R64_R64=without)
    found = Predictor(model).predict(block("imul rbx, rax; imul rax, rbx"))
    assert (found.lower, found.cycles) == (3, 6)
    extracted = msgspec.structs.replace(model, provenance=Provenance(EXTRACTED))
    assert Predictor(extracted).predict(block("imul rbx, rax; imul rax, rbx")).lower == 6


def test_the_upper_end_binds_ports_at_dispatch():
    found = predict("imul rax, rbx, 3; add rcx, 1; add rdx, 1; add rsi, 1; imul r8, r9, 3")
    assert found.upper >= found.cycles == 2
    assert predict("add rax, 1", simulate=False).upper is None


def test_cores_that_execute_in_order_are_simulated():
    text = "imul rax, rbx, 3; add rax, 1; imul rcx, rbx, 3; add rcx, 1"
    model = Predictor(toy(in_order=True))
    found = model.predict(block(text))
    assert predict(text).cycles == 2
    assert (found.bottleneck, found.cycles) == ("in_order", found.bounds["in_order"])
    assert found.cycles > 4  # each addition waits for its multiplication


def test_a_machine_that_cannot_be_simulated_has_no_upper_end():
    names = tuple(f"p{n}" for n in range(70))
    forms = {name: FormCost(1.0, (Operation((69,)),), {}) for name in toy().forms}
    machine = MachineModel("many", "x86-64", Provenance(EXTRACTED), toy().core, names, forms)
    found = Predictor(machine).predict(block("add rax, rbx"))
    assert (found.cycles, found.upper, found.full) == (1, None, ("p69",))


# --- rows -----------------------------------------------------------------------------------------


def test_units_of_work_and_the_loop():
    found = predict("add rax, 1", unroll_factor=4)
    assert found.per_unit == 0.25
    assert predict("add rax, 1").per_unit is None
    one = block("add rdi, 32")
    moved = Block(
        one.instructions, one.isa, "a.s", "f", "lines 1-3", {}, True, Unroll(("R64", 7), 4, 32, 32, 4)
    )
    found = predictor().predict(moved)
    assert (found.pointer_increment, found.elements) == (32, 4)
    assert (found.loop, found.source, found.name) == (True, "a.s", "f")


def test_rows_say_what_is_on_the_paths():
    found = predict("imul rax, rbx; add rax, 1; mov rcx, [rax]; push rcx")
    assert [row.loop_carried for row in found.instructions] == [3, 1, None, None]
    assert [row.critical_path for row in found.instructions] == [
        3,
        1,
        4,
        None,
    ]  # it ends where it is as long as it gets
    assert found.loop_carried[0].instructions == (0, 1)
    assert found.loop_carried[0].lines == (1, 2)


def test_what_was_assumed_is_said():
    machine = changed(toy(), IMUL_R64_R64={"latencies": {"op1->op1": 3.0}, "operations": None})
    notes = Predictor(machine).predict(block("imul rax, rbx")).notes
    assert any(note.startswith("1 dependency has no latency") for note in notes)  # of RAX, to the flags
    assert any("port usage of 1 instruction" in note for note in notes)
    assert not any("front-end slots" in note for note in notes)
    machine = changed(toy(), IMUL_R64_R64={"slots": None, "operations": None})
    notes = Predictor(machine).predict(block("add rcx, rbx; imul rax, rbx")).notes
    assert any("front-end slots" in note and note.endswith("line 2") for note in notes)
    assert predict("imul rax, rbx").notes == ()


# --- uncertainty ----------------------------------------------------------------------------------


def with_kind(kind, **more):
    machine = msgspec.structs.replace(toy(), provenance=Provenance(kind), **more)
    return Predictor(machine).predict(block(KERNEL), simulate=False)


def test_a_model_that_is_exact_leaves_the_bracket():
    found = predict(KERNEL)
    assert found.interval == (found.lower, found.upper)


def test_the_interval_of_an_extracted_model_is_wider_than_that_of_a_measured_one():
    extracted, measured = with_kind(EXTRACTED), with_kind(MEASURED)
    assert extracted.cycles == measured.cycles == 2
    evenly = max(measured.ports_fixed.values())
    assert measured.interval == pytest.approx((1.98, evenly))  # throughputs: seldom less
    low, high = extracted.interval
    assert (low, high) == pytest.approx((2 / 1.5, 2 * 1.5))


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("imul rax, rbx, 3; imul rcx, rbx, 5; lea rdx, [rbx + 8]", 2 + 1 / 3),  # of the first port
        ("imul rax, rbx, 3; imul rcx, rbx, 5", 2 * 1.03),
        ("imul rax, rbx, 3; imul rcx, rbx, 5; lea rdx, [rbx + 8]; lea rsi, [rbx + 8]", 2 + 2 / 3),
        ("mov rax, [rdi]; mov rbx, [rsi]", 2 * 1.03),
    ],
)
def test_what_is_not_simulated_may_take_what_the_busiest_port_does_in_an_even_split(text, most):
    machine = msgspec.structs.replace(toy(), provenance=Provenance(MEASURED))
    found = Predictor(machine).predict(block(text), simulate=False)
    assert found.interval[1] == pytest.approx(most)


def test_the_interval_has_the_ranges_of_a_measured_model():
    chain = "imul rax, rbx; add rax, [rdi]"
    pair = {"ranges": {"op1->op1": (1.0, 6.0)}}
    machine = msgspec.structs.replace(changed(toy(), IMUL_R64_R64=pair), provenance=Provenance(MEASURED))
    found = Predictor(machine).predict(block(chain), simulate=False)
    assert found.cycles == 4
    assert (found.lower, found.interval) == (2, pytest.approx((2 * 0.99, 7 / 0.99)))


# --- critical path of whole instructions ----------------------------------------------------------


def test_one_latency_per_instruction_makes_the_critical_path_longer():
    # flags of the sum after 1 cycle, the sum after 1; MUL's low half after 3, the high half after 4
    late = {"latencies": {"op1->RAX": 3, "RAX->RAX": 3, "op1->RDX": 9, "RAX->RDX": 9}}
    found = Predictor(changed(toy(), MUL_R64=late)).predict(block("mul rcx; add rax, rbx"), simulate=False)
    assert found.bounds["critical_path"] == 9
    assert found.bounds["critical_path_fixed"] == 9 + 1
    fixed = Predictor(changed(toy(), MUL_R64=late)).predict(
        block("mul rcx; add rax, rbx"), fixed=True, simulate=False
    )
    assert (found.cp, found.critical_path.lines) == (9, (1,))
    assert (fixed.cp, fixed.critical_path.lines) == (10, (1, 2))
    assert [row.critical_path for row in fixed.instructions] == [9, 1]


def test_what_is_loaded_counts_as_an_instruction_of_its_own():
    found = predict("add rax, rbx; imul rax, [rdi]; add rax, rbx", fixed=True)
    assert found.cp == 4 + 3 + 1  # the load, which does not wait for RAX
    assert found.critical_path.lines == (2, 3)


def lines_run(action):
    """Lines of code that an action runs: its work, whatever else the machine does."""
    count = 0

    def counted(frame, event, _):
        nonlocal count
        count += event == "line"
        return counted

    before = sys.gettrace()
    sys.settrace(counted)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


def test_work_grows_with_the_length_of_a_block_and_no_faster():
    """Loads and stores at many places on a core that renames memory; some chains end, one does not."""
    pattern = "mov [rsp + {0}], rax; mov rax, [rsp + {0}]; add rbx, [rdi + {0}]"
    blocks = [block("; ".join(pattern.format(8 * n) for n in range(count))) for count in (150, 600)]
    renaming = Predictor(toy("znver4"))
    short, long = (lines_run(lambda one=one: renaming.predict(one, simulate=False)) for one in blocks)
    assert long < 4.4 * short


def test_a_form_without_measured_latencies_has_those_of_the_stand_in():
    machine = toy()
    bare = {name: msgspec.structs.replace(cost, latencies={}) for name, cost in machine.forms.items()}
    poor = msgspec.structs.replace(machine, forms=bare)
    code = block("imul rax, rbx; imul rbx, rax")
    whole = Predictor(machine).predict(code)
    found = Predictor(poor, stand_in=machine).predict(code)
    assert found.bounds["loop_carried"] == whole.bounds["loop_carried"] > 2
    assert any("IMUL (R64, R64)" in note for note in found.notes)
