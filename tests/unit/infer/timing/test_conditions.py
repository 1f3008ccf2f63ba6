"""States of a core on cards: from facts written down, for the forms that they are about."""

from __future__ import annotations

import pytest

from cyclescope.infer.timing.conditions import with_conditions
from cyclescope.infer.timing.results import EXACT, UPPER_BOUND, FormTiming, Latency
from cyclescope.isa.table import load_table
from cyclescope.model.facts import (
    CONSUMERS,
    RENAMING,
    SSE_IN_A_ROW,
    SSE_SIDE_BY_SIDE,
    UPPER_HALVES,
    VECTOR_STATES,
    CoreAnswer,
    Fact,
    MemoryWay,
    consumer_subject,
)

TABLE = load_table("x86-64")
SUBJECT = f"{SSE_IN_A_ROW}, {UPPER_HALVES[256]}"
UPPER = Fact(VECTOR_STATES, SUBJECT, CoreAnswer.VALUE, 1.0, 0.05, "cycles", "high")
FORWARDED = Fact(RENAMING, MemoryWay.UPDATED, CoreAnswer.FORWARDED, 6.0, 0.1, "cycles", "high")


def notes(form, facts, *latencies):
    timing = FormTiming(form, {}, "ok", None, latencies, notes=("before",))
    (found,) = with_conditions([TABLE[form]], [timing], facts)
    assert found.notes[0] == "before"
    return " ".join(found.notes[1:])


@pytest.mark.parametrize("form", ["ADD (M64, I8)", "OR (M32, R32)"])
def test_memory_that_is_read_and_written_by_state(form):
    renamed = Latency("op1.data", "op1.data", 1.0, 1.0, EXACT, 0.01)
    other = Latency("op1.data", "flags.ZF", 5.0, 5.0, EXACT, 0.01)
    assert "op1.data -> op1.data: 7.00" in notes(form, [UPPER, FORWARDED], renamed, other)


@pytest.mark.parametrize(
    ("target", "least", "most", "kind"),
    [
        ("op1.data", 7.0, 7.0, EXACT),
        ("op1.data", 0.0, 1.0, UPPER_BOUND),
        ("op1.data", None, None, None),
        ("flags.ZF", 1.0, 1.0, EXACT),
        ("op1.data", 3.1, 3.1, EXACT),
    ],
)
def test_what_is_not_renamed_has_one_state(target, least, most, kind):
    assert not notes("ADD (M64, I8)", [FORWARDED], Latency("op1.data", target, least, most, kind, 0.01))


@pytest.mark.parametrize(
    ("renamed", "more", "is_told"), [(2.9, 6.0, True), (1.0, 0.6, True), (1.0, 0.4, False)]
)
def test_a_state_is_one_where_it_takes_half_a_cycle_more(renamed, more, is_told):
    """And where the other one takes less than any load."""
    fact = Fact(RENAMING, MemoryWay.UPDATED, CoreAnswer.FORWARDED, more, 0.1, "cycles", "high")
    latency = Latency("op1.data", "op1.data", renamed, renamed, EXACT, 0.01)
    assert bool(notes("ADD (M64, I8)", [fact], latency)) is is_told


def test_where_the_core_renames_behind_a_write_of_the_base_nothing_is_told():
    renamed = Latency("op1.data", "op1.data", 1.0, 1.0, EXACT, 0.01)
    fact = Fact(RENAMING, MemoryWay.UPDATED, CoreAnswer.RENAMED, 1.0, 0.1, "cycles", "high")
    assert not notes("ADD (M64, I8)", [fact], renamed)


def test_upper_halves_are_told_of_what_was_asked():
    assert notes("ADDPS (XMM, XMM)", [FORWARDED, UPPER]).startswith(f"{SSE_IN_A_ROW}: 1.00 cycles more")
    assert not notes("MULPS (XMM, XMM)", [UPPER])


@pytest.mark.parametrize(
    ("more", "error", "told"),
    [
        (0.01, 0.06, f"{SSE_IN_A_ROW}: no cycles more"),
        (0.01, 0.3, ""),  # half a cycle or none
        (0.4, 0.06, ""),
        (0.6, 0.06, f"{SSE_IN_A_ROW}: 0.60 cycles more"),
    ],
)
def test_what_was_asked_and_makes_no_difference_is_told(more, error, told):
    fact = Fact(VECTOR_STATES, SUBJECT, CoreAnswer.VALUE, more, error, "cycles", "high")
    found = notes("ADDPS (XMM, XMM)", [fact])
    assert found.startswith(told) and bool(found) is bool(told)


def test_what_is_slower_side_by_side_and_with_wider_registers_is_told_apart():
    subject = f"{SSE_SIDE_BY_SIDE}, {UPPER_HALVES[512]}"
    wider = Fact(VECTOR_STATES, subject, CoreAnswer.VALUE, 4.0, 0.06, "cycles", "high")
    wanted = "8 of SSE side by side: 4.00 cycles more where the upper halves of registers of 512 bits"
    assert notes("ADDPS (XMM, XMM)", [wider]).startswith(wanted)


def test_consumers_are_told_of_both_forms_by_what_they_take_longer():
    add, sub, mul, divide = (f"{name} (XMM, XMM)" for name in ("ADDSD", "SUBSD", "MULSD", "DIVSD"))
    facts = [
        Fact(CONSUMERS, consumer_subject(add, other), CoreAnswer.VALUE, more, 0.05, "cycles", "high")
        for other, more in ((sub, 0.0), (mul, 1.0), (divide, 1.0))
    ]
    assert notes(add, facts) == (
        f"no cycles more to {sub} and back than in chains of each alone (probe consumers) "
        f"1.00 cycles more to {mul}, {divide} and back than in chains of each alone (probe consumers)"
    )
    assert notes(mul, facts).startswith(f"1.00 cycles more to {add} and back")
    unknown = Fact(CONSUMERS, consumer_subject(add, mul), CoreAnswer.NONE, None, None, "", "")
    assert not notes(add, [unknown])
