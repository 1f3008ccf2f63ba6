"""Scaling, kills, bad input, repeats and the table of checks, on made-up runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from making import latency, table_of, timing

from benchmarks.all import everything
from benchmarks.house import bad_input, kill
from benchmarks.lib import equality, processes, results
from benchmarks.lib.agreement import compare
from benchmarks.lib.common import Check, at_least, at_most, checks_table, table
from benchmarks.lib.processes import Run
from benchmarks.measuring import repeat, scaling
from benchmarks.measuring.compare import require
from cyclescope.errors import StoreError, UsageError
from tests.support.programs.processes import ended

# --- checks ----------------------------------------------------------------------------------------


def test_shares_are_compared_exactly():
    assert at_least("", 99, 100, 0.99).passed
    assert not at_least("", 989, 1000, 0.99).passed
    assert at_most("", 3, 100, 0.03).passed
    assert not at_most("", 31, 1000, 0.03).passed
    assert not at_least("", 0, 0, 0.99).passed  # nothing was shown


def test_a_check_without_target_has_no_verdict():
    assert [Check("", "", "", p).verdict for p in (True, False, None)] == ["pass", "FAIL", "-"]


def test_tables_stay_tables_whatever_the_cells_hold():
    lines = table(("a", "b"), [("x|y", "1\n2")]).splitlines()
    assert lines == ["| a    | b   |", "|------|-----|", "| x\\|y | 1 2 |"]
    assert "FAIL" in checks_table([Check("n", "1", "2", False)])


# --- scaling ---------------------------------------------------------------------------------------


def points(*rows):
    made = []
    for forms, seconds, python, runner in rows:
        made.append(scaling.Point(forms, Run(seconds, 0, "", "", python, runner)))
    return made


def passed(found):
    return [check.passed for check in found]


def test_a_constant_start_does_not_spoil_linearity():
    assert (
        passed(scaling.checks(points((100, 1.3, 80, 5), (1000, 4.0, 90, 5), (10000, 31.0, 100, 6))))
        == [True] * 3
    )


def test_quadratic_time_and_growing_memory_are_seen():
    found = scaling.checks(points((100, 1.0, 80, 5), (1000, 2.0, 90, 5), (10000, 100.0, 900, 50)))
    assert passed(found) == [False, False, False]


def test_samples_are_repeatable_and_nested():
    assert scaling.sample(100) == scaling.sample(100) == scaling.sample(1000)[:100]
    assert len(set(scaling.sample(1000))) == 1000


# --- kills -----------------------------------------------------------------------------------------

A, B, C = ("a",), ("b",), ("c",)


def test_damage_counts_lost_and_changed_rows():
    found = kill.damage(("SIGINT", "ports", 1.0), {A: 1, B: 2}, {A: 9, C: 3}, 0, "ok", "")
    assert (found.before, found.after, found.lost, found.changed) == (2, 2, 1, 1)


def test_more_rows_are_no_damage():
    found = kill.damage(("SIGINT", "ports", 1.0), {A: 1}, {A: 1, B: 2}, 0, "ok", "")
    assert (found.lost, found.changed) == (0, 0)


COURSE = [(0.0, 0), (10.0, 500), (30.0, 900)]  # of a run of 40 seconds


def test_moments_are_random_points_of_the_whole_run():
    found = kill.moments(COURSE, 40.0, 400, seed=1)
    assert found == kill.moments(COURSE, 40.0, 400, seed=1) != kill.moments(COURSE, 40.0, 400, seed=2)
    assert {m.number for m in found} == {0, 500, 900}
    started = {number: when for when, number in COURSE}
    points = [started[m.number] + m.after for m in found]
    assert points == sorted(points)
    assert points[0] < 1.0
    assert 39.0 < points[-1] <= 40.0
    assert all(m.after <= {0: 10.0, 500: 20.0, 900: 10.0}[m.number] for m in found)


def test_a_moment_after_the_end_is_looked_for_earlier(monkeypatch, tmp_path):
    tried = []

    def strike(store, moment, work, number):
        tried.append(moment)
        return 0.5 if moment.after < 1.0 else None

    monkeypatch.setattr(kill, "strike", strike)
    assert kill.hit(tmp_path / "s", kill.Moment(900, 3.0), kill.Work(), 9) == 0.5
    assert tried == [kill.Moment(900, 3.0), kill.Moment(0, 1.5), kill.Moment(0, 0.75)]


def test_the_stage_is_what_the_run_told_last(tmp_path):
    store = tmp_path / "s.sqlite"
    kill.told(store).write_text("measuring: 1 of 9, 0 failed, 5 s\nports: 3 of 4, 9 s\nstopped by SIGINT\n")
    assert kill.stage(store) == "ports"
    kill.told(store).write_text("")
    assert kill.stage(store) == "starting"


def test_only_what_is_sure_is_compared():
    found = [
        timing("F", 1.0, latency("a", "b", 4.0, confidence="high")),
        timing("G", 1.0, latency("a", "b", 4.0, confidence="low")),
        timing("H", 1.0, latency("a", "b", 4.0, kind="upper_bound", confidence="high")),
    ]
    assert equality.latencies(found) == {("F", "a", "b"): (4.0, 0.01)}


@pytest.mark.parametrize(("other", "same"), [(4.28, True), (4.29, False)])
def test_values_are_equal_within_twice_their_spreads(other, same):
    assert equality.within_spreads((4.0, 0.1), (other, 0.1)) is same


# --- bad input -------------------------------------------------------------------------------------


def outcome(code, lines, wanted=2, kept=True, single=True):
    case = bad_input.Case("c", ("x",), wanted, single=single)
    return bad_input.Outcome(case, code, tuple(lines), kept)


@pytest.mark.parametrize(
    ("found", "good"),
    [
        (outcome(2, ["error: no such form"]), True),
        (outcome(1, ["error: no such form"]), False),
        (outcome(2, ["error: one", "error: two"]), False),
        (outcome(2, ["some noise", "error: one"]), False),
        (outcome(2, ["some noise", "error: one"], single=False), True),
        (outcome(2, ["error: one"], kept=False), False),
        (outcome(2, []), False),
        (outcome(2, ["error: internal error: KeyError"]), False),
        (outcome(0, ["done"], wanted=0), True),
    ],
)
def test_one_clear_line_the_right_code_and_nothing_lost(found, good):
    assert found.good is good


def test_commands_are_shown_as_they_are_typed():
    line = processes.command("measure", "--store", Path("/some/where/x.sqlite"))
    assert bad_input.shown(line, Path("/some/where")) == "cyclescope measure --store $D/x.sqlite"


# --- comparisons -----------------------------------------------------------------------------------


def test_a_reference_of_another_machine_is_refused():
    reference = table_of()
    require(reference, "AuthenticAMD 19-11-1 znver4", force=False)
    require(reference, "AuthenticAMD 19-1-1 znver3", force=True)
    with pytest.raises(UsageError, match="describes znver4, the store znver3"):
        require(reference, "AuthenticAMD 19-1-1 znver3", force=False)


def test_every_class_of_values_is_compared():
    found = [
        timing("F", 5.0, latency("a", "b", 18.0, values={"fast": 10.0, "slow": 18.0}), latency("c", "b", 1.0))
    ]
    assert results.latencies(found) == {
        ("F", "a", "b fast"): 10.0,
        ("F", "a", "b slow"): 18.0,
        ("F", "c", "b"): 1.0,
    }
    assert results.throughputs(found) == {("F", "", ""): 5.0}


def test_a_repeat_is_judged_on_all_values_together():
    one = compare({("a", "", ""): 1.0}, {("a", "", ""): 1.0}, 0.02)
    two = compare({("a", "x", "y"): 1.0}, {("a", "x", "y"): 2.0}, 0.02)
    whole, *parts = repeat.checks("runs", (one, two), 0.02, 0.99)
    assert whole.found == "50.00 % (1 of 2)"
    assert not whole.passed
    assert all(part.passed is None for part in parts)
    assert "a" in repeat.worst(one.joined(two), 5)


# --- running ---------------------------------------------------------------------------------------


def test_busy_loops_end_with_their_block():
    with processes.busy(1):
        running = [pid for pid in _children() if not ended(pid)]
        assert running
    assert all(ended(pid) for pid in running)


def _children():
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = processes._read(entry / "stat").rpartition(")")[2].split()
            if len(fields) > 1 and int(fields[1]) == os.getpid():
                found.append(int(entry.name))
    return found


def test_a_command_is_timed_with_its_memory():
    done = processes.run("forms", "imul")
    assert done.code == 0
    assert "IMUL (R64, R64)" in done.out
    assert 0 < done.seconds < 60
    assert done.python > 10


def test_the_package_is_found_from_anywhere(tmp_path):
    path = processes.environment()["PYTHONPATH"].split(os.pathsep)
    assert (Path(path[0]) / "cyclescope").is_dir()
    assert processes.command()[0] == sys.executable


def test_one_part_that_cannot_run_does_not_stop_the_others(capsys):
    def broken():
        raise StoreError("gone")

    found = everything([("first", broken), ("compare", broken), ("last", lambda: [Check("x", "1")])])
    assert [(check.name, check.passed) for check in found] == [
        ("first", False),
        ("compare", None),
        ("x", None),
    ]
