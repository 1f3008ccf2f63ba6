"""Front-end slots of forms, where a core may dispatch the slots of an instruction in one cycle only.

Two instances of a form among instructions of one slot each take their slots, and those that stay empty
because an instruction does not fit into the rest of a cycle. How many stay empty depends on how many
instructions are around; it is the same for all forms of as many slots.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache

from cyclescope.measure.ports import INSTANCES, blocked
from cyclescope.model.dispatch import dispatch_cycles

SEVERAL, MOST = 1.35, 4.6  # slots: certainly more than one; more come from the microcode sequencer
FITS = 0.25  # slots by which an explanation may miss a measurement
CLEAR = 0.08  # slots: so much less is missed by the better explanation of a form
ENOUGH, MANY = 5, 4  # forms that only whole dispatch explains, at least, and for each that it does not

Estimates = Mapping[str, Mapping[int, float]]  # slots by form and number of instructions around


def estimates(readings: Iterable[tuple[str, str, float]], width: float) -> dict[str, dict[int, float]]:
    """Slots of each form as if none stayed empty, by the number of instructions around its instances.

    `readings` are form, variant and cycles of experiments for slots.
    """
    found: dict[str, dict[int, float]] = defaultdict(dict)
    for form, variant, cycles in readings:
        count = blocked(variant)
        found[form][count] = (cycles * width - count) / INSTANCES
    return found


def dispatches_whole(found: Estimates, width: float) -> bool:
    """Whether the estimates of forms of several slots are those of a core that divides no instruction."""
    several = [row for row in found.values() if SEVERAL < min(row.values()) < MOST]
    misses = [(_best(row, width, True)[1], _best(row, width, False)[1]) for row in several]
    whole = sum(one < FITS and other - one > CLEAR for one, other in misses)
    divided = sum(other < FITS and one - other > CLEAR for one, other in misses)
    return whole >= ENOUGH and whole > MANY * divided


def whole_slots(found: Estimates, width: float) -> dict[str, float]:
    """Slots of the forms that whole dispatch explains."""
    several = {form: row for form, row in found.items() if SEVERAL < min(row.values()) < MOST}
    best = {form: _best(row, width, True) for form, row in several.items()}
    return {form: float(slots) for form, (slots, miss) in best.items() if miss < FITS}


def _best(row: Mapping[int, float], width: float, whole: bool) -> tuple[int, float]:
    """The number of slots that fits best, up to half a cycle's, and by how much it misses on average."""
    misses = [
        (sum(abs(_expected(slots, count, width, whole) - v) for count, v in row.items()) / len(row), slots)
        for slots in range(1, max(math.floor(width / 2), 1) + 1)
    ]
    miss, slots = min(misses)
    return slots, miss


@cache
def _expected(slots: int, count: int, width: float, whole: bool) -> float:
    """The estimate for a form of so many slots."""
    items: list[float] = []
    for number in range(INSTANCES):
        first, last = count * number // INSTANCES, count * (number + 1) // INSTANCES
        items += [*[1.0] * (last - first), float(slots)]
    return (dispatch_cycles(items, width, whole) * width - count) / INSTANCES
