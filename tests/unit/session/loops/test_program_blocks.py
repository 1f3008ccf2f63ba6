"""What can be timed of a block: loops around it, registers that it starts with, and why not."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from cyclescope.analyze.choose.source import read_block
from cyclescope.kernel.state import PLACE_STEP, REGISTERS_BASE, VECTOR_EVEX512, VECTOR_LEGACY, VECTOR_VEX256
from cyclescope.session.blocks import (
    LOOP,
    UNROLLED,
    ProgramBlock,
    cases,
    decoded,
    loop_end,
    readable,
    text_of,
)

ADD, LOAD = "4801d8", "488b07"  # add rax, rbx; mov rax, [rdi]
RELATIVE = "488b0500100000"  # mov rax, [rip+0x1000]
EVERY = "".join(f"{0x48 + (n >> 3) * 5:02x}85{0xC0 + 9 * (n & 7):02x}" for n in range(16))  # test r, r


def case(code, notion=UNROLLED, isa="x86-64"):
    return cases([ProgramBlock(bytes.fromhex(code), isa=isa)], notion)[0]


# --- loops -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [2, 121, 123, 124, 5000])
def test_a_loop_ends_with_a_branch_to_its_start(before):
    block = decoded(b"\x90" * before + loop_end("x86-64", 13, before))
    assert block.loop
    assert [one.text for one in block][-2:-1] == ["dec r13"]


def test_short_branches_are_used_as_long_as_they_reach():
    assert [len(loop_end("x86-64", 0, n)) for n in (123, 124)] == [5, 9]


@pytest.mark.parametrize(("isa", "nop"), [("aarch64", "1f2003d5"), ("riscv64", "13000000")])
def test_loops_of_other_instruction_sets(isa, nop):
    code = bytes.fromhex(nop) * 5
    block = read_block(code + loop_end(isa, 9, len(code)), isa)
    assert block.loop
    assert len(block) == 7


def test_a_branch_that_does_not_reach_is_none():
    assert loop_end("riscv64", 9, 4092) and not loop_end("riscv64", 9, 4096)


def test_the_counter_is_no_register_of_the_block():
    found, looped = case("4d01fe"), case("4d01fe", LOOP)  # add r14, r15
    assert found.kernel.flags == 0
    assert looped.kernel.flags == protocol("BLOCK_LOOP") | 13 << protocol("BLOCK_COUNTER_SHIFT")
    assert "dec r13" in text_of(looped.block)
    assert looped.kernel.code == looped.code == b"".join(one.code for one in looped.block)


def protocol(name):
    """A number that the runner is compiled with."""
    text = (resources.files("cyclescope") / "native" / "protocol.h").read_text()
    (found,) = re.findall(rf"^ *{name} = (\d+),", text, re.MULTILINE)
    return int(found)


def test_registers_of_addresses_and_parts_of_registers_are_used():
    assert case("438a4c3500", LOOP).kernel.flags >> 8 == 15  # mov cl, [r13+r14]
    assert case("4438f8", LOOP).kernel.flags >> 8 == 14  # cmp al, r15b


def test_without_a_register_left_there_is_no_loop():
    assert case(EVERY).kernel is not None
    assert case(EVERY, LOOP).reason == "no register is left to count trips"


# --- what does not fit -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("0f05", "system instruction"),
        ("0fa2", "CPUID"),
        ("0f31", "RDTSC"),
        ("75fe", "branches"),
        ("e800000000", "branches"),
        ("c3", "branches"),
        ("f4", "privileged"),
        ("90" * 16_500, "too long"),
    ],
)
def test_what_is_no_block_to_time_has_its_reason(code, words):
    for notion in (UNROLLED, LOOP):
        found = case(code, notion)
        assert found.kernel is None
        assert words in found.reason


def test_sixteen_thousand_bytes_are_not_too_long():
    assert case("90" * 16_000).kernel is not None


def test_relative_addresses_fit_a_loop_only():
    assert "relative" in case(RELATIVE).reason
    assert case(RELATIVE, LOOP).kernel is not None


def test_the_register_that_the_runner_keeps():
    assert "keeps" in case("9c03018b", isa="aarch64").reason  # add x28, x28, x1
    assert case("2000018b", isa="aarch64").kernel is not None
    assert "keeps" in case("b38dbd01", isa="riscv64").reason  # add s11, s11, s11


# --- the start -------------------------------------------------------------------------------------


def test_every_register_points_to_a_page_and_a_line_of_its_own():
    general = case(ADD).kernel.state.general
    assert len({value >> 12 for value in general}) == len({value >> 6 & 63 for value in general}) == 16
    assert general[0] == REGISTERS_BASE and general[1] - general[0] == PLACE_STEP
    assert all(value % 64 == 0 for value in general)
    assert max(general) * 9 < 1 << 32  # with a scaled index


def test_vectors_start_as_the_block_needs_them():
    assert case("0f58c1").kernel.state.vector_level == VECTOR_LEGACY  # addps
    assert case("c5f458c1").kernel.state.vector_level == VECTOR_VEX256  # vaddps ymm
    assert case("62f17c4858c1").kernel.state.vector_level == VECTOR_EVEX512
    assert case("d8c1").kernel.state.x87 and not case(ADD).kernel.state.x87


def test_no_exception_is_raised_and_denormals_are_zeros():
    """Bits of MXCSR: masks of six exceptions, and zeros for denormal sources and results."""
    control = case("62f17c4858c1d8c1").kernel.state.control
    assert {bit for bit in range(32) if control >> bit & 1} == {*range(7, 13), 6, 15}


def test_states_are_shared():
    """Runners know states by identity, and only so many of them."""
    assert case(ADD).kernel.state is case(LOAD).kernel.state


def test_what_is_no_machine_code():
    assert "no instruction" in readable(bytes.fromhex("48ff"), "x86-64")
    assert not readable(bytes.fromhex(ADD), "x86-64")
