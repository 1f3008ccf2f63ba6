"""The CPUs this process may use and what keeps them busy; Linux only."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from cyclescope.host.files import Read, files_of, one

_CPUS = "sys/devices/system/cpu"
_CPUS_MAX = 8191  # Linux numbers no CPU beyond
_INTEGER = re.compile(r"-?\d{1,9}")


class Topology(msgspec.Struct, frozen=True):
    """CPUs available to this process, and facts that bear on measuring."""

    usable: tuple[int, ...]
    online: int
    siblings: dict[int, tuple[int, ...]]
    load: float
    governor: str
    paranoid: int | None


def read_topology(root: Path = Path("/"), read: Read | None = None) -> Topology:
    """Topology of this host; `root` can be a recorded machine's files, `read` reach those of another one.

    Of another one, the CPUs are those that whoever reads there may use; none where it does not say.
    """
    usable = _allowed(one(read, "proc/self/status")) if read else tuple(sorted(os.sched_getaffinity(0)))
    read = read or files_of(root)
    governor = [f"{_CPUS}/cpu{usable[-1]}/cpufreq/scaling_governor"] if usable else []
    common = ["proc/loadavg", f"{_CPUS}/online", "proc/sys/kernel/perf_event_paranoid", *governor]
    load, online, paranoid, *governors = (text or "" for text in read(common))
    lists = read([f"{_CPUS}/cpu{n}/topology/thread_siblings_list" for n in usable])
    siblings = {n: cpu_list(text or "") for n, text in zip(usable, lists, strict=True)}
    return Topology(
        usable,
        len(cpu_list(online)) or len(usable),
        {n: group for n, group in siblings.items() if len(group) > 1},
        _first_number(load),
        "".join(governors).strip(),
        int(paranoid) if _INTEGER.fullmatch(paranoid.strip()) else None,
    )


def _first_number(text: str) -> float:
    found = re.match(r"\s*(\d{1,9}(\.\d{1,9})?)(?!\S)", text)
    return float(found[1]) if found else 0.0


def _allowed(status: str) -> tuple[int, ...]:
    found = re.search(r"^Cpus_allowed_list:\s*(\S+)", status, re.MULTILINE)
    return cpu_list(found[1]) if found else ()


def cpu_list(text: str) -> tuple[int, ...]:
    """CPUs as Linux lists them: `0-2,5` -> (0, 1, 2, 5). What is no such list has no CPUs."""
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        numbers = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part)
        if not numbers:
            return ()
        first, last = int(numbers[1]), int(numbers[2] or numbers[1])
        found.update(range(first, min(last, _CPUS_MAX) + 1))
    return tuple(sorted(found))


def default_cpu(topology: Topology) -> int:
    """The CPU to measure on: the last one, since interrupts and this program prefer the first."""
    return topology.usable[-1]
