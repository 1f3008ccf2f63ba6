"""Whether a core dispatches all slots of an instruction in one cycle, and what loops take then.

Instances of a form among instructions of one slot take their own slots, and those that stay empty
because an instruction does not fit into the rest of a cycle. How many stay empty depends on the number of
instructions around them, and is the same for all forms with the same number of slots.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from cyclescope.infer.front_end.slots import Estimate
from cyclescope.model.dispatch_cycles import SETTLING

_SEVERAL, MICROCODE = 1.35, 4.6  # slots: certainly more than one; more come from the microcode sequencer
_FITS = 0.25  # slots by which an explanation may miss a measurement
LEAST_TRIED = 2  # slots: what forms of several have, also where two are a whole cycle's
_CLEAR = 0.08  # slots: so much less is missed by the better explanation of a form
_ENOUGH, _MANY = 5, 4  # forms that only whole dispatch explains, at least, and for each that it does not

Estimates = Mapping[str, Sequence[Estimate]]


def dispatches_whole(found: Estimates, width: float) -> bool:
    """Whether the estimates of forms of several slots are those of a core that divides no instruction."""
    several = [row for row in found.values() if _SEVERAL < min(e.slots for e in row) < MICROCODE]
    misses = [(_miss(row, width, True), _miss(row, width, False)) for row in several]
    whole = sum(one < _FITS and other - one > _CLEAR for one, other in misses)
    divided = sum(other < _FITS and one - other > _CLEAR for one, other in misses)
    return whole >= _ENOUGH and whole > _MANY * divided


def _miss(row: Sequence[Estimate], width: float, whole: bool) -> float:
    """By how much the number of slots that fits best misses on average.

    Numbers are tried up to half a cycle's: an instruction of more is hardly told from one that is divided.
    """
    return min(
        sum(abs(seen(slots, e.fillers, e.instances, width, whole) - e.slots) for e in row) / len(row)
        for slots in range(1, max(math.floor(width / 2), LEAST_TRIED) + 1)
    )


@cache
def seen(slots: int, fillers: int, instances: int, width: float, whole: bool = True, spare: int = 0) -> float:
    """The estimate for a form of so many slots, its instances spread evenly (see `model.dispatch_cycles`).

    Instructions of one slot leave none empty, so that only instances are looked at.
    """
    if not whole:
        return float(slots)
    gaps = [fillers * (n + 1) // instances - fillers * n // instances for n in range(instances)]
    ends, known = [0.0], {0.0: 0}  # slots behind each repetition; which one ends so far into a cycle
    for number in range(1, 2 * SETTLING + 1):
        ends.append(_behind(ends[-1], gaps, slots, min(slots + spare, width), width))
        first = known.setdefault(ends[-1] % width, number)
        if first < number and width.is_integer():  # whole numbers: from here on they come again
            ends += _again(ends, first, 2 * SETTLING)
            break
    return ((ends[2 * SETTLING] - ends[SETTLING]) / SETTLING - fillers) / instances


def _behind(used: float, gaps: Sequence[int], slots: int, needed: float, width: float) -> float:
    """Slots behind one repetition: fillers between instances, and those that stay empty in front of these."""
    for gap in gaps:
        used += gap
        free = width - used % width
        used += slots + (free if free < needed and slots <= width else 0)
    return used


def _again(ends: Sequence[float], first: int, last: int) -> Iterator[float]:
    """The ends of more repetitions, up to the last, which go on as behind the first."""
    period, more = len(ends) - 1 - first, ends[-1] - ends[first]
    for number in range(len(ends), last + 1):
        times, place = divmod(number - first, period)
        yield ends[first + place] + times * more
