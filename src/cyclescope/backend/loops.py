"""What the loop around a body costs on a simulated core, and what the runner's recipe makes of it.

On real cores a trip through a short loop takes a whole number of cycles more than its copies, which
depends on the loop's length and place; a long loop only the slots of its end. What waits for its own
results hides both. The recipe is that of `native/region.c`, with the same numbers.
"""

from __future__ import annotations

import math
import zlib

import msgspec

from cyclescope.kernel.kernel import CANARY, FAST, LONG, WATCHED, WITHOUT_LOOP, Kernel

FEW_INSTRUCTIONS, HUNDRED_INSTRUCTIONS, LOOP_INSTRUCTIONS = 12, 100, 400
LOOP_BYTES, LONGER_TRIPS, PLACE_BYTES = 3072, 4, 20


class TimedLoop(msgspec.Struct, frozen=True):
    """A loop of so many copies of a body, at a place behind an alignment, and how often it goes round."""

    copies: int
    trips: int
    place: int = 0


class Loops(msgspec.Struct, frozen=True):
    """The loops of a core: how many cycles more a trip takes, drawn from a seed for every length and place.

    `width` is in slots per cycle, `most` in cycles; loops of `short` instructions or more hide them.
    """

    seed: int
    width: float
    most: int = 5
    short: int = 200

    def trip(self, kernel: Kernel, cycles: float, region: TimedLoop) -> float:
        """Cycles of a trip, of a body that takes so many by itself."""
        time = region.copies * cycles
        if not kernel.flags & CANARY:
            return time
        if region.copies * kernel.instructions >= self.short:
            return time + 1 / self.width
        where = f"{self.seed} {region.copies * len(kernel.code)} {region.place}"
        return math.ceil(time) + zlib.crc32(where.encode()) % (self.most + 1)

    def reading(self, kernel: Kernel, cycles: float, target: float, number: int) -> float:
        """Cycles per body as the runner reads them in round `number`, with regions of `target` cycles."""
        shorter, longer = self.regions(kernel, cycles, target, number)
        ends = (longer.trips - shorter.trips) / self.width if kernel.flags & CANARY else 0.0
        time = self.time(kernel, cycles, longer) - self.time(kernel, cycles, shorter) - ends
        return time / (longer.copies * longer.trips - shorter.copies * shorter.trips)

    def time(self, kernel: Kernel, cycles: float, region: TimedLoop) -> float:
        """Cycles of a region."""
        return region.trips * self.trip(kernel, cycles, region)

    def regions(
        self, kernel: Kernel, cycles: float, target: float, number: int
    ) -> tuple[TimedLoop, TimedLoop]:
        """The two regions whose times are differenced."""
        if not one_loop(kernel):
            return two_lengths(kernel, cycles, target, number)
        copies, place = loop_copies(kernel, number), number * PLACE_BYTES % 64
        trip = self.trip(kernel, cycles, TimedLoop(copies, 1, place))
        if LONGER_TRIPS * trip > 1.5 * target and copies > 1:
            copies = max(int(copies * target / (LONGER_TRIPS * trip)), 1)
            trip = target / LONGER_TRIPS
        trips = max(int(target / trip / LONGER_TRIPS + 0.5), 1)
        return TimedLoop(copies, trips, place), TimedLoop(copies, LONGER_TRIPS * trips, place)


def one_loop(kernel: Kernel) -> bool:
    """Whether both regions are the same loop, with different numbers of trips."""
    long_chain = kernel.flags & (WATCHED | FAST) == WATCHED
    return not kernel.flags & WITHOUT_LOOP and bool(kernel.flags & CANARY or long_chain)


def loop_copies(kernel: Kernel, number: int) -> int:
    """Copies of a body in the one loop of a round."""
    slow = not kernel.flags & (FAST | LONG)
    copies = _copies(kernel, HUNDRED_INSTRUCTIONS if slow else LOOP_INSTRUCTIONS)
    if not kernel.flags & LONG and copies * len(kernel.code) > LOOP_BYTES:
        copies = max(LOOP_BYTES // len(kernel.code), 1)
    return (3 * copies + 3) // 4 if number & 1 else copies


def two_lengths(kernel: Kernel, cycles: float, target: float, number: int) -> tuple[TimedLoop, TimedLoop]:
    """Few copies and four or five times as many, for the same trips: right for what hides its loop."""
    few, factor = _copies(kernel, FEW_INSTRUCTIONS), 4 if number & 1 else 5
    few += (few + 1) // 2 if number & 1 else 0
    trips = max(int(target / max(few * factor * cycles, 0.5) + 0.5), 1)
    return TimedLoop(few, trips), TimedLoop(few * factor, trips)


def _copies(kernel: Kernel, instructions: int) -> int:
    per_unit = max(kernel.instructions, 1)
    return (instructions + per_unit - 1) // per_unit
