"""Front-end slots of a form, with an error, and whether that is small enough to state their number.

A few instances stand among fillers, instructions of one slot each, so many that nothing but the front end
limits the loop. What an instance adds to the loop is its slots. Disturbance only adds, so of the readings
with several numbers of fillers the lowest that agree count.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from statistics import fmean, median
from typing import NamedTuple, Protocol

import msgspec

from cyclescope.measure.record import ERRORS, HALF_WITHIN
from cyclescope.remarks.front_end import Slots
from cyclescope.remarks.remark import NOTHING, Remark

SURE = 0.1  # slots: whole numbers are ten such errors apart, so that none is taken for another one
_AGREE = (
    ERRORS * SURE
)  # slots by which two counts of the same may differ, each with the error that is allowed
_GRAIN = 0.01  # slots: the least error, of a loop's end and the clock
_FEW, _MORE = 2, 3  # counts that have to agree on one slot, and on any other number
_LOWER = 0.5  # slots: one loop that reads so much less than those that agree says that these are disturbed
_SPARE = (0, 1)  # slots: what one micro-operation more than slots has room for
_MANY = 24  # forms of one slot: their median is known four times as well as each of them


class SeenSlots(Protocol):
    """What loops show of a form of so many slots."""

    def __call__(self, slots: int, fillers: int, instances: int, *, spare: int = 0) -> float:
        """The estimate by fillers and instances, with slots that have to be free behind those of the form."""

    def __hash__(self) -> int:
        """What loops were read by is remembered."""


class Estimate(msgspec.Struct, frozen=True):
    """Slots of a form by one loop, as if none stayed empty, with their error."""

    fillers: int
    instances: int
    slots: float
    error: float


class SlotCount(msgspec.Struct, frozen=True):
    """Slots of a form: `slots` as measured, with the error, and `whole` where that proves a number.

    `reason` says why there is none. `least` and `most` are those of all loops, `spare` the slots that have to
    be free behind those of an instance.
    """

    slots: float
    error: float
    whole: int | None
    least: float
    most: float
    reason: Remark = NOTHING
    spare: int = 0


class _Read(NamedTuple):
    """What loops say of a form: its slots, their error, how many loops agree, and the spare slots.

    `missed` are slots by which the number and the spare slots miss loops, the median of them.
    """

    slots: float
    error: float
    agreeing: int
    spare: int = 0
    missed: float = 0.0

    @property
    def is_broken(self) -> bool:
        """Whether the slots are no whole number by their error."""
        return abs(self.slots - round(self.slots)) > ERRORS * self.error


def counted(
    rows: Mapping[str, Sequence[Estimate]],
    expected: SeenSlots | None = None,
    kind_of: Callable[[str], Hashable] = lambda form: None,
) -> dict[str, SlotCount]:
    """Slots of all forms from their estimates; `expected` says what is seen where slots stay empty.

    Forms of one kind are off alike.
    """
    read = {form: _read(tuple(row), expected) for form, row in rows.items() if row}
    kinds: dict[Hashable, list[float]] = defaultdict(list)
    for form, one in read.items():
        if one.agreeing >= _FEW and one.error < SURE and round(one.slots) == 1:
            kinds[kind_of(form)].append(one.slots)
    every = [value for values in kinds.values() for value in values]
    off = {kind: _off(values if len(values) >= _MANY else every) for kind, values in kinds.items()}
    rest = _off(every)
    counts = {form: _judged(rows[form], found, *off.get(kind_of(form), rest)) for form, found in read.items()}
    if every or len(read) < _MANY:
        return counts
    none = Slots.NO_SINGLE.of()
    return {form: msgspec.structs.replace(one, whole=None, reason=none) for form, one in counts.items()}


@lru_cache(maxsize=1 << 15)  # all forms of x86-64 twice: few are read more between two counts
def _read(row: tuple[Estimate, ...], expected: SeenSlots | None) -> _Read:
    """Spare slots only where more loops agree by them, or most are missed or no whole number is without."""
    if expected is None:
        return _Read(*_lowest([(e.slots, e.error) for e in row]))
    numbers = range(1, _most(row) + 1)
    tries = [_explained(row, expected, number, spare) for spare in _SPARE for number in numbers]
    return min(
        tries, key=lambda one: (-one.agreeing, one.missed >= SURE, one.is_broken, one.spare, one.error)
    )


def _most(row: Sequence[Estimate]) -> int:
    return max(math.ceil(min(e.slots for e in row)), 1) + 1


def _explained(row: Sequence[Estimate], expected: SeenSlots, number: int, spare: int) -> _Read:
    """A number of slots plus what the loops miss of it."""
    missed = [(e.slots - expected(number, e.fillers, e.instances, spare=spare), e.error) for e in row]
    value, error, agreeing = _lowest(missed)
    near = abs(value) < _AGREE
    miss = median(abs(slots) for slots, _ in missed)
    return _Read(number + value, error, agreeing if near else 0, spare, miss)


def _lowest(values: Sequence[tuple[float, float]]) -> tuple[float, float, int]:
    """The mean of the lowest values that agree, its error, and how many they are."""
    ordered = sorted(values)
    some = ordered[:1]
    for place, (value, _) in enumerate(ordered[:-1]):
        near = [other for other in ordered[place:] if other[0] - value <= _AGREE]
        if len(near) >= _FEW:
            some = near
            break
    spread = (some[-1][0] - some[0][0]) / 2
    error = max(math.sqrt(sum(error**2 for _, error in some)) / len(some), spread / math.sqrt(len(some)))
    return fmean([value for value, _ in some]), error, len(some)


def probable(count: SlotCount) -> tuple[float, float]:
    """The least and the most whole numbers of slots that a value and its error leave, or those beside it."""
    least = math.ceil(count.slots - ERRORS * count.error)
    most = math.floor(count.slots + ERRORS * count.error)
    if least > most:
        least, most = math.floor(count.slots), math.ceil(count.slots)
    return float(least), float(most)


def _off(single: Sequence[float]) -> tuple[float, float]:
    """By how much forms of one slot are off, which is what no repeat of the same loop shows: all of them, and
    each by itself. Of few forms nobody knows which of the two it is.
    """
    bias = median(single) - 1 if len(single) >= _MANY else 0.0
    off = [abs(value - 1 - bias) for value in single]
    return bias, max(median(off) / HALF_WITHIN, _GRAIN) if off else _GRAIN


def _judged(row: Sequence[Estimate], found: _Read, bias: float, scatter: float) -> SlotCount:
    known = round(found.slots) == 1
    taken = bias if known else bias / 2  # of other numbers it may be none of it, or all
    value, error = found.slots - taken, math.hypot(found.error, scatter, 0.0 if known else bias / 2)
    least, most = min(e.slots for e in row), max(e.slots for e in row)
    if scatter >= SURE or abs(bias) >= _AGREE:
        reason = Slots.LOUD.of(max(scatter, abs(bias)))
    else:
        reason = _doubt(value, error, found.agreeing, (least, most))
    return SlotCount(value, error, None if reason else round(value), least, most, reason, found.spare)


def _doubt(value: float, error: float, agreeing: int, ends: tuple[float, float]) -> Remark:
    """Why a value proves no number, or nothing."""
    if agreeing < _FEW or value - ends[0] > _LOWER:
        return Slots.APART.of(*ends)
    if error >= SURE:
        return Slots.VAGUE.of(value, error)
    if abs(value - round(value)) > ERRORS * error:
        return Slots.NO_WHOLE.of(value, error)
    return NOTHING if agreeing >= (_FEW if round(value) == 1 else _MORE) else Slots.ONCE.of(value)
