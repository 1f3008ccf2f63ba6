"""How many cycles the front end needs for a loop."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import NamedTuple

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.register import register_files
from cyclescope.model.machine import Narrow

SETTLING = 12  # repetitions of a loop before the average is taken, over as many again
ROUNDING = 1e-6

Ports = tuple[int, ...]


class Dispatched(NamedTuple):
    """The slots of an instruction, the single ports that each of its operations may get, and spare slots."""

    slots: float
    ports: tuple[Ports, ...] = ()
    spare: float = 0.0


def dispatch_cycles(
    slots: Sequence[float], width: float, whole: bool = False, spare: Sequence[float] = ()
) -> float:
    """Cycles per repetition of instructions that take so many slots each, `width` slots per cycle.

    With `whole`, the slots of an instruction are in one cycle: where they do not fit any more, the rest of
    the cycle stays empty. Instructions of more slots than a cycle has are divided all the same. `spare` has
    slots that are to be free behind those of each, for others to take.
    """
    if not whole or (max(slots, default=0.0) <= 1 and not any(spare)):
        return sum(slots) / width
    return _in_whole(tuple(slots), width, tuple(spare))


@lru_cache(4096)  # slots of blocks in order, of which half come again
def _in_whole(slots: tuple[float, ...], width: float, spare: tuple[float, ...]) -> float:
    """The same where the slots of an instruction are in one cycle."""
    both = zip_longest(slots, spare, fillvalue=0.0)
    needed = [min(number + more, width) if number else 0.0 for number, more in both]
    used, ends, known = 0.0, [0.0], {0.0: 0}
    for repetition in range(1, 2 * SETTLING + 1):
        for number, least in zip(slots, needed, strict=True):
            free = width - used % width
            if free + ROUNDING < least and number <= width:
                used += free
            used += number
        ends.append(used)
        first = known.setdefault(round(used % width, 6), repetition)
        if first < repetition:  # from here on they come again
            return (used - ends[first]) / (repetition - first) / width
    return (used - ends[SETTLING]) / SETTLING / width


def narrow_cycles(rows: Iterable[tuple[InstructionForm, float]], narrow: Narrow | None) -> float:
    """Cycles per repetition for instructions of which a cycle takes fewer: forms with their slots.

    Where these take whole cycles, that goes for each time that the same forms with the same slots come again.
    What has more slots than a cycle takes of them comes from microcode, of which nothing is known.
    """
    if narrow is None:
        return 0.0
    each = list(rows)
    small = (one for one in each if one[1] <= narrow.slots)
    shares = sum(slots for form, slots in small if not register_files(form).isdisjoint(narrow.files))
    times = _times(each) if narrow.beside and shares > narrow.slots else 1
    some, every = shares / times, sum(slots for _, slots in each) / times
    least = some / narrow.slots
    if narrow.beside and least > 1 + ROUNDING and round(every - some) >= narrow.beside:
        least = math.ceil(least - ROUNDING)
    return times * least


def _times(rows: Sequence[object]) -> int:
    """How often a sequence repeats its shortest part."""
    count = len(rows)
    parts = (n for n in range(1, count // 2 + 1) if count % n == 0)
    return next((count // n for n in parts if rows[n:] == rows[:-n]), 1)


def single_cycles(instructions: Sequence[Dispatched], width: float) -> float:
    """Cycles per repetition where each port gets at most one operation in a cycle, of `width` slots.

    An instruction whose operations find no ports any more waits for the next cycle, with all behind it. What
    has more operations than there are ports for is dispatched alone.
    """
    if not any(one.ports for one in instructions):
        return sum(one.slots for one in instructions) / width
    cycles, free, got, settled = 0, width, list[Ports](), 0.0
    for repetition in range(2 * SETTLING):
        if repetition == SETTLING:
            settled = cycles - free / width
        for slots, ports, _ in instructions:
            if slots > free + ROUNDING or not have_ports([*got, *ports]):
                cycles, free, got = cycles + 1, width, []
            free -= slots
            while free < -ROUNDING:
                cycles, free = cycles + 1, free + width
            got += ports
    return (cycles - free / width - settled) / SETTLING


def have_ports(operations: Sequence[Ports]) -> bool:
    """Whether each operation may get a port of its own."""
    holders: dict[int, int] = {}

    def place(number: int, seen: set[int]) -> bool:
        for port in operations[number]:
            if port not in seen:
                seen.add(port)
                if port not in holders or place(holders[port], seen):
                    holders[port] = number
                    return True
        return False

    return all(place(number, set()) for number in range(len(operations)))
