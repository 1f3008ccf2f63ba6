"""Progress of long work: one bar over all of it on a terminal, plain lines otherwise; on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, TextIO

from cyclescope.infer.progress import Progress, told_to

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

EVERY = 5.0  # seconds between plain lines
SHORT = 1.0  # seconds: a stage without samples that takes less is not worth a line
EARLY = 0.02  # of all work: too little to tell from it how long the rest takes
Report = Callable[[Progress], None]


def reporter(stream: TextIO | None = None) -> AbstractContextManager[Report]:
    """A function to give every Progress to."""
    out = stream or sys.stderr
    if out is None:  # standard error is closed
        return _nothing()
    return _bar(out) if out.isatty() else _lines(out)


@contextmanager
def when_needed() -> Iterator[None]:
    """Show work that a command may have to do before its own, such as a model that is out of date."""
    shown = _WhenNeeded()
    with shown, told_to(shown.report):
        yield


class _WhenNeeded(ExitStack):
    """A reporter that begins with the first progress and ends when that is done."""

    _report: Report | None = None

    def report(self, progress: Progress) -> None:
        """Show progress."""
        if self._report is None:
            self._report = self.enter_context(reporter())
        self._report(progress)
        if progress.done >= progress.total:
            self._report = None
            self.close()


@contextmanager
def _nothing() -> Iterator[Report]:
    yield lambda progress: None


def _counts(progress: Progress) -> str:
    from cyclescope.measure.sampling import rejections  # not at the start of what measures nothing

    noise = rejections(progress.accepted, progress.rejected, progress.disturbed)
    return f"{progress.failed} failed, {noise}"


def _seconds(seconds: float) -> str:
    """Rounded to what an estimate is good for."""
    if seconds < 90:
        return f"{max(5 * round(seconds / 5), 5)} s"
    return f"{round(seconds / 60)} min" if seconds >= 600 else f"{round(seconds / 30) / 2:g} min"


class _Rest:
    """How long all the rest takes, from how long what is done took."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._share = 0.0  # that was done when it started: a run that goes on

    def told(self, progress: Progress) -> None:
        """Take note of the first share."""
        if not self._share and progress.share:
            self._share, self._start = progress.share, time.monotonic()

    def text(self, progress: Progress) -> str:
        """About how long, "" where that cannot be said yet."""
        done = progress.share - self._share
        if done < EARLY or progress.share >= 1:
            return ""
        return f"about {_seconds((time.monotonic() - self._start) * (1 - progress.share) / done)} left"


# --- lines -------------------------------------------------------------------------------------------


@contextmanager
def _lines(out: TextIO) -> Iterator[Report]:
    lines = _Lines(out)
    try:
        yield lines.report
    finally:
        lines.close()


class _Lines:
    """A line now and then, and one at the end of every stage; none at its start, nor one without news."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._start = self._last = self._began = time.monotonic()
        self._rest = _Rest()
        self._latest: Progress | None = None
        self._shown: tuple[str, int, int] | None = None

    def report(self, progress: Progress) -> None:
        """Take note, and print when it is time."""
        now = time.monotonic()
        self._rest.told(progress)
        if self._latest is not None and self._latest.stage != progress.stage:
            self._show_end(self._latest, now)
            self._began = now
        self._latest = progress
        if now - max(self._last, self._began) >= EVERY:
            self._show(progress, now)

    def close(self) -> None:
        """Print how far it came."""
        if self._latest is not None:
            self._show_end(self._latest, time.monotonic())

    def _show_end(self, progress: Progress, now: float) -> None:
        """The end of a stage, unless it measured nothing and was short."""
        if progress.accepted + progress.rejected or (progress.done and now - self._began >= SHORT):
            self._show(progress, now, ended=True)

    def _show(self, progress: Progress, now: float, ended: bool = False) -> None:
        news = (progress.stage, progress.done, progress.failed)
        if news == self._shown:
            return
        self._shown, self._last = news, now
        parts = [f"{progress.stage}: {progress.done} of {progress.total}"]
        parts += [_counts(progress)] if progress.accepted + progress.rejected else []
        parts.append(f"{now - self._start:.0f} s")
        if not ended and progress.share:
            rest = self._rest.text(progress)
            parts.append(f"{progress.share:.0%} of all" + (f", {rest}" if rest else ""))
        print(", ".join(parts), file=self._out, flush=True)


# --- a bar -------------------------------------------------------------------------------------------


@contextmanager
def _bar(out: TextIO) -> Iterator[Report]:
    from rich.console import Console
    from rich.live import Live

    line = _Line()
    with Live(line, console=Console(file=out), transient=True, refresh_per_second=8):
        yield line.report


class _Line:
    """The bar with its percentage, the time left, the stage, and what fits behind them: one line."""

    def __init__(self) -> None:
        self._rest = _Rest()
        self._latest: Progress | None = None

    def report(self, progress: Progress) -> None:
        """Show progress from now on."""
        self._rest.told(progress)
        self._latest = progress

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        width = options.max_width
        latest = self._latest
        if latest is None:
            yield "starting"
            return
        share = latest.share or latest.done / max(latest.total, 1)
        texts = _that_fit(self._texts(latest, share), width - _narrow(width) - 1)
        grid = Table.grid(padding=(0, 1, 0, 0))
        for _ in range(1 + len(texts)):
            grid.add_column(no_wrap=True, overflow="ellipsis")
        grid.add_row(ProgressBar(total=1.0, completed=share, width=_narrow(width)), *map(Text, texts))
        yield grid

    def _texts(self, latest: Progress, share: float) -> list[str]:
        """The most important first."""
        parts = [f"{share:4.0%}", latest.stage, self._rest.text(latest), f"{latest.done} of {latest.total}"]
        if latest.accepted + latest.rejected:
            parts.append(_counts(latest))
        return [part for part in parts if part]


def _narrow(width: int) -> int:
    """Columns of the bar."""
    return 20 if width >= 80 else 10


def _that_fit(texts: list[str], width: int) -> list[str]:
    """The first texts that fit into so many columns, the next one shortened if something of it does."""
    found: list[str] = []
    for text in texts:
        room = width - sum(len(some) + 1 for some in found)
        if len(text) > room:
            if len(found) == 1 and room > 1:  # the stage: something has to be said of it
                found.append(text[: room - 1] + "…")
            break
        found.append(text)
    return found
