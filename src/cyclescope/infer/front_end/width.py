"""The width of the front end: the rate that simple instructions of several kinds have in common.

One kind can mislead: NOPs share slots on some cores, with each other or with what is before them, moves are
eliminated no faster than some other limit allows, additions have fewer ports. So the width is the largest
whole number of instructions per cycle that two kinds reach, and that nothing exceeds but what shares slots.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from cyclescope.measure.front_end import AND, NOPS
from cyclescope.measure.record import ERRORS, STABLE, Reading
from cyclescope.remarks.front_end import Wide
from cyclescope.remarks.remark import NOTHING, Remark, together

WIDEST = 16  # slots per cycle: the widest cores have ten
RATE_GRAIN = 0.01  # relative: kernels of different length and place differ by as much on a quiet core
FASTER = 0.25  # slots: a rate above a width by more is no reading of it, as widths are whole numbers
_KINDS = 2  # that have to agree: what limits one kind at a whole number hardly limits another at the same
SHARING = 2  # NOPs in a slot, where they share any


class Rate(msgspec.Struct, frozen=True):
    """Instructions per cycle of one loop: its forms, their kinds, the rate, its error."""

    forms: tuple[str, ...]
    kind: str
    rate: float
    error: float

    def reaches(self, slots: float) -> bool:
        """Whether the rate is a width, within its error."""
        return abs(self.rate - slots) <= max(ERRORS * self.error, RATE_GRAIN * self.rate)

    def exceeds(self, slots: float) -> bool:
        """Whether the rate is above a width."""
        return self.rate > slots + max(ERRORS * self.error, FASTER)

    @property
    def has_nops(self) -> bool:
        """Whether it has NOPs, which some cores put in a slot with another one, or with what is before it."""
        return NOPS in self.kind.split(AND)

    @property
    def parts_nops(self) -> bool:
        """Whether something else stands behind each NOP of it."""
        return self.kind.split(AND).count(NOPS) == 1 and self.kind != NOPS

    def __str__(self) -> str:
        counts = Counter(self.forms)
        named = [f"{count} {form}" if count > 1 else form for form, count in counts.items()]
        return Wide.RATE.of(AND.join(named), self.rate, self.error).text


class FoundWidth(msgspec.Struct, frozen=True):
    """Slots per cycle of a front end, with its proof.

    `slots` is the best that is known; `reason` says why it is no fact, nothing where it is one. `error` is
    how far off the mean of the `agreeing` rates may be; `others` are the rates of other loops. `per_slot` is
    how many NOPs next to each other share a slot, 0 where they take none.
    """

    slots: float
    error: float
    reason: Remark = NOTHING
    agreeing: tuple[Rate, ...] = ()
    others: tuple[Rate, ...] = ()
    per_slot: int = 1

    @property
    def is_told(self) -> bool:
        """Whether the width is a fact."""
        return not self.reason

    @property
    def proof(self) -> str:
        """What it rests on, or why it is not told, in words."""
        if self.reason:
            return self.reason.text
        kinds = list(dict.fromkeys(rate.kind for rate in self.agreeing))
        told = Wide.AGREE.of(len(self.agreeing), ", ".join(kinds), _listed(self.agreeing))
        return together((told, self.about_nops))

    @property
    def about_nops(self) -> Remark:
        """What NOPs do but take a slot each, or nothing."""
        if self.per_slot == 1:
            return NOTHING
        if not self.per_slot:
            return Wide.NOPS_TAKE_NONE.of()
        trailing = [rate for rate in self.others if rate.parts_nops and rate.exceeds(self.slots)]
        if trailing:
            return Wide.NOPS_TRAIL.of(self.per_slot, _listed(trailing))
        return Wide.NOPS_SHARE.of(self.per_slot)


def rates_of(readings: Iterable[Reading]) -> list[Rate]:
    """The rates of loops whose rounds agree."""
    return [
        Rate(
            tuple(name for name in (r.form, r.source, *r.target.split(AND)) if name), r.variant,
            r.instances / r.cycles, r.instances / r.cycles * r.spread / r.cycles,
        )
        for r in readings if r.verdict == STABLE and r.cycles > 0
    ]  # fmt: skip


def width_of(rates: Sequence[Rate]) -> FoundWidth:
    """The width that rates prove, or the best guess with the reason why it is none."""
    if not rates:
        return FoundWidth(0.0, 0.0, Wide.UNKNOWN.of())
    for slots in range(WIDEST, 0, -1):
        found = _proved(rates, slots)
        if found is not None:
            return found
    return _guess(rates)


def _proved(rates: Sequence[Rate], slots: int) -> FoundWidth | None:
    """The width, if several kinds reach it and nothing exceeds it but NOPs that share slots, or take none."""
    nops = [rate for rate in rates if rate.kind == NOPS]
    dropped = bool(nops) and all(rate.exceeds(SHARING * slots) for rate in nops)
    if dropped:
        found = _proved([rate for rate in rates if NOPS not in rate.kind], slots)
        return found and msgspec.structs.replace(found, per_slot=0)
    agreeing = tuple(rate for rate in rates if rate.reaches(slots))
    faster = [rate for rate in rates if rate.exceeds(slots)]
    trailing = any(rate.parts_nops for rate in faster)
    proving = [
        rate for rate in agreeing
        if not (faster and rate.has_nops)
        or (rate.parts_nops and (not trailing or _is_held_up(rate, rates, slots)))
    ]  # fmt: skip
    if len({rate.kind for rate in proving}) < _KINDS or not all(rate.has_nops for rate in faster):
        return None
    alone = [rate for rate in faster if rate.kind == NOPS]
    shared = any(rate.reaches(SHARING * slots) for rate in alone)  # others are limited by their length
    if faster and (not shared or any(rate.exceeds(SHARING * slots) for rate in alone)):
        return None
    others = tuple(rate for rate in rates if rate not in agreeing)
    return FoundWidth(float(slots), _error(agreeing), NOTHING, agreeing, others, SHARING if faster else 1)


def _is_held_up(rate: Rate, rates: Sequence[Rate], slots: int) -> bool:
    """Whether a NOP takes a slot behind each instance of another form: else these would run faster."""
    twice = (
        msgspec.structs.replace(one, rate=SHARING * one.rate, error=SHARING * one.error)
        for one in rates if len(one.forms) == 1 and one.forms == rate.forms[1:]
    )  # fmt: skip
    return any(one.exceeds(slots) for one in twice)


def _error(rates: Sequence[Rate]) -> float:
    """How far off the mean of independent rates may be."""
    return math.sqrt(sum(rate.error**2 for rate in rates)) / len(rates)


def _guess(rates: Sequence[Rate]) -> FoundWidth:
    """The rate that most come near to from below: the second highest, as one alone can share slots."""
    ordered = sorted(rates, key=lambda rate: -rate.rate)
    best = ordered[min(1, len(ordered) - 1)]
    reason = Wide.DISAGREE.of(_listed(ordered))
    return FoundWidth(best.rate, best.error, reason, (), tuple(ordered))


def _listed(rates: Sequence[Rate]) -> str:
    return ", ".join(map(str, rates))
