"""What every benchmark prints: the machine, its load, and a table of checks with targets."""

from __future__ import annotations

import argparse
import csv
import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from cyclescope import __version__
from cyclescope.errors import BackendUnavailable, CyclescopeError, UsageError
from cyclescope.host.identity import Identity, as_leaves, identify

ROOT = Path(__file__).resolve().parents[2]


class Check(msgspec.Struct, frozen=True):
    """One promised number: what it is, what came out, the target, and whether it is met.

    `passed` is None for numbers without a target, and for those this machine cannot show.
    """

    name: str
    found: str
    target: str = ""
    passed: bool | None = None

    @property
    def verdict(self) -> str:
        """`pass`, `FAIL` or `-`."""
        return "-" if self.passed is None else "pass" if self.passed else "FAIL"


def reference_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file with a heading.

    Raises UsageError where it cannot be read.
    """
    try:
        with path.open(newline="") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read ({error.strerror})", "--reference names the folder"
        ) from None


def at_least(name: str, part: int, whole: int, least: float) -> Check:
    """A share that must not be below `least`."""
    return Check(name, share(part, whole), f">= {least:.0%}", whole > 0 and part >= least * whole)


def at_most(name: str, part: int, whole: int, most: float) -> Check:
    """A share that must not be above `most`."""
    return Check(name, share(part, whole), f"<= {most:.0%}", whole > 0 and part <= most * whole)


def share(part: int, whole: int) -> str:
    """`99.12 % (5 of 6)`."""
    return f"{100 * part / whole:.2f} % ({part} of {whole})" if whole else "nothing to count"


# --- the machine -----------------------------------------------------------------------------------


def identity() -> Identity | None:
    """This CPU, or None where the runner does not run."""
    from cyclescope.backend.native import NativeBackend

    try:
        backend = NativeBackend()
    except BackendUnavailable:
        return None
    try:
        return identify(as_leaves(backend.capabilities().leaves))
    finally:
        backend.close()


def header(title: str) -> str:
    """Title, machine, load and version, as Markdown."""
    cpu = identity()
    load = " ".join(f"{value:.2f}" for value in os.getloadavg())
    rows = [
        ("machine", f"{cpu.machine} ({cpu.brand})" if cpu else f"unknown ({platform.processor()})"),
        ("microarchitecture", (cpu.llvm if cpu else "") or "unknown"),
        ("CPUs", f"{len(os.sched_getaffinity(0))} usable of {os.cpu_count()}"),
        ("load average", load),
        ("kernel", f"{platform.system()} {platform.release()}, Python {platform.python_version()}"),
        ("date", datetime.now().astimezone().isoformat(timespec="seconds")),
        ("cyclescope", __version__),
    ]
    return "\n".join([f"# {title}", "", *(f"- {name}: {value}" for name, value in rows), ""])


# --- output ----------------------------------------------------------------------------------------


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    cells = [[str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in (head, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def checks_table(checks: Iterable[Check]) -> str:
    """The checks as a Markdown table."""
    return table(("what", "found", "target", ""), ((c.name, c.found, c.target, c.verdict) for c in checks))


def parser(text: str | None) -> argparse.ArgumentParser:
    """An argument parser that shows a module's docstring."""
    return argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)


def present(title: str, work: Callable[[], Sequence[Check]]) -> None:
    """Print the header, whatever the work prints, and its checks. Exits with 1 where one fails."""
    print(header(title), flush=True)
    try:
        checks = work()
    except CyclescopeError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    print(f"\n{checks_table(checks)}")
    sys.exit(any(check.passed is False for check in checks))
