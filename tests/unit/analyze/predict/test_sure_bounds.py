"""What is expected of a block and is no lower bound: lost ports, throughputs that are known as a most."""

from __future__ import annotations

import shutil

import msgspec
import pytest

from cyclescope.analyze.depend.graphs import Graphs
from cyclescope.analyze.predict.estimate import BlockBounds
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.model.machine import IDEAL, Operation, Wakeup, Writeback
from tests.support.code.blocks import block, changed, measured, toy

pytestmark = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)


ONE, ALONE = "lea rax, [rbx+8]; ", "imul rdx, rdx; "
EARLY, WRITING = {"wakeup": Wakeup((0, 1, 2))}, {"writeback": Writeback((0, 1, 2)), "binding": IDEAL}


def early(**core):
    """The toy with another core; wakes up early if nothing else is said."""
    return msgspec.structs.replace(toy(), core=msgspec.structs.replace(toy().core, **(core or EARLY)))


def test_ports_that_a_scheduler_loses_are_part_of_what_is_expected():
    """Additions on three ports next to what reads them take a port more; that is no lower bound."""
    text = "lea rax, [rbx+8]; cmp rax, rcx; lea rdx, [rbx+8]; cmp rdx, rcx; lea rsi, [rbx+8]; cmp rsi, rcx"
    ports = (0, 1, 2)
    core = msgspec.structs.replace(toy().core, wakeup=Wakeup(ports), width=8.0)
    early = Predictor(msgspec.structs.replace(toy(), core=core)).predict(block(text))
    core = msgspec.structs.replace(core, wakeup=None)
    plain = Predictor(msgspec.structs.replace(toy(), core=core)).predict(block(text))
    assert plain.cycles == early.lower == 2
    assert plain.bottleneck == "ports"
    assert early.cycles == pytest.approx(early.bounds["scheduler"]) and early.cycles > 2.4
    assert early.bottleneck == "scheduler"
    assert early.upper >= early.cycles
    assert early.interval[0] <= plain.cycles


@pytest.mark.parametrize(("scheduled", "bound"), [(2.0, "ports"), (2.006, "ports"), (2.016, "scheduler")])
def test_simulated_cycles_that_are_those_of_a_bound_are_no_bound_of_their_own(scheduled, bound):
    graphs = Graphs(toy())
    code = block("; ".join(f"lea r{n}, [rbx+8]" for n in range(8, 14)))
    found = BlockBounds(code, graphs.of(code.instructions), graphs, scheduled=lambda: scheduled)
    assert found.deciding["ports"] == 2
    assert found.bottleneck == bound


@pytest.mark.parametrize(
    ("text", "core", "asked"),
    [
        (2 * ONE, EARLY, True),  # of three ports, in one cycle: without one of them, the bound
        (ONE, EARLY, False),
        (2 * ONE, WRITING, True),
        (ONE, WRITING, False),
        (2 * ONE + ALONE, EARLY, False),  # waits for itself longer than for ports
        (2 * ONE, {"wakeup": Wakeup((0,))}, False),  # none is left without it
    ],
)
def test_only_busy_ports_are_simulated(text, core, asked):
    """A core that loses ports is simulated where one less would bound the block."""
    graphs, code = Graphs(early(**core)), block(text + "nop; nop")
    graph = graphs.of(code.instructions)
    busy, always = (
        BlockBounds(code, graph, graphs, scheduled=lambda: 9.0, if_busy=if_busy).cycles
        for if_busy in (True, False)
    )
    assert (busy == 9, always) == (asked, 9)


@pytest.mark.parametrize(
    ("text", "core", "asked"),
    [
        ("vaddpd ymm0, ymm0, ymm1", WRITING, True),
        ("vmulpd ymm0, ymm0, ymm1", WRITING, False),
        ("vaddpd ymm0, ymm0, ymm1", {"width": 4.0}, False),
        ("vaddpd ymm0, ymm2, ymm1; nop; nop; nop; nop", WRITING, False),  # no chain
    ],
)
def test_chains_with_early_results_are_simulated(text, core, asked):
    """Where ports are got at dispatch: others that are few stand in front of them there."""
    graphs, code = Graphs(early(**core)), block(text)
    graphs.costs.behaviour = msgspec.structs.replace(graphs.costs.behaviour, early={"VADDPD": 1.0})
    found = BlockBounds(code, graphs.of(code.instructions), graphs, scheduled=lambda: 99.0, if_busy=True)
    assert (found.cycles == 99) is asked


def test_shared_resources_do_not_hide_busy_ports():
    """They say what was measured of the same ports, which the simulated core has better."""
    form = {"resources": {"pabc": 2.0}}
    machine = early(**EARLY)
    machine = msgspec.structs.replace(changed(machine, LEA_B_D8_R64=form), resources={"pabc": 3.0})
    graphs, code = Graphs(machine), block(3 * ONE)
    graph = graphs.of(code.instructions)
    found = BlockBounds(code, graph, graphs, scheduled=lambda: 9.0, if_busy=True)
    assert (found.deciding["resources"], found.cycles) == (2, 9)


def test_what_is_told_of_many_blocks_is_what_is_told_of_one():
    """Of the operations that are woken up early, without simulating more than these."""
    text = 3 * (ONE + "cmp rax, rcx; ")
    predictor = Predictor(early(**EARLY, width=8.0))
    many, one = predictor.estimate(block(text)), predictor.predict(block(text))
    assert many.cycles == pytest.approx(one.cycles, rel=0.01) and many.cycles > 2.2
    assert many.bottleneck == one.bottleneck == "scheduler"


def test_what_is_only_known_to_be_at_most_so_is_no_lower_bound():
    text = "vaddpd ymm0, ymm1, ymm2; vaddpd ymm3, ymm1, ymm2"
    known = Predictor(changed(toy(), VADDPD_YMM_YMM_YMM={"throughput": 2.5})).predict(block(text))
    assert (known.cycles, known.lower) == (5, 5)
    most = Predictor(changed(toy(), VADDPD_YMM_YMM_YMM={"throughput_most": 2.5})).predict(block(text))
    assert (most.cycles, most.lower) == (5, 1)


def test_different_forms_that_no_port_explains_may_keep_the_same_unit_busy():
    """As divisions and square roots do: what that would take is in the interval."""
    costs = {"IMUL_R64_R64": {"throughput": 6.0}, "VADDPD_YMM_YMM_YMM": {"throughput": 4.0}}
    machine = changed(toy(), **{name: {"operations": None, **cost} for name, cost in costs.items()})
    found = Predictor(machine).predict(block("imul rax, rbx; vaddpd ymm0, ymm1, ymm2"))
    assert (found.cycles, found.lower, found.interval[1]) == (6, 6, 10)


def test_what_locked_instructions_take_alone_is_no_lower_bound():
    """They wait for stores: beside others it may be less."""
    costs = {name: {"throughput": 7.5} for name in ("ADD_LOCK_M64_R64", "ADD_M64_R64")}
    machine = changed(toy(), **costs)
    locked, plain = (Predictor(machine).predict(block(f"{prefix}add [rdi], rax")) for prefix in ("lock ", ""))
    assert locked.bounds["units"] == plain.bounds["units"] == 7.5
    assert plain.lower == 7.5
    assert locked.lower < 7.5 <= locked.cycles


def test_different_locked_instructions_go_one_after_the_other():
    names = ("ADD_LOCK_M64_R64", "SUB_LOCK_M64_R64")
    machine = changed(toy(), **{name: {"throughput": 7.5, "operations": None} for name in names})
    found = Predictor(machine).predict(block("lock add [rdi], rax; lock sub [rsi], rax"))
    assert found.cycles == 15
    assert "locked instructions go one after the other through memory" in found.notes
    plain = Predictor(toy()).predict(block("lock add [rdi], rax"))
    assert any("have the ports of their plain forms" in note for note in plain.notes)


def test_a_throughput_whose_error_reaches_down_to_the_ports_shows_no_unit():
    text = "vaddpd ymm0, ymm1, ymm2; vaddpd ymm3, ymm1, ymm2"
    for error, cycles in ((0.5, 5), (2.1, 1)):
        cost = {"throughput": 2.5, "throughput_error": error}
        assert Predictor(changed(toy(), VADDPD_YMM_YMM_YMM=cost)).predict(block(text)).cycles == cycles


@pytest.mark.parametrize(("busy", "resource"), [(13.1, 3.5), (12.9, 3.15), (3.0, 1.5)])
def test_a_unit_that_a_slow_form_keeps_busy_for_less_is_not_what_it_waits_for(busy, resource):
    """All six places of what does vectors are not taken by a division, which has another reason to be slow.

    2.5 cycles are explained by 1.15 times what is known of the unit, as they are by that of ports.
    """
    slow = {"throughput": 2.5, "operations": (Operation((0, 1)),), "resources": {"all": busy}}
    machine = changed(toy(), VADDPD_YMM_YMM_YMM=slow, VMULPD_YMM_YMM_YMM={"resources": {"all": 6.0}})
    machine = msgspec.structs.replace(machine, resources={"all": 6.0})
    found = Predictor(machine).predict(block("vaddpd ymm0, ymm1, ymm2; vmulpd ymm4, ymm1, ymm2"))
    assert found.bounds["units"] == 2.5
    assert found.bounds["resources"] == pytest.approx(resource)


def test_a_form_that_only_waits_for_itself_keeps_no_unit_busy():
    """x87 sums on top of the stack cannot be measured without their chain: independent ones take a port."""
    text = "vaddpd ymm0, ymm1, ymm2; vaddpd ymm3, ymm1, ymm2"
    form, most = "VADDPD_YMM_YMM_YMM", {"throughput_most": 6.0}
    for latencies, cycles in (({"op2->op2": 6.0}, 1), ({"op2->op1": 6.0}, 12), ({"op2->op2": 5.0}, 12)):
        found = Predictor(changed(toy(), **{form: {**most, "latencies": latencies}})).predict(block(text))
        assert found.cycles == cycles
    unknown = {**most, "latencies": {"op2->op2": 6.0}, "operations": None}
    assert Predictor(changed(toy(), **{form: unknown})).predict(block(text)).cycles == 12


def test_what_is_only_known_to_be_at_most_so_may_be_less():
    """The interval begins where what is known of the rest ends."""
    text = "vaddpd ymm0, ymm1, ymm2; vaddpd ymm3, ymm1, ymm2"
    known, most = (
        Predictor(changed(measured(), VADDPD_YMM_YMM_YMM={name: 2.5})).predict(block(text))
        for name in ("throughput", "throughput_most")
    )
    assert known.cycles == most.cycles == 5
    assert known.interval[0] > 4.5
    assert most.interval[0] < 1.5


def test_one_taken_branch_a_cycle_is_no_lower_bound():
    """A Zen 5 takes two, and no full run asks."""
    found = Predictor(measured()).predict(block("jmp 2; jmp 4; jmp 6; nop", True))
    assert found.cycles == 3
    assert found.lower < 3
    assert found.interval[0] < 3


@pytest.mark.parametrize(("latencies", "chain"), [({}, 3.0), ({"op1->op1": 5.0}, 5.0)])
def test_what_pops_has_the_ports_of_what_does_not(latencies, chain):
    """It can be measured with what pushes alone, and looks as slow as both in turn."""
    plain = {"operations": (Operation((0,)),), "latencies": {"op1->op1": 3.0}}
    popping = {"operations": None, "throughput_most": 8.0, "latencies": latencies}
    machine = changed(measured(), FADD_STi_ST0=plain, FADDP_STi_ST0=popping)
    found = Predictor(machine).predict(block("fld qword ptr [rdi]; faddp"), simulate=False)
    assert (found.cycles, found.bounds["ports"]) == (chain, 1)
    assert "units" not in found.bounds


@pytest.mark.parametrize(("most", "unit"), [(1.06, None), (1.14, None), (1.2, 1.2)])
def test_a_throughput_at_most_that_its_access_explains_shows_no_unit(most, unit):
    """POP is measured with what puts the stack pointer back: .266 on a Zen 5, where a load takes .25."""
    known = {"operations": None, "throughput": None, "throughput_most": most}
    found = Predictor(changed(measured(), PUSH_R64=known)).predict(block("push rax; push rbx"))
    assert found.ports["store"] == 2
    assert found.bounds.get("units") == (unit and pytest.approx(2 * unit))


@pytest.mark.parametrize(("text", "said"), [("rep stosb", True), ("repne scasb", True), ("stosb", False)])
def test_what_repeats_is_not_counted_as_often_as_it_does(text, said):
    assert any("repeats itself" in note for note in Predictor(toy()).predict(block(text)).notes) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("addpd xmm0, xmm1; vaddpd ymm2, ymm3, ymm4", "line 1"),
        ("vaddpd zmm2, zmm3, zmm4; movups xmm0, [rdi]; addpd xmm1, xmm0", "line 2, line 3"),
        ("addpd xmm0, xmm1; vaddpd ymm2, ymm3, ymm4; vzeroupper", ""),
        ("addpd xmm0, xmm1; vaddpd xmm2, xmm3, xmm4", ""),
        ("vaddpd xmm0, xmm0, xmm1; vaddpd ymm2, ymm3, ymm4", ""),
    ],
)
def test_old_instructions_beside_wide_vectors_keep_the_rest_of_what_they_write(text, said):
    """On a Zen 5 ADDPS takes a cycle longer in a chain then, and idioms do not break it."""
    notes = [note for note in Predictor(toy()).predict(block(text)).notes if note.startswith("SSE beside")]
    assert [note.rpartition(": ")[2] for note in notes] == [said] * bool(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("shl rax, cl; adc rbx, rdx", "line 1"),
        ("cmovc rbx, rdx; shl rax, cl", "line 2"),  # in the next iteration
        ("shl rax, cl; add rax, rcx; adc rbx, rdx", ""),
        ("shl rax, cl; shl rbx, cl", ""),
        ("shl rax, 5; adc rbx, rdx", ""),
    ],
)
def test_flags_that_a_count_of_0_keeps_are_said_where_they_are_read(text, said):
    """A Zen 5 takes 40 cycles for the first with a count of 0, and one with any other."""
    notes = [note for note in Predictor(toy()).predict(block(text)).notes if "the count is 0" in note]
    assert [note.rpartition(": ")[2] for note in notes] == [said] * bool(said)


@pytest.mark.parametrize(("count", "is_said"), [(511, False), (512, True), (8000, True)])
def test_more_code_than_a_core_may_keep_decoded_is_said_to_be_slower(count, is_said):
    found = Predictor(toy()).predict(block("; ".join(["add rax, 24"] * count)), simulate=False)
    said = [note for note in found.notes if note.startswith(f"{count} instructions may be more")]
    assert len(said) == is_said


@pytest.mark.parametrize(("slots", "cycles"), [(40.0, 10.0), (42.0, 10.5), (60.0, 10.5)])
def test_what_is_known_of_slots_is_no_more_than_a_form_alone_has_time_for(slots, cycles):
    """Counts of slots that disagree are none: toy has four a cycle."""
    cost = {"slots": None, "slot_range": (slots, 2 * slots), "throughput": 10.5, "latencies": {}}
    found = Predictor(changed(toy(), CPUID=cost)).predict(block("cpuid"), simulate=False)
    assert found.bounds["front_end"] == cycles
