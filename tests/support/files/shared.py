"""Files that take seconds to make: one process of a test run makes them, the others wait for it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def shared_file(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The file of a run of pytest that has this name; nobody writes it once it is made."""
    folder = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # each process has a folder of its own in that of the run
    file, unfinished = folder / name, folder / f"unfinished-{name}"
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            unfinished.unlink(missing_ok=True)
            make(unfinished)
            unfinished.rename(file)
    return file
