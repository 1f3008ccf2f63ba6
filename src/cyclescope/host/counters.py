"""Performance events by microarchitecture: core cycles, micro-operations, events per port.

Raw event codes are facts from the vendors' manuals (Intel SDM volume 3 and its event files, AMD
processor programming references, Arm's technical reference manuals), in the layout of perf's raw events:
event | umask << 8, on Arm the number of the event.
"""

from __future__ import annotations

import re
from pathlib import Path

from cyclescope.host.files import Read, files_of

RAW, HARDWARE = 4, 0
Event = tuple[str, int, int]  # name, perf type, config

CYCLES: Event = ("cycles", HARDWARE, 0)
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


def events_for(llvm: str, ports: bool = True) -> tuple[Event, ...]:
    """Events worth opening on a microarchitecture, core cycles first; those of ports are all or none."""
    return (CYCLES, *[e for e in EVENTS.get(llvm, ()) if ports or not e[0].startswith("p")])


def availability(root: Path = Path("/"), read: Read | None = None) -> str:
    """ "" where the kernel offers CPU counters, else why not and what to do about it.

    `root` can be a recorded machine's files, `read` reach those of another one.
    """
    read = read or files_of(root)
    devices, paranoid = read(["sys/bus/event_source/devices", "proc/sys/kernel/perf_event_paranoid"])
    if devices is None:
        return "this kernel has no performance events (perf_event is not built in)"
    if not any(_counts(name) for name in devices.split()):
        return "no counters: the virtual machine exposes none (its host has to enable a virtual PMU)"
    if re.fullmatch(r"-?\d+", level := (paranoid or "").strip()) and int(level) > 2:
        return f"no counters: perf_event_paranoid is {level} (2 or less lets users count)"
    return ""


def _counts(device: str) -> bool:
    """Whether an event source is a core: of x86-64 and RISC-V `cpu`, of hybrids and of Arm one per kind."""
    return device == "cpu" or device.startswith(("cpu_", "armv8_", "armv9_"))
