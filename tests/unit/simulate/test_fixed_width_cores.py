"""Loops of AArch64 and RISC-V instructions on LLVM's models of cores: what depends on what."""

from __future__ import annotations

import re

import msgspec
import pytest

from cyclescope.isa.table import load_table
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.state import STACK_TOP, MachineState
from cyclescope.model.machine import FormCost
from cyclescope.session.machines import load_model
from cyclescope.simulate.simulator import Simulator, path

STATE = MachineState(tuple(range(0x1000, 0x1000 + 32 * 0x100, 0x100)))
_SIMULATORS: dict[str, Simulator] = {}


_NAMES = {"0": "zero", "1": "ra", "5": "t0", "6": "t1", "7": "t2", "8": "s0", "9": "s1"}


def instruction(isa: str, line: str) -> Instruction:
    """`FORM assembly`, as LLVM writes it."""
    name, _, text = line.partition(" ")
    if isa == "riscv64":
        text = re.sub(r"\bx(\d+)", lambda match: _NAMES[match[1]], text)
    form = load_table(isa)[name]
    fields = form.bits.fields
    values = form.syntax.read(text, len(fields))
    pairs = list(zip(fields, values, strict=True))
    return Instruction(
        form, tuple(v for f, v in pairs if f.is_register), 0, tuple(v for f, v in pairs if not f.is_register)
    )


def steady(machine: str, *lines: str):
    simulator = _SIMULATORS.setdefault(machine, Simulator(load_model(machine)))
    body = [instruction(simulator.machine.isa, line) for line in lines]
    found = simulator.run(body, STATE)
    assert found.exact
    return found


FMADD = "FMADDDrrr fmadd d0, d1, d2, d0"
A64 = {
    "chain of additions": (["ADDXrs add x0, x0, x1"], {"neoverse-v2": 1, "cortex-a510": 1, "a64fx": 1}),
    "zero register": (["ADDXrs add xzr, xzr, x1"], {"neoverse-v2": 1 / 6, "cortex-a510": 1 / 3}),
    "accumulator forwarded": ([FMADD], {"neoverse-v2": 2, "cortex-a510": 4, "a64fx": 9}),
    "factor": (["FMADDDrrr fmadd d0, d0, d1, d2"], {"neoverse-v2": 4, "cortex-a510": 4, "a64fx": 9}),
    "two accumulators": (
        [FMADD, "FMADDDrrr fmadd d3, d1, d2, d3"], {"neoverse-v2": 2, "cortex-a510": 4, "a64fx": 9}
    ),
    "narrow part of a vector register": (
        ["FADDSrr fadd s0, s0, s1", "FADDDrr fadd d0, d0, d1"], {"neoverse-v2": 4, "a64fx": 8}
    ),
    "flags": (["ADCSXr adcs x0, x1, x2"], {"neoverse-v2": 1, "cortex-a510": 1}),
    "flags are renamed": (
        ["SUBSXrs subs x0, x1, x2", "CSELXr csel x3, x4, x5, eq"], {"neoverse-v2": 1 / 3, "cortex-a510": 1}
    ),
    "load to use": (["LDRXui ldr x0, [x0, #0]"], {"neoverse-v2": 4, "cortex-a510": 2, "a64fx": 4}),
    "index": (["LDRXroX ldr x1, [x0, x1]"], {"neoverse-v2": 4, "cortex-a510": 2, "a64fx": 5}),
    "store to load": (
        ["STRXui str x0, [x1, #0]", "LDRXui ldr x0, [x1, #0]"],
        {"neoverse-v2": 4, "cortex-a510": 2, "a64fx": 4},
    ),
    "store to another place": (
        ["STRXui str x0, [x1, #0]", "LDRXui ldr x0, [x1, #8]"], {"neoverse-v2": 2 / 3, "cortex-a510": 2}
    ),
    "pair with post-index": (["LDPXpost ldp x1, x2, [x0], #16"], {"neoverse-v2": 1}),
    "base of a store does not wait for the data": (
        ["LDRXui ldr x0, [x1, #0]", "STRXpre str x0, [x1, #8]!"], {"neoverse-v2": 1}
    ),
    "list of registers": (
        ["LD1Twov2d ld1 { v0.2d, v1.2d }, [x0]", "FADDDrr fadd d1, d1, d3", "FMOVDXr fmov x0, d1"],
        {"neoverse-v2": 10},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", A64)
def test_aarch64(name):
    lines, expected = A64[name]
    found = {machine: steady(machine, *lines).cycles for machine in expected}
    assert found == pytest.approx(expected, abs=0.01)


def test_written_back_bases_are_followed_within_the_body():
    """A load reads what the store behind the moved base has stored, and nothing else."""
    store, load = "STRXui str x0, [x1, #16]", "LDRXui ldr x0, [x2, #0]"
    moved, back = "LDRXpost ldr x3, [x2], #8", "ADDXri add x2, x4, #0"
    state = MachineState((*(0x1000,) * 8, *(0,) * 24))

    def cycles(*lines):
        body = [instruction("aarch64", line) for line in lines]
        return _SIMULATORS["neoverse-v2"].run(body, state).cycles

    steady("neoverse-v2", load)
    assert cycles(store, moved, moved, load, back) == pytest.approx(4)
    assert cycles(store, moved, load, back) < 2
    assert cycles(store, moved, back, moved, load) < 2
    assert cycles(store, "LDRXpre ldr x3, [x2, #16]!", load, back) == pytest.approx(4)
    assert cycles(store, "LD1Onev2d_POST ld1 { v0.2d }, [x2], #16", load, back) == pytest.approx(4)


def test_the_stack_pointer_is_an_address():
    simulator = Simulator(load_model("neoverse-v2"))
    found = simulator.body([instruction("aarch64", "LDRXui ldr x0, [sp, #8]")], STATE)
    assert list(found.accesses) == [STACK_TOP + 8, 8]
    shifted = simulator.body([instruction("aarch64", "LDRXroX ldr x0, [x1, x2, lsl #3]")], STATE)
    assert list(shifted.accesses) == [0x1100 + 8 * 0x1200, 8]


def test_addresses_in_vectors():
    simulator = Simulator(load_model("neoverse-v2"))
    line = "GLD1D_IMM ld1d { z0.d }, p1/z, [z3.d, #16]"
    state = MachineState((0,) * 32, vectors=((3, (0x7000).to_bytes(8, "little") * 8),))
    found = simulator.body([instruction("aarch64", line)], state)
    assert list(found.accesses) == [0x7000 + 16, 16]


RISCV = {
    "chain": (["ADD add x5, x5, x6"], {"sifive-p670": 1, "spacemit-x60": 1, "xiangshan-nanhu": 1}),
    "zero register": (
        ["ADD add x0, x0, x6"], {"sifive-p670": 1 / 4, "spacemit-x60": 1 / 2, "xiangshan-nanhu": 1 / 4}
    ),
    "accumulator": (
        ["FMADD_D fmadd.d ft0, ft1, ft2, ft0, rne"],
        {"sifive-p670": 4, "spacemit-x60": 6, "xiangshan-nanhu": 3},
    ),
    "load to use": (["LD ld x5, 0(x5)"], {"sifive-p670": 4, "spacemit-x60": 4, "xiangshan-nanhu": 5}),
    "store to load": (["SD sd x5, 0(x6)", "LD ld x5, 0(x6)"], {"sifive-p670": 4, "xiangshan-nanhu": 5}),
    "store to another place": (["SD sd x5, 0(x6)", "LD ld x5, 8(x6)"], {"sifive-p670": 1}),
    "division": (["DIV div x5, x6, x7"], {"sifive-p670": 34, "spacemit-x60": 20, "xiangshan-nanhu": 10}),
    "vector length": (
        ["VSETVLI vsetvli x5, x6, e64, m1, ta, ma", "VADD_VV vadd.vv v1, v2, v3", "SUB sub x6, x5, x7"],
        {"sifive-p670": 4},
    ),
    "group of registers": (
        ["VADD_VV vadd.vv v1, v2, v9", "VL2RE64_V vl2re64.v v8, (x5)"], {"sifive-p670": 4},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RISCV)
def test_riscv(name):
    lines, expected = RISCV[name]
    found = {machine: steady(machine, *lines).cycles for machine in expected}
    assert found == pytest.approx(expected, abs=0.01)


def test_an_in_order_core_issues_a_load_before_what_waits_for_it():
    """Whatever their order in the model: it would wait for ever."""
    plain = load_model("cortex-a510")
    load, store = (plain.forms[name].operations for name in ("LDRXui", "STRXui"))
    cost = FormCost(2, (*store, *load), {"op2->op1": 3, "op3->op1": 3})
    simulator = Simulator(msgspec.structs.replace(plain, forms={**plain.forms, "LDADDX": cost}))
    found = simulator.run([instruction("aarch64", "LDADDX ldadd x1, x2, [x3]")], STATE)
    assert found.cycles > 1


def test_an_in_order_core_issues_nothing_early():
    """A chain of loads and independent additions: they fill its gaps only where they stand in them."""
    load, add = "LD ld x5, 0(x5)", "ADD add x6, x7, x8"
    waits = "ADD add x9, x5, x8"
    assert steady("spacemit-x60", load, *[add] * 6).cycles == pytest.approx(4)
    assert steady("spacemit-x60", load, waits, *[add] * 6).cycles > 6
    assert steady("xiangshan-nanhu", load, waits, *[add] * 6).cycles == pytest.approx(5)


@pytest.mark.parametrize(
    ("isa", "lines", "numbers"),
    [
        ("aarch64", ["B b #8", "NOP hint #0", "NOP hint #0"], [0, 2]),
        ("aarch64", ["BL bl #8", "B b #8", "RET ret x30"], [0, 2, 1]),
        ("aarch64", ["CBZX cbz x0, #8", "NOP hint #0", "NOP hint #0"], [0, 1, 2]),
        ("riscv64", ["JAL jal x0, 6", "C_NOP c.nop", "C_NOP c.nop"], [0, 2]),
        ("riscv64", ["JALR jalr x1, 0(x5)", "C_NOP c.nop"], [0, 1]),
    ],
)
def test_branches(isa, lines, numbers):
    body = [instruction(isa, line) for line in lines]
    assert list(path(body, isa)) == [body[n] for n in numbers]
