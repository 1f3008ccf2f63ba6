"""Round trips through memory, on a core that was found to take longer for short ones."""

from __future__ import annotations

import shutil

import pytest

from cyclescope.model.facts import (
    FORWARDING,
    RENAMING,
    CoreAnswer,
    Fact,
    MemoryWay,
    forwarding_subject,
    trip_subject,
    update_subject,
)
from tests.support.code.blocks import changed, measured, predicted

pytestmark = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)

WAY = 6.0  # cycles from a store to a load


def fact(subject, cycles, answer=CoreAnswer.FORWARDED):
    return Fact(RENAMING, subject, answer, cycles, 0.05)


FORWARDS = (
    Fact(FORWARDING, forwarding_subject(64, 64, 0), CoreAnswer.FORWARDED, WAY, 0.05),
    fact(MemoryWay.BASE, WAY), fact(MemoryWay.REWRITTEN, WAY),
)  # fmt: skip
TRIPS = (
    *FORWARDS,
    fact(trip_subject(1), WAY + 0.75), fact(trip_subject(2), WAY + 0.5), fact(trip_subject(3), WAY),
    fact(MemoryWay.UPDATED, WAY - 1), fact(update_subject(0), WAY + 0.5), fact(update_subject(1), WAY),
    fact(update_subject(2), WAY - 1),
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("mov rax, [rdi]; add rax, 1; mov [rdi], rax", WAY + 1.75),
        ("mov rax, [rdi]; lea rax, [rax + 1]; mov [rdi], rax; test rcx, rcx; nop; nop; nop", WAY + 1.75),
        ("mov rax, [rdi]; add rax, 1; add rax, 1; mov [rdi], rax", WAY + 2.5),
        ("mov rax, [rdi]; imul rax, rax, 3; mov [rdi], rax", None),
        (
            "mov rax, [rdi]; imul rax, rax, 3; imul rax, rax, 3; mov [rdi], rax",
            None,
        ),  # so long were not asked
        ("mov rax, [rdi]; add rax, 1; mov [rsi], rax", None),  # no trip
        ("add rdi, 8; mov rax, [rdi - 8]; add rax, 1; mov [rdi], rax", WAY + 1.75),
        ("add qword ptr [rdi], 1", WAY + 1.5),
        ("add qword ptr [rdi], 1; mov rcx, rbx", WAY + 1),
        ("add qword ptr [rdi], 1; mov rcx, rbx; mov rdx, rbx", None),
        ("add qword ptr [rdi], 1; mov rcx, rbx; mov rdx, rbx; nop; nop; nop", None),  # more than were asked
        ("add qword ptr [rdi], 1; mov [rsi], rcx", None),  # other stores were not asked
    ],
)
def test_short_trips_take_longer(text, cycles):
    machine = changed(measured(*TRIPS), ADD_M64_I8={"latencies": {"op1.data->op1.data": WAY + 1}})
    found = predicted(text, machine=machine).bounds.get("memory_trips")
    assert found == (None if cycles is None else pytest.approx(cycles))


@pytest.mark.parametrize(
    "facts", [FORWARDS, (*FORWARDS[:1], fact(MemoryWay.BASE, 0.0, CoreAnswer.RENAMED), *TRIPS[3:])]
)
def test_a_core_that_was_not_asked_or_renames_has_no_longer_ones(facts):
    for text in ("mov rax, [rdi]; add rax, 1; mov [rdi], rax", "mov [rdi], rax; add rax, [rdi]"):
        assert "memory_trips" not in predicted(text, *facts).bounds


def test_an_update_that_is_renamed_takes_no_trip():
    ways = MemoryWay.STACK_UPDATED, MemoryWay.STACK
    renamed = [fact(way, 0.0, CoreAnswer.RENAMED) for way in ways]
    bounds = predicted("add qword ptr [rsp + 8], 1", *TRIPS, *renamed).bounds
    assert bounds["loop_carried"] == pytest.approx(1.0)
    assert "memory_trips" not in bounds


def test_what_an_update_takes_alone_is_in_its_latency_where_no_way_was_found():
    facts = [one for one in TRIPS if one.subject != MemoryWay.UPDATED]
    machine = changed(measured(*facts), ADD_M64_I8={"latencies": {"op1.data->op1.data": WAY + 2.5}})
    bounds = predicted("add qword ptr [rdi], 1", machine=machine).bounds
    assert bounds["loop_carried"] == pytest.approx(WAY + 2.5)
    assert "memory_trips" not in bounds


def test_locked_updates_are_another_thing():
    assert "memory_trips" not in predicted("lock add qword ptr [rdi], 1", *TRIPS).bounds
