"""Commands as processes, and patience."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import cyclescope

NOISY = "error: the reading is "  # what bench says of rounds that disagree, beside neighbours perhaps
SOURCE = str(Path(cyclescope.__file__).parents[1])  # children run the package that the tests import


def environment(**more):
    """Of a child process: nothing in it changes how Python buffers, warns or finds modules."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return kept | {"PYTHONPATH": SOURCE} | more


class Command:
    """Starts commands with a runner of their own, so that what they leave behind can be found."""

    def __init__(self, runner, folder):
        self.runner = folder / "runner"
        shutil.copy(runner, self.runner)
        self.environ = environment(CYCLESCOPE_RUNNER=str(self.runner))

    def start(self, *args, **more):
        line = [sys.executable, "-m", "cyclescope", *map(str, args)]
        pipe = subprocess.PIPE
        return subprocess.Popen(line, env=self.environ, stdout=pipe, stderr=pipe, text=True, **more)

    def run(self, *args, **more):
        """(exit code, standard output, standard error) of a command."""
        process = self.start(*args, **more)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def running(self):
        """Process numbers of runners and workers that are alive."""
        return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/exe") if self._is_ours(path)]

    def _is_ours(self, path):
        try:
            return path.readlink() == self.runner
        except OSError:
            return False


def ended(pid):
    """A process is gone, or a zombie: in a container, the first process may never reap the orphans."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"


def until(condition, seconds=90.0):
    """Wait for a condition; whether it came true. Beside neighbours measuring begins late."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def patiently(check, tries=7):
    """Repeat what noise can spoil, after longer and longer pauses; the last failure counts."""
    for number in range(tries - 1):
        try:
            return check()
        except AssertionError:
            time.sleep(0.25 * 2**number)  # neighbours come and go in seconds
    return check()
