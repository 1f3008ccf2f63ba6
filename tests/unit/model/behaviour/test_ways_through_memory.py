"""What a load of stored data takes, by what was found of the ways through memory."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.model.behaviour.found import behaviour_of
from cyclescope.model.behaviour.passing import DISTANCES, MemoryPassing, StoredLoad
from cyclescope.model.facts import (
    FORWARDING,
    LOOPED,
    RENAMING,
    STACKED,
    VECTOR,
    CoreAnswer,
    Fact,
    MemoryWay,
    distance_subject,
    forwarding_subject,
    stacked,
    transfer_subject,
)
from cyclescope.model.machine import MEASURED, Core, MachineModel, Provenance

FORWARDED, RENAMED, FAILED = CoreAnswer.FORWARDED, CoreAnswer.RENAMED, CoreAnswer.FAILED


def way(subject, cycles, answer=None):
    return Fact(RENAMING, str(subject), answer or (FORWARDED if cycles > 1 else RENAMED), cycles, 0.05)


def size(stored, loaded, offset, cycles, answer=FORWARDED, kind=""):
    return Fact(FORWARDING, forwarding_subject(stored, loaded, offset, kind), answer, cycles, 0.05)


PASSING = MemoryPassing((
    way(MemoryWay.BASE, 0.0), way(MemoryWay.INDEXED, 5.0), way(distance_subject(8), 0.0),
    way(distance_subject(12), 5.5), size(64, 64, 0, 0.0), size(64, 64, 4, 19.0, FAILED),
    size(64, 32, 0, 0.0), size(64, 32, 4, 5.0), size(64, 32, 1, 6.0),
    size(128, 128, 0, 7.0, kind=VECTOR), size(32, 64, 0, 20.0, FAILED),
))  # fmt: skip


@pytest.mark.parametrize(
    ("load", "cycles"),
    [
        (StoredLoad(64, 64, 0, MemoryWay.BASE), 0.0),
        (StoredLoad(64, 64, 0, MemoryWay.INDEXED), 5.0),
        (StoredLoad(64, 64, 0, MemoryWay.OTHER), 0.0),  # nothing was found out that speaks against it
        (StoredLoad(64, 64, 0, MemoryWay.BASE, between=9), 0.0),
        (StoredLoad(64, 64, 0, MemoryWay.BASE, between=13), 5.5),
        (StoredLoad(64, 32, 4, MemoryWay.BASE), 5.0),
        (StoredLoad(64, 32, 2, MemoryWay.BASE), 6.0),  # not aligned, as at 1
        (StoredLoad(64, 64, 4, MemoryWay.BASE), 19.0),
        (StoredLoad(64, 64, -8 + 4, MemoryWay.BASE), 19.0),
        (StoredLoad(64, 64, 4, MemoryWay.INDEXED), 19.0),
        (StoredLoad(32, 64, 0, MemoryWay.BASE), 20.0),
        (StoredLoad(128, 128, 0, MemoryWay.BASE, vector=True), 7.0),
        (StoredLoad(128, 128, 0, MemoryWay.INDEXED, vector=True), 7.0),
        (StoredLoad(16, 16, 0, MemoryWay.BASE), None),
        (StoredLoad(64, 64, 0, MemoryWay.BASE, vector=True), None),
    ],
)
def test_what_a_load_of_stored_data_takes(load, cycles):
    assert PASSING.cycles(load) == cycles


@pytest.mark.parametrize(
    ("behind_one", "error", "cycles"),
    [(6.0, 0.1, 5.1), (6.08, 0.1, 5.1), (7.5, 0.1, 6.6), (7.5, 1.5, 5.1), (0.0, 0.1, 5.1)],
)
def test_updates_behind_other_stores_take_longer_by_what_loads_do_there(behind_one, error, cycles):
    """As a Zen 3: a load takes 6 cycles, with another store in between or without, and an update 5.1."""
    behind = msgspec.structs.replace(way(distance_subject(1), behind_one), error=error)
    asked = (way(MemoryWay.BASE, 6.0), way(MemoryWay.UPDATED, 5.1), behind, size(64, 64, 0, 6.0))
    found = MemoryPassing(asked)
    assert found.cycles(StoredLoad(64, 64, 0, MemoryWay.UPDATED)) == 5.1
    assert found.cycles(StoredLoad(64, 64, 0, MemoryWay.UPDATED, between=1)) == pytest.approx(cycles)
    assert found.cycles(StoredLoad(64, 64, 0, MemoryWay.BASE, between=1)) == max(behind_one, 6.0)
    assert MemoryPassing(asked[2:]).cycles(StoredLoad(64, 64, 0, MemoryWay.UPDATED, between=1)) == max(
        behind_one, 6.0
    )


DEALT = MemoryPassing((  # as a Zen 5: renamed by one register that nothing writes, else forwarded
    way(MemoryWay.BASE, 0.02), way(MemoryWay.INDEXED, -0.01), way(MemoryWay.REWRITTEN, 7.0),
    way("32 bits", 0.0), way("16 bits", 7.0), way(MemoryWay.OTHER, 7.1), way(MemoryWay.UPDATED, 6.0),
    way(distance_subject(8), 0.0), way(distance_subject(16), 7.1), way(MemoryWay.REWRITTEN_SHORT, 0.2),
    size(64, 64, 0, 7.1),
    size(32, 32, 0, 7.1), size(16, 16, 0, 7.1), size(64, 32, 0, 7.1), size(32, 64, 0, 14.0, FAILED),
))  # fmt: skip


@pytest.mark.parametrize(
    ("load", "cycles"),
    [
        (StoredLoad(64, 64, 0, MemoryWay.BASE), 0.0),
        (StoredLoad(64, 64, 0, MemoryWay.INDEXED), 0.0),
        (StoredLoad(32, 32, 0, MemoryWay.BASE), 0.0),
        (StoredLoad(16, 16, 0, MemoryWay.BASE), 7.1),
        (StoredLoad(64, 32, 0, MemoryWay.BASE), 7.1),  # not all that was stored
        (StoredLoad(32, 64, 0, MemoryWay.BASE), 14.0),
        (StoredLoad(64, 64, 0, MemoryWay.OTHER), 7.1),
        (StoredLoad(64, 64, 0, MemoryWay.OTHER, few=True), 7.1),  # that was not asked
        (StoredLoad(64, 64, 0, MemoryWay.REWRITTEN), 7.1),
        (StoredLoad(64, 64, 0, MemoryWay.REWRITTEN, few=True), 0.2),
        (StoredLoad(64, 64, 0, MemoryWay.UPDATED), 6.0),
        (StoredLoad(16, 16, 0, MemoryWay.UPDATED), 6.0),
        (StoredLoad(64, 64, 0, MemoryWay.UPDATED, few=True), 0.2),
        (StoredLoad(64, 64, 0, MemoryWay.BASE, between=9), 0.0),
        (StoredLoad(64, 64, 0, MemoryWay.BASE, between=16), 7.1),
        (StoredLoad(64, 64, 0, MemoryWay.REWRITTEN, between=16, few=True), 7.1),
    ],
)
def test_what_is_renamed_by_one_register_is_forwarded_by_another(load, cycles):
    assert DEALT.cycles(load) == cycles


@pytest.mark.parametrize(("other", "cycles"), [(0.2, 0.2), (7.1, 6.0), (None, 6.0)])
def test_what_a_short_loop_knows_by_another_base_it_knows_by_the_same(other, cycles):
    """What has no answer is as what is harder to know, if a core knows that; else as in long loops."""
    more = () if other is None else (way(MemoryWay.OTHER_SHORT, other),)
    found = MemoryPassing(
        (way(MemoryWay.BASE, 0.0), way(MemoryWay.UPDATED, 6.0), size(64, 64, 0, 7.1), *more)
    )
    assert found.cycles(StoredLoad(64, 64, 0, MemoryWay.UPDATED, few=True)) == cycles
    assert found.cycles(StoredLoad(64, 64, 0, MemoryWay.UPDATED)) == 6.0


PARTS = MemoryPassing((  # as a Zen 5: parts of what was stored are renamed, too
    way(MemoryWay.BASE, 0.0), way(MemoryWay.REWRITTEN, 7.0), way(forwarding_subject(64, 32, 0), 0.0),
    size(64, 64, 0, 7.1), size(64, 32, 0, 7.1), size(64, 32, 4, 7.1),
))  # fmt: skip


@pytest.mark.parametrize(
    ("load", "cycles"),
    [
        (StoredLoad(64, 32, 0, MemoryWay.BASE), 0.0),
        (StoredLoad(64, 32, 4, MemoryWay.BASE), 7.1),
        (StoredLoad(64, 32, 0, MemoryWay.REWRITTEN), 7.1),
    ],
)
def test_parts_of_what_was_stored_are_renamed_where_they_were_asked(load, cycles):
    assert PARTS.cycles(load) == cycles


STACKS = MemoryPassing((  # as a Zen 3: renamed by the stack pointer, of 32 bits or more
    way(MemoryWay.BASE, 6.0), way(MemoryWay.STACK, 0.0), way(MemoryWay.STACK_UPDATED, 0.0),
    way("32 bits", 6.1), way(MemoryWay.ADDED, 7.0), way(distance_subject(1), 6.0),
    way(transfer_subject(64, STACKED), 0.0), way(transfer_subject(32, STACKED), 0.0),
    way(transfer_subject(16, STACKED), 6.2), way(forwarding_subject(64, 32, 0, STACKED), 0.0),
    way(stacked(MemoryWay.SIGNED), 7.2), way(distance_subject(15, STACKED), 0.0),
    way(distance_subject(16, STACKED), 6.3),
    size(64, 64, 0, 5.9), size(32, 32, 0, 5.9), size(16, 16, 0, 5.9), size(64, 32, 0, 5.9),
    size(64, 32, 4, 5.8),
))  # fmt: skip


@pytest.mark.parametrize(
    ("load", "cycles"),
    [
        (StoredLoad(64, 64, 0, MemoryWay.BASE), 6.0),
        (StoredLoad(64, 64, 0, MemoryWay.STACK), 0.0),
        (StoredLoad(32, 32, 0, MemoryWay.STACK), 0.0),
        (StoredLoad(16, 16, 0, MemoryWay.STACK), 5.9),  # what was asked of this size by another base
        (StoredLoad(64, 32, 0, MemoryWay.STACK), 0.0),
        (StoredLoad(64, 32, 4, MemoryWay.STACK), 5.8),
        (StoredLoad(64, 32, 0, MemoryWay.BASE), 6.0),
        (StoredLoad(64, 64, 0, MemoryWay.STACK_UPDATED), 0.0),
        (StoredLoad(64, 64, 0, MemoryWay.STACK, between=15), 0.0),
        (StoredLoad(64, 64, 0, MemoryWay.STACK, between=16), 6.3),
        (StoredLoad(32, 32, 0, MemoryWay.STACK, does=MemoryWay.SIGNED), 7.2),
        (StoredLoad(64, 64, 0, MemoryWay.STACK, does=MemoryWay.ADDED), 0.0),  # not asked by the stack pointer
        (StoredLoad(64, 64, 0, MemoryWay.BASE, does=MemoryWay.ADDED), 7.0),
    ],
)
def test_ways_by_the_stack_pointer_are_their_own(load, cycles):
    assert STACKS.cycles(load) == cycles


LOOPS = MemoryPassing((  # as a Zen 3: renamed in short loops, over fewer than 16 stores
    way(MemoryWay.BASE, 6.0), way(transfer_subject(64, LOOPED), 0.1),
    *(way(distance_subject(count), 6.0) for count in DISTANCES),
    *(way(distance_subject(count, LOOPED), 0.0 if count < 16 else 6.1) for count in DISTANCES),
    size(64, 64, 0, 5.9),
))  # fmt: skip


@pytest.mark.parametrize(
    ("between", "few", "cycles"), [(4, True, 0.1), (15, True, 0.1), (16, True, 6.1), (4, False, 6.0)]
)
def test_stores_in_between_count_in_short_loops_as_they_were_asked_there(between, few, cycles):
    assert LOOPS.cycles(StoredLoad(64, 64, 0, MemoryWay.BASE, between=between, few=few)) == cycles


def test_a_store_that_asked_nothing_by_the_stack_pointer_takes_what_it_has():
    before = MemoryPassing((way(MemoryWay.BASE, 0.0), way(MemoryWay.STACK, 0.0), size(64, 64, 0, 6.0)))
    assert before.cycles(StoredLoad(64, 64, 0, MemoryWay.STACK)) == 0.0
    assert before.cycles(StoredLoad(64, 64, 0, MemoryWay.STACK_UPDATED)) == 0.0


def test_a_model_with_facts_is_read_as_it_was_written():
    from cyclescope.model.schema import decode, encode

    facts = way(MemoryWay.BASE, 0.0), size(64, 64, 0, 0.0)
    model = MachineModel("measured", "x86-64", Provenance(MEASURED), Core(4.0), (), {}, facts=facts)
    again = decode(encode(model))
    assert behaviour_of(again).passing.cycles(StoredLoad(64, 64, 0, MemoryWay.BASE)) == 0.0
    assert msgspec.structs.asdict(again) == msgspec.structs.asdict(model)
