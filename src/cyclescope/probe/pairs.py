"""Pairs of CPUs: kernels on one, while the other runs a kernel of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from cyclescope.backend.base import Backend, Effort
from cyclescope.errors import CyclescopeError
from cyclescope.kernel.kernel import Kernel
from cyclescope.remarks.probing import NoPairs
from cyclescope.remarks.remark import NOTHING, Remark

QUICK_PAIRS = 2  # that are asked in any hurry: the nearest CPU, and the one that is farthest by its number
# A batch of the other CPU's kernel is a tenth of a second of cycles: before each it is without a kernel for
# one to four milliseconds, and a batch that is no longer needed ends soon. Nothing is tried again.
_KERNELS = 8  # copies
_EFFORT = Effort(rounds=4, want=60, maximum=60, target=200000.0)
_START = 0.05  # seconds until its kernels surely run: 1 to 4 ms were seen, beside a busy loop up to 31
LEAST_RUNNING = 0.8  # of the time that the other CPU has to run its kernel: beside a busy loop it has half


class OtherCpu(NamedTuple):
    """What runs kernels on the second CPU of a pair, and the seconds that they have run so far."""

    backend: Backend
    spent: Callable[[], float]


class CpuPair(NamedTuple):
    """Two CPUs by their numbers, and how to open what runs kernels on the first and on the second."""

    one: int
    other: int
    open: Callable[[], AbstractContextManager[tuple[Backend, OtherCpu]]]


class CpuPairs(NamedTuple):
    """The pairs of a machine, the most telling first, or why there are none.

    `doubt` says why their CPUs may be elsewhere at another time.
    """

    every: Sequence[CpuPair]
    why_none: Remark = NOTHING
    doubt: Remark = NOTHING

    def asked(self, quick: bool) -> Sequence[CpuPair]:
        """Those that are asked."""
        return self.every[:QUICK_PAIRS] if quick else self.every


NO_PAIRS = CpuPairs((), NoPairs.ONE_CPU.of())


@contextmanager
def running(other: OtherCpu, kernel: Kernel) -> Iterator[Callable[[], float]]:
    """Run a kernel over and over meanwhile; what this yields says afterwards for which part of the time.

    Raises at the end what went wrong with it.
    """
    stop, wrong = threading.Event(), list[CyclescopeError]()

    def go_on() -> None:
        try:
            while not stop.is_set():
                other.backend.submit([kernel] * _KERNELS, _EFFORT)
                other.backend.collect()
        except CyclescopeError as error:
            wrong.append(error)

    began, spent = time.monotonic(), other.spent()
    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    share = 0.0
    try:
        time.sleep(_START)
        yield lambda: share
    finally:
        stop.set()
        thread.join()
        share = (other.spent() - spent) / (time.monotonic() - began)
    if wrong:
        raise wrong[0]
