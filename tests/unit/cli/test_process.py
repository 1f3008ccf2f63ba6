"""The command as a process: what it imports, its pipes, its signals."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cyclescope.backend.native import VERSION
from cyclescope.errors import Stopped
from tests.support.programs.processes import ended, environment

# What a command's help may load of the world beside click and what click loads.
OURS = {
    "cyclescope",
    "cyclescope.__main__",
    "cyclescope.cli",
    "cyclescope.cli.main",
    "cyclescope.errors",
}
HEAVY = {"rich", "highspy", "numpy", "msgspec", "sqlite3", "subprocess", "asyncio", "iced_x86"}


LISTING = [sys.executable, "-m", "cyclescope", "forms", "imul"]
ENVIRON = environment()


def run(command, **more):
    """Run a command to its end."""
    more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": ENVIRON} | more
    return subprocess.run(command, check=False, text=True, **more)


def modules_after(*args):
    code = (
        "import sys\n"
        "from cyclescope.cli.main import main\n"
        f"try: main({list(args)!r})\n"
        "finally: print(*sorted(sys.modules), file=sys.stderr)\n"
    )
    done = run([sys.executable, "-c", code])
    return set(done.stderr.split())


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_loads_nothing_heavy(argument):
    loaded = modules_after(argument)
    assert {name for name in loaded if name.partition(".")[0] == "cyclescope"} <= OURS
    assert not loaded & HEAVY


@pytest.mark.parametrize("line", [("forms", "imul"), ("machines", "list")])
def test_a_command_that_only_lists_does_not_load_the_solver_or_the_terminal(line):
    loaded = modules_after(*line)
    assert "msgspec" in loaded
    assert not loaded & {"rich", "highspy", "numpy"}


def test_a_reader_that_stops_reading():
    read, write = os.pipe()
    process = subprocess.Popen(LISTING, env=ENVIRON, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    os.close(read)
    assert process.communicate()[1] == ""
    assert process.returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("more", [{}, {"PYTHONUNBUFFERED": "1"}])
def test_output_that_cannot_be_written(more):
    with Path("/dev/full").open("w") as full:
        done = run(LISTING, stdout=full, env=ENVIRON | more)
    assert done.returncode == 1
    assert done.stderr == "error: standard output: No space left on device\n"


@pytest.mark.parametrize("more", [{}, {"PYTHONUNBUFFERED": "1"}])
def test_output_of_which_a_part_cannot_be_written(tmp_path, more):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    with (tmp_path / "out").open("w") as file:
        done = run(LISTING, stdout=file, env=ENVIRON | more, preexec_fn=limit)
    assert (tmp_path / "out").stat().st_size == 1000
    assert done.returncode == 1
    assert done.stderr == "error: standard output: File too large\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_file_that_cannot_be_written_is_named(tmp_path, form):
    full = tmp_path / f"full.{form}"
    full.symlink_to("/dev/full")
    done = run([sys.executable, "-m", "cyclescope", "export", "znver3", "-o", str(full)])
    assert done.returncode == 2
    assert f"{full} cannot be written (No space left on device): name another file" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_error_that_cannot_be_written():
    with Path("/dev/full").open("w") as full:
        done = run([*LISTING, "--isa", "6502"], stderr=full)
    assert done.returncode == 2


def test_an_error_without_standard_output():
    done = run(["sh", "-c", f"'{sys.executable}' -m cyclescope forms nosuch >&-"])
    assert done.returncode == 2
    assert done.stderr.startswith("error: no instruction form matches 'nosuch'")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(closed):
    line = f"'{sys.executable}' -m cyclescope forms imul {closed}"
    done = run(["sh", "-c", line])
    assert done.returncode == 0
    assert done.stderr == ""


SLEEPY = """\
#!{python}
import os, struct, sys, time
frame = struct.Struct("<4I")
read = sys.stdin.buffer.read
while len(head := read(16)) == 16:
    magic, kind, length, count = frame.unpack(head)
    read(length)
    if kind == 1:
        answer = struct.pack("<4I7Q", {version}, 1, 0, 4096, *[0] * 7)
    elif kind == 2:
        answer = struct.pack("<4i2I", 0, 0, 0, 0, 0, 0)
    else:
        open({ready!r}, "w").write(str(os.getpid()))
        time.sleep(600)
    sys.stdout.buffer.write(frame.pack(magic, kind, len(answer), 0) + answer)
    sys.stdout.buffer.flush()
"""


@pytest.fixture
def busy(tmp_path):
    """A measurement whose runner never answers, and where that runner leaves its number."""
    runner, ready = tmp_path / "runner", tmp_path / "ready"
    runner.write_text(SLEEPY.format(version=VERSION, python=sys.executable, ready=str(ready)))
    runner.chmod(0o755)
    environ = ENVIRON | {"CYCLESCOPE_RUNNER": str(runner)}
    arguments = [sys.executable, "-m", "cyclescope", "measure", "imul", "--store", str(tmp_path / "s.sqlite")]
    process = subprocess.Popen(
        arguments, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not (ready.exists() and ready.read_text()):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    yield process, int(ready.read_text())
    process.kill()
    process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_run_in_order(busy, number):
    process, runner = busy
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 128 + number
    assert err.startswith("error: interrupted: what was measured is kept in ")
    assert err.count("\n") == 1
    assert ended(runner)


def test_nohup_is_respected():
    code = (
        "import signal\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from cyclescope.cli.main import _stop_in_order\n"
        "_stop_in_order()\n"
        "assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN\n"
        "assert signal.getsignal(signal.SIGTERM) != signal.SIG_DFL\n"
    )
    assert run([sys.executable, "-c", code]).returncode == 0


def test_a_signal_that_a_library_takes_for_its_own_failure(cyclescope, monkeypatch):
    """Extension modules make an ImportError or a TypeError of an exception that comes in between."""

    def load(isa):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except Stopped as stop:
            raise ImportError("initialization failed") from stop

    monkeypatch.setattr("cyclescope.isa.table.load_table", load)
    done = cyclescope("forms")
    assert (done.code, done.error) == (128 + signal.SIGTERM, "interrupted")
