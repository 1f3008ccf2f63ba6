"""Drafts of scheduling models: what is in them, and that llvm-tblgen takes them where it is installed."""

from __future__ import annotations

import re
from itertools import combinations

import msgspec
import pytest

from cyclescope.errors import CyclescopeError
from cyclescope.formats.exchange import ImportRequest
from cyclescope.formats.llvm.drafts import read
from cyclescope.formats.llvm.dump import read as read_dump
from cyclescope.formats.llvm.scheduling import write
from cyclescope.isa.registry import instruction_sets
from cyclescope.model.machine import FormCost, Operation
from tests.support.made.models import SIZES, exchanged
from tests.support.programs.tablegen import TBLGENS, generated

MUL, ADC, LOAD = "IMUL (R64, R64)", "ADC_11 (R64, R64)", "MOV (R64, M64)"


def draft(**costs):
    names = {"mul": MUL, "adc": ADC, "load": LOAD}
    return write(msgspec.structs.replace(exchanged(1), forms={names[k]: cost for k, cost in costs.items()}))


def cost(*operations, latencies=None, slots=1.0, **more):
    return FormCost(slots, operations, latencies or {"op1->op1": 3.0, "op2->op1": 3.0}, 1.0, **more)


def test_forms_that_cost_the_same_share_a_class():
    one = cost(Operation((0, 1)))
    text = draft(mul=one, adc=one).text
    assert "def Znver9Write0 : Znver9Cost<[Znver9Port0_1], [1], 3, 1>;" in text
    assert "(instrs ADC64rr, IMUL64rr)>;" in text
    assert "def Znver9Port0_1 : ProcResGroup<[Znver9Port0, Znver9Port1]>;" in text
    assert "Write1" not in text
    assert "let IssueWidth = 6;" in text
    assert "let LoadLatency = 4;" in text


def test_of_several_forms_with_one_opcode_most_are_right():
    """LEA64r: a base alone is a move, all others are additions."""
    move = FormCost(1.0, (), {"op2.address->op1": 0.0}, 0.12)
    add = cost(Operation((0,)), latencies={"op2.address->op1": 1.0})
    forms = {"LEA_B (R64)": move, "LEA_B_D8 (R64)": add, "LEA_B_D32 (R64)": add}
    found = write(msgspec.structs.replace(exchanged(1), forms=forms))
    assert "def Znver9Write0 : Znver9Cost<[Znver9Port0], [1], 1, 1>;" in found.text
    assert "Write1" not in found.text
    assert sorted(item.place for item in found.left_out) == ["LEA_B (R64)", "LEA_B_D32 (R64)"]


def test_later_sources_have_an_advance():
    text = draft(adc=cost(Operation((0,)), latencies={"op1->op1": 3.0, "op2->op1": 1.0})).text
    assert "def Znver9Later2 : SchedReadAdvance<2>;" in text
    assert "InstRW<[Znver9Write0, ReadDefault, Znver9Later2], (instrs ADC64rr)>" in text


def test_addresses_are_operands_of_their_own():
    text = draft(load=cost(Operation((0,)), latencies={"op2.address->op1": 4.0, "op2.index->op1": 3.0})).text
    assert "InstRW<[Znver9Write0, ReadDefault, ReadDefault, Znver9Later1], (instrs MOV64rm)>" in text


@pytest.mark.parametrize(
    ("count", "cycles", "whole"),
    [(1, 1, 1), (2, 1, 2), (1, 0.5, 1), (1, 4.2, 4), (1, 4.4, 5), (1, 4.24, 4), (1, 4.26, 5)],
)
def test_cycles_are_whole(count, cycles, whole):
    text = draft(mul=cost(Operation((0,), count, cycles))).text
    assert f"[Znver9Port0], [{whole}], 3" in text


def test_what_is_left_out_is_said():
    found = draft(mul=FormCost(latencies={"op1->op1": 3.0}), adc=cost(Operation((0,))))
    assert [(item.place, item.reason) for item in found.left_out] == [(MUL, "its ports are not known")]
    with pytest.raises(CyclescopeError, match="no ports"):
        write(msgspec.structs.replace(exchanged(1), ports=(), forms={}))
    with pytest.raises(CyclescopeError, match="no form"):
        draft(mul=FormCost(latencies={"op1->op1": 3.0}))


def test_sets_of_ports_that_overlap_are_in_one_that_has_both():
    text = draft(mul=cost(Operation((0, 1))), adc=cost(Operation((1, 2))), load=cost(Operation((2, 3)))).text
    groups = [set(found.split(", ")) for found in re.findall(r"ProcResGroup<\[([^]]*)\]>", text)]
    assert len(groups) > 3
    for one, other in combinations(groups, 2):
        assert not one & other or any(one | other <= group for group in groups)


def test_nothing_from_outside_leaves_its_line():
    nasty = msgspec.structs.replace(
        exchanged(1).provenance, source="a\ndef Evil : ProcResource<9>;", notes=("b\x1b\ninclude",)
    )
    text = write(msgspec.structs.replace(exchanged(1), name="x\n} y", provenance=nasty)).text
    assert not re.search(r"^(def Evil|include)", text, re.MULTILINE)


def again(text, tmp_path, isa="x86-64"):
    """The model of a draft as it is read."""
    (tmp_path / "read.td").write_text(text)
    return read(tmp_path / "read.td", ImportRequest("again", "a draft", isa=isa)).model


def named(model):
    """What forms cost, with the names of ports."""
    return {
        name: (form_cost.slots, form_cost.latencies, {
            (frozenset(model.ports[p].removeprefix("Port") for p in op.ports), op.count, op.cycles)
            for op in form_cost.operations
        })
        for name, form_cost in model.forms.items() if form_cost.operations is not None
    }  # fmt: skip


def test_flags_that_take_another_time_have_a_write_of_their_own():
    pairs = {"op1->op1": 3.0, "op2->op1": 3.0, "op1->flags.CF": 5.0, "op2->flags.OF": 4.0}
    text = draft(mul=cost(Operation((0,)), latencies=pairs)).text
    assert "def Znver9Result5 : SchedWriteRes<[]> { let Latency = 5; let NumMicroOps = 0; }" in text
    assert "InstRW<[Znver9Write0, Znver9Result5], (instrs IMUL64rr)>" in text


def test_what_has_flags_alone_takes_as_long_as_these():
    """A comparison with memory waits for the load."""
    one = cost(Operation((0,)), latencies={"op1.address->flags.CF": 6.0, "op2->flags.CF": 1.0})
    text = write(msgspec.structs.replace(exchanged(1), forms={"CMP (M64, R64)": one})).text
    assert "[Znver9Port0], [1], 6, 1>" in text
    assert "ReadDefault, Znver9Later5], (instrs CMP64mr)" in " ".join(text.split())


def test_flags_that_are_read_may_be_late(tmp_path):
    pairs = {"op1->op1": 6.0, "op2.address->op1": 6.0, "flags.ZF->op1": 1.0}
    one = cost(Operation((0,)), latencies=pairs)
    model = msgspec.structs.replace(exchanged(1), forms={"CMOVZ (R64, M64)": one})
    assert again(write(model).text, tmp_path).forms["CMOVZ (R64, M64)"].latencies == pairs | {
        "op2.index->op1": 6.0
    }


@pytest.mark.parametrize("isa", [record.name for record in instruction_sets()])
@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_read_as_faster_than_it_was(isa, seed, tmp_path):
    """But for the rounding, and what another form with LLVM's opcode or none of the pairs says."""
    model = exchanged(seed, isa)
    found = again(write(model).text, tmp_path, isa)
    assert found.core.width == model.core.width
    for name, form_cost in found.forms.items():
        own = model.forms.get(name)
        if own is None:
            continue
        for pair, cycles in form_cost.latencies.items():
            most = own.latencies.get(pair, own.ranges.get(pair, (0.0, 0.0))[1])
            assert cycles >= most - 1


@pytest.mark.parametrize("isa", [record.name for record in instruction_sets()])
def test_ports_of_one_cycle_are_read_as_they_were(isa, tmp_path):
    costs = {
        name: cost(Operation((n % 3, 3)), Operation((4,)), latencies=one.latencies, slots=2.0)
        for n, (name, one) in enumerate(exchanged(1, isa).forms.items())
    }
    model = msgspec.structs.replace(exchanged(1, isa), forms=costs)
    found = again(write(model).text, tmp_path, isa)
    checked = [name for name in found.forms if name in costs]
    assert len(checked) > 3
    for name in checked:
        read_ports = {frozenset(found.ports[p] for p in op.ports) for op in found.forms[name].operations}
        assert read_ports == {frozenset(model.ports[p] for p in op.ports) for op in costs[name].operations}


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("ProcResource<1>", "ProcResource<two>", "line"),
        (
            "Znver9Port0_1 : ProcResGroup<[Znver9Port0,",
            "Znver9Port0_1 : ProcResGroup<[Znver9Port77,",
            "no resource",
        ),
        ("InstRW<[Znver9Write0", "InstRW<[Nothing", "nothing is called 'Nothing'"),
        ("[Znver9Port0_1], [1]", "[Znver9Port0_1], [1, 1]", "1 resources and 2 cycles"),
        ("[Znver9Port0_1], [1]", "[Znver9Port0_1], [999999999]", "more than any"),
        ("def Znver9Port1 :", "def Znver9Port0 :", "twice"),
    ],
)
def test_what_is_no_draft_is_refused_with_its_line(old, new, line, tmp_path):
    text = draft(mul=cost(Operation((0, 1)))).text
    assert old in text
    with pytest.raises(CyclescopeError, match=line):
        again(text.replace(old, new), tmp_path)


def test_models_of_llvm_itself_are_read_from_another_file(tmp_path):
    text = "def XModel : SchedMachineModel { let IssueWidth = 6; }\ndefm : XWriteResPair<WriteALU, [P0]>;"
    with pytest.raises(CyclescopeError, match="line 2 is not of a draft"):
        again(text, tmp_path)


@pytest.mark.skipif(not TBLGENS, reason="no llvm-tblgen with its includes")
@pytest.mark.parametrize("tblgen", TBLGENS, ids=lambda one: str(one[1]))
@pytest.mark.parametrize("isa", [record.name for record in instruction_sets()])
def test_llvm_takes_it(isa, tblgen, tmp_path):
    """And understands what we read of it."""
    text = write(msgspec.structs.replace(exchanged(2, isa), facts=SIZES)).text
    lists = re.findall(r"\(instrs\s([\w,\s]*)", text)
    found = [name for one in lists for name in re.split(r"[,\s]+", one.strip())]
    assert len(found) == len(set(found)) > 2
    assert "Znver9Write0" in generated(text, "-gen-subtarget", tblgen, tmp_path)
    (tmp_path / "all.json").write_text(generated(text, "-dump-json", tblgen, tmp_path))
    model = read_dump(
        tmp_path / "all.json", ImportRequest("again", "a draft", column="measured", isa=isa)
    ).model
    written = again(text, tmp_path, isa)
    assert named(model) == named(written)


def test_dividers_have_a_resource_of_their_own():
    one = FormCost(1.0, (Operation((0,)),), {"op1->op1": 11.0, "op2->op1": 11.0}, 4.1)
    text = write(msgspec.structs.replace(exchanged(1), forms={"DIVSD (XMM, XMM)": one})).text
    assert "def Znver9PortDV : ProcResource<1>;" in text
    assert "[Znver9Port0, Znver9PortDV], [1, 4], 11" in text


def test_a_result_without_a_latency_is_left_out():
    found = draft(mul=FormCost(1.0, (Operation((0,)),)), adc=cost(Operation((0,))))
    assert [(item.place, item.reason) for item in found.left_out] == [(MUL, "its latency is not known")]


def test_doubtful_ports_are_listed():
    text = draft(
        mul=cost(Operation((0,)), confidence="low"), adc=cost(Operation((1,)), confidence="medium")
    ).text
    assert "// The ports of these 1 of 2 opcodes are of low confidence:\n// IMUL64rr\n" in text
    assert "low confidence" not in draft(mul=cost(Operation((0,)), confidence="high")).text


def test_probes_tell_how_much_is_in_flight(tmp_path):
    moved = {name: FormCost(1.0, (), eliminated=True) for name in ("MOV_89 (R64, R64)", "KMOVQ (K, K)")}
    model = exchanged(1)
    model = msgspec.structs.replace(model, facts=SIZES, forms={**model.forms, **moved})
    text = write(model).text
    assert "let MicroOpBufferSize = 442;" in text
    assert "let MispredictPenalty = 18;" in text
    assert "def Znver9Integers : RegisterFile<205, [GR64], " in text
    assert "def Znver9Masks : RegisterFile<10000, [VK64], " in text, "nobody asked for masks"
    assert "LoadQueue" not in text, "as many registers were in use"
    assert "def Znver9StoresInFlight : ProcResource<1> { let BufferSize = 104; }" in text
    core = again(text, tmp_path).core
    assert (core.reorder_buffer, core.load_buffer, core.store_buffer) == (442, 0, 104)


def test_nothing_is_said_of_buffers_that_nobody_asked_for():
    text = write(exchanged(1)).text
    assert not any(word in text for word in ("Queue<", "MispredictPenalty"))


@pytest.mark.parametrize(
    ("core", "said", "again_"),
    [({}, "10000; // not known", (0, False)), ({"reorder_buffer": 97}, "97;", (97, False)),
     ({"in_order": True}, "0; // in order", (0, True))],
)  # fmt: skip
def test_only_cores_that_issue_in_order_are_said_to(core, said, again_, tmp_path):
    """LLVM takes a model without a number for one of a core that does."""
    model = exchanged(1)
    model = msgspec.structs.replace(model, core=msgspec.structs.replace(model.core, **core))
    text = write(model).text
    assert f"let MicroOpBufferSize = {said}" in text
    found = again(text, tmp_path).core
    assert (found.reorder_buffer, found.in_order) == again_
