"""Progress: plain lines without repetition, a bar on a terminal."""

from __future__ import annotations

import io
import re
from itertools import pairwise

import pytest

from cyclescope.infer.campaign import Progress
from cyclescope.report import progress
from cyclescope.report.progress import EVERY, reporter


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass when a test says so."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])

    def later(seconds):
        now[0] += seconds

    return later


def lines(clock, steps):
    """What is printed for (seconds since the step before, Progress) steps."""
    out = io.StringIO()
    with reporter(out) as report:
        for seconds, step in steps:
            clock(seconds)
            report(step)
    return out.getvalue().splitlines()


def step(done, total=100, stage="measuring", failed=0, accepted=3, rejected=1):
    return Progress(stage, done, total, failed, accepted, rejected)


def test_a_short_run_is_one_line(clock):
    (line,) = lines(clock, [(0.1, step(n)) for n in range(0, 101, 10)])
    assert line == "measuring: 100 of 100, 0 failed, 25% of samples rejected, 1 s"


def test_lines_are_seconds_apart(clock):
    found = lines(clock, [(0.5, step(n)) for n in range(1, 61)])
    times = [int(re.search(r"(\d+) s", line)[1]) for line in found]
    assert len(found) == 30 / EVERY
    assert all(b - a >= EVERY for a, b in pairwise(times))


def test_stragglers_do_not_repeat_a_line(clock):
    found = lines(clock, [(EVERY, step(99)), *[(EVERY, step(100)) for _ in range(15)]])
    assert [line.split(",")[0] for line in found] == ["measuring: 99 of 100", "measuring: 100 of 100"]


def test_a_new_failure_is_news(clock):
    found = lines(clock, [(EVERY, step(100)), (EVERY, step(100, failed=1))])
    assert ["1 failed" in line for line in found] == [False, True]


def test_every_stage_ends_with_a_line(clock):
    found = lines(clock, [(1, step(100)), (1, step(3, 4, "second look")), (1, step(4, 4, "second look"))])
    assert [line.split(",")[0] for line in found] == ["measuring: 100 of 100", "second look: 4 of 4"]


def test_time_left(clock):
    (first, _) = lines(clock, [(10, step(25)), (1, step(100))])
    assert first.endswith("10 s, about 30 s left")


def test_time_left_of_a_later_stage(clock):
    steps = [(100, step(100)), (1, step(0, stage="second look")), (10, step(50, stage="second look"))]
    found = lines(clock, [*steps, (1, step(60, stage="second look"))])
    assert found[1].endswith("111 s, about 10 s left")


def test_a_run_that_was_stopped_says_how_far_it_came(clock):
    out = io.StringIO()
    with pytest.raises(KeyboardInterrupt), reporter(out) as report:
        report(step(7))
        raise KeyboardInterrupt
    assert out.getvalue().startswith("measuring: 7 of 100")


def test_nothing_to_say_before_the_first_sample(clock):
    assert "no samples yet" in lines(clock, [(0, step(0, accepted=0, rejected=0))])[0]
    assert lines(clock, []) == []


def test_a_closed_standard_error(monkeypatch, capsys):
    monkeypatch.setattr(progress.sys, "stderr", None)
    with reporter() as report:
        report(step(1))
    assert capsys.readouterr() == ("", "")


def test_the_bar(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    with reporter(out) as report:
        report(step(50, failed=2))
        report(step(100))
        report(step(3, 8, "second look"))
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", out.getvalue())
    assert "second look" in text
    assert "3 of 8" in text
    assert "25% of samples rejected" in text
    assert re.search(r"\d:\d\d:\d\d|-:--:--", text)
