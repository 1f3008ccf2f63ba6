"""Copies that run once on this machine: relations between readings, what marks leave alone, faults."""

from __future__ import annotations

import shutil
from contextlib import closing

import pytest
from msgspec import structs

from cyclescope.backend.base import OK, SIGNAL, UNCLEAN
from cyclescope.errors import MeasurementError
from cyclescope.infer.api import calibrated, open_backend
from cyclescope.infer.beside.bursts import BurstPlan, time_bursts
from cyclescope.infer.beside.pieces import Around, Init, text_snippets
from tests.support.programs.processes import patiently

pytestmark = [
    pytest.mark.hardware,
    pytest.mark.skipif(not shutil.which("as"), reason="needs binutils"),
]

PAUSE, RESUME = ".quad 0xF0B513B1C2813F04", ".quad 0xE0B513B1C2813F04"
CHAIN, OTHER = "20*|imul rax, rbx;|", "20*|imul rcx, rdx;|"


@pytest.fixture(scope="module")
def backend():
    opened, identity = open_backend()
    with closing(opened):
        if opened.capabilities().isa != "x86-64":
            pytest.skip("the code is for x86-64")
        calibrated(opened, identity)
        yield opened


def bursts(*texts, plan=BurstPlan(), **before):  # noqa: B008
    return [one.burst for one in text_snippets(texts, Around(Init(**before), plan=plan), None, "x86-64")]


def cycles(backend, *texts, **more):
    return [one.measured.cycles for one in time_bursts(backend, bursts(*texts, **more), 5)]


def test_copies_take_what_a_chain_takes(backend):
    def is_so():
        once, twice, looped = (
            *cycles(backend, "add rax, rbx", "imul rax, rbx"),
            *cycles(backend, "imul rax, rbx", plan=BurstPlan(10, 50)),
        )
        assert 2.5 < twice / once < 5.5
        assert 0.95 < looped / twice < 1.05

    patiently(is_so)


def test_a_measurement_is_short_whatever_comes_before_the_code(backend):
    """With a millisecond before the code a measurement is a few runs of it, not some dozens."""
    rest, plan = "mov ecx, 4000000; l: dec ecx; jnz l", BurstPlan(1000, basic=True, measurements=4)
    for before, least, most in (("", 20, 200), (rest, 1, 8)):
        (one,) = bursts("add rax, rbx", plan=plan, each=before)
        found = backend.burst(one.kernel, one.effort)
        assert found.status in (OK, UNCLEAN)
        assert least <= found.calls <= most


def test_what_is_paused_does_not_count(backend):
    """Marks are fences: what they enclose is paid in full where it counts, else not at all."""

    def is_so():
        texts = (
            f"{PAUSE}; {RESUME}; {CHAIN}", f"{PAUSE}; {OTHER}; {RESUME}; {CHAIN}",
            f"{PAUSE}; {RESUME}; {OTHER}; {PAUSE}; {RESUME}; {CHAIN}",
        )  # fmt: skip
        none, paused, counted = cycles(backend, *texts)
        assert abs(paused - none) < 0.1 * none
        assert 1.7 < counted / none < 2.3

    patiently(is_so)


SURVIVES = f"""mov eax, 5; mov ecx, 7; mov edx, 9; mov ebx, 3; stc; 1: {PAUSE}; jnc 2f; {RESUME}; jnc 2f;
cmp eax, 5; jne 2f; cmp ecx, 7; jne 2f; cmp edx, 9; jne 2f; dec ebx; jz 3f; stc; jmp 1b; 2: ud2; 3: nop"""


@pytest.mark.parametrize("plan", [BurstPlan(5), BurstPlan(5, 3), BurstPlan(5, basic=True)])
def test_marks_leave_registers_flags_and_branches_alone(backend, plan):
    (burst,) = bursts(SURVIVES, plan=plan)
    found = backend.burst(burst.kernel, structs.replace(burst.effort, measurements=1))
    assert found.status in (OK, UNCLEAN)


def test_what_comes_before_runs_where_it_belongs(backend):
    """Once, before each run, behind the first read; areas are 0 until code writes there."""
    (burst,) = bursts(
        "cmp qword ptr [rdi], 1; jne 1f; cmp ecx, 3; jne 1f; jmp 2f; 1: ud2; 2: nop",
        one_time="add qword ptr [rdi], 1", each="mov ecx, 1", late="add ecx, 2",
    )  # fmt: skip
    found = backend.burst(burst.kernel, structs.replace(burst.effort, measurements=3))
    assert found.status in (OK, UNCLEAN)


# The first copy looks whether a NOP of 15 bytes ends where it begins, and where that is in its line.
BEHIND_LONG_NOP = """lea rax, [rip-7]; cmp dword ptr [rax-15], 0x66666666; jne 1f
cmp dword ptr [rax-4], 0; jne 1f; test al, 63; jz 2f; 1: ud2; 2: nop"""
# The setup looks for the fence at the next multiple of 64 bytes, which is in the same line or behind it.
BEFORE_FENCE = """lea rax, [rip+57]; and eax, -64; mov eax, [rax]; and eax, 0xffffff; cmp eax, 0xe8ae0f
je 1f; ud2; 1: nop"""


def test_the_front_end_is_drained_where_that_is_asked_for(backend):
    for text, init in ((BEHIND_LONG_NOP, ""), ("nop", BEFORE_FENCE)):
        for drain, status in ((True, {OK, UNCLEAN}), (False, {SIGNAL})):
            (burst,) = bursts(text, plan=BurstPlan(1, basic=True, drain=drain), each=init)
            found = backend.burst(burst.kernel, structs.replace(burst.effort, measurements=1))
            assert found.status in status


@pytest.mark.parametrize("register", ["rsp", "rbp", "rdi", "rsi", "r14"])
def test_areas_reach_half_a_megabyte_each_way(backend, register):
    inside = f"mov [{register}-0x80000], rax; mov [{register}+0x7fff8], rax"
    outside = [f"mov al, [{register}-0x80001]", f"mov al, [{register}+0x80000]"]
    for text, status in [(inside, {OK, UNCLEAN}), *((one, {SIGNAL}) for one in outside)]:
        (burst,) = bursts(text)
        found = backend.burst(burst.kernel, structs.replace(burst.effort, measurements=1))
        assert found.status in status


@pytest.mark.parametrize("text", ["push rax", "pop rax", "push r15; push r14", "mov r15, [rdi]"])
def test_code_that_no_endless_loop_has(backend, text):
    def is_so():
        found, chain = cycles(backend, text, CHAIN)
        assert 0 < found < chain

    patiently(is_so)


@pytest.mark.parametrize(
    ("text", "said"),
    [("mov rax, [8]", "SIGSEGV at 0x8"), ("1: jmp 1b", "hang"), ("xor ecx, ecx; div ecx", "SIGFPE"),
     ("mov eax, 60; syscall", "SIGSYS"), (f"{PAUSE}; ud2; {RESUME}", "SIGILL")],
)  # fmt: skip
def test_code_that_ends_otherwise(backend, text, said):
    if said == "SIGILL":
        (burst,) = bursts(text)
        found = backend.burst(burst.kernel, structs.replace(burst.effort, measurements=1))
        assert (found.status, found.detail, found.instruction) == (SIGNAL, 4, 8)
        return
    with pytest.raises(MeasurementError, match=said):
        cycles(backend, text)
