"""What an instruction takes whose updated register is a source of it as well: it waits for one, not two."""

from __future__ import annotations

import shutil

import pytest

from cyclescope.analyze.cost.changes import on_one_register
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.model.machine import FormCost
from tests.support.code.blocks import block, changed, predicted, toy

pytestmark = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)

FORM = "VFMADD231PD (YMM, YMM, YMM)"
ALONE = {"op1->op1": 5.0, "op2->op1": 6.0, "op3->op1": 9.0}  # a chain of each pair
ROOM = {"op1->op1": 4.0, "op2->op1": 4.0, "op3->op1": 8.0}


def machine(alone=ALONE, room=ROOM):
    key = "_".join("".join(c if c.isalnum() else " " for c in FORM).split())
    return changed(toy(), **{key: {"latencies": alone, "with_room": room}})


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("vfmadd231pd ymm0, ymm1, ymm2", 5.0),
        ("vfmadd231pd ymm0, ymm0, ymm2", 5.0),
        ("vfmadd231pd ymm0, ymm1, ymm0", 9.0),
        ("vfmadd231pd ymm0, ymm0, ymm0", 9.0),
        ("vfmadd231pd ymm0, ymm1, ymm2; vfmadd231pd ymm1, ymm0, ymm2", 12.0),  # by two registers
        ("vfmadd231pd ymm0, ymm0, ymm2; vmulpd ymm0, ymm0, ymm1", 9.0),
    ],
)
def test_what_updates_a_register_that_it_reads_again_is_late_as_by_that_alone(text, cycles):
    assert predicted(text, machine=machine()).lcd == cycles


@pytest.mark.parametrize("missing", ["op1->op1", "op2->op1"])
def test_without_the_cycles_with_room_it_takes_what_was_measured(missing):
    room = {pair: cycles for pair, cycles in ROOM.items() if pair != missing}
    assert predicted("vfmadd231pd ymm0, ymm0, ymm2", machine=machine(room=room)).lcd == 6.0


def test_it_takes_no_longer_than_by_two_registers():
    """The register that is updated may be read later than the others, with more of a delay."""
    late = FormCost(
        latencies={"op1->op1": 6.0, "op2->op1": 5.0}, with_room={"op1->op1": 3.0, "op2->op1": 4.0}
    )
    assert on_one_register(late, ["op2->op1"]).latencies == late.latencies


def test_the_simulated_chain_takes_the_same():
    found = Predictor(machine()).predict(block("vfmadd231pd ymm0, ymm0, ymm2"))
    assert found.cycles == pytest.approx(5.0, rel=0.01)
