"""Readers near what they read, on a core that wakes them up before it is sure of the result."""

from __future__ import annotations

import shutil

import msgspec
import pytest

from cyclescope.model.facts import READ_APART, SCHEDULER, CoreAnswer, Fact, made_and_read
from cyclescope.model.machine import Wakeup
from cyclescope.probe.catalogue import PROBES
from tests.support.code.blocks import changed, measured, predicted

pytestmark = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)

EARLY = Wakeup((0, 1, 2))
PORTS = 3  # of the toy that compute
NEAR, STEP = 0.5, 0.03  # cycles lost by a reader behind what it reads, and less for each operation between


def lost(distance):
    return NEAR - STEP * (distance - 1)


def facts(without=None):
    """What was read of all rounds, or all but one."""
    return [
        Fact(
            SCHEDULER, made_and_read(apart), CoreAnswer.VALUE, (apart + 2) / PORTS + lost(apart + 1), 0.01
        )
        for apart in READ_APART
        if apart != without
    ]  # fmt: skip


def cycles(text, some=None, wakeup=EARLY):
    machine = changed(
        measured(*(facts() if some is None else some)),
        MOV_89_R64_R64={"eliminated": True, "operations": ()},
    )
    machine = msgspec.structs.replace(machine, core=msgspec.structs.replace(machine.core, wakeup=wakeup))
    return predicted(text, machine=machine).bounds.get("woken_early", 0)


MAKE, IDLE, READ = "lea rax, [rbx + 8]; ", "cmp rcx, rdx; ", "cmp rax, rcx; "


@pytest.mark.parametrize(
    ("text", "operations", "distances"),
    [
        (MAKE + READ, 2, [1]),
        (MAKE + 5 * IDLE + READ, 7, [6]),  # between two that were asked
        (MAKE + READ + READ, 3, [1, 2]),
        (MAKE + "mov rsi, rax; cmp rsi, rcx", 2, [2]),  # the renamer moves it
        (MAKE + "add rax, rcx; " + READ, 3, [1]),  # what has waited comes alone
        (MAKE + "mov rdi, [rax]; " + READ, 2, [2]),  # a load is no reader
        (MAKE + "imul rsi, rdi; " + READ, None, [2]),
    ],
)
def test_readers_lose_what_was_asked_of_their_distance(text, operations, distances):
    found = cycles(text) - sum(map(lost, distances))
    assert found == pytest.approx(operations / PORTS) if operations else found > 0


@pytest.mark.parametrize(
    "text",
    [
        IDLE + READ,  # made by nothing here
        MAKE + max(READ_APART) * IDLE + "mov rax, [rdi]; " + READ,
        MAKE + (max(READ_APART) + 1) * IDLE + READ,  # further than was asked
        "imul rax, rbx; " + READ,  # takes longer
        MAKE + "mov rcx, [rax]",
        MAKE + "mov rax, [rdi]; " + READ,
    ],
)
def test_others_lose_nothing(text):
    assert cycles(text) == 0


def test_nothing_is_lost_where_it_was_not_found_or_not_all_was_asked():
    assert cycles(MAKE + READ, wakeup=None) == 0
    assert cycles(MAKE + READ, facts(without=READ_APART[-1])) == 0


def test_the_probe_asks_all_of_it():
    asked = {case.subject for case in PROBES[SCHEDULER].cases("x86-64")}
    assert asked >= {made_and_read(apart) for apart in READ_APART}
