"""Progress of a campaign: a bar on a terminal, plain lines otherwise; always on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TextIO

from cyclescope.infer.campaign import Progress

EVERY = 5.0  # seconds between plain lines
Report = Callable[[Progress], None]


def reporter(stream: TextIO | None = None) -> AbstractContextManager[Report]:
    """A function to give every Progress to."""
    out = stream or sys.stderr
    if out is None:  # standard error is closed
        return _nothing()
    return _bar(out) if out.isatty() else _lines(out)


@contextmanager
def _nothing() -> Iterator[Report]:
    yield lambda progress: None


def _counts(progress: Progress) -> str:
    tried = progress.accepted + progress.rejected
    noise = f"{progress.rejected / tried:.0%} of samples rejected" if tried else "no samples yet"
    return f"{progress.failed} failed, {noise}"


@contextmanager
def _lines(out: TextIO) -> Iterator[Report]:
    lines = _Lines(out)
    try:
        yield lines.report
    finally:
        lines.close()


class _Lines:
    """A line now and then, and one at the end of every stage; none that says nothing new."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._start = self._stage_start = self._last = time.monotonic()
        self._latest: Progress | None = None
        self._shown: tuple[str, int, int] | None = None

    def report(self, progress: Progress) -> None:
        """Take note, and print when it is time."""
        now = time.monotonic()
        if self._latest is not None and self._latest.stage != progress.stage:
            self._show(self._latest, now, ended=True)
            self._stage_start = now
        self._latest = progress
        if now - self._last >= EVERY:
            self._show(progress, now)

    def close(self) -> None:
        """Print how far it came."""
        if self._latest is not None:
            self._show(self._latest, time.monotonic(), ended=True)

    def _show(self, progress: Progress, now: float, ended: bool = False) -> None:
        news = (progress.stage, progress.done, progress.failed)
        if news == self._shown:
            return
        self._shown, self._last = news, now
        counts = f"{progress.stage}: {progress.done} of {progress.total}, {_counts(progress)}"
        left = "" if ended else self._left(progress, now)
        print(f"{counts}, {now - self._start:.0f} s{left}", file=self._out, flush=True)

    def _left(self, progress: Progress, now: float) -> str:
        if not 0 < progress.done < progress.total:
            return ""
        left = (now - self._stage_start) * (progress.total - progress.done) / progress.done
        return f", about {left:.0f} s left"


@contextmanager
def _bar(out: TextIO) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[done]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[counts]}"),
    )
    with Bar(*columns, console=Console(file=out), transient=True) as bar:
        task = bar.add_task("starting", total=None, done="", counts="")
        stage = ""

        def report(progress: Progress) -> None:
            nonlocal stage
            if stage != progress.stage:
                stage = progress.stage
                bar.reset(task, total=progress.total)
            done = f"{progress.done} of {progress.total}"
            bar.update(task, description=stage, completed=progress.done, done=done, counts=_counts(progress))

        yield report
