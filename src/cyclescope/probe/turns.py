"""Things that pause now and then: while one pauses, others go on."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator
from typing import TypeVar

Result = TypeVar("Result")
Pausing = Generator[float, None, Result]
"""Yields the seconds that it has to wait before it goes on, returns a result."""


def finished(pausing: Pausing[Result]) -> Result:
    """The result of one alone."""
    (result,) = in_turns([pausing])
    return result


def in_turns(pausing: Iterable[Pausing[Result]]) -> Iterator[Result]:
    """The results as they come; of those that need not wait, the first with the shortest pause goes on.

    Pauses grow from look to look at the same kernels: who begins other kernels does not wait for those that
    have been looked at for long, or questions of many stages would have no time left.
    """
    waiting = dict.fromkeys(pausing, (0.0, 0.0))  # when it may go on, and how long it paused
    while waiting:
        now = time.monotonic()
        chosen = min(waiting, key=lambda one: (max(waiting[one][0], now), waiting[one][1]))
        ready, _ = waiting.pop(chosen)
        time.sleep(max(ready - now, 0.0))
        try:
            seconds = next(chosen)
        except StopIteration as end:
            yield end.value
        else:
            waiting[chosen] = (time.monotonic() + seconds, seconds)
