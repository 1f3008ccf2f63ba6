"""Progress: plain lines without repetition, a bar on a terminal."""

from __future__ import annotations

import io
import re
from itertools import pairwise

import pytest

from cyclescope.infer.progress import Progress, tell
from cyclescope.report import progress
from cyclescope.report.progress import EVERY, reporter, when_needed


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


def step(
    done, total=100, stage="measuring", failed=0, accepted=30, rejected=10, share=0.0, disturbed=4
):  # fmt: skip
    return Progress(stage, done, total, failed, accepted, rejected, share, disturbed)


def test_a_short_run_is_one_line(clock):
    (line,) = lines(clock, [(0.1, step(n)) for n in range(0, 101, 10)])
    assert line == "measuring: 100 of 100, 0 failed, 25% of samples rejected, 10% beside neighbours, 1 s"


def test_lines_are_seconds_apart(clock):
    found = lines(clock, [(0.5, step(n)) for n in range(1, 61)])
    times = [int(re.search(r"(\d+) s", line)[1]) for line in found]
    assert len(found) == 30 / EVERY
    assert all(b - a >= EVERY for a, b in pairwise(times))


def test_stragglers_do_not_repeat_a_line(clock):
    found = lines(clock, [(EVERY, step(99)), *[(EVERY, step(100)) for _ in range(15)]])
    assert [line.split(",")[0] for line in found] == ["measuring: 99 of 100", "measuring: 100 of 100"]


def test_a_stage_that_begins_late_has_no_line_for_nothing(clock):
    steps = [(1.0, step(100)), (EVERY, step(0, stage="second look")), (0.1, step(100, stage="second look"))]
    assert [line.split(",")[0] for line in lines(clock, steps)] == [
        "measuring: 100 of 100", "second look: 100 of 100",
    ]  # fmt: skip


def test_a_new_failure_is_news(clock):
    found = lines(clock, [(EVERY, step(100)), (EVERY, step(100, failed=1))])
    assert ["1 failed" in line for line in found] == [False, True]


def test_every_stage_ends_with_a_line(clock):
    found = lines(clock, [(1, step(100)), (1, step(3, 4, "second look")), (1, step(4, 4, "second look"))])
    assert [line.split(",")[0] for line in found] == ["measuring: 100 of 100", "second look: 4 of 4"]


def test_time_left_is_of_all_stages(clock):
    steps = [(0, step(0, share=0.0)), (10, step(25, share=0.125)), (10, step(50, share=0.25)), (1, step(100))]
    first, second, _ = lines(clock, steps)
    assert first.endswith("10 s, 12% of all")  # from the first share on
    assert second.endswith("20 s, 25% of all, about 60 s left")


def test_what_a_resumed_run_finds_done_took_no_time(clock):
    steps = [(0, step(80, share=0.8)), (10, step(90, share=0.9)), (1, step(100, share=1.0))]
    first, _ = lines(clock, steps)
    assert first.endswith("90% of all, about 10 s left")


def test_stages_without_samples_are_told_when_they_take_long(clock):
    def model(done):
        return Progress("model", done, 10)

    assert lines(clock, [(0, model(0)), (0.5, model(10))]) == []
    assert lines(clock, [(0, model(0)), (2, model(10))]) == ["model: 10 of 10, 2 s"]


def test_a_run_that_was_stopped_says_how_far_it_came(clock):
    out = io.StringIO()
    with pytest.raises(KeyboardInterrupt), reporter(out) as report:
        report(step(7))
        raise KeyboardInterrupt
    assert out.getvalue().startswith("measuring: 7 of 100")


def test_nothing_to_say_before_the_first_sample(clock):
    assert lines(clock, [(0, step(0, accepted=0, rejected=0))]) == []
    assert lines(clock, []) == []


def test_a_closed_standard_error(monkeypatch, capsys):
    monkeypatch.setattr(progress.sys, "stderr", None)
    with reporter() as report:
        report(step(1))
    assert capsys.readouterr() == ("", "")


def drawn(monkeypatch, clock, columns, steps):
    """What is last seen of the bar in a terminal of so many columns, and the widest line."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    with reporter(out) as report:
        for one in steps:
            clock(10)
            report(one)
    found = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", part) for part in re.split(r"[\r\n]", out.getvalue())]
    found = [part for part in found if part.strip()]
    return found[-1], max(len(part.rstrip()) for part in found)


STEPS = (step(10, share=0.1), step(50, failed=2, share=0.3), step(3, 8, "ports, second look", share=0.5))


def test_the_bar(monkeypatch, clock):
    text, _ = drawn(monkeypatch, clock, 150, STEPS)
    assert (
        "50% ports, second look about 25 s left 3 of 8 0 failed, 25% of samples rejected, 10% beside" in text
    )
    assert "━━━" in text


@pytest.mark.parametrize(
    ("columns", "said"),
    [(80, "50% ports, second look about 25 s left"), (50, "50% ports, second look"), (30, "50% ports, se"),
     (20, "50%")],
)  # fmt: skip
def test_a_narrow_terminal_keeps_the_bar_and_loses_text(monkeypatch, clock, columns, said):
    text, widest = drawn(monkeypatch, clock, columns, STEPS)
    assert "━━━" in text
    assert said in text
    assert widest <= columns


def test_work_that_is_only_sometimes_to_be_done(capsys, clock):
    with when_needed():
        pass
    assert capsys.readouterr().err == ""
    with when_needed():
        for done in (0, 5, 10):
            clock(1)
            tell(Progress("model", done, 10))
        assert capsys.readouterr().err == "model: 10 of 10, 2 s\n"  # before anything else is printed
