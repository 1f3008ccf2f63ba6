"""What a load of stored data takes, by what was found of the ways through memory."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.isa.table import load_table
from cyclescope.model.behaviour.found import behaviour_of
from cyclescope.model.behaviour.passing import DISTANCES, MemoryPassing, StoredLoad, work_of
from cyclescope.model.facts import (
    FORWARDING,
    LOOPED,
    RENAMING,
    STACKED,
    VECTOR,
    CoreAnswer,
    Fact,
    LoadWork,
    MemoryWay,
    distance_subject,
    forwarding_subject,
    transfer_subject,
    worked_subject,
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
    way("32 bits", 6.1), way(LoadWork.ADDED, 7.0), way(distance_subject(1), 6.0),
    way(transfer_subject(64, STACKED), 0.0), way(transfer_subject(32, STACKED), 0.0),
    way(transfer_subject(16, STACKED), 6.2), way(forwarding_subject(64, 32, 0, STACKED), 0.0),
    way(worked_subject(LoadWork.SIGNED, 32, 32, STACKED), 7.2), way(distance_subject(15, STACKED), 0.0),
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
        (StoredLoad(32, 32, 0, MemoryWay.STACK, does=LoadWork.SIGNED), 7.2),
        (StoredLoad(64, 64, 0, MemoryWay.STACK, does=LoadWork.ADDED), 0.0),  # not asked by the stack pointer
        (StoredLoad(64, 64, 0, MemoryWay.BASE, does=LoadWork.ADDED), 7.0),
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


def worked(stored, loaded, work, cycles, answer=None):
    return way(worked_subject(work, stored, loaded), cycles, answer)


SIGNED, MERGED, ADDED = LoadWork
NARROW = MemoryPassing((
    way(MemoryWay.BASE, 0.0), way(MemoryWay.REWRITTEN, 7.1), way(transfer_subject(8), 7.0),
    size(64, 64, 0, 7.0), size(8, 8, 0, 7.0), size(32, 8, 0, 7.0), size(32, 8, 1, 7.0), size(16, 8, 0, 7.0),
    worked(8, 8, SIGNED, 2.0, RENAMED), worked(32, 8, MERGED, 1.0, RENAMED),
    worked(64, 8, MERGED, 1.0, RENAMED), worked(8, 8, MERGED, 2.0, RENAMED),
    worked(8, 8, ADDED, 1.0, RENAMED), worked(16, 8, ADDED, 8.1), worked(64, 64, ADDED, 0.0),
))  # fmt: skip


@pytest.mark.parametrize(
    ("load", "cycles"),
    [
        (StoredLoad(8, 8, 0, MemoryWay.BASE), 7.0),  # only loaded, and not renamed
        (StoredLoad(8, 8, 0, MemoryWay.BASE, does=SIGNED), 2.0),
        (StoredLoad(8, 8, 0, MemoryWay.BASE, does=ADDED), 1.0),
        (StoredLoad(32, 8, 0, MemoryWay.BASE, does=MERGED), 1.0),
        (StoredLoad(32, 8, 1, MemoryWay.BASE, does=MERGED), 8.0),  # not the first part: merged behind
        (StoredLoad(8, 8, 0, MemoryWay.REWRITTEN, does=MERGED), 8.0),
        (StoredLoad(16, 8, 0, MemoryWay.BASE, does=ADDED), 8.1),
        (StoredLoad(8, 8, 0, MemoryWay.BASE, updates=True), 1.0),
        (StoredLoad(16, 8, 0, MemoryWay.BASE, updates=True), 7.0),
        (StoredLoad(8, 8, 0, MemoryWay.BASE, does=MERGED, updated=0.0), 1.0),  # stored by an update
        (StoredLoad(8, 8, 0, MemoryWay.BASE, does=MERGED, updated=0.4), 1.4),
        (StoredLoad(8, 8, 0, MemoryWay.BASE, does=MERGED, updated=7.0), 2.0),
    ],
)
def test_narrow_loads_are_renamed_where_something_is_made_of_them(load, cycles):
    """As a Zen 5: `mov [m], al; mov al, [m]` takes 2 cycles, and with MOVZX in place of MOV 7."""
    assert NARROW.cycles(load) == pytest.approx(cycles)


@pytest.mark.parametrize(
    ("form", "work"),
    [
        ("MOV (R64, M64)", None), ("MOVZX (R32, M8)", None), ("MOVSX (R32, M16)", SIGNED),
        ("MOVSXD (R64, M32)", SIGNED), ("MOV (R8l, M8)", MERGED), ("MOV (R16, M16)", MERGED),
        ("ADD (R64, M64)", ADDED), ("CMP (M8, R8l)", ADDED), ("IMUL (R32, M32, I8)", ADDED),
    ],
)  # fmt: skip
def test_what_instructions_make_of_what_they_load(form, work):
    one = load_table("x86-64").get(form)
    loaded = next((op for op in one.operands if op.is_memory), None)
    assert work_of(one, loaded) is work
