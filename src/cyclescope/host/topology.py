"""The CPUs this process may use and what keeps them busy; Linux only."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec


class Topology(msgspec.Struct, frozen=True):
    """CPUs available to this process, and facts that bear on measuring."""

    usable: tuple[int, ...]
    online: int
    siblings: dict[int, tuple[int, ...]]
    load: float
    governor: str
    paranoid: int | None


def read_topology(root: Path = Path("/")) -> Topology:
    """Topology of this host; `root` can be a recorded machine's files."""
    usable = tuple(sorted(os.sched_getaffinity(0)))
    cpus = root / "sys/devices/system/cpu"
    siblings = {n: _list(_read(cpus / f"cpu{n}/topology/thread_siblings_list")) for n in usable}
    paranoid = _read(root / "proc/sys/kernel/perf_event_paranoid")
    return Topology(
        usable,
        len(_list(_read(cpus / "online"))) or len(usable),
        {n: group for n, group in siblings.items() if len(group) > 1},
        float((_read(root / "proc/loadavg") or "0").split()[0]),
        _read(cpus / f"cpu{usable[-1]}/cpufreq/scaling_governor"),
        int(paranoid) if paranoid else None,
    )


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _list(text: str) -> tuple[int, ...]:
    """`0-2,5` -> (0, 1, 2, 5)."""
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)


def default_cpu(topology: Topology) -> int:
    """The CPU to measure on: the last one, since interrupts and this program prefer the first."""
    return topology.usable[-1]
