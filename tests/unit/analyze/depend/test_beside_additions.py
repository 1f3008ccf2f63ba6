"""Loads among additions of registers, on a core that was found to take longer for some shares of both."""

from __future__ import annotations

import shutil

import pytest

from cyclescope.model.behaviour.found import measured_behaviour
from cyclescope.model.facts import BANKS, BESIDE_LOADS, CoreAnswer, Fact, loads_and_additions
from tests.support.code.blocks import predicted

pytestmark = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)

FAST, SLOW = 4.0, 1.0  # loads in a cycle, usually and with an addition for two of them


def facts(error=0.01, **rates):
    """All that was asked; of two loads and an addition and others by name it is another rate."""
    usual = dict.fromkeys(BESIDE_LOADS, FAST) | {(2, 1): SLOW}
    usual |= {tuple(map(int, pair[1:].split("_"))): rate for pair, rate in rates.items()}
    return [
        Fact(BANKS, loads_and_additions(*pair), CoreAnswer.VALUE, rate, error)
        for pair, rate in usual.items()
        if rate
    ]


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("mov rax, [rdi]; mov rcx, [rsi]; lea rdx, [rbx + 8]", 2 / SLOW),
        ("mov rax, [rdi]; mov [rsi], rcx; lea rdx, [rbx + 8]", 2 / SLOW),
        ("mov rax, [rdi]; lea rdx, [rbx + 8]", 1 / FAST),
        ("mov rax, [rdi]; mov rcx, [rsi]; mov r8, [rsi]; lea rdx, [rbx + 8]", 3 / FAST),
        ("mov rax, [rdi]; mov rcx, [rsi]; lea rdx, [rbx + 8]; nop", 0),  # another slot
        ("mov rax, [rdi]; cmp rcx, [rsi]; lea rdx, [rbx + 8]", 0),  # one instruction does both
        ("mov rax, [rdi]; lea rdx, [rbx + 8]; lea rcx, [rbx + 9]", 0),  # more additions than were asked
    ],
)
def test_iterations_of_loads_and_additions_take_what_was_found_out(text, cycles):
    assert predicted(text, *facts()).bounds.get("beside_additions", 0) == pytest.approx(cycles)


def test_between_shares_that_were_asked_a_straight_line_is_drawn():
    (half, most) = (2 / SLOW / 2, 1 / FAST)
    found = predicted("; ".join(5 * ["mov rax, [rdi]"] + 4 * ["lea rdx, [rbx + 8]"]), *facts())
    assert found.bounds["beside_additions"] == pytest.approx(5 * most)  # 2/3 and 1 are as fast as any
    found = predicted("; ".join(9 * ["mov rax, [rdi]"] + 5 * ["lea rdx, [rbx + 8]"]), *facts())
    share = (5 / 9 - 1 / 2) / (3 / 5 - 1 / 2)
    assert found.bounds["beside_additions"] == pytest.approx(9 * (half + (most - half) * share))


@pytest.mark.parametrize(
    "some",
    [
        facts(_2_1=FAST), facts(_2_1=FAST - 0.01, error=0.02), facts(_1_1=0),
        facts(_2_1=FAST - 0.03, error=0.02),  # the fastest may be slower by its own error
    ],
)  # fmt: skip
def test_nothing_is_known_where_none_is_slower_or_not_all_was_asked(some):
    assert measured_behaviour(some, "x86-64").beside_additions is None
