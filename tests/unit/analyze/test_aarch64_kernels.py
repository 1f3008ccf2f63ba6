"""AArch64 kernels with published analyses: Gauss-Seidel on ThunderX2, a recurrence on Neoverse V2.

Gauss-Seidel, its port model and what comes out of it are from tables I and II of the OSACA paper
(J. Laukemann et al., Automatic Throughput and Critical Path Analysis of x86 and ARM Assembly Kernels, PMBS
2019): four iterations in a body, measured 18.50 cycles each. The recurrence is from the thesis on WINIC (FAU
2025, listing 9): 2.0 cycles measured on a Grace CPU.
"""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.analyze.choose.source import Choice, read_block
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.model.machine import PUBLISHED, Core, FormCost, MachineModel, Operation, Provenance
from cyclescope.session.machines import load_model

GAUSS_SEIDEL = """\
fc7279ff ldr d31, [x15, x18, lsl 3]
fd4005e0 ldr d0, [x15, 8]
aa0f03ee mov x14, x15
910061f0 add x16, x15, 24
fc7e79e2 ldr d2, [x15, x30, lsl 3]
910081ef add x15, x15, 32
1e602be1 fadd d1, d31, d0
1e7e2823 fadd d3, d1, d30
1e622864 fadd d4, d3, d2
1e690885 fmul d5, d4, d9
fc0085c5 str d5, [x14], 8
fc7279c6 ldr d6, [x14, x18, lsl 3]
fd4005d0 ldr d16, [x14, 8]
910021cd add x13, x14, 8
fc7e79c7 ldr d7, [x14, x30, lsl 3]
1e7028d1 fadd d17, d6, d16
1e652a32 fadd d18, d17, d5
1e672a53 fadd d19, d18, d7
1e690a74 fmul d20, d19, d9
fc1e81f4 str d20, [x15, -24]
fc7279b5 ldr d21, [x13, x18, lsl 3]
fd4009d7 ldr d23, [x14, 16]
fc7e79b6 ldr d22, [x13, x30, lsl 3]
1e772ab8 fadd d24, d21, d23
1e742b19 fadd d25, d24, d20
1e762b3a fadd d26, d25, d22
1e690b5b fmul d27, d26, d9
fd0005db str d27, [x14, 8]
fd4001fe ldr d30, [x15]
fc727a1c ldr d28, [x16, x18, lsl 3]
fc7e7a1d ldr d29, [x16, x30, lsl 3]
1e7e2b9f fadd d31, d28, d30
1e7b2be2 fadd d2, d31, d27
1e7d2840 fadd d0, d2, d29
1e69081e fmul d30, d0, d9
fc1f81fe str d30, [x15, -8]
eb0f00ff cmp x7, x15
54fffb61 bne
"""
RECURRENCE = """\
fc686a81 ldr d1, [x20, x8]
fc686802 ldr d2, [x0, x8]
1f420020 fmadd d0, d1, d2, d0
fc286a60 str d0, [x19, x8]
91002108 add x8, x8, #8
f140051f cmp x8, #1, lsl #12
54ffff41 b.ne
"""
UNROLLED = 4
PUBLISHED_PATH = (520, *range(526, 532), *range(535, 539), *range(544, 547), *range(552, 556))  # table II
CHAIN = (
    "fadd d3", "fadd d4", "fmul d5", "fadd d18", "fadd d19", "fmul d20",
    "fadd d25", "fadd d26", "fmul d27", "fadd d2,", "fadd d0", "fmul d30",
)  # fmt: skip


def block(listing):
    """The block of a listing of instruction words; lines are those of the listing."""
    lines = listing.splitlines()
    code = b"".join(int(line.split()[0], 16).to_bytes(4, "little") for line in lines)
    found = read_block(code, "aarch64", Choice(whole=True))
    numbered = [msgspec.structs.replace(one, line=n) for n, one in enumerate(found, 1)]
    return msgspec.structs.replace(found, instructions=tuple(numbered))


def thunderx2() -> MachineModel:
    """The paper's model of a ThunderX2; the base that a store moves on waits for nothing but itself."""
    load, store, address = Operation((3, 4)), Operation((3, 4)), Operation((5,))
    fp = FormCost(1, (Operation((0, 1)),))
    integer = FormCost(1, (Operation((0, 1, 2)),))
    stores = FormCost(1, (store, address))

    def made(cost, latency, *pairs):
        return msgspec.structs.replace(cost, latencies=dict.fromkeys(pairs, latency))

    loads = [made(FormCost(1, (load,)), 4.0, *pairs) for pairs in (("op2->op1",), ("op2->op1", "op3->op1"))]
    two, compared = ("op2->op1", "op3->op1"), ("op2->NZCV", "op3->NZCV")
    written_back = {"op2->[op1].data": 4.0, "op1->[op1].data": 4.0, "op1->op1": 1.0}
    forms = {
        "FADDDrr": made(fp, 6.0, *two), "FMULDrr": made(fp, 6.0, *two), "ORRXrs": made(fp, 1.0, *two),
        "ADDXri": made(integer, 1.0, "op2->op1"), "SUBSXrs": made(integer, 1.0, *two, *compared),
        "LDRDui": loads[0], "LDRDroX": loads[1], "Bcc": FormCost(1, ()),
        "STRDui": made(stores, 4.0, "op1->[op2].data", "op2->[op2].data"),
        "STURDi": made(stores, 4.0, "op1->[op2].data", "op2->[op2].data"),
        "STRDpost": msgspec.structs.replace(stores, latencies=written_back),
    }  # fmt: skip
    origin = Provenance(PUBLISHED, "OSACA paper", notes=("transcribed from its table II",))
    core = Core(4, load_latency=4.0)
    return MachineModel("thunderx2", "aarch64", origin, core, ("P0", "P1", "P2", "P3", "P4", "P5"), forms)


def predict(**more):
    return Predictor(thunderx2()).predict(block(GAUSS_SEIDEL), unroll_factor=UNROLLED, **more)


def test_gauss_seidel_as_published():
    found = predict(fixed=True)
    assert found.port_cycles == pytest.approx([9 + 5 / 6, 9 + 5 / 6, 4 / 3, 8, 8, 4])
    assert found.bounds["ports_fixed"] / UNROLLED == pytest.approx(2.46, abs=0.005)
    assert (found.lcd / UNROLLED, found.per_unit) == (18, 18)  # measured 18.50
    assert found.cp / UNROLLED == 25
    assert tuple(519 + line for line in found.critical_path.lines) == PUBLISHED_PATH


def test_gauss_seidel_with_the_best_binding_and_a_latency_per_pair():
    found = predict()
    assert found.port_cycles == pytest.approx([8.5, 8.5, 4, 8, 8, 4], abs=1e-5)
    assert found.bounds["ports"] == 8.5
    assert (found.lcd, found.cp) == (72, 86)
    assert (found.cycles, found.bottleneck) == (72, "loop_carried")
    assert (found.bounds["critical_path"], found.bounds["critical_path_fixed"]) == (86, 100)


def test_one_latency_of_an_instruction_delays_the_base_that_it_moves_on():
    """That way, by the store in line 11, is on the published path, and on no path by latencies of pairs."""
    assert set(predict(fixed=True).critical_path.lines) - set(predict().critical_path.lines) == {11, 12, 16}


def test_the_chain_of_gauss_seidel():
    texts = GAUSS_SEIDEL.splitlines()
    chain = [texts[line - 1][9:] for line in predict().loop_carried[0].lines]
    assert len(chain) == len(CHAIN)
    assert all(text.startswith(start) for text, start in zip(chain, CHAIN, strict=True))


def test_gauss_seidel_with_the_model_of_llvm():
    found = Predictor(load_model("TX2")).predict(block(GAUSS_SEIDEL))
    assert (found.lcd, found.cp) == (72, 82)  # stores take no time in LLVM's models
    assert found.loop_carried[0].iterations == 1


def test_an_accumulator_arrives_late():
    found = Predictor(load_model("V2")).predict(block(RECURRENCE))
    assert (found.cycles, found.bottleneck) == (2, "loop_carried")
    assert found.loop_carried[0].lines == (3,)
    assert found.bounds["ports"] == 1
    assert found.bounds["ports_fixed"] == pytest.approx(7 / 6)


THROUGH_ZERO = """\
f86378a4 ldr x4, [x5, x3, lsl 3]
eb07009f cmp x4, x7
aa0303e1 mov x1, x3
8b000023 add x3, x1, x0
"""


def test_a_move_waits_for_no_comparison_before_it():
    """Both are of the zero register: SUBS to it, ORR with it."""
    found = Predictor(load_model("neoverse-n1")).predict(block(THROUGH_ZERO))
    assert found.lcd == 2
    assert found.upper < 3
