"""Progress of a campaign: a bar on a terminal, plain lines otherwise; always on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cyclescope.infer.campaign import Progress

EVERY = 5.0  # seconds between plain lines


@contextmanager
def reporter(total: int) -> Iterator[Callable[[Progress], None]]:
    """A function to give every Progress to."""
    if sys.stderr.isatty():
        with _bar(total) as report:
            yield report
    else:
        yield _lines()


def _rejected(progress: Progress) -> str:
    tried = progress.accepted + progress.rejected
    return f"{progress.rejected / tried:.0%} of samples rejected" if tried else "no samples yet"


def _lines() -> Callable[[Progress], None]:
    start = time.monotonic()
    last = [start]

    def report(progress: Progress) -> None:
        now = time.monotonic()
        if now - last[0] < EVERY and progress.done < progress.total:
            return
        last[0] = now
        print(
            f"{progress.stage}: {progress.done} of {progress.total}, {progress.failed} failed, "
            f"{now - start:.0f} s, {_rejected(progress)}",
            file=sys.stderr,
            flush=True,
        )

    return report


@contextmanager
def _bar(total: int) -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} forms"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[noise]}"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("measuring", total=total, noise="")

        def report(progress: Progress) -> None:
            noise = f"{progress.failed} failed, {_rejected(progress)}"
            bar.update(
                task, description=progress.stage, total=progress.total, completed=progress.done, noise=noise
            )

        yield report
