"""Answers of several runs of probes: which of them cannot all be right."""

from __future__ import annotations

import pytest

from benchmarks.measuring.answers import collected, confident, contradictions


def run_of(**facts):
    """What a run says: by subject a value with an error, an answer, or nothing."""
    found = []
    for subject, said in facts.items():
        value, error = said if isinstance(said, tuple) else (None, None)
        answer = "value" if value is not None else said
        confidence = "high" if answer else None
        found.append(
            {"subject": subject, "resolved": bool(answer), "answer": answer, "value": value, "error": error,
             "confidence": confidence}
        )  # fmt: skip
    return {"probes": [{"name": "some", "facts": found}]}


@pytest.mark.parametrize(
    ("one", "other", "differs"),
    [
        ((10.0, 0.5), (10.9, 0.5), False),
        ((10.0, 0.5), (11.1, 0.5), True),
        ("fused", "fused", False),
        ("fused", "separate", True),
        ("fused", None, False),
        ((10.0, 0.5), None, False),
        ((10.0, 0.5), "absent", True),
    ],
)
def test_which_answers_differ(one, other, differs):
    found, asked = collected([run_of(subject=one), run_of(subject=other)])
    assert asked == 2
    assert bool(contradictions(found)) is differs


def test_any_two_of_many_runs():
    found, _ = collected([run_of(a=(value, 0.4), b="fused") for value in (10.0, 10.5, 11.0)])
    assert set(contradictions(found)) == {("some", "a")}
    assert [one.run for one in found["some", "a"]] == [0, 1, 2]


def test_answers_that_hold_for_their_time_alone_may_differ():
    runs = [run_of(a=(110.0, 40.0)), run_of(a=(690.0, 230.0))]
    runs[1]["probes"][0]["facts"][0]["confidence"] = "low"
    found, _ = collected(runs)
    assert set(contradictions(found)) == {("some", "a")}
    assert not contradictions({question: confident(some) for question, some in found.items()})
