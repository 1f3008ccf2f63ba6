"""What a runner is asked, in the layouts of native/protocol.h."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from cyclescope.backend.answers import COUNTERS
from cyclescope.backend.base import BlockEffort, BurstEffort, Depth, Effort

SETUP_LAYOUT = struct.Struct("<i 2H")
EVENT_LAYOUT = struct.Struct("<I I Q")
CALIBRATE_LAYOUT = struct.Struct("<2I d")
MEASURE_LAYOUT = struct.Struct("<4I d")
KERNEL_LAYOUT = struct.Struct("<I 4H")
DIFFER_LAYOUT = struct.Struct("<4I")
BLOCKS_LAYOUT = struct.Struct("<4I d 2I")
BURSTS_LAYOUT = struct.Struct("<12I d")
BASIC = 1  # in the flags of bursts
_SEED = 0xFFFFFFFF


def setup(cpu: int, events: Sequence[tuple[str, int, int]], movable: bool) -> bytes:
    """A CPU, and events by name, kind and number."""
    listed = b"".join(EVENT_LAYOUT.pack(kind, 0, config) for _, kind, config in events)
    return (
        SETUP_LAYOUT.pack(cpu, len(events), movable)
        + listed
        + bytes(EVENT_LAYOUT.size * (COUNTERS - len(events)))
    )


def measure(effort: Effort) -> bytes:
    """Kernels in loops."""
    return MEASURE_LAYOUT.pack(effort.rounds, effort.want, effort.maximum, effort.seed & _SEED, effort.target)


def blocks(effort: BlockEffort) -> bytes:
    """Basic blocks."""
    seed = effort.seed & _SEED
    return BLOCKS_LAYOUT.pack(effort.want, effort.maximum, seed, effort.pages, effort.target, 0, 0)


def bursts(effort: BurstEffort) -> bytes:
    """Copies behind a read of the clock."""
    return BURSTS_LAYOUT.pack(
        effort.measurements, effort.warm_up, effort.initial_warm_up, effort.unroll, effort.loop,
        BASIC * effort.basic, effort.offset, effort.one_time, effort.late, 0, 0, 0, effort.target,
    )  # fmt: skip


def differ(depth: Depth) -> bytes:
    """Differential execution."""
    return DIFFER_LAYOUT.pack(depth.bases, depth.perturbations, depth.seed & _SEED, 0)
