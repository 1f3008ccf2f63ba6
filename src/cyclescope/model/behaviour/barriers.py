"""Barriers that let nothing pass."""

from __future__ import annotations

from collections.abc import Sequence

from cyclescope.model.facts import BARRIERS, VECTOR, CoreAnswer, Fact, barrier_subject


def held_behind(facts: Sequence[Fact]) -> dict[str, tuple[float, float]]:
    """Barriers behind which all waits for what is before them, and cycles that it takes besides.

    These are of what has to do with general registers alone, and of vectors.
    """
    there = [fact for fact in facts if fact.probe == BARRIERS and fact.answer is CoreAnswer.PRESENT]
    known = {fact.subject: fact.value for fact in there if fact.value is not None}
    return {
        name: (cycles, max(known.get(barrier_subject(name, VECTOR), cycles), cycles))
        for name, cycles in known.items()
        if "," not in name
    }
