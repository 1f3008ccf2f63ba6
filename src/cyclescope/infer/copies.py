"""Long work divided among copies (forks) of this process, which start with all of its data."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Generic, NoReturn, TypeVar

Key = TypeVar("Key")
Made = TypeVar("Made")
MOST_COPIES = 3  # copies: what this process does meanwhile takes as long as what is left for more


def possible_copies() -> int:
    """How many copies have a CPU of their own; none beside threads, whose locks a copy would never get."""
    return _with_a_cpu() if threading.active_count() == 1 else 0


def _with_a_cpu() -> int:
    return min(len(os.sched_getaffinity(0)) - 1, MOST_COPIES)


@contextmanager
def by_copies(
    work: Callable[[int], Made], parts: Sequence[int], copies: int
) -> Iterator[Callable[[int], Made | None]]:
    """What makes each part ready, asked for in order; None of those that no copy made.

    `work` is done in copies, which begin at once and do every so manieth of the `parts`.
    """
    owner = {part: number % copies for number, part in enumerate(parts)} if copies else {}
    started: list[_Copy[Made]] = []
    try:
        with suppress(OSError):  # no room for another process
            started.extend(_Copy(work, parts[first::copies]) for first in range(copies))
        yield lambda part: started[owner[part]].take() if owner.get(part, copies) < len(started) else None
    finally:
        for copy in started:
            copy.end()


class MadeAhead(Generic[Key, Made]):
    """What a copy of this process makes of keys, the last first, while this one needs others or waits.

    It takes what is left of a CPU. Nobody waits for it: beside threads it may never get a lock, and what runs
    on threads of its own, as HiGHS does, waits for them forever. It has a minute.
    """

    def __init__(self, work: Callable[[Key], Made], keys: Sequence[Key], at_once: int) -> None:
        self._parts = parts = [keys[start : start + at_once] for start in range(0, len(keys), at_once)]
        self._made: dict[Key, Made] = {}
        self._copy: _Copy[list[Made]] | None = None
        self._ended: Callable[[], object] = lambda: None  # also called when nobody holds this, or at the end

        def some(number: int) -> list[Made]:
            os.nice(20)  # as nice as can be
            signal.alarm(60)  # also where it hangs in what is no Python, and nobody is left to end it
            return [work(key) for key in parts[number]]

        if len(parts) > 1 and _with_a_cpu():
            with suppress(OSError):
                self._copy = _Copy(some, range(len(parts))[::-1], waits=False)
                self._ended = weakref.finalize(self, self._copy.end)

    def take(self, key: Key) -> Made | None:
        """What was made of a key, once; None where the copy is not that far."""
        while self._copy and key not in self._made and (some := self._copy.take()) is not None:
            self._made.update(zip(self._parts.pop(), some, strict=True))
            if not self._parts:
                self.end()
        return self._made.pop(key, None)

    def end(self) -> None:
        """Let nothing more be made."""
        self._copy = None
        self._ended()


class _Copy(Generic[Made]):
    """One copy: it leaves its parts in a file, and tells their lengths by a pipe, in a line each; that pipe
    also ends it when nobody listens.
    """

    def __init__(self, work: Callable[[int], Made], parts: Sequence[int], waits: bool = True) -> None:
        self._read = 0
        self._file = TemporaryFile(buffering=0)  # noqa: SIM115
        listening, telling = os.pipe()
        os.set_blocking(listening, waits)
        self._lengths = os.fdopen(listening, "rb")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of copies beside threads
            self._pid = os.fork()
        if self._pid == 0:
            _run(work, parts, self._file, telling)
        os.close(telling)

    def take(self) -> Made | None:
        """The next part; None after the copy has failed, or before it is made where nobody `waits`."""
        told = self._lengths.readline()
        if not told.endswith(b"\n"):
            return None
        length = int(told)
        data = os.pread(self._file.fileno(), length, self._read)
        self._read += length
        found: Made = pickle.loads(data)  # noqa: S301  # from a copy of this very process
        return found

    def end(self) -> None:
        """Stop it if it is not yet through."""
        self._lengths.close()
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        self._file.close()


def _run(work: Callable[[int], Made], parts: Sequence[int], file: IO[bytes], telling: int) -> NoReturn:
    """Do all parts and end; what goes wrong is found again by whoever does them instead."""
    try:
        gc.disable()  # garbage of the other process may close what is open here
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        _close_all_but(file.fileno(), telling)
        for part in parts:
            data = pickle.dumps(work(part), pickle.HIGHEST_PROTOCOL)
            if file.write(data) < len(data):  # the disk is full
                break
            os.write(telling, b"%d\n" % len(data))
    finally:
        os._exit(0)


def _close_all_but(*kept: int) -> None:
    """Locks and pipes of the other process are to end with that one."""
    for number in [int(name.name) for name in Path("/proc/self/fd").iterdir()]:
        if number > 2 and number not in kept:
            with suppress(OSError):
                os.close(number)
