"""The progress of long work, and who is informed of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec


class Progress(msgspec.Struct, frozen=True):
    """How far a campaign is, or what is made of its results.

    Of the `rejected` samples, `disturbed` ran beside a neighbour. `share` is how much of all that there is
    to do is done, by time as far as that can be told, and 0 where nothing tells.
    """

    stage: str
    done: int
    total: int
    failed: int = 0
    accepted: int = 0
    rejected: int = 0
    share: float = 0.0
    disturbed: int = 0


Report = Callable[[Progress], None]


def nobody(progress: Progress) -> None:
    """Tell nobody."""


_listener: ContextVar[Report] = ContextVar("listener", default=nobody)


@contextmanager
def told_to(report: Report) -> Iterator[None]:
    """Tell somebody about work that a call only may have to do, as building a model that is out of date."""
    token = _listener.set(report)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(progress: Progress) -> None:
    """Tell whoever wants to know."""
    _listener.get()(progress)
