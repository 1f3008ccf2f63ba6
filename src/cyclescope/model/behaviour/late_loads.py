"""What loads take whose addresses are late, by what the probe `banks` found of pairs and chains of them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import linear_regression

import msgspec

from cyclescope.model.facts import BANKS, LOADED_PLACES, LOADS_AND_OPERATIONS, Fact

CHAIN_LENGTHS = (5, 6, 7, 8)  # loads, in no more lines than a set of a cache has
ENDLESS = "loads that all wait for each other"


def chained_loads(loads: int) -> str:
    """Chains of so many loads, none of which waits for another chain."""
    return f"chains of {loads} loads"


class LateLoads(msgspec.Struct, frozen=True):
    """A load takes `each` cycles of the loads' time, and `late` more if its address was loaded before.

    A plain load and a load of an operation together take `mixed` more than two of one kind. Of all loads only
    so many `entries` are on their way, where that is not 0: one is from when it could start if its address
    were there until so many cycles (`held`) after it has the address.
    """

    each: float
    late: float
    mixed: float
    entries: float = 0.0
    held: float = 0.0


def late_loads(facts: Sequence[Fact], fastest: float, slowed: float) -> LateLoads | None:
    """What loads take longer where they wait for each other, and where one of two is that of an operation.

    At the `fastest` a cycle takes so many; chains are limited by something else below `slowed` times that.
    """
    known = {fact.subject: fact for fact in facts if fact.probe == BANKS and fact.value}
    if not fastest:
        return None
    late, mixed = (_longer(known.get(subject), fastest) for subject in (LOADED_PLACES, LOADS_AND_OPERATIONS))
    entries, held = _waiting(known, fastest, slowed * fastest)
    return LateLoads(1 / fastest, late, mixed, entries, held) if late or mixed or entries else None


def _longer(fact: Fact | None, fastest: float) -> float:
    """Cycles that two loads take longer than two of the fastest, 0 where that may be none."""
    if fact is None or not fact.value or fact.value + (fact.error or 0.0) >= fastest:
        return 0.0
    return 2 / fact.value - 2 / fastest


def _waiting(known: dict[str, Fact], fastest: float, slow: float) -> tuple[float, float]:
    """How many loads are on their way at once, and how long one is that has its address; 0 if not known.

    By Little's law: the nth load of a chain comes n - 1 loads later than the first and waits until n - 1
    have come; the rest of the entries is held by loads that have their addresses: the more loads, the more.
    """
    asked = [(loads, known[subject]) for loads in CHAIN_LENGTHS if (subject := chained_loads(loads)) in known]
    rates = {loads: f.value for loads, f in asked if f.value and f.value + (f.error or 0.0) < slow}
    endless = known.get(ENDLESS)
    if endless is None or len({*rates.values()}) < 3:  # of two, any two numbers fit
        return 0.0, 0.0
    latency = 1 / (endless.value or 1.0)
    waiting = [(rate * latency - 1) * (loads - 1) / 2 for loads, rate in rates.items()]
    slope, entries = linear_regression([*rates.values()], waiting)
    held = max(0.0, -slope)
    return (entries, held) if entries > held * fastest else (0.0, 0.0)
