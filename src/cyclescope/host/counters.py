"""Performance events by microarchitecture: core cycles, micro-operations, events per port.

Raw event codes are facts from the vendors' manuals (Intel SDM volume 3 and its event files, AMD
processor programming references, Arm's technical reference manuals), in the layout of perf's raw events:
event | umask << 8, on Arm the number of the event.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cyclescope.host.files import Read, files_of
from cyclescope.host.topology import cpu_list

RAW, HARDWARE, CACHED = 4, 0, 3
Event = tuple[str, int, int]  # name, perf type, config
DEVICES, _USER = "sys/bus/event_source/devices", "kernel/perf_user_access"
_ARM = ("armv8_", "armv9_", "apple_")  # how the names of their event sources begin

CYCLES: Event = ("cycles", HARDWARE, 0)
_CACHES = {"L1-dcache": 0, "L1-icache": 1, "LLC": 2, "dTLB": 3, "iTLB": 4}  # as perf's numbers have them
_MISSES = 1 << 16  # of the accesses counted otherwise


def _loads(cache: str, misses: bool = False) -> Event:
    name = f"{cache}-load-misses" if misses else f"{cache}-loads"
    return name, CACHED, _CACHES[cache] | (_MISSES if misses else 0)


_GENERAL_NAMES = ("cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses")
GENERAL: tuple[Event, ...] = tuple((name, HARDWARE, n) for n, name in enumerate(_GENERAL_NAMES))
"""Events that the kernel names alike on all cores."""
OF_CACHES: tuple[Event, ...] = tuple(_loads(cache, misses) for cache in _CACHES for misses in (False, True))
"""Those that it names by cache, as `perf list` has them."""
# The same by Arm's numbers, which every core with PMUv3 has.
_ARM_NUMBERS = {
    "cycles": 0x11, "instructions": 0x08, "branch-misses": 0x10, "L1-dcache-loads": 0x04,
    "L1-dcache-load-misses": 0x03, "L1-icache-loads": 0x14, "L1-icache-load-misses": 0x01,
    "dTLB-loads": 0x25, "dTLB-load-misses": 0x05, "iTLB-loads": 0x26, "iTLB-load-misses": 0x02,
}  # fmt: skip
_ZEN: tuple[Event, ...] = (("uops", RAW, 0x00C1),)
_SKYLAKE_PORTS: tuple[Event, ...] = tuple((f"p{n}", RAW, 0xA1 | 1 << n << 8) for n in range(8))
_ICELAKE_PORTS: tuple[Event, ...] = (
    ("p0", RAW, 0x01A1), ("p1", RAW, 0x02A1), ("p2+3", RAW, 0x04A1), ("p4+9", RAW, 0x10A1),
    ("p5", RAW, 0x20A1), ("p6", RAW, 0x40A1), ("p7+8", RAW, 0x80A1),
)  # fmt: skip
_GOLDEN_PORTS: tuple[Event, ...] = (
    ("p0", RAW, 0x01B2), ("p1", RAW, 0x02B2), ("p2+3+A", RAW, 0x04B2), ("p4+9", RAW, 0x10B2),
    ("p5+B", RAW, 0x20B2), ("p6", RAW, 0x40B2), ("p7+8", RAW, 0x80B2),
)  # fmt: skip
_INTEL_UOPS: Event = ("uops", RAW, 0x02C2)  # retired slots
_NEOVERSE: tuple[Event, ...] = (("uops", RAW, 0x003A),)  # OP_RETIRED

EVENTS: dict[str, tuple[Event, ...]] = {
    **dict.fromkeys(
        ("neoverse-v1", "neoverse-v2", "neoverse-v3", "neoverse-n2", "neoverse-n3", "cortex-x2", "cortex-x3"),
        _NEOVERSE,
    ),
    **dict.fromkeys(("znver1", "znver2", "znver3", "znver4", "znver5"), _ZEN),
    **dict.fromkeys(
        ("haswell", "broadwell", "skylake", "skylake-avx512", "cascadelake"),
        (*_SKYLAKE_PORTS, _INTEL_UOPS),
    ),
    **dict.fromkeys(
        ("icelake-client", "icelake-server", "tigerlake", "rocketlake"), (*_ICELAKE_PORTS, _INTEL_UOPS)
    ),
    **dict.fromkeys(
        ("alderlake", "raptorlake", "sapphirerapids", "emeraldrapids", "graniterapids"),
        (*_GOLDEN_PORTS, _INTEL_UOPS),
    ),
}


class _Source(NamedTuple):
    """What counts on some CPUs: its number for perf."""

    kind: int
    cpus: frozenset[int]


def events_for(llvm: str, ports: bool = True) -> tuple[Event, ...]:
    """Events worth opening on a microarchitecture, core cycles first; those of ports are all or none."""
    return (CYCLES, *[e for e in EVENTS.get(llvm, ()) if ports or not e[0].startswith("p")])


def events_on(events: Sequence[Event], cpu: int, read: Read) -> tuple[Event, ...]:
    """Events of the kind of core that a CPU is: each kind has event sources of its own.

    Where files name no source of that CPU, the events stay as they are. Raw codes are of the larger cores of
    a hybrid: others count cycles alone.
    """
    for name, source in _sources(read):
        if cpu in source.cpus:
            if name.startswith("cpu_") and name != "cpu_core":
                events = [event for event in events if event[1] != RAW]
            return tuple(_on(event, source.kind, name.startswith(_ARM)) for event in events)
    return tuple(events)


def _on(event: Event, source: int, arm: bool) -> Event:
    name, kind, config = event
    if kind == RAW:
        return (name, source, config)
    if arm and name in _ARM_NUMBERS:  # only newer kernels take the general event, all take the number
        return (name, source, _ARM_NUMBERS[name])
    return (name, kind, config | source << 32)


def _sources(read: Read) -> list[tuple[str, _Source]]:
    """Those that say which CPUs they count on."""
    names = [name for name in (read([DEVICES])[0] or "").split() if counts(name)]
    texts = read([f"{DEVICES}/{name}/{file}" for name in names for file in ("cpus", "type")])
    pairs = zip(names, texts[::2], texts[1::2], strict=True)
    return [
        (name, _Source(int(kind), frozenset(cpu_list(cpus))))
        for name, cpus, kind in pairs
        if cpus and kind and re.fullmatch(r"\d{1,9}", kind.strip())
    ]


def availability(root: Path = Path("/"), read: Read | None = None) -> str:
    """ "" where the kernel offers CPU counters, else why not and what to do about it.

    `root` can be a recorded machine's files, `read` reach those of another one.
    """
    read = read or files_of(root)
    devices, paranoid, user, rdpmc = read(
        [DEVICES, "proc/sys/kernel/perf_event_paranoid", f"proc/sys/{_USER}", f"{DEVICES}/cpu/rdpmc"]
    )
    if devices is None:
        return "this kernel has no performance events (perf_event is not built in)"
    if not any(counts(name) for name in devices.split()):
        return "no counters: the virtual machine exposes none (its host has to enable a virtual PMU)"
    if re.fullmatch(r"-?\d+", level := (paranoid or "").strip()) and int(level) > 2:
        return f"no counters: perf_event_paranoid is {level} (2 or less lets users count)"
    return _unreadable(devices.split(), (user or "").strip(), (rdpmc or "").strip())


def _unreadable(devices: Sequence[str], user: str, rdpmc: str) -> str:
    """Why programs may not read the counters themselves, without a system call; "" where they may."""
    if user == "0":
        return f"no counters: {_USER.replace('/', '.')} is 0 (`sysctl kernel.perf_user_access=1` as root)"
    if not user and any(name.startswith(_ARM) for name in devices):
        return "no counters: this kernel lets no program read them (kernel.perf_user_access is of Linux 5.17)"
    if rdpmc == "0":
        return f"no counters: /{DEVICES}/cpu/rdpmc is 0 (1 lets programs read them)"
    return ""


def counts(device: str) -> bool:
    """Whether an event source is a core: of x86-64 and RISC-V `cpu`, of hybrids and of Arm one per kind."""
    return device == "cpu" or device.startswith(("cpu_", *_ARM))
