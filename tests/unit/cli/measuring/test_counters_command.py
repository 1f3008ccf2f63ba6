"""`cyclescope counters`: where the header is, which events there are, and those of a process."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cyclescope.host.events import NamedEvent
from cyclescope.host.perf import open_event
from cyclescope.report.host import counted_text, events_json, events_text
from cyclescope.session.counting.process import CountedProcess, EventCount
from tests.support.programs.processes import ended, environment, until

BUSY = "import time, sys\nfor _ in sys.stdin: bytearray(1 << 24); print('done', flush=True)"
HERE = NamedEvent("page-faults", "kernel", 1, 2)
NOT_HERE = NamedEvent("cycles", "general", 0, 0, "this machine has no such counter")


@pytest.fixture
def command(tmp_path):
    """Runs the command with files of its own: (exit code, standard output, standard error)."""
    own = environment(XDG_CACHE_HOME=str(tmp_path / "cache"))

    def run(*words):
        line = [sys.executable, "-m", "cyclescope", "counters", *map(str, words)]
        done = subprocess.run(line, check=False, capture_output=True, text=True, env=own, timeout=60)
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture
def busy():
    """A process that allocates memory for each line that it gets."""
    try:
        os.close(open_event(1, 2))
    except OSError as error:
        pytest.skip(f"this kernel counts no events of its own: {error}")
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", BUSY], stdin=pipe, stdout=pipe, text=True) as process:
        work(process)
        yield process
        process.kill()


def work(process):
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


def test_paths_are_those_of_files(command):
    code, out, _ = command("--header", "--include")
    header, folder = out.split()
    assert code == 0
    assert Path(header).is_file()
    assert Path(header).parent == Path(folder)


def test_what_a_linker_needs(command):
    code, out, err = command("--cflags", "--libs")
    if code == 4:
        pytest.skip(err)
    include, place, name, _ = shlex.split(out)
    assert (Path(include.removeprefix("-I")) / "cyclescope.h").is_file()
    assert (Path(place.removeprefix("-L")) / "libcyclescope.so").is_file()
    assert name == "-lcyclescope"


def test_alone_it_is_help(command):
    code, out, err = command()
    assert code == 2
    assert "Usage: cyclescope counters" in out + err


def test_events_of_this_machine(command):
    code, out, _ = command("list", "--json")
    found = json.loads(out)
    assert code == 0
    assert {"cycles", "page-faults"} <= {event["name"] for event in found["events"]}
    assert all(event["code"].startswith(event["name"] + "=") for event in found["events"])


def test_a_process_is_counted(command, busy):
    code, out, err = command("start", busy.pid, "--events", "page-faults,task-clock")
    assert (code, err) == (0, "")
    assert out == f"counting page-faults, task-clock of process {busy.pid}\n"
    for _ in range(3):
        work(busy)
    code, out, err = command("stop", "--json")
    found = json.loads(out)
    assert (code, found["process"], found["ended"]) == (0, busy.pid, False)
    counts = {count["name"]: count["value"] for count in found["counts"]}
    assert counts["page-faults"] > 3 * 1000  # 16 MiB each time, in pages of 4 or 16 KiB
    assert counts["task-clock"] > 100_000  # ns
    assert command("stop")[0] == 2


def test_a_process_that_ends_is_counted_to_its_end(command, busy):
    assert command("start", busy.pid)[0] == 0
    work(busy)
    busy.kill()
    busy.wait()
    code, out, _ = command("stop", busy.pid)
    assert code == 0
    assert "until it ended" in out


def test_twice_is_once(command, busy):
    assert command("start", busy.pid)[0] == 0
    code, _, err = command("start", busy.pid)
    assert (code, err) == (
        2, f"error: process {busy.pid} is counted already: `cyclescope counters stop {busy.pid}`\n",
    )  # fmt: skip
    assert command("stop")[0] == 0


def test_a_keeper_that_was_killed_is_said(command, busy, tmp_path):
    assert command("start", busy.pid)[0] == 0
    state = tmp_path / f"cache/cyclescope/counting/{busy.pid}.json"
    keeper = json.loads(state.read_text())["keeper"]
    os.kill(keeper, signal.SIGKILL)
    assert until(lambda: ended(keeper))
    began = time.monotonic()
    code, _, err = command("stop")
    assert (code, err) == (1, f"error: what was counted of process {busy.pid} is lost: count again\n")
    assert time.monotonic() - began < 30
    assert not state.exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["stop"], 2, "no process is counted"),
        (["stop", "1"], 2, "process 1 is not counted"),
        (["start", "2147483000"], 2, "there is no process 2147483000"),
        (["start", "0"], 2, "0 is not in the range"),
        (["start", "x"], 2, "'x' is not a valid integer"),
        (["start", "1", "--events", "nonsense"], 2, "'nonsense' is no event"),
        (["start", "1", "--events", ","], 2, "an empty list of events"),
        (["--libs", "list"], 2, "list and a path"),
        (["--isa", "vax", "--libs"], 2, "'vax' is not one of"),
    ],
)
def test_nonsense_is_one_line(cyclescope, tmp_path, monkeypatch, words, code, said):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found, out, err = cyclescope("counters", *words)
    assert (found, out) == (code, "")
    assert said in err
    assert len([line for line in err.splitlines() if line.startswith("error")]) == 1


@pytest.mark.parametrize("words", [["--header"], ["--include", "--cflags"], ["stop", "1"], ["list"]])
def test_no_library_is_built_that_is_not_asked_for(cyclescope, tmp_path, monkeypatch, words):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    built = "cyclescope.backend.build.library_for"
    monkeypatch.setattr(built, lambda isa: pytest.fail("a library was built"))
    cyclescope("counters", *words)
    with pytest.raises(pytest.fail.Exception):
        cyclescope("counters", "--libs")


# --- words -----------------------------------------------------------------------------------------


def test_events_in_words():
    text = events_text([NOT_HERE, HERE], "the virtual machine exposes none")
    assert text.splitlines() == [
        "not here (general): cycles: this machine has no such counter",
        "page-faults  kernel  1:2",
        "events of the core: none (the virtual machine exposes none)",
    ]
    assert events_text([NOT_HERE._replace(why_not="")], "").splitlines() == ["cycles  general  0:0"]
    assert json.loads(events_json([HERE], ""))["core_counters"] is None


def test_counts_in_words():
    counts = (EventCount("task-clock", 1234567.0, 1.0), EventCount("uops", 10.0, 0.25))
    lines = counted_text(CountedProcess(7, 1.5, True, counts)).splitlines()
    assert lines == [
        "process 7: counted for 1.500 s, until it ended",
        "  1 234 567  task-clock in ns",
        "         10  uops   (counted 25% of the time, scaled)",
    ]
