"""Programs that work on what users give, within limits of time, memory and output."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import NamedTuple

from cyclescope.errors import BackendUnavailable, SourceError, shortened

_SECONDS = 2.0  # of computing: 50 times what an assembler takes for a file of 10 000 lines
_BYTES_PER_SECOND = 500_000  # of text, which the slowest assembler reads
_PATIENCE = 10  # times the computing time: other programs want the CPU as well
_MEMORY = 300 << 20  # bytes of data: what an assembler needs for nothing, with room
_MEMORY_PER_BYTE = 40  # of text, for symbols and labels
_OUTPUT = 64 << 20  # bytes of a file
_MESSAGES = 1 << 20  # bytes that are read of what it says
_REMEDY = "look for .rept, .skip, .fill and .incbin with large numbers"
_KILLED = {signal.SIGXCPU: "time", signal.SIGKILL: "time", signal.SIGXFSZ: "output"}
_NOT_FOUND = 127  # what a shell exits with
_SAID = {  # by programs that end when a program of theirs does
    "cpu time limit": "time", "file size limit": "output", "out of memory": "memory",
    "memory exhausted": "memory", "bad_alloc": "memory", "cannot allocate": "memory",
}  # fmt: skip


class Done(NamedTuple):
    """How a program ended: whether well, and what it said."""

    ok: bool
    messages: str


class Budget:
    """What programs may use for one text: time all together, memory and output each."""

    def __init__(self, source: str, size: int) -> None:
        """For a text of `size` bytes that messages call `source`."""
        self._source = source
        self._seconds = _SECONDS + size / _BYTES_PER_SECOND
        self._left = self._seconds
        self._memory = _MEMORY + size * _MEMORY_PER_BYTE

    def run(self, name: str, command: Sequence[str], folder: Path) -> Done:
        """Run a command, its messages in a file of the folder.

        Raises SourceError where it wants more than is left, BackendUnavailable where it cannot be started.
        """
        if self._left <= 0:
            raise self._exceeded(name, "time")
        told = folder / "messages"
        before = _used()
        with told.open("wb") as file:
            try:
                process = subprocess.Popen(
                    [*self._limits(), *command], stdin=subprocess.DEVNULL, stdout=file, stderr=file
                )
            except OSError as error:
                raise BackendUnavailable(f"{name} cannot be started ({error.strerror})") from error
            status = self._wait(name, process)
        self._left -= _used() - before
        with told.open("rb") as file:
            messages = file.read(_MESSAGES).decode(errors="replace")
        if status == _NOT_FOUND:
            raise BackendUnavailable(f"{name} cannot be started ({shortened(messages.strip())})")
        exceeded = _exceeded(status, messages)
        if exceeded:
            raise self._exceeded(name, exceeded)
        return Done(status == 0, messages)

    def _wait(self, name: str, process: subprocess.Popen[bytes]) -> int:
        try:
            return process.wait(self._left * _PATIENCE)
        except subprocess.TimeoutExpired:
            raise self._exceeded(name, "time") from None
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()

    def _limits(self) -> tuple[str, ...]:
        """A command that sets the limits of the one behind it, and of all that it starts."""
        seconds = max(ceil(self._left), 1)
        wanted = f"ulimit -c 0; ulimit -t {seconds}; ulimit -d {self._memory >> 10}; ulimit -f {_OUTPUT >> 9}"
        return "/bin/sh", "-c", f'{{ {wanted}; }} 2>/dev/null; exec "$@"', "sh"

    def _exceeded(self, name: str, what: str) -> SourceError:
        wants = {
            "time": f"{name} is not done after {self._seconds:.0f} seconds",
            "memory": f"{name} wants more than {self._memory >> 20} MiB of memory",
            "output": f"{name} makes more than {_OUTPUT >> 20} MiB of it",
        }[what]
        return SourceError(f"{self._source} is too much to assemble: {wants}", _REMEDY)


def _exceeded(status: int, messages: str) -> str:
    """Which limit ended a program, "" where none did."""
    number = -status if status < 0 else status - 128  # as shells count
    killed = next((what for by, what in _KILLED.items() if by == number), "")
    low = messages.lower() if status else ""
    return killed or next((what for words, what in _SAID.items() if words in low), "")


def _used() -> float:
    """Seconds of computing of the programs that have ended."""
    times = os.times()
    return times.children_user + times.children_system
