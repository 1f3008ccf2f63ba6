"""What is printed of a machine model: each line of one that has everything, and of a form's costs."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cyclescope.model.calibration import ClaimCalibration, TriedMixes
from cyclescope.model.facts import CoreAnswer, Fact
from cyclescope.model.machine import (
    GROUPED,
    MEASURED,
    Borrowed,
    Core,
    FormCost,
    Halves,
    MachineModel,
    Narrow,
    Operation,
    Provenance,
    Scheduler,
    Wakeup,
    Writeback,
)
from cyclescope.report.machines import cost_card, machine_text
from cyclescope.report.tables import LINE_WIDTH

CORE = Core(
    width=6.0, reorder_buffer=256, load_buffer=72, store_buffer=44, load_latency=4.0, forward_latency=7.5,
    mispredict_penalty=13.0, schedulers=(Scheduler("int", (0, 1), 24), Scheduler("memory", (2,))), whole=True,
    width_kind=MEASURED, width_source="six of NOPs", fetch=32.0, lengths=((4, 1.0), (9, 1.71)), nops=2,
    binding=GROUPED, wakeup=Wakeup((0, 1), ((0,), (1,)), 16, one_result=True, leading=(1,)), single=(0, 1),
    writeback=Writeback((0, 1), 4, crossing=True), ahead=True, rotating=(1, 2), evenness=0.125,
    in_turn=((0, 1),), halves=Halves((0,), (1,), 0.125, 2),
    narrow=Narrow(("k", "v"), 4.0, 3, "4 moves a cycle"),
)  # fmt: skip
ADD = FormCost(
    1, (Operation((0, 1)),), {"op1->op1": 1.0}, throughput=0.5, throughput_error=0.004, confidence="high"
)
LOAD = FormCost(
    slot_range=(1.0, 3.0), operations=(Operation((2,)), Operation((0, 1), 1, 2.0)), microcoded=True,
    latencies={"op2->op1": 4.0, "op2->flags.CF": 5.0, "op2->flags.OF": 5.0, "op3->op1": 1.0},
    ranges={"op2->op1": (4.0, 6.0), "op3->op1": (1.0, 2.0), "op4->op1": (1.0, 3.0)},
    with_room={"op3->op1": 2.0}, throughput_most=2.25, resources={"divider": 2.0, "bus": 1.0},
    alternatives=("1*p0", "1*p1", "1*p2", "2*p0"), eliminated=True, idiom="zero", note="as found",
    indexed_throughput=4.5,
)  # fmt: skip
MODEL = MachineModel(
    "made", "x86-64",
    Provenance(MEASURED, "two runs", "1.2", "MIT", notes=("drawn by hand",), missing=("ports",)),
    CORE, ("0", "1", "2"), {"ADD": ADD, "LOAD": LOAD}, {"divider": 1.0, "bus": 0.5},
    Borrowed("other", "a file", ("width", "buffers")),
    (
        Fact("moves", "R64", CoreAnswer.VALUE, 1.0, 0.05, "slots", "high"),
        Fact("moves", "XMM", CoreAnswer.ELIMINATED),
    ),
    ClaimCalibration(
        {"high": TriedMixes(20, 19, 0.021)}, {"high": TriedMixes(10, 10, 0.004)}, (0.01, 0.027), 2, 2, 1, 1,
        TriedMixes(30, 21, 0.08),
    ),
)  # fmt: skip

EXPECTED = Path(__file__).parent / "expected"


def test_every_line_of_a_machine():
    found = machine_text(MODEL)
    assert found == (EXPECTED / "machine.txt").read_text()
    assert max(map(len, found.splitlines())) <= LINE_WIDTH


def test_room_in_front_of_ports_is_told():
    core = msgspec.structs.replace(CORE, writeback=Writeback((0, 1), entries=16))
    told = "p01 are got at dispatch; 16 operations wait in front of each"
    assert told in " ".join(machine_text(msgspec.structs.replace(MODEL, core=core)).split())


def test_every_line_of_a_form():
    assert cost_card(MODEL, "LOAD", LOAD) == (EXPECTED / "form.txt").read_text()
    assert "\n  throughput  0.50 ± 0.004  measured\n" in cost_card(MODEL, "ADD", ADD)


def test_nothing_is_left_out_on_request():
    assert "or 2*p0\n" in cost_card(MODEL, "LOAD", LOAD, everything=True)
