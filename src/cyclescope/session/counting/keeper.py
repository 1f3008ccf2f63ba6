"""Keeps events of a process open until a signal comes or the process ends, then writes what they counted."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from pathlib import Path

import msgspec

from cyclescope.host.perf import read_event


def main(process: int, result: Path, words: list[str]) -> None:
    """Wait, read, write; `words` are NAME=FILE,FILE."""
    files = {
        name: [int(n) for n in some.split(",") if n] for name, _, some in (w.partition("=") for w in words)
    }
    began = time.monotonic()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGTERM, lambda *_: None)
    ended = _wait(process, woken)
    counts = [{"name": name, **_sum(some)} for name, some in files.items()]
    seconds = time.monotonic() - began
    found = {"process": process, "seconds": seconds, "ended": ended, "counts": counts}
    part = result.with_suffix(".part")
    part.write_bytes(msgspec.json.encode(found))
    part.replace(result)


def _wait(process: int, woken: int) -> bool:
    """Whether the process ended before a signal came."""
    try:
        there = os.pidfd_open(process)
    except ProcessLookupError:
        _say_ready()
        return True
    poll = select.poll()
    for file in (there, woken):
        poll.register(file, select.POLLIN)
    _say_ready()
    return all(file != woken for file, _ in poll.poll())


def _say_ready() -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _sum(files: list[int]) -> dict[str, float]:
    """Over all threads; the share is the least of theirs."""
    read = [read_event(file) for file in files]
    return {"value": sum(value for value, _ in read), "share": min((share for _, share in read), default=0.0)}


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
