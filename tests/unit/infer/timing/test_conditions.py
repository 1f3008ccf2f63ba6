"""States of a core on cards: from facts written down, for the forms that they are about."""

from __future__ import annotations

import pytest

from cyclescope.infer.timing.conditions import with_conditions
from cyclescope.infer.timing.results import EXACT, UPPER_BOUND, FormTiming, Latency
from cyclescope.isa.table import load_table
from cyclescope.model.facts import RENAMING, SSE_IN_A_ROW, VECTOR_STATES, CoreAnswer, Fact, MemoryWay

TABLE = load_table("x86-64")
UPPER = Fact(VECTOR_STATES, SSE_IN_A_ROW, CoreAnswer.VALUE, 1.0, 0.05, "cycles", "high")
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
    assert notes("ADDPS (XMM, XMM)", [FORWARDED, UPPER]).startswith("1.00 cycles more")
    assert not notes("MULPS (XMM, XMM)", [UPPER])
    none = Fact(VECTOR_STATES, SSE_IN_A_ROW, CoreAnswer.VALUE, 0.01, 0.05, "cycles", "high")
    assert not notes("ADDPS (XMM, XMM)", [none])
