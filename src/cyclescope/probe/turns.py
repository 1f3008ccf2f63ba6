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
    """The results as they come. Who worked least goes on first; what it still has to wait counts as work.

    Turns differ by a hundred times in what they take: a question of many short ones would else wait
    behind a long turn of others at each of its pauses, and have no time left.
    """
    waiting = dict.fromkeys(pausing, (0.0, 0.0))  # when it may go on, and how long it worked
    while waiting:
        began = time.monotonic()
        chosen = min(waiting, key=lambda one: waiting[one][1] + max(waiting[one][0] - began, 0.0))
        ready, worked = waiting.pop(chosen)
        time.sleep(max(ready - began, 0.0))
        began = max(ready, began)
        try:
            seconds = next(chosen)
        except StopIteration as end:
            yield end.value
        else:
            now = time.monotonic()
            waiting[chosen] = (now + seconds, worked + now - began)
