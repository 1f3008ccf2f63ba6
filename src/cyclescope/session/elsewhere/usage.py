"""Whether a backend has the micro-operations and ports that a store tells.

In the manner of the uops.info paper's Table 1: the same number of micro-operations first; then, of forms with
the same number, the same ports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import combinations

import msgspec

from cyclescope.backend.base import Backend
from cyclescope.isa.table import load_table
from cyclescope.model.comparison.agreement import RELATIVE, operation_count
from cyclescope.model.machine import FormCost, MachineModel
from cyclescope.remarks.elsewhere import NotCompared
from cyclescope.session.elsewhere.claims import Claim, claimed, even_pressure
from cyclescope.session.elsewhere.renaming import renamed

CONFIDENT = ("high", "medium")
# Cycles of a port: three operations, each with a turn more than its share of 240, are 0.0125 off; one of five
# ports or of six is 0.033.
OFF_TURN = 0.02


class UsageQuantity(StrEnum):
    """What is compared."""

    OPERATIONS = "micro-operations"
    SLOTS = "front-end slots"
    PORTS = "ports, given as many micro-operations"


class Sameness(StrEnum):
    """What came of it."""

    SAME = "same"
    DIFFERENT = "different"
    UNTOLD = "cannot be told"


class Why(StrEnum):
    """What is known of a difference, or of why there is no answer."""

    OPEN = "open"
    SLOTS = "it counts front-end slots, not micro-operations"
    NO_SLOTS = "it may count front-end slots, which the store does not have of the form"
    OPERATIONS = "it counts micro-operations, not front-end slots"
    UNITS = "it has a micro-operation in several units at once"
    SHARED = "micro-operations that share some of their ports: how they spread is not told"
    NAMES = "as many ports, and names of both cannot be matched"
    UNKNOWN = "it does not say which ports"
    CYCLES = "the same ports for another number of cycles"
    NONE = "one of them has no port for it"
    NUMBER = "another number of ports"


class Compared(msgspec.Struct, frozen=True):
    """One quantity of a form; `stored` and `elsewhere` in words, `reason` where they are not the same."""

    form: str
    quantity: UsageQuantity
    outcome: Sameness
    stored: str
    elsewhere: str
    reason: Why | None = None


class Usages(msgspec.Struct, frozen=True):
    """All comparisons.

    `names` are the other's names of the store's ports; `left_out` counts forms that were not compared, by
    reason; `about` says what the other counts.
    """

    compared: tuple[Compared, ...]
    names: Mapping[str, str]
    left_out: Mapping[str, int]
    about: str

    def counts(self, quantity: UsageQuantity) -> Counter[Sameness]:
        """How often each outcome was reached."""
        return Counter(one.outcome for one in self.compared if one.quantity is quantity)

    def reasons(self, quantity: UsageQuantity) -> Counter[Why]:
        """What is told of those that are not the same, the most frequent first."""
        return Counter(one.reason for one in self.compared if one.quantity is quantity and one.reason)


def compared_usage(machine: MachineModel, backend: Backend, forms: Sequence[str]) -> Usages:
    """Micro-operations and ports of a store's forms, told with high or medium confidence, on a backend."""
    known = [name for name in forms if name in machine.forms]
    costs = {name: machine.forms[name] for name in known}
    sure = [n for n, c in costs.items() if c.confidence in CONFIDENT and c.operations is not None]
    claims = claimed(backend, sure, load_table(machine.isa))
    names = renamed(machine, sure, claims)
    found = [
        one
        for name in sure
        if (claim := claims.of.get(name)) is not None
        for one in _compared(name, costs[name], claim, machine.ports, names)
    ]
    unsure = Counter({NotCompared.UNSURE.value: len(known) - len(sure)})
    return Usages(tuple(found), names, {**+unsure, **claims.left_out}, claims.about)


def _compared(
    form: str, cost: FormCost, claim: Claim, ports: Sequence[str], names: Mapping[str, str]
) -> Iterator[Compared]:
    count = operation_count(cost)
    stored = even_pressure(cost, ports)
    assert count is not None
    assert stored is not None
    if claim.operations is not None:
        yield _of_numbers(
            form, UsageQuantity.OPERATIONS, count, claim.operations, _why_count(cost, count, claim)
        )
    if claim.slots is not None and cost.slots is not None:
        swapped = Why.OPERATIONS if claim.slots == count else Why.OPEN
        yield _of_numbers(form, UsageQuantity.SLOTS, cost.slots, claim.slots, swapped)
    if claim.operations is not None and _is_same(count, claim.operations):
        outcome, reason = ports_outcome(cost, stored, claim, names)
        texts = pressure_text(stored), pressure_text(claim.pressure or {})
        yield Compared(form, UsageQuantity.PORTS, outcome, *texts, reason)


def _why_count(cost: FormCost, count: float, claim: Claim) -> Why:
    """What is seen of numbers of micro-operations that differ."""
    assert claim.operations is not None
    if claim.operations == cost.slots:
        return Why.SLOTS
    may_be_slots = cost.slots is None and claim.operations == claim.slots and claim.operations < count
    return Why.NO_SLOTS if may_be_slots else Why.OPEN


def _of_numbers(
    form: str, quantity: UsageQuantity, stored: float, elsewhere: float, swapped: Why
) -> Compared:
    texts = f"{stored:g}", f"{elsewhere:g}"
    if _is_same(stored, elsewhere):
        return Compared(form, quantity, Sameness.SAME, *texts)
    return Compared(form, quantity, Sameness.DIFFERENT, *texts, swapped)


def _is_same(one: float, other: float) -> bool:
    return abs(one - other) <= RELATIVE * max(one, other)


def ports_outcome(
    cost: FormCost, stored: Mapping[str, float], claim: Claim, names: Mapping[str, str]
) -> tuple[Sameness, Why | None]:
    """Ports of as many micro-operations: by the cycles that each of them is taken."""
    if claim.pressure is None:
        return Sameness.UNTOLD, Why.UNKNOWN
    if claim.units > (operation_count(cost) or 0):
        return Sameness.UNTOLD, Why.UNITS
    if not _are_near(sorted(stored.values()), sorted(claim.pressure.values())):
        as_much = _is_same(sum(stored.values()), sum(claim.pressure.values()))
        if not claim.is_even and as_much and _shares_ports(cost):
            return Sameness.UNTOLD, Why.SHARED
        return Sameness.DIFFERENT, _why(stored, claim.pressure, names)
    told = {names[port]: cycles for port, cycles in stored.items() if port in names}
    if not _are_near(list(told.values()), [claim.pressure.get(name, 0.0) for name in told]):
        return Sameness.DIFFERENT, _why(stored, claim.pressure, names)
    return (Sameness.SAME, None) if len(told) == len(stored) else (Sameness.UNTOLD, Why.NAMES)


def _why(stored: Mapping[str, float], elsewhere: Mapping[str, float], names: Mapping[str, str]) -> Why:
    """What is seen of ports that differ."""
    if not stored or not elsewhere:
        return Why.NONE
    if len(stored) != len(elsewhere):
        return Why.NUMBER
    return Why.CYCLES if {names.get(port) for port in stored} == set(elsewhere) else Why.OPEN


def _are_near(some: Sequence[float], others: Sequence[float]) -> bool:
    return len(some) == len(others) and all(abs(a - b) <= OFF_TURN for a, b in zip(some, others, strict=True))


def _shares_ports(cost: FormCost) -> bool:
    """Whether micro-operations have some ports in common, and others not: they can spread in several ways."""
    sets = [set(one.ports) for one in cost.operations or ()]
    return any(a & b and a != b for a, b in combinations(sets, 2))


def pressure_text(pressure: Mapping[str, float]) -> str:
    """`0.50 of FP0 FP1`, the most used first; `none` where no port is used."""
    groups: dict[str, list[str]] = {}
    for port, cycles in sorted(pressure.items(), key=lambda item: (-round(item[1], 2), item[0])):
        groups.setdefault(f"{cycles:.2f}", []).append(port)
    return ", ".join(f"{cycles} of {' '.join(ports)}" for cycles, ports in groups.items()) or "none"
