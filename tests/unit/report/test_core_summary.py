"""A core on one page: the numbers that people ask for, of what probes found."""

from __future__ import annotations

import pytest

from cyclescope.model.facts import HIGH, LOW, MEDIUM, CoreAnswer, Fact
from cyclescope.probe.catalogue import PROBES
from cyclescope.report.pages.core_summary import _CARD, _Counts, card_lines, card_text
from cyclescope.report.probes import fact_lines

FACTS = (
    Fact("cache-sets", "first level, size", CoreAnswer.VALUE, 48.0, 0.0, "KiB", HIGH),
    Fact("caches", "first level, load", CoreAnswer.VALUE, 4.073, 0.076, "cycles", HIGH),
    Fact("caches", "second level, size", reason="the edge is soft"),
    Fact("return-stack", "calls inside each other", CoreAnswer.VALUE, 30.5, 0.5, "calls", MEDIUM),
    Fact("fusion", "A + B", CoreAnswer.FUSED, confidence=HIGH),
    Fact("fusion", "A + C", CoreAnswer.FUSED, confidence=HIGH),
    Fact("fusion", "D + C", CoreAnswer.SEPARATE, confidence=HIGH),
    Fact("stack-engine", "pushes and pops", CoreAnswer.PRESENT, 0.25, 0.001, "cycles", HIGH),
    Fact("core-to-core", "a line, CPU 0 and 1", CoreAnswer.VALUE, 110.0, 30.0, "cycles", MEDIUM),
    Fact("core-to-core", "a line, CPU 0 and 2", CoreAnswer.VALUE, 820.0, 90.0, "cycles", MEDIUM),
)  # fmt: skip


def told(title, facts=FACTS):
    (line,) = (line for line in card_lines(facts) if line.title == title)
    return line


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("first cache", "48 KiB"),
        ("first cache, load", "4.07 +-0.08 cycles"),
        ("second cache", "not resolved: the edge is soft"),
        ("calls inside each other", "30.5 +-0.5 calls"),
        ("pairs in one slot", "2 fused, 1 separate"),
        ("pushes and pops", "present, 0.25 cycles"),
        ("a line from one CPU to another", "110.00 to 820.00 cycles"),
    ],
)
def test_rows(title, text):
    assert told(title).told == text


def test_the_clock_comes_first_where_it_is_known():
    known = {"ticks_per_cycle": 0.7021, "frequency": 3_691_000_000, "clean_share": 0.31, "emulated": False}
    lines = card_text("a machine", FACTS, known).splitlines()
    assert lines[2] == "clock"
    assert lines[3].split(maxsplit=2)[2] == "0.7021 ticks of the clock, 3.691 GHz"
    assert lines[4].endswith("31% of the canaries")
    for unknown in ({}, known | {"emulated": True}):
        assert "ticks of the clock" not in card_text("a machine", FACTS, unknown)


def test_values_that_look_alike_are_one():
    shared = [Fact("shared-core", part, CoreAnswer.VALUE, 1.001, 0.02, "times", MEDIUM) for part in "ab"]
    assert told("beside another CPU", shared).told == "1.00 times"


def test_what_is_less_sure_says_so():
    text = card_text("a machine", FACTS)
    assert "30.5 +-0.5 calls  (medium)" in text
    assert "(high)" not in text
    assert text.startswith("a machine\n\nfront end\n")


def test_what_may_be_another_answer_at_another_time_says_why():
    doubtful = Fact(
        "core-to-core", "CPU 0 and 1", CoreAnswer.VALUE, 690.0, 235.0, "cycles", LOW, reason="a host moves it"
    )
    assert told("a line from one CPU to another", [doubtful]).confidence == "low: a host moves it"
    assert "690.00 +-235.00 cycles  (low: a host moves it)" in card_text("a machine", [doubtful])
    assert "690.00 cycles +-235.00  low confidence: a host moves it" in fact_lines([doubtful])[0]


@pytest.mark.parametrize(("length", "lines"), [(70, 2), (80, 3)])
def test_what_is_told_of_a_long_subject_stands_below_it(length, lines):
    some = [
        Fact("scheduler", name, CoreAnswer.VALUE, 1.0, 0.01, "cycles", HIGH) for name in ("a", "b" * length)
    ]
    found = fact_lines(some)
    assert len(found) == lines
    assert len(found[0]) == (length if lines == 2 else 1) + len("    1.00 cycles +-0.01  high confidence")
    assert found[-1].endswith("1.00 cycles +-0.01  high confidence")


def test_the_widest_that_has_an_answer():
    """Not the widest that the core does not execute."""
    sized = "loads of {} bits, 16 KiB".format
    facts = [
        Fact("bandwidth", sized(512), reason="this CPU does not execute it (SIGILL)"),
        Fact("bandwidth", sized(256), CoreAnswer.VALUE, 56.0, 0.5, "bytes a cycle", HIGH),
        Fact("bandwidth", sized(128), CoreAnswer.VALUE, 30.0, 0.5, "bytes a cycle", HIGH),
    ]
    assert told("bandwidth, 16 KiB", facts).told == "56 +-0.5 bytes a cycle"
    assert told("bandwidth, 16 KiB", facts[:1]).told.startswith("not resolved: this CPU")


def test_what_nobody_asked_has_no_row():
    assert [line.title for line in card_lines(FACTS[:1])] == ["first cache"]


def test_a_long_reason_is_cut():
    fact = Fact("caches", "second level, size", reason="why " * 100)
    assert len(told("second cache", [fact]).told) < 100


@pytest.mark.parametrize("isa", ["x86-64", "aarch64", "riscv64"])
def test_every_row_is_of_a_question_that_there_is(isa):
    """Where an instruction set has none of its subjects, it has none of the probe's, or others."""
    asked = {(name, case.subject) for name, probe in PROBES.items() for case in probe.cases(isa)}
    rows = [row for _, some in _CARD for row in some]
    assert {row.probe for row in rows} <= set(PROBES)
    numbers = [row for row in rows if not isinstance(row, _Counts)]
    known = [row for row in numbers if any((row.probe, subject) in asked for subject in row.subjects)]
    assert len(known) >= (len(numbers) - 2 if isa == "x86-64" else 0.75 * len(numbers))
