"""Predictions against simulated cores: the same core gives no error, a changed one that of the change."""

from __future__ import annotations

import gc
import shutil

import msgspec
import pytest

from cyclescope.backend.base import UNCLEAN
from cyclescope.backend.peers.llvm_mca import NAMES
from cyclescope.errors import UsageError
from cyclescope.garbage import uncollected
from cyclescope.measure.blocks import CLEAN, DISTURBED_BLOCK, FAILED, NONLINEAR, BlockTiming
from cyclescope.model.behaviour.lines import CodeLines
from cyclescope.model.facts import FUSION, SCHEDULER, STACK_ENGINE, CoreAnswer, Fact
from cyclescope.model.library import llvm_model
from cyclescope.model.machine import Scheduler, Wakeup, Writeback
from cyclescope.probe.catalogue import NEEDED
from cyclescope.session.blocks import KERNELS, LOOP, UNROLLED, ProgramBlock, case_of, decoded
from cyclescope.session.predictors import (
    ANALYTIC,
    LLVM_MCA,
    SIMULATED,
    AblatedPredictor,
    BlockAnswer,
    _llvm,
    ablated,
    predictors,
    without,
)
from cyclescope.session.validation import (
    explained,
    groups_of,
    length_of,
    sampled,
    section,
    timed,
    worst,
)
from tests.support.made.simulated_blocks import SimulatedBlocks, sample

CODES = {
    "chain": "480fafc0480fafc0",  # imul rax, rax; imul rax, rax
    "adds": "4801d84801d94801da4801de",
    "load": "488b07488b5e084801c8",
    "store": "488907890e",
    "vector": "0f58c10f59d3",
    "stack": "5053595a",
}
BLOCKS = [ProgramBlock(bytes.fromhex(code), name) for name, code in CODES.items()]


@pytest.fixture(scope="module")
def model():
    return llvm_model("znver3")


def judged(truth, machine, names=(SIMULATED,), notion=UNROLLED, blocks=BLOCKS, change=None):
    backend = SimulatedBlocks(truth, change) if change else SimulatedBlocks(truth)
    chosen, absent = predictors(names, machine)
    assert not absent
    return section(notion, timed(backend, blocks, notion), chosen)


def multiplying(model, factor):
    """The machine with slower multiplications."""
    name = "IMUL (R64, R64)"
    cost = model.forms[name]
    slower = msgspec.structs.replace(cost, latencies={k: factor * v for k, v in cost.latencies.items()})
    return msgspec.structs.replace(model, forms={**model.forms, name: slower})


@pytest.mark.parametrize("notion", [UNROLLED, LOOP])
def test_a_core_predicts_itself(model, notion):
    found = judged(model, model, notion=notion)
    (one,) = found.predictors
    assert found.counts == {CLEAN: len(BLOCKS)}
    assert one.accuracy.mape == pytest.approx(0, abs=1e-6)
    assert one.accuracy.kendall_tau == pytest.approx(1)
    assert one.accuracy.within_5 == one.accuracy.within_10 == 100
    assert worst(found, SIMULATED, 10) == [], "what is predicted is no miss"
    assert one.failures == 0
    assert one.cpu_seconds_per_1000 > 0


def test_a_changed_cost_is_off_by_what_was_changed(model):
    found = judged(multiplying(model, 2), model)
    row = next(row for row in found.rows if row.where == "chain")
    assert row.answers[SIMULATED].cycles / row.timing.cycles == pytest.approx(0.5)
    (one,) = found.predictors
    assert one.accuracy.mape == pytest.approx(50 / len(BLOCKS))
    assert one.accuracy.too_low == pytest.approx(100 / len(BLOCKS))
    assert worst(found, SIMULATED, 1)[0].row is row
    assert worst(found, SIMULATED, 1)[0].error == pytest.approx(-0.5)


def test_both_notions_are_of_the_same_blocks_and_apart(model):
    unrolled, loops = (judged(model, model, notion=notion) for notion in (UNROLLED, LOOP))
    assert [row.code for row in unrolled.rows] == [row.code for row in loops.rows]
    assert all(b.instructions == a.instructions + 2 for a, b in zip(unrolled.rows, loops.rows, strict=True))


def test_nothing_is_dropped(model):
    """Every block is in the counts, whatever became of it."""
    odd = ProgramBlock(bytes.fromhex("4829d8"), "nonlinear")
    never = ProgramBlock(bytes.fromhex("4831d8"), "disturbed")
    branch = ProgramBlock(bytes.fromhex("75fe"), "branch")

    def change(kernel, number, cycles):
        if kernel.code == odd.code:
            return sample(cycles, linearity=1.2)
        return sample(cycles, UNCLEAN) if kernel.code == never.code else sample(cycles)

    found = judged(model, model, blocks=[*BLOCKS, odd, never, branch], change=change)
    assert found.counts == {CLEAN: len(BLOCKS), NONLINEAR: 1, DISTURBED_BLOCK: 1, FAILED: 1}
    assert found.reasons[FAILED] == {"it branches": 1}
    assert found.reasons[NONLINEAR] == {"fewer copies take another time each": 1}
    assert len(found.rows) == len(BLOCKS) + 3
    assert found.predictors[0].accuracy.blocks == len(BLOCKS)


def test_blocks_without_an_answer_are_failures_with_reasons(model):
    lacking = msgspec.structs.replace(
        model, forms={k: v for k, v in model.forms.items() if not k.startswith("IMUL")}
    )
    found = judged(model, lacking, names=(ANALYTIC, SIMULATED))
    for one in found.predictors:
        assert one.failures == 1
        assert one.accuracy.blocks == len(BLOCKS) - 1
        assert "no known cost" in next(iter(one.reasons))


def test_groups_lengths_and_bounds_cover_the_clean_blocks(model):
    found = judged(model, model, names=(ANALYTIC,))
    assert sum(group.blocks for group in found.by_length) == len(BLOCKS)
    assert sum(group.blocks for group in found.by_bound) == len(BLOCKS)
    assert {group.name for group in found.by_bound} >= {"loop_carried", "ports"}


def test_three_blocks_of_a_kind_are_told_apart(model):
    codes = {"load": ("488b07", "488b0f", "488b17"), "store": ("488907", "48890f")}
    blocks = [ProgramBlock(bytes.fromhex(code), kind) for kind, some in codes.items() for code in some]
    found = judged(model, model, names=(ANALYTIC,), blocks=blocks)
    assert {group.name: group.blocks for group in found.by_group}.get("load") == 3
    assert "store" not in {group.name for group in found.by_group}


@pytest.mark.parametrize(
    ("code", "groups"),
    [
        ("480fafc0", {"multiplication"}), ("488b07", {"load"}), ("488907", {"store"}), ("50", {"stack"}),
        ("480107", {"read, modify, write"}), ("488d0437", {"address computed"}), ("4889c8", {"move"}),
        ("0f58c1", {"vector, floating point"}), ("660ffec1", {"vector, integer"}),
        ("48f7f1", {"division or root"}), ("0f44c1", {"reads flags"}), ("4801d8", set()),
    ],
)  # fmt: skip
def test_kinds_of_instructions(code, groups):
    assert set(groups_of(decoded(bytes.fromhex(code)))) == groups


@pytest.mark.parametrize(
    ("count", "words"),
    [(1, "1 to 4"), (4, "1 to 4"), (5, "5 to 10"), (10, "5 to 10"), (11, "11 to 20"), (20, "11 to 20"),
     (21, "21 or more"), (99, "21 or more")],
)  # fmt: skip
def test_lengths(count, words):
    assert length_of(count) == words


def test_samples_are_drawn_equally_for_a_seed_and_keep_the_order():
    blocks = [ProgramBlock(bytes([n])) for n in range(50)]
    some = sampled(blocks, 10, 3)
    assert some == sampled(blocks, 10, 3) != sampled(blocks, 10, 4)
    assert [block.code for block in some] == sorted(block.code for block in some)
    assert len(some) == 10
    assert sampled(blocks, 0, 1) == sampled(blocks, 99, 1) == blocks


@pytest.mark.parametrize(
    ("measured", "bounds", "words"),
    [
        (
            3.0,
            {"ports": 2.0, "front_end": 1.0},
            "no bound reaches 3.00: ports alone is 2.00, something adds 1.00",
        ),
        (
            1.0,
            {"ports": 2.0, "front_end": 1.02},
            "ports is put at 2.00 and takes less; front_end alone would",
        ),
        (1.5, {"ports": 2.0, "front_end": 1.0}, "ports is put at 2.00 and takes less"),
        (3.0, {"ports": 2.0, "front_end": 2.93}, "front_end alone would take that; ports is put higher"),
        (3.0, {"ports": 2.0, "front_end": 2.87}, "no bound reaches 3.00"),
    ],
)
def test_explanations(measured, bounds, words):
    assert words in explained(measured, BlockAnswer(2.0, bound="ports", bounds=bounds))


def test_a_name_that_is_no_predictor(model):
    with pytest.raises(UsageError, match="no predictor 'uica'"):
        predictors(["uica"], model)


def test_a_program_that_is_not_there_is_said_to_be(model, monkeypatch):
    monkeypatch.setenv("PATH", "")
    chosen, absent = predictors(["analytic", "llvm-mca", "osaca"], model)
    assert [one.name for one in chosen] == [ANALYTIC]
    assert all("not installed" in why for why in absent.values())
    assert set(absent) == {"llvm-mca", "osaca"}


@pytest.mark.skipif(not any(map(shutil.which, NAMES)), reason="needs llvm-mca")
@pytest.mark.parametrize("notion", [UNROLLED, LOOP])
def test_llvm_mca_takes_blocks_and_loops(model, notion):
    found = judged(model, model, names=("llvm-mca",), notion=notion)
    assert found.predictors[0].failures == 0
    chain = next(row for row in found.rows if row.where == "chain")
    assert chain.answers["llvm-mca"].cycles == pytest.approx(6, rel=0.02)


# --- what probes are worth ---------------------------------------------------------------------------


class Fixed:
    """Predicts the same of every block, and nothing of one."""

    name, model = ANALYTIC, "fixed"

    def __init__(self, cycles, silent=()):
        self.cycles, self.silent = cycles, silent

    def answers(self, blocks):
        texts = [b"".join(one.code for one in block).hex() for block in blocks]
        found = {text: self.cycles.get(text, 1.0) for text in texts}
        return [BlockAnswer(None if text in self.silent else found[text]) for text in texts]


def asked(model):
    facts = (
        Fact(FUSION, "CMP_39 (R64, R64) + JZ (Rel8)", CoreAnswer.FUSED),
        Fact(SCHEDULER, "chained a", CoreAnswer.VALUE, 1.0, 0.1),
    )
    core = msgspec.structs.replace(model.core, binding="random", wakeup=Wakeup((0, 1)), single=(0, 1))
    core = msgspec.structs.replace(core, writeback=Writeback((0, 1)), ahead=True, rotating=(2, 3))
    return msgspec.structs.replace(model, facts=facts, core=core)


def test_a_machine_without_what_a_probe_found_has_the_rest(model):
    machine = asked(model)
    assert {fact.probe for fact in without(machine, FUSION).facts} == {SCHEDULER}
    assert without(machine, FUSION).core.binding == "random"
    assert without(machine, FUSION).core.wakeup is not None
    assert without(machine, SCHEDULER).core == model.core
    queue = Scheduler("vectors", machine.core.rotating, 32)
    queues = msgspec.structs.replace(machine.core, schedulers=(*model.core.schedulers, queue))
    assert without(msgspec.structs.replace(machine, core=queues), SCHEDULER).core == model.core
    assert (model.core.binding, model.core.wakeup, model.core.single) == ("", None, ())
    assert without(machine, STACK_ENGINE) == machine


def test_every_probe_that_was_asked_is_left_out_once_for_each_of_our_predictors(model):
    found = ablated((ANALYTIC, SIMULATED, LLVM_MCA), asked(model))
    pairs = [(one.probe, one.name) for one in found]
    assert sorted(pairs) == sorted((p, n) for p in (FUSION, SCHEDULER) for n in (ANALYTIC, SIMULATED))
    assert {probe for probe, _ in pairs} <= set(NEEDED)
    with pytest.raises(UsageError, match="nothing that a probe found"):
        ablated((ANALYTIC,), model)


def test_what_a_probe_is_worth_is_told_of_all_blocks_and_of_those_that_it_changes(model):
    """Of six blocks one is predicted twice as long without it, and one has no answer."""
    found = timed(SimulatedBlocks(model), BLOCKS, UNROLLED)
    times = [timing.cycles for _, timing in found]
    right = {block.code.hex(): cycles for block, cycles in zip(BLOCKS, times, strict=True)}
    wrong = right | {CODES["chain"]: 2 * right[CODES["chain"]]}
    less = AblatedPredictor(FUSION, ANALYTIC, Fixed(wrong, silent=(CODES["stack"],)))
    (line,) = section(UNROLLED, found, [Fixed(right)], ablated=[less]).ablations
    assert (line.probe, line.predictor) == (FUSION, ANALYTIC)
    assert line.every.blocks == line.every_without.blocks == len(BLOCKS) - 1
    assert line.every.mape == pytest.approx(0)
    assert line.every_without.mape == pytest.approx(100 / (len(BLOCKS) - 1))
    assert (line.changed.blocks, line.changed.mape) == (1, pytest.approx(0))
    assert line.changed_without.mape == pytest.approx(100)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("0f1f0400", "nop dword ptr [rax+rax]"), ("660f1f440000", "nop word ptr [rax+rax]"),
        ("480f1f00", "nop qword ptr [rax]"), ("75fe", "jne next"), ("488b07", "mov rax, [rdi]")
    ],
)  # fmt: skip
def test_llvm_reads_nops_with_a_size_and_branches_to_a_name(code, text):
    assert [_llvm(one) for one in decoded(bytes.fromhex(code))] == [text]


def test_compiled_loops_that_are_not_linear_say_why():
    timing = BlockTiming(2.0, 0.0, 1.2, NONLINEAR, "more rounds take less time each: they are too few")
    case = case_of(ProgramBlock(bytes.fromhex("4801d8")), KERNELS)
    found = section(KERNELS, [(case, timing)], [])
    assert found.reasons == {NONLINEAR: {timing.reason: 1}}


def test_our_predictors_read_loops_where_they_lie(model):
    line = CodeLines(64, 8, 1.0, apart=True)
    found = {}
    for address in (0, 0x3E):
        block = case_of(ProgramBlock(bytes.fromhex("4801d875fb"), address=address), KERNELS).block
        read = predictors([ANALYTIC], model)[0][0]._read(block)
        found[address] = line.cycles(read.instructions[0].address, [(3, 1.0), (2, 1.0)])
        assert read.loop
    assert found == {0: 1.0, 0x3E: 2.0}


def test_no_garbage_is_collected_while_predictions_are_timed():
    for turn in (gc.enable, gc.disable):
        turn()
        before = gc.isenabled()
        with pytest.raises(ZeroDivisionError), uncollected():
            assert not gc.isenabled()
            raise ZeroDivisionError
        assert gc.isenabled() is before
    gc.enable()


def test_predictions_leave_nothing_to_collect():
    """Nothing that they made refers to itself, so that memory is free without collections."""
    chosen = predictors([ANALYTIC, SIMULATED], llvm_model("znver4"))[0]
    texts = ("4801d8480fafc3488b07488907", "488b074801d8488907", "90")
    blocks = [case_of(ProgramBlock(bytes.fromhex(text)), UNROLLED).block for text in texts]
    for one in chosen:
        one.answers(blocks)  # what is kept of forms
    with uncollected():
        gc.collect()
        for one in chosen:
            one.answers(blocks)
        assert gc.collect() == 0
