"""CPU time of another process."""

from __future__ import annotations

import os
from pathlib import Path

_FIRST, _COUNT = 11, 4  # after the name: its own time and that of ended children, in user and in system mode


def cpu_seconds(pid: int, root: Path = Path("/")) -> float:
    """Seconds that a process and its ended children have run so far; 0 of a process that is gone."""
    try:
        text = (root / f"proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    fields = text.rpartition(")")[2].split()[_FIRST : _FIRST + _COUNT]
    return sum(map(int, fields)) / os.sysconf("SC_CLK_TCK")
