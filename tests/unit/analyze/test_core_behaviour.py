"""What is taken for cores that a model does not say all of, and what is known of a manufacturer's."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.analyze.choose.source import Choice, read_block
from cyclescope.analyze.cost.cores import forward_latency, load_latency
from cyclescope.analyze.cost.instruction import PlacedCosts
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.isa.find.pattern import select
from cyclescope.isa.table import load_table
from cyclescope.model.behaviour.found import behaviour_of
from cyclescope.model.behaviour.published import StoreChunks
from cyclescope.model.machine import DRAWN, Core, FormCost, MachineModel, Provenance
from cyclescope.session.machines import load_model
from tests.support.code.blocks import block

BARE = MachineModel("some core", "x86-64", Provenance(DRAWN), Core(4.0), (), {})
LOADS = {"MOV (R64, M64)": FormCost(1.0, (), {"op2.address->op1": 5.0})}


def test_a_model_that_says_nothing_of_loads():
    """No latency is typed in for it: the prediction says what it lacks."""
    assert load_latency(BARE) == 0
    assert forward_latency(BARE) == 2
    costs = {"MOV (R64, M64)": FormCost(1.0, ()), "NOP": FormCost(1.0, ())}
    bare = Predictor(msgspec.structs.replace(BARE, forms=costs))
    said = "the model does not say how long a load takes: no time is counted for it:"
    assert any(note.startswith(said) for note in bare.predict(block("mov rax, [rdi]")).notes)
    assert not any(note.startswith(said) for note in bare.predict(block("nop")).notes)
    told = msgspec.structs.replace(BARE, forms=costs | LOADS)
    assert not any(note.startswith(said) for note in Predictor(told).predict(block("mov rax, [rdi]")).notes)


@pytest.mark.parametrize(
    ("text", "streams"),
    [
        ("nop; movntdq [rdi], xmm0", True), ("nop; movnti [rdi], rax", True),
        ("nop; vmovntps [rdi], ymm0", True),
        ("nop; movntdqa xmm0, [rdi]", False), ("nop; movaps [rdi], xmm0", False),
    ],
)  # fmt: skip
def test_stores_past_the_caches_wait_for_what_is_not_counted(text, streams):
    notes = Predictor(load_model("skylake")).predict(block(text), simulate=False).notes
    said = "stores past the caches take as long as memory does, which is not counted: line 2"
    assert [note for note in notes if "past the caches" in note] == [said] * streams


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"forms": LOADS}, (5, 7)),
        ({"core": Core(4.0, load_latency=3)}, (3, 5)),
        ({"core": Core(4.0, load_latency=3, forward_latency=9)}, (3, 9)),
        ({"forms": LOADS, "name": "GenuineIntel 6-94-3 skylake"}, (5, 5)),
    ],
)
def test_a_model_says_how_long_a_load_takes(more, expected):
    machine = msgspec.structs.replace(BARE, **more)
    assert (load_latency(machine), forward_latency(machine)) == expected


def test_x87_arithmetic_may_take_seven_cycles_on_a_zen():
    """Seven are published; LLVM has the latencies of SSE."""
    costs = PlacedCosts(load_model("znver4"))
    form = next(iter(select(load_table("x86-64"), ["FADDP*"])))
    assert {most for _, most in costs.cost(form).ranges.values()} == {7.0}
    assert PlacedCosts(load_model("skylake")).cost(form).ranges == {}


@pytest.mark.parametrize(("name", "chunk"), [("znver3", StoreChunks(32, 32)), ("skylake", None)])
def test_stores_of_a_zen_leave_in_chunks(name, chunk):
    """Of 32 bytes (docs/method/analyze.md): stores one after the other to one chunk take one cycle."""
    assert behaviour_of(load_model(name)).store_chunk == chunk


def test_a_branch_that_is_taken_takes_a_cycle():
    """Three jumps to what is behind them, of which the last leads out of the code."""
    block = read_block(bytes.fromhex("eb00eb00eb00"), "x86-64", Choice(whole=True))
    assert Predictor(load_model("skylake")).predict(block).bounds["taken_branches"] == 2
