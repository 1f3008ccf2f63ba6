"""Both sides of what dependencies are followed through, and of what counts as equal."""

from __future__ import annotations

import shutil

import pytest

from cyclescope.analyze.depend.loop_carried import slowest_cycle
from cyclescope.analyze.predict.predictor import Predictor
from tests.support.code.blocks import FORWARD, block, changed, predict, predictor, toy

pytestmark = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)


def lcd(text):
    return predict(text, simulate=False).lcd


@pytest.mark.parametrize(("late", "slowest"), [(7e-10, [0]), (1.5e-9, [1])])
def test_chains_are_as_slow_as_each_other_within_a_billionth_of_a_cycle(late, slowest):
    """Sums of latencies are rounded: what is no slower than that is not looked for again and again."""
    assert slowest_cycle({0: {0: 3.0, 1: 0.0}, 1: {1: 3.0 + late, 0: 0.0}}) == slowest


@pytest.mark.parametrize(
    ("moves", "found"),
    [
        ("mov r8, rdi", True),
        ("mov r9, r8; mov r8, rdi", True),
        ("mov r9, r10; mov r10, r8; mov r8, rdi", False),
    ],
)
def test_a_pointer_is_followed_for_two_iterations(moves, found):
    """It is moved on by one register in each, as rotated loops do; what is older is a value of its own."""
    last = moves.split()[1].removesuffix(",")
    text = f"mov [rdi], rax; mov rbx, [{last}]; {moves}; add rdi, 8"
    assert bool(predictor().graph(block(text, loop=True).instructions).memory) is found


def test_stores_beside_each_other_hide_none():
    """Each byte is what the youngest store to it wrote."""
    assert lcd("mov [rdi], eax; mov [rdi + 4], ecx; mov eax, [rdi]") == FORWARD
    assert lcd("mov [rdi], eax; mov [rdi + 4], ecx; mov rax, [rdi]") == 0
    (passage,) = predictor().graph(block("fxsave [rdi]; mov rax, [rdi + 504]").instructions).memory
    assert passage.offset == 504


@pytest.mark.parametrize("size", ["word", "byte"])
def test_a_short_index_is_another_one_once_it_was_stored(size):
    load, store = f"xor ecx, ecx; movzx ecx, {size} ptr [rbp - 8]", f"mov {size} ptr [rbp - 8], 5"
    access = "mov [rdi + rcx*8], rax"
    assert lcd(f"{load}; {access}; {load}; mov rax, [rdi + rcx*8]") == FORWARD
    assert lcd(f"{load}; {access}; {store}; {load}; mov rax, [rdi + rcx*8]") == 0


@pytest.mark.parametrize(("text", "cycles"), [("mov ax, bx", 1), ("mov al, bl", 1), ("add eax, ebx", 3)])
def test_what_merges_with_the_rest_of_a_register_waits_for_it(text, cycles):
    """Writes of 8 and 16 bits, a cycle where the model has none; those of 32 bits leave nothing of it."""
    late = {"latencies": {"op2->op1": 3.0}}
    machine = changed(
        toy("toy haswell"), MOV_89_R16_R16=late, MOV_88_R8_R8=late, MOV_88_R8l_R8l=late, ADD_01_R32_R32=late
    )
    assert Predictor(machine).predict(block(text), simulate=False).lcd == cycles


def test_what_takes_no_time_is_no_chain():
    free = {"eliminated": True, "operations": ()}
    machine = changed(toy(), MOV_89_R64_R64=free, MOV_8B_R64_R64=free)
    found = Predictor(machine).predict(block("mov rcx, rax; mov rax, rcx"))
    assert (found.lcd, found.loop_carried) == (0, ())
    assert all(row.loop_carried is None for row in found.instructions)
