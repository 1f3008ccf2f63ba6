"""Running the command as users do: with its wall time, its peak memory, and company on the CPUs."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

import cyclescope
from cyclescope.errors import MeasurementError

PACKAGES = str(Path(cyclescope.__file__).resolve().parents[1])
TIMINGS = ("--what", "latency,throughput")  # of a run that leaves ports out
EVERY = 0.1  # seconds between looks at the memory
_LOOP = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(100000))"


class Run(msgspec.Struct, frozen=True):
    """One finished command; memory is the peak of any process of its kind, in MiB."""

    seconds: float
    code: int
    out: str
    err: str
    python: float = 0.0
    runner: float = 0.0


def command(*arguments: object) -> list[str]:
    """The command line of `cyclescope` with this interpreter."""
    return [sys.executable, "-m", "cyclescope", *map(str, arguments)]


def environment(**changes: str) -> dict[str, str]:
    """This environment with the package importable from everywhere."""
    path = os.pathsep.join(filter(None, (PACKAGES, os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, **changes}


def run(*arguments: object, limit: float = 1800.0, **changes: str) -> Run:
    """Run `cyclescope` with these arguments to its end, in this environment but for some changes."""
    start = time.monotonic()
    process = subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, env=environment(**changes),
    )  # fmt: skip
    with _watched(process.pid) as peaks:
        out, err = process.communicate(timeout=limit)
    seconds = time.monotonic() - start
    return Run(seconds, process.returncode, out, err, peaks["python"], peaks["runner"])


def measured(store: Path, *arguments: object) -> Run:
    """A `cyclescope measure` that has to succeed."""
    done = run("measure", "--store", store, *arguments)
    if done.code:
        last = (done.err.strip().splitlines() or ["no message"])[-1]
        raise MeasurementError(f"`cyclescope measure` ended with {done.code}", last)
    return done


# --- memory ----------------------------------------------------------------------------------------


@contextmanager
def _watched(session: int) -> Iterator[Mapping[str, float]]:
    peaks = {"python": 0.0, "runner": 0.0}
    over = threading.Event()

    def look() -> None:
        while not over.wait(EVERY):
            for pid in _members(session):
                name, peak = _peak(pid)
                kind = "runner" if name == "runner" else "python"
                peaks[kind] = max(peaks[kind], peak)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield peaks
    finally:
        over.set()
        watcher.join()


def _members(session: int) -> list[int]:
    """Processes of a session: the command and everything it started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _read(entry / "stat").rpartition(")")[2].split()
            if len(fields) > 3 and int(fields[3]) == session:
                found.append(int(entry.name))
    return found


def _peak(pid: int) -> tuple[str, float]:
    """Name and peak resident memory in MiB of a process; nothing of one that has ended."""
    lines = dict(
        line.split(":", 1) for line in _read(Path(f"/proc/{pid}/status")).splitlines() if ":" in line
    )
    return lines.get("Name", "").strip(), int(lines.get("VmHWM", "0 kB").split()[0]) / 1024


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


# --- company ---------------------------------------------------------------------------------------


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that compute without end; they stop by themselves if this one dies."""
    loops = [subprocess.Popen([sys.executable, "-c", _LOOP]) for _ in range(count)]
    try:
        if loops:
            time.sleep(0.5)
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def cores() -> int:
    """CPUs this process may use."""
    return len(os.sched_getaffinity(0))


def median_seconds(line: list[str], times: int, environ: Mapping[str, str]) -> tuple[float, float, float]:
    """Least, median and greatest wall time of a command."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        subprocess.run(line, stdout=subprocess.DEVNULL, check=True, env=dict(environ))
        taken.append(time.perf_counter() - start)
    return min(taken), statistics.median(taken), max(taken)


# --- full runs, made once --------------------------------------------------------------------------


class Laboratory:
    """Full runs by name, in one folder; each is made when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._runs: dict[str, Run] = {}

    def full(self, name: str, loops: int = 0) -> tuple[Run, Path]:
        """Throughput and latency of every form in a fresh store, beside so many busy loops."""
        store = self.folder / f"{name}.sqlite"
        if name not in self._runs:
            with busy(loops):
                self._runs[name] = measured(store, "--fresh", *TIMINGS)
        return self._runs[name], store
