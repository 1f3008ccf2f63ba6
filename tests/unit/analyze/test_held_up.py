"""What stands behind a barrier waits until all before it has ended, where a probe found it so."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.model.facts import BARRIERS, VECTOR, CoreAnswer, Fact, barrier_subject
from cyclescope.model.machine import FormCost
from tests.support.code.blocks import measured, predicted

HELD = Fact(BARRIERS, "LFENCE", CoreAnswer.PRESENT, 14.0, 0.1, "cycles")
OF_VECTORS = Fact(BARRIERS, barrier_subject("LFENCE", VECTOR), CoreAnswer.PRESENT, 20.0, 0.1, "cycles")
MULTIPLIED = "imul rax, rbx"  # 3 cycles


def found(text, *facts):
    """What barriers take, with an LFENCE of 11 cycles, on a front end of 4 slots."""
    machine = measured(*(facts or (HELD, OF_VECTORS)))
    forms = {**machine.forms, "LFENCE": FormCost(1.0, throughput=11.0)}
    return predicted(text, machine=msgspec.structs.replace(machine, forms=forms))


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        (f"lfence; {MULTIPLIED}; {MULTIPLIED}; {MULTIPLIED}", 14 + 9),
        (f"{MULTIPLIED}; {MULTIPLIED}; lfence; {MULTIPLIED}", 14 + 9),  # around the end of the loop
        (f"{MULTIPLIED}; lfence; imul rcx, rbx; {MULTIPLIED}", 14 + 0.25 + 6),
        (f"lfence; {MULTIPLIED}; lfence; {MULTIPLIED}; {MULTIPLIED}", 14 + 3 + 14 + 6),
        (f"lfence; {MULTIPLIED}; imul rcx, rbx; add rdx, 1; add rdx, 1", 14 + 0.75 + 2.5),
        ("lfence; vaddpd ymm0, ymm0, ymm1", 20 + 4),
        ("lfence; nop; nop; nop; nop", 11 + 1),  # nothing that takes time
    ],
)
def test_what_is_between_barriers_takes_its_longest_path(text, cycles):
    prediction = found(text)
    assert prediction.bounds["barriers"] == pytest.approx(cycles, abs=0.8)  # the front end besides
    assert prediction.cycles >= prediction.bounds["barriers"]
    assert not any("hold up" in note for note in prediction.notes)


def test_without_an_answer_nothing_is_held_up_and_a_note_says_so():
    absent = msgspec.structs.replace(HELD, answer=CoreAnswer.ABSENT, value=None)
    for fact in (absent, OF_VECTORS):
        prediction = found(f"lfence; {MULTIPLIED}", fact)
        assert "barriers" not in prediction.bounds
        assert any("hold up" in note for note in prediction.notes)


def test_vectors_wait_as_long_as_others_where_nothing_is_known_of_them():
    assert found("lfence; vaddpd ymm0, ymm0, ymm1", HELD).bounds["barriers"] == 14 + 4
