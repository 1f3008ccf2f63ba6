"""Pieces of code beside each other: `bench` of several, of a sweep, of threads."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from cyclescope.infer.beside.bursts import TimedBurst
from cyclescope.infer.beside.pieces import Snippet
from cyclescope.infer.beside.threads import ThreadReading
from cyclescope.measure.record import STABLE
from cyclescope.measure.sampling import Measurement
from cyclescope.report.bench import EMULATION, NOT_KNOWN, SCHEMA_VERSION, bench_json
from cyclescope.report.card import EMULATED
from cyclescope.report.tables import aligned, table

_BAR = 40  # characters of the longest
_PARTS = " ▏▎▍▌▋▊▉█"  # eighths of a character
_HEAD = ("code", "cycles", "+-", "ratio", "+-", "verdict")
_LONGEST_NAME = 48


class TimedSnippet(NamedTuple):
    """A snippet with what it took."""

    snippet: Snippet
    measured: Measurement
    emulated: bool = False  # then its times say nothing, and no view has one
    burst: TimedBurst | None = None  # where copies ran once
    whole: int = 0  # copies that the numbers are of, 0: of one

    @property
    def of_all_copies(self) -> TimedSnippet:
        """With numbers that are of all copies of the code, not of one."""
        copies = self.snippet.copies if self.burst is None else self.burst.burst.effort.copies
        measured = self.measured if self.burst is None else _times(self.measured, copies)
        return self._replace(
            snippet=msgspec.structs.replace(self.snippet, copies=1), measured=measured, whole=copies
        )

    @property
    def cycles(self) -> float:
        """Core cycles per copy of the code, or of all copies."""
        return self.measured.cycles / self.snippet.copies

    @property
    def error(self) -> float:
        """How far that may be off."""
        return self.measured.spread / self.snippet.copies

    def ratio(self, first: TimedSnippet) -> tuple[float, float]:
        """Times as long as another, and how far that may be off; of nothing not a number."""
        if first.cycles <= 0 or self.cycles <= 0:
            return math.nan, math.nan
        ratio = self.cycles / first.cycles
        return ratio, ratio * math.hypot(self.error / self.cycles, first.error / first.cycles)


def _times(measured: Measurement, copies: int) -> Measurement:
    """The same of so many copies."""
    return msgspec.structs.replace(
        measured, cycles=measured.cycles * copies, spread=measured.spread * copies,
        rounds=tuple(value * copies for value in measured.rounds),
        counters=tuple(value * copies for value in measured.counters),
    )  # fmt: skip


def comparison_rows(timed: Sequence[TimedSnippet]) -> list[tuple[str, ...]]:
    """A head, and a row per snippet; ratios are to the first one."""
    rows: list[tuple[str, ...]] = [_HEAD]
    for one in timed:
        ratio, error = one.ratio(timed[0])
        numbers = (f"{one.cycles:.4f}", f"{one.error:.4f}", f"{ratio:.3f}", f"{error:.3f}")
        said = (*[NOT_KNOWN] * len(numbers), EMULATION) if one.emulated else (*numbers, one.measured.verdict)
        rows.append((_short(one.snippet.name), *said))
    return rows


def _with_note(text: str, timed: Sequence[TimedSnippet]) -> str:
    """A text for people, with why there is no number in it."""
    return f"{text}\n{EMULATED}" if any(one.emulated for one in timed) else text


def _unit(timed: Sequence[TimedSnippet]) -> str:
    return "core cycles of all copies" if timed[0].whole else "core cycles per copy"


def _short(name: str) -> str:
    line = "; ".join(part.strip() for part in name.splitlines() if part.strip())
    return line if len(line) <= _LONGEST_NAME else f"{line[: _LONGEST_NAME - 3]}..."


def comparison_text(timed: Sequence[TimedSnippet], machine: str) -> str:
    """The same as a table for people."""
    text = f"{_unit(timed)}, on {machine}\n{table(comparison_rows(timed), 1)}".rstrip()
    return _with_note(text, timed)


def comparison_markdown(timed: Sequence[TimedSnippet]) -> str:
    """The same as a table in Markdown."""
    head, *rows = comparison_rows(timed)
    lines = [head, ("---", *["--:"] * (len(head) - 2), "---"), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)


def comparison_csv(timed: Sequence[TimedSnippet]) -> str:
    """The same as CSV; the names are whole."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    _, *rows = comparison_rows(timed)
    writer.writerow(("code", "cycles", "cycles_error", "ratio", "ratio_error", "verdict"))
    for one, row in zip(timed, rows, strict=True):
        writer.writerow((one.snippet.name, *row[1:]))
    return stream.getvalue().rstrip("\n")


def comparison_json(timed: Sequence[TimedSnippet], machine: str, frequency: float) -> str:
    """Every snippet as `bench --json` has one, with its ratio to the first."""
    results = []
    for one in timed:
        label, kernel, copies = one.snippet.name, one.snippet.kernel, one.snippet.copies
        data = msgspec.json.decode(
            bench_json(
                label,
                kernel,
                one.measured,
                copies,
                machine,
                frequency,
                one.emulated,
                burst=one.burst,
                whole=one.whole,
            )
        )
        ratio, error = one.ratio(timed[0])
        known = not one.emulated and not math.isnan(ratio)
        numbers = (round(ratio, 5), round(error, 5)) if known else (None, None)
        results.append(data | dict(zip(("ratio", "ratio_error"), numbers, strict=True)))
    everything = {"schema_version": SCHEMA_VERSION, "machine": machine, "results": results}
    return msgspec.json.encode(everything).decode()


def sweep_text(timed: Sequence[TimedSnippet], machine: str) -> str:
    """A bar per number of a sweep, from 0 on; what is not `ok` has its range."""
    most = max([one.cycles for one in timed if math.isfinite(one.cycles)], default=0.0)
    rows = [(_short(one.snippet.name), *_swept(one, most)) for one in timed]
    return _with_note("\n".join([f"{_unit(timed)}, on {machine}", *aligned(rows, (0, 2, 3))]), timed)


def _swept(one: TimedSnippet, most: float) -> tuple[str, str, str]:
    """Cycles, what is known of their error, and the bar."""
    if one.emulated:
        return "", NOT_KNOWN, ""
    known = one.measured.verdict == STABLE
    error = f"+-{one.error:.4f}" if known else f"to {one.cycles + one.error:.4f} {one.measured.verdict}"
    return f"{one.cycles:.4f}", error, _bar(one.cycles, most)


def _bar(value: float, most: float) -> str:
    eighths = round(8 * _BAR * min(max(value / most, 0.0), 1.0)) if most > 0 else 0
    return _PARTS[-1] * (eighths // 8) + _PARTS[eighths % 8].strip()


def threads_text(name: str, readings: Sequence[ThreadReading], copies: int) -> str:
    """What a snippet takes on every CPU, alone and with the others."""
    rows: list[tuple[str, ...]] = [("CPU", "alone", "+-", f"{len(readings)} threads", "+-", "slowdown", "+-")]
    for one in readings:
        cycles = (one.alone, one.alone_error, one.together, one.together_error)
        numbers = [f"{value / copies:.4f}" for value in cycles]
        rows.append((str(one.cpu), *numbers, f"{one.slowdown:.3f}", f"{one.slowdown_error:.3f}"))
    return f"    {_short(name)}\ncore cycles per copy\n{table(rows, 0)}".rstrip()


def threads_json(name: str, readings: Sequence[ThreadReading], copies: int, machine: str) -> str:
    """The same as JSON."""
    threads = [
        {
            "cpu": one.cpu, "alone": one.alone / copies, "alone_error": one.alone_error / copies,
            "together": one.together / copies, "together_error": one.together_error / copies,
            "slowdown": one.slowdown, "slowdown_error": one.slowdown_error,
        }
        for one in readings
    ]  # fmt: skip
    data = {"schema_version": SCHEMA_VERSION, "machine": machine, "code": name, "threads": threads}
    return msgspec.json.encode(data).decode()
