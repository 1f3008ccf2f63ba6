"""Instructions on system registers read and write what they name, and nothing else."""

from __future__ import annotations

import pytest

from cyclescope.analyze.choose.source import Choice
from cyclescope.analyze.decode.decoder import decoder
from cyclescope.session.predict import predict

STRLEN = (
    "d775300c"  # vsetvli a1, zero, e8, m8, ta, ma
    "07840603"  # vle8ff.v v8, (a3)
    "f32500c2"  # csrr a1, vl
    "b3 86 b6 00"  # add a3, a3, a1
)


def places(isa, word, way):
    one = decoder(isa).instruction(bytes.fromhex(word), 0)
    return {
        register[0]
        for op, register in zip(one.form.operands, one.registers, strict=True)
        if register is not None and getattr(op, way) and register[0] not in "XVF"
    }


@pytest.mark.parametrize(
    ("isa", "word", "read", "written"),
    [
        ("riscv64", "f32500c2", {"VL"}, set()),  # csrr a1, vl
        ("riscv64", "f32510c2", {"VTYPE"}, set()),
        ("riscv64", "f32520c2", set(), set()),  # vlenb: a constant
        ("riscv64", "f3252000", {"FRM"}, set()),  # frrm a1
        ("riscv64", "73902500", set(), {"FRM"}),  # fsrm a1
        ("riscv64", "f3922500", {"FRM"}, {"FRM"}),  # fsrm t0, a1
        ("riscv64", "f3253000", {"FFLAGS", "FRM"}, set()),  # frcsr a1
        ("riscv64", "7350a100", set(), {"VXRM"}),  # csrwi vxrm, 2
        ("riscv64", "f3250034", {"CSR832"}, set()),  # csrr a1, mscratch
        ("aarch64", "00423bd5", {"NZCV"}, set()),  # mrs x0, nzcv
        ("aarch64", "00421bd5", set(), {"NZCV"}),  # msr nzcv, x0
        ("aarch64", "00443bd5", {"FPCR"}, set()),
        ("aarch64", "20441bd5", set(), {"FPSR"}),  # msr fpsr, x0
        ("aarch64", "42d03bd5", {"SYS56962"}, set()),  # mrs x2, tpidr_el0
        ("aarch64", "5f4103d5", set(), set()),  # msr dit, #1: no flag of NZCV
    ],
)
def test_what_is_read_and_written(isa, word, read, written):
    assert (places(isa, word, "read"), places(isa, word, "write")) == (read, written)


def test_a_load_that_stops_at_a_fault_says_how_far_the_loop_goes():
    found = predict(bytes.fromhex(STRLEN), "sifive-p670", choice=Choice(whole=True))
    (chain,) = [c for c in found.loop_carried if c.cycles > 1]
    assert chain.instructions == (1, 2, 3)
    assert chain.cycles > 3  # a load, a read of VL and an addition


def test_flags_pass_system_registers_that_are_not_theirs():
    """A counter that is read between a comparison and what it decides is no part of either."""
    counter = "42e03bd5"  # mrs x2, cntvct_el0
    code = "000400f1" + counter + "e3179f9a"  # subs x0, x0, #1; ...; cset x3, eq
    found = predict(bytes.fromhex(code), "neoverse-n2", choice=Choice(whole=True))
    assert {(d.source, d.target) for d in found.dependencies} == {(0, 0), (0, 2)}


def test_flags_that_arithmetic_adds_to_are_not_followed():
    found = predict(bytes.fromhex("f3251000"), "sifive-p670", choice=Choice(whole=True))  # frflags a1
    assert any("FFLAGS" in note for note in found.notes)
