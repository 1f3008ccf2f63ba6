"""Random mixes: which forms, independent of each other, and how they are predicted."""

from __future__ import annotations

from contextlib import closing
from statistics import fmean

import msgspec
import pytest

from benchmarks.lib.mixing import (
    EVEX,
    FEWEST,
    INTEGER,
    KINDS,
    MEMORY,
    MOST,
    SSE,
    VEX,
    Mix,
    body,
    draw,
    is_mixable,
    kernel,
    pools,
    waits,
)
from benchmarks.measuring.mixes import (
    ANALYZE,
    PORTS,
    Row,
    measure,
    predictions,
    said,
    summary,
    worst,
)
from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.isa.register import domain
from cyclescope.kernel.state import VECTOR_EVEX512, VECTOR_LEGACY, VECTOR_VEX128, VECTOR_VEX256
from cyclescope.kernel.x86_64.registers import physical
from cyclescope.model.machine import FormCost, MachineModel
from cyclescope.model.ports import issue_throughput
from cyclescope.session.machines import load_model

FAST = FormCost(1, (), throughput=1.0)


@pytest.fixture(scope="module")
def model() -> MachineModel:
    """A shipped machine that says of every form how fast it is; LLVM's 100 cycles are a slow form."""
    shipped = load_model("skylake")
    forms = {}
    for name, cost in shipped.forms.items():
        cycles = max(issue_throughput(cost, shipped.core)[0], 0.1, *cost.latencies.values())
        fast = min(cycles, 1.0) if cycles < 50 else cycles
        forms[name] = msgspec.structs.replace(cost, throughput=fast)
    return msgspec.structs.replace(shipped, forms=forms)


@pytest.fixture(scope="module")
def mixes(model, table):
    known = pools(model, list(table))
    return [mix for kind in KINDS if known[kind] for mix in draw(model, list(table), kind, 20, 1)]


@pytest.mark.parametrize(
    "name",
    ["IMUL (R64, R64)", "ADD (R64, M64)", "MOV (M64, R64)", "CMOVB (R64, R64)", "VPADDD (YMM, YMM, YMM)",
     "MULPS (XMM, M128)", "VPADDD (ZMM, ZMM, ZMM)", "STC"],
)  # fmt: skip
def test_ordinary_forms_can_be_mixed(table, name):
    assert is_mixable(table[name], FAST)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (SSE, "MULPS (XMM, M128)"), (VEX, "VPADDD (YMM, YMM, YMM)"), (EVEX, "VPADDD (ZMM, ZMM, M512)"),
        (INTEGER, "ADD (R64, M64)"), (EVEX, "VPADDD (ZMM, ZMM, ZMM)"), (INTEGER, "IMUL (R64, R64)"),
    ],
)  # fmt: skip
def test_forms_are_drawn_for_mixes_of_their_kind(model, table, kind, name):
    """What accesses memory is in two: its own, and that of all that do."""
    alone = msgspec.structs.replace(model, forms={name: FAST})
    of = [other for other, some in pools(alone, [table[name]]).items() if some]
    assert set(of) == ({kind, MEMORY} if table[name].memory >= 0 else {kind})


@pytest.mark.parametrize(
    "name",
    [
        "MUL (R64)",  # registers without a choice
        "ADC_13 (R64, R64)",  # waits for the flags of the one before
        "ADD (M64, R64)",  # waits for what the one before stored
        "DIVPS (XMM, XMM)",  # its time depends on values
        "ADD (R16, I16)",
        "NOP",
        "LFENCE",
        "SLDT (R64)",
        "VPADDD_Z (ZMM, K, ZMM, ZMM)",
        "FADD (M32)",
        "JMP (Rel8)",
    ],
)
def test_others_cannot(table, name):
    assert not is_mixable(table[name], FAST)


@pytest.mark.parametrize(
    "cost",
    [
        FormCost(1, (), throughput=9.0),
        FormCost(None, (), throughput=1.0),
        FormCost(1, ()),
        FormCost(1, (), throughput=1.0, microcoded=True),
    ],
)
def test_slow_and_unknown_forms_cannot(table, cost):
    assert not is_mixable(table["IMUL (R64, R64)"], cost)


def test_a_seed_gives_the_same_mixes(model, table, mixes):
    again = list(draw(model, list(table), SSE, 20, 1))
    assert [mix.forms for mix in again] == [mix.forms for mix in mixes[:20]]
    assert [mix.forms for mix in draw(model, list(table), SSE, 20, 2)] != [mix.forms for mix in again]


def test_mixes_are_of_their_kind(mixes):
    assert all(FEWEST <= len(mix.forms) <= MOST for mix in mixes)
    assert all(len({form.mnemonic for form in mix.forms}) == len(mix.forms) for mix in mixes)
    for mix in [mix for mix in mixes if mix.kind != MEMORY]:
        vectors = [f for f in mix.forms if any(o.is_register and domain(o.cls) == "v" for o in f.operands)]
        assert all(form.is_vex == (mix.kind in (VEX, EVEX)) for form in vectors)
        assert all(("evex" in form.attributes) == (mix.kind == EVEX) for form in vectors)
        assert not vectors or mix.kind != INTEGER


def test_nothing_reads_a_register_that_another_instruction_writes(mixes):
    for mix in mixes:
        places = {"written": set(), "read": set()}
        for instruction in body(mix):
            form = instruction.form
            for slot, number in zip(form.encoding.slots, instruction.registers, strict=True):
                op = form.operands[slot.operand]
                if slot.part:
                    places["read"].add(("r", number))
                else:
                    places["written" if op.write else "read"].add(physical(op, number))
        assert places["written"].isdisjoint(places["read"])


def test_loads_and_stores_are_apart_and_aligned(mixes):
    for mix in mixes:
        touched = {True: set(), False: set()}
        for instruction in body(mix):
            form = instruction.form
            if form.memory >= 0:
                op = form.operands[form.memory]
                first, size = instruction.displacement, max(op.width // 8, 1)
                assert first % size == 0
                touched[op.write].update(range(first, first + size))
        assert touched[True].isdisjoint(touched[False])
        assert all(-128 <= place < 128 for some in touched.values() for place in some)


def test_chains_through_one_register_are_seen(model, table):
    slow = msgspec.structs.replace(model.forms["IMUL (R64, R64)"], latencies={"op1->op1": 40.0})
    mix = Mix(SSE, (table["IMUL (R64, R64)"], table["STC"]))
    assert not waits(model, mix)
    assert waits(msgspec.structs.replace(model, forms=model.forms | {"IMUL (R64, R64)": slow}), mix)
    assert waits(model, Mix(SSE, (table["VADDPD (ZMM, ZMM, ZMM)"],)))  # no cost: nothing is known


def test_denormal_numbers_do_not_slow_down(mixes):
    assert all(kernel(mix).state.control & 0x8040 == 0x8040 for mix in mixes)


def test_a_core_with_ideal_binding_is_predicted_from_its_ports(model, mixes):
    some = mixes[::4]
    with closing(SimulatedBackend(load_model("skylake"))) as backend:
        cycles = measure(backend, some)
    guesses = predictions(model, "no such CPU", some)
    errors = [abs(p / c - 1) for p, c in zip(guesses[PORTS], cycles, strict=True) if p and c]
    assert len(errors) == len(some)
    assert fmean(errors) < 0.04


def test_what_analyze_says_of_the_code_of_a_mix_is_for_one_of_each_form(model, mixes):
    """Also of a unit without ports that a form keeps busy for long; of unknown forms it says nothing."""
    mix = mixes[0]
    cost = msgspec.structs.replace(model.forms[mix.forms[0].id], resources={"unit": 50.0})
    slow = msgspec.structs.replace(
        model, forms={**model.forms, mix.forms[0].id: cost}, resources={**model.resources, "unit": 1.0}
    )
    assert said(model, [mix])[0] < 50
    assert said(slow, [mix]) == [pytest.approx(50.0)]
    unknown = msgspec.structs.replace(model, name="Made", forms={"NOP": FAST})
    assert said(unknown, [mix]) == [None]


def test_predictions_and_the_worst_are_listed(table):
    mix = Mix(SSE, (table["STC"],))
    rows = [Row(mix, 2.0, {ANALYZE: 1.0, PORTS: 2.1}, "front end"), Row(mix, 1.0, {ANALYZE: 1.0}, "p0")]
    lines = [line.split() for line in summary(rows, [ANALYZE, PORTS]).splitlines()]
    assert lines[2][1::2] == [ANALYZE, "2", "25.0%", "50.0%", "1", "50.0%", "0.0%"]
    assert lines[3][1::2] == [PORTS, "1", "5.0%", "100.0%", "1", "5.0%", "100.0%"]
    assert worst(rows).splitlines()[2].split("|")[1].strip() == "2.00"


@pytest.mark.parametrize(("beside", "level"), [
    ("ADD (R64, I8)", VECTOR_LEGACY), ("VPADDD_EVEX (XMM, XMM, XMM)", VECTOR_VEX128),
    ("VPADDD_EVEX (YMM, YMM, YMM)", VECTOR_VEX256), ("VPADDD (ZMM, ZMM, ZMM)", VECTOR_EVEX512),
])  # fmt: skip
def test_registers_start_as_wide_as_a_mix_has_them(table, beside, level):
    """Legacy instructions execute twice on a Zen 4 where bits 256 to 511 are set."""
    mix = Mix(MEMORY, (table["PADDD (XMM, XMM)"], table[beside]))
    assert kernel(mix).state.vector_level == level
