"""Counting events of another process from one command to another: a small process keeps them open."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from cyclescope.backend.build import cache_folder
from cyclescope.errors import MeasurementError, UsageError
from cyclescope.host.counters import availability
from cyclescope.host.events import NamedEvent, event_code, tried_events
from cyclescope.host.perf import SOFTWARE, open_event, why_not

_KEEPER = "cyclescope.session.counting.keeper"
_PATIENCE = 5.0  # seconds for the keeper to write what it has
_USUAL = (
    "cycles",
    "instructions",
    "branches",
    "branch-misses",
    "task-clock",
    "page-faults",
    "context-switches",
)


class EventCount(msgspec.Struct, frozen=True):
    """What an event counted, over all threads; `share` of the time it had a counter."""

    name: str
    value: float
    share: float


class CountedProcess(msgspec.Struct, frozen=True):
    """What a process did between `start` and `stop`, or until it ended."""

    process: int
    seconds: float
    ended: bool
    counts: tuple[EventCount, ...]


class Keeping(msgspec.Struct, frozen=True):
    """A process whose events are open, and who keeps them."""

    process: int
    keeper: int
    events: tuple[str, ...]


def start(process: int, events: Sequence[str] = ()) -> Keeping:
    """Count events of a process, with all its threads and those to come, until `stop` or its end.

    Raises UsageError for a process that is not there or counted already and an unknown event,
    MeasurementError where the machine or the kernel does not let it be counted.
    """
    threads = list(_threads(process))
    if (known := _kept(process)) and _alive(known.keeper):
        raise UsageError(f"process {process} is counted already", f"`cyclescope counters stop {process}`")
    chosen = [event_code(name) for name in events] if events else list(_usual())
    files = [(name, _open(name, kind, config, threads)) for name, kind, config in chosen]
    every = [file for _, some in files for file in some]
    try:
        keeper = _keeper(process, files)
    finally:
        for file in every:
            os.close(file)
    kept = Keeping(process, keeper, tuple(name for name, _, _ in chosen))
    _write(_state(process), kept)
    return kept


def stop(process: int | None = None) -> CountedProcess:
    """End counting, and what was counted. Raises UsageError where nothing is, or several processes are."""
    kept = _only() if process is None else _kept(process)
    if kept is None:
        raise UsageError(f"process {process} is not counted", "`cyclescope counters start PID` begins")
    result = _result(kept.process)
    if _alive(kept.keeper):
        with suppress(ProcessLookupError):
            os.kill(kept.keeper, signal.SIGTERM)
    deadline = time.monotonic() + _PATIENCE
    while not result.is_file() and _alive(kept.keeper) and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        return msgspec.json.decode(result.read_bytes(), type=CountedProcess)
    except (OSError, msgspec.MsgspecError) as error:
        raise MeasurementError(
            f"what was counted of process {kept.process} is lost", "count again"
        ) from error
    finally:
        _forget(kept.process)


def _usual() -> Iterator[tuple[str, int, int]]:
    """Those that a machine can count; the kernel's own are everywhere."""
    found = [event for event in tried_events() if event.name in _USUAL and not event.why_not]
    if not found:
        raise MeasurementError("no event can be counted here", _reason(tried_events()))
    yield from ((event.name, event.kind, event.config) for event in found)


def _reason(events: Sequence[NamedEvent]) -> str:
    return next((event.why_not for event in events if event.why_not), "")


def _threads(process: int) -> Iterator[int]:
    try:
        yield from sorted(int(name.name) for name in Path(f"/proc/{process}/task").iterdir())
    except OSError as error:
        raise UsageError(f"there is no process {process}", "give the number of one that runs") from error


def _open(name: str, kind: int, config: int, threads: Sequence[int]) -> list[int]:
    """A file per thread. A thread that ended meanwhile has none."""
    found = []
    for thread in threads:
        try:
            found.append(open_event(kind, config, thread, inherit=True))
        except ProcessLookupError:
            continue
        except OSError as error:
            for file in found:
                os.close(file)
            raise MeasurementError(f"{name} cannot be counted", _why(error, kind)) from error
    return found


def _why(error: OSError, kind: int) -> str:
    general = availability() if kind != SOFTWARE else ""
    return general or why_not(error)


# --- what keeps them open ------------------------------------------------------------------------


def _keeper(process: int, files: Sequence[tuple[str, list[int]]]) -> int:
    words = [f"{name}={','.join(map(str, some))}" for name, some in files]
    line = [
        sys.executable,
        "-m",
        "cyclescope.session.counting.keeper",
        str(process),
        str(_result(process)),
        *words,
    ]
    _result(process).unlink(missing_ok=True)
    _folder().mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join(filter(None, (str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH"))))
    started = subprocess.Popen(
        line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        pass_fds=[file for _, some in files for file in some], start_new_session=True,
        env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip
    assert started.stdout is not None
    if started.stdout.readline() != b"ready\n":
        raise MeasurementError("counting could not be started", "try again")
    started.returncode = 0  # it outlives this program, on purpose
    return started.pid


def _alive(keeper: int) -> bool:
    """Whether a process of this number is a keeper: numbers come again, and what ended has no command."""
    try:
        return _KEEPER.encode() in Path(f"/proc/{keeper}/cmdline").read_bytes()
    except OSError:
        return False


# --- who is counted --------------------------------------------------------------------------------


def _folder() -> Path:
    return cache_folder() / "counting"


def _state(process: int) -> Path:
    return _folder() / f"{process}.json"


def _result(process: int) -> Path:
    return _folder() / f"{process}.counted"


def _write(path: Path, kept: Keeping) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(kept))


def _kept(process: int) -> Keeping | None:
    try:
        return msgspec.json.decode(_state(process).read_bytes(), type=Keeping)
    except (OSError, msgspec.MsgspecError):
        return None


def _only() -> Keeping:
    every = [kept for path in sorted(_folder().glob("*.json")) if (kept := _kept(int(path.stem)))]
    if len(every) != 1:
        what = "no process is counted" if not every else f"{len(every)} processes are counted"
        numbers = ", ".join(str(kept.process) for kept in every)
        raise UsageError(what, f"name one: {numbers}" if every else "`cyclescope counters start PID` begins")
    return every[0]


def _forget(process: int) -> None:
    _state(process).unlink(missing_ok=True)
    _result(process).unlink(missing_ok=True)
