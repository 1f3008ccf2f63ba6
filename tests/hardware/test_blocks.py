"""Basic blocks on this machine: relations that hold on every core, pages on faults, and what is refused."""

from __future__ import annotations

import platform
import statistics

import pytest

from cyclescope.backend.base import HANG, OK, PAGES, SIGNAL, UNCLEAN, BlockEffort
from cyclescope.backend.canary import prepare
from cyclescope.measure.blocks import judged
from cyclescope.session.blocks import LOOP, UNROLLED, ProgramBlock, cases
from tests.support.programs.processes import patiently

pytestmark = [
    pytest.mark.hardware,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="machine code of x86-64"),
]

ADD = "4801c0"  # add rax, rax
IMUL = "480fafc0"  # imul rax, rax
CHASE = "488b00"  # mov rax, [rax]
WALK = "4883c740488b07"  # add rdi, 64; mov rax, [rdi]
STRIDE = "4881c700100000488b07"  # add rdi, 4096; mov rax, [rdi]
PASSES = 4


@pytest.fixture(scope="module")
def calibrated(native):
    prepare(native, native.capabilities().identity.machine)
    return native


def sampled(backend, code, notion=UNROLLED, **effort):
    (case,) = cases([ProgramBlock(bytes.fromhex(code))], notion)
    assert case.kernel is not None, case.reason
    return backend.blocks([case.kernel], BlockEffort(**effort))[0]


def cycles(backend, code, notion=UNROLLED):
    """A chain's cycles: neighbours do not change them, but they may come between."""
    found = judged([sampled(backend, code, notion) for _ in range(PASSES)])
    if not found.is_clean:
        pytest.skip(f"this machine is too busy: {found.reason}")
    return found.cycles


def test_chains_take_what_they_are_made_of(calibrated):
    def is_so():
        add, one, two = (cycles(calibrated, code) for code in (ADD, IMUL, IMUL * 2))
        assert two == pytest.approx(2 * one, rel=0.03)
        assert one > 1.5 * add

    patiently(is_so)


def test_a_chain_takes_the_same_as_a_loop(calibrated):
    def is_so():
        copies, loop = (cycles(calibrated, IMUL * 4, notion) for notion in (UNROLLED, LOOP))
        assert loop == pytest.approx(copies, rel=0.05)

    patiently(is_so)


def test_copies_take_as_long_wherever_in_a_line_they_end(calibrated):
    """What their end takes is no part of a block."""
    codes = [
        "4c8b5f284d85db", "4883f8004989c7", "4c8b48084d85c9", "488d58084839f3", "440fbeea4585ed",
        "488d75b04c89ff", "f64202018b720c", "488b43604c39e0", "4883fa0f4889fb4889f5", "458b4e384585c9",
        "4989c60fb6430e83f801",
    ]  # fmt: skip

    def is_so():
        halves = [abs(sampled(calibrated, code).linearity - 1) for code in codes]
        assert statistics.median(halves) < 0.05

    patiently(is_so)


@pytest.mark.parametrize(
    ("code", "quarter", "lines"),
    [
        ("4c8b5f284d85db", 150, 64),  # 7 bytes, so that 64 copies fill lines
        ("488d58084d8b5f28", 150, 8),
        ("488d5808" * 15 + "b801000000", 18, 32),  # 65 bytes: half lines, as 64 copies would be too many
    ],
)
def test_the_copies_of_all_lengths_begin_at_the_same_place_in_a_line(calibrated, code, quarter, lines):
    copies = sampled(calibrated, code).copies
    assert (copies - quarter) % lines == 0
    assert copies <= 5 * quarter


def test_pages_are_mapped_as_a_block_touches_them(calibrated):
    none, one = sampled(calibrated, IMUL), sampled(calibrated, "488b07")
    assert one.pages == none.pages + 1  # and a stack
    assert sampled(calibrated, CHASE).pages > 10  # from place to place
    assert {one.status, none.status} <= {OK, UNCLEAN}


def test_what_walks_through_memory_gets_fewer_copies(calibrated):
    walks, stays = sampled(calibrated, WALK), sampled(calibrated, "4883c740488b06")
    assert walks.copies < stays.copies
    assert walks.pages <= 6


def test_too_many_pages_are_an_answer(calibrated):
    assert sampled(calibrated, STRIDE, pages=7).status == PAGES


@pytest.mark.parametrize(
    ("code", "signal"),
    [
        ("0f0b", 4),  # ud2
        ("488b042500000000", 11),  # mov rax, [0]
        ("48b80000000000000080488b00", 11),  # not canonical
        ("488b042500000060", 0),  # the runner's own code: there is memory
        ("31c9f7f1", 8),  # a division by zero
        ("b8270000000f05", 31),  # mov eax, 39; syscall
    ],
)
def test_faults_are_answers_and_the_next_block_is_timed(calibrated, code, signal):
    block = ProgramBlock(bytes.fromhex(code))
    kernel = cases([ProgramBlock(bytes.fromhex(IMUL))], UNROLLED)[0].kernel
    bad = type(kernel)(block.code, 1, kernel.state)
    first, second = calibrated.blocks([bad, kernel], BlockEffort())
    assert (first.status, first.detail) == (SIGNAL, signal) if signal else first.status in (OK, UNCLEAN)
    assert second.status in (OK, UNCLEAN)


def test_a_block_that_does_not_end(calibrated):
    kernel = cases([ProgramBlock(bytes.fromhex(IMUL))], UNROLLED)[0].kernel
    endless = type(kernel)(bytes.fromhex("ebfe"), 1, kernel.state)
    assert calibrated.blocks([endless], BlockEffort())[0].status == HANG


def test_what_a_block_leaves_in_memory_is_gone(calibrated):
    """A pointer that a block destroys is whole for the next one, and for every sample."""
    spoils = "48c707ffffffff"  # mov qword [rdi], -1
    assert sampled(calibrated, spoils).status in (OK, UNCLEAN)
    assert sampled(calibrated, "488b07488b00").status in (OK, UNCLEAN)  # mov rax, [rdi]; mov rax, [rax]


def test_stores_of_copies_take_what_they_take_in_a_loop(calibrated):
    """Those that are still on their way when the last copy has ended count as well."""
    code = "488903498945400f1f000f1f000f1f00"  # mov [rbx], rax; mov [r13 + 64], rax; three NOPs

    def is_so():
        copies, loop = cycles(calibrated, code), cycles(calibrated, code, LOOP)
        assert copies == pytest.approx(loop, rel=0.1)

    patiently(is_so)
