"""Backends that ask a static analyser: a program with a machine model of its own answers, nothing runs.

What is common to them; an analyser is a class with `accepted` and `analysed`.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cyclescope.backend.base import (
    DIED,
    NOT_RUN,
    OK,
    SIGNAL,
    Calibration,
    Capabilities,
    Effort,
    Outcome,
    Sample,
)
from cyclescope.errors import BackendUnavailable
from cyclescope.kernel.kernel import Kernel

SIGILL = 4
_CANARY = 100.0  # cycles


class Analysis(NamedTuple):
    """Cycles per unit of a kernel's body, and the cycles of each port that it takes."""

    cycles: float
    pressure: tuple[float, ...] = ()


class AnalyzerBackend(ABC):
    """Kernels answered by an analyser: without noise, so one answer serves all rounds.

    State, setup and memory of a kernel play no part. An instruction that the analyser does not know
    has the outcome of one that the CPU does not execute (SIGILL).
    """

    def __init__(self) -> None:
        self._submitted: deque[tuple[Sequence[Kernel], int]] = deque()

    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What the analyser is."""

    @abstractmethod
    def accepted(self, kernels: Sequence[Kernel]) -> list[int]:
        """Position of the first instruction that the analyser does not know, or -1, for each body."""

    @abstractmethod
    def analysed(self, kernels: Sequence[Kernel]) -> list[Analysis | None]:
        """Analyses of bodies that are accepted; None where the analyser fails on one."""

    def calibrate(self) -> Calibration:
        """A clock that counts core cycles; there is no time, so the frequency is 0."""
        return Calibration(1.0, 1.0, _CANARY, 1.0, 0.0, 0.0)

    def submit(self, kernels: Sequence[Kernel], effort: Effort) -> None:
        """Keep a batch until it is collected."""
        self._submitted.append((kernels, effort.rounds))

    def collect(self) -> list[list[Sample]]:
        """The same sample for every round of a kernel of the oldest batch."""
        kernels, rounds = self._submitted.popleft()
        return [[sample] * rounds for sample in self._samples(kernels)]

    def probe(self, kernels: Sequence[Kernel]) -> list[Outcome]:
        """Whether the analyser knows all instructions of each body."""
        unknown = self.accepted(kernels)
        return [_outcome(kernel, place) for kernel, place in zip(kernels, unknown, strict=True)]

    def close(self) -> None:
        """Forget what was not collected; nothing runs between two calls."""
        self._submitted.clear()

    def _samples(self, kernels: Sequence[Kernel]) -> list[Sample]:
        outcomes = self.probe(kernels)
        analyses = iter(self.analysed([k for k, o in zip(kernels, outcomes, strict=True) if o.status == OK]))
        return [_sample(next(analyses)) if o.status == OK else _failed(o) for o in outcomes]


def _outcome(kernel: Kernel, unknown: int) -> Outcome:
    if not kernel.body:
        return Outcome(NOT_RUN)  # machine code without instructions: nothing to show an analyser
    return Outcome(OK) if unknown < 0 else Outcome(SIGNAL, SIGILL, instruction=unknown)


def _sample(found: Analysis | None) -> Sample:
    if found is None:
        return Sample(0.0, 0.0, DIED)
    return Sample(found.cycles, 0.0, OK, accepted=1, counters=found.pressure)


def _failed(outcome: Outcome) -> Sample:
    return Sample(0.0, 0.0, outcome.status, outcome.detail, instruction=outcome.instruction)


# --- programs ---------------------------------------------------------------------------------------


class TimedOut(BackendUnavailable):
    """A program that did not end in time."""


def find_programs(names: Sequence[str], explicit: str | None, remedy: str) -> list[str]:
    """Path of the program asked for, or of all installed ones of the names, in their order.

    Raises BackendUnavailable where there is none.
    """
    wanted = [explicit] if explicit else names
    found = [path for path in map(shutil.which, wanted) if path]
    if found:
        return found
    if not explicit:
        raise BackendUnavailable(f"{names[0]} is not installed", remedy)
    why = "is not executable" if Path(explicit).is_file() else "is missing"
    raise BackendUnavailable(f"{explicit} {why}", remedy)


def run_program(command: Sequence[str], text: str, patience: float) -> subprocess.CompletedProcess[str]:
    """Run a program on a text. Raises BackendUnavailable where it does not start, TimedOut (seconds)."""
    try:
        return subprocess.run(
            command, input=text, capture_output=True, text=True, check=False, timeout=patience
        )
    except subprocess.TimeoutExpired as error:
        raise TimedOut(f"{command[0]} has not answered for {patience:g} s") from error
    except OSError as error:
        raise BackendUnavailable(f"{command[0]} cannot be started ({error.strerror})") from error


def ending(done: subprocess.CompletedProcess[str]) -> str:
    """How a program ended, with the first line that it said."""
    code = done.returncode
    end = f"was killed: {signal.strsignal(-code)}" if code < 0 else f"ended with exit status {code}"
    said = next((line.strip() for line in done.stderr.splitlines() if line.strip()), "")
    return f"{end} ({said[:200]})" if said else end
