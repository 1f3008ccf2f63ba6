"""What a runner is asked, in the layouts of native/protocol.h."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Sequence

from cyclescope.backend.answers import COUNTERS
from cyclescope.backend.base import BlockEffort, BurstEffort, Depth, Effort
from cyclescope.kernel.kernel import Kernel

SETUP_LAYOUT = struct.Struct("<i 2H")
EVENT_LAYOUT = struct.Struct("<I I Q")
CALIBRATE_LAYOUT = struct.Struct("<2I d")
MEASURE_LAYOUT = struct.Struct("<4I d")
KERNEL_LAYOUT = struct.Struct("<I 4H")
DIFFER_LAYOUT = struct.Struct("<4I")
BLOCKS_LAYOUT = struct.Struct("<4I d 2I")
BURSTS_LAYOUT = struct.Struct("<12I d")
BASIC, DRAIN = 1, 2  # in the flags of bursts
_SEED = 0xFFFFFFFF


class Job:
    """A request: kernels in pieces that are answered one by one, each record so many bytes per kernel."""

    def __init__(
        self, kind: int, head: bytes, kernels: Sequence[Kernel] = (), record: int = 0, rounds: int = 1
    ) -> None:
        self.kind, self.head, self.record, self.rounds = kind, head, record, rounds
        self.pieces = deque([tuple(kernels)])
        self.answers: list[bytes] = []

    def split(self, size: int) -> None:
        """Smaller pieces of what was not answered yet."""
        rest = tuple(kernel for piece in self.pieces for kernel in piece)
        if rest:
            self.pieces = deque(rest[n : n + size] for n in range(0, len(rest), size))

    def rooms(self, other: int) -> list[int]:
        """Bytes that the answers to the pieces may have; `other` of those without records."""
        return [self.record * len(piece) or other for piece in self.pieces]

    def take(self, answer: bytes) -> bool:
        """Keep the answer to the next piece; whether it has the right size."""
        piece = self.pieces.popleft()
        self.answers.append(answer)
        return not self.record or len(answer) == self.record * len(piece)


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
        BASIC * effort.basic | DRAIN * effort.drain, effort.offset, effort.one_time, effort.late, 0, 0, 0,
        effort.target,
    )  # fmt: skip


def differ(depth: Depth) -> bytes:
    """Differential execution."""
    return DIFFER_LAYOUT.pack(depth.bases, depth.perturbations, depth.seed & _SEED, 0)
