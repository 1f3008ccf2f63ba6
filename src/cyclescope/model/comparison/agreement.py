"""How far two machine models agree: form by form, pair by pair.

Two values are equal within a tolerance; a value is inside where one side only knows a range and the other's
value is in it; of latencies both sides can have several numbers for one pair (what is proved, a convention).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec

from cyclescope.isa.table import load_table
from cyclescope.model.comparison.explanations import (
    Reason,
    Sides,
    count_reason,
    latency_reason,
    ports_reason,
    throughput_reason,
    waits_outside,
)
from cyclescope.model.comparison.shared import too_wide
from cyclescope.model.machine import EXTRACTED, FormCost, MachineModel
from cyclescope.model.ports import issue_throughput

RELATIVE = 0.05  # of the larger value: what published throughputs of one core differ by from run to run
CYCLES_APART = 0.1  # latencies are whole numbers, which measurements miss by less than this


class Quantity(StrEnum):
    """What is compared."""

    THROUGHPUT = "throughput"
    LATENCY = "latency"
    OPERATIONS = "micro-operations"
    PORTS = "ports"


class Match(StrEnum):
    """What a comparison found."""

    EQUAL = "equal"
    INSIDE = "inside the other's range"
    DIFFERENT = "different"
    FIRST_ONLY = "only in the first"
    SECOND_ONLY = "only in the second"


class Tolerance(msgspec.Struct, frozen=True):
    """How far equal values may be apart: a share of the larger one for throughputs, cycles for latencies."""

    relative: float = RELATIVE
    cycles: float = CYCLES_APART


class Comparison(msgspec.Struct, frozen=True):
    """One value of one form in two models, in cycles; a pair's name for latencies.

    `first` and `second` are least and most; None where a side has no value. `reason` is of a difference.
    """

    form: str
    quantity: Quantity
    pair: str
    first: tuple[float, float] | None
    second: tuple[float, float] | None
    verdict: Match
    reason: Reason | None = None

    @property
    def distance(self) -> float:
        """How far apart the values are, as a ratio of at least 1."""
        if self.first is None or self.second is None:
            return 1.0
        low, high = sorted((self.first, self.second))
        return max((high[0] + 1) / (low[1] + 1), 1.0)  # one cycle more: 0 against 1 is no infinity


class Agreement(msgspec.Struct, frozen=True):
    """All comparisons of two models, and the forms that only one of them has."""

    comparisons: tuple[Comparison, ...]
    first_only: tuple[str, ...]
    second_only: tuple[str, ...]

    def counts(self, forms: Iterable[str] | None = None) -> Mapping[Quantity, Counter[Match]]:
        """How often each verdict was reached, by quantity; of some forms, or of all."""
        chosen = None if forms is None else set(forms)
        found: dict[Quantity, Counter[Match]] = {quantity: Counter() for quantity in Quantity}
        for one in self.comparisons:
            if chosen is None or one.form in chosen:
                found[one.quantity][one.verdict] += 1
        return found

    def differences(self) -> list[Comparison]:
        """What differs, what nothing explains first, and of that the farthest apart."""
        found = [one for one in self.comparisons if one.verdict is Match.DIFFERENT]
        return sorted(found, key=lambda one: (one.reason != Reason.OPEN, -one.distance, one.form, one.pair))

    def reasons(self) -> Mapping[Reason, Counter[Quantity]]:
        """How many differences have which reason, by quantity."""
        found: dict[Reason, Counter[Quantity]] = {reason: Counter() for reason in Reason}
        for one in self.comparisons:
            if one.reason is not None:
                found[one.reason][one.quantity] += 1
        return found


def compare(first: MachineModel, second: MachineModel, tolerance: Tolerance = Tolerance()) -> Agreement:  # noqa: B008
    """Compare everything that both models have of the forms that both know."""
    shared = [name for name in first.forms if name in second.forms]
    every = [
        comparison
        for name in shared
        for comparison in _compared(
            name,
            first.forms[name],
            second.forms[name],
            tolerance,
            (first, second),
        )
    ]
    for model in (first, second):
        if model.provenance.kind == EXTRACTED:
            every = _by_class(every, model)
    return Agreement(
        tuple(every),
        tuple(name for name in first.forms if name not in second.forms),
        tuple(name for name in second.forms if name not in first.forms),
    )


def _by_class(every: Sequence[Comparison], model: MachineModel) -> list[Comparison]:
    """Open differences from a scheduling model whose number is right for most of the forms that have it."""
    agreeing = {(one.form, one.quantity) for one in every if one.verdict in (Match.EQUAL, Match.INSIDE)}
    differing = {(one.form, one.quantity) for one in every if one.verdict is Match.DIFFERENT}
    wide = too_wide(model.forms, agreeing, differing)
    return [
        msgspec.structs.replace(one, reason=Reason.SHARED)
        if one.reason is Reason.OPEN and (one.form, one.quantity) in wide
        else one
        for one in every
    ]


def with_throughput(cost: FormCost, model: MachineModel) -> FormCost:
    """A form's cost, with the throughput that ports and front end allow where there is no other."""
    bound = issue_throughput(cost, model.core) if cost.throughput is None and model.core.width > 0 else None
    return cost if bound is None or bound[0] == 0 else msgspec.structs.replace(cost, throughput=bound[0])


def _compared(
    name: str, first: FormCost, second: FormCost, tolerance: Tolerance,
    machines: tuple[MachineModel, MachineModel],
) -> Iterator[Comparison]:  # fmt: skip
    both = with_throughput(first, machines[0]), with_throughput(second, machines[1])
    computed = None in (first.throughput, second.throughput)
    form = load_table(machines[0].isa).get(name)
    outside = form is not None and waits_outside(form, machines[0].isa)
    sides = Sides(*both, machines, tolerance.cycles, computed, outside)
    for one in _found(name, *both, tolerance):
        different = one.verdict is Match.DIFFERENT
        yield msgspec.structs.replace(one, reason=_reason(sides, one)) if different else one


def _reason(sides: Sides, one: Comparison) -> Reason:
    assert one.first is not None
    assert one.second is not None
    if one.quantity is Quantity.LATENCY:
        return latency_reason(sides, one.pair, one.first, one.second)
    if one.quantity is Quantity.THROUGHPUT:
        return throughput_reason(sides, one.first[1], one.second[1])
    if one.quantity is Quantity.OPERATIONS:
        return count_reason(sides, one.first[1], one.second[1])
    return ports_reason(sides)


def _found(name: str, first: FormCost, second: FormCost, tolerance: Tolerance) -> Iterator[Comparison]:
    yield from _of_numbers(name, Quantity.THROUGHPUT, first.throughput, second.throughput, tolerance)
    for pair in dict.fromkeys((*first.latencies, *first.ranges, *second.latencies, *second.ranges)):
        yield _of_latency(name, pair, _reach(first, pair), _reach(second, pair), tolerance)
    counts = operation_count(first), operation_count(second)
    yield from _of_numbers(name, Quantity.OPERATIONS, *counts, tolerance)
    if None not in counts and counts[0] == counts[1]:
        yield _of_ports(name, first, second)


def _of_numbers(
    name: str, quantity: Quantity, first: float | None, second: float | None, tolerance: Tolerance
) -> Iterator[Comparison]:
    if first is None and second is None:
        return
    if first is None or second is None:
        verdict = Match.FIRST_ONLY if second is None else Match.SECOND_ONLY
    else:
        equal = abs(first - second) <= tolerance.relative * max(first, second)
        verdict = Match.EQUAL if equal else Match.DIFFERENT
    yield Comparison(name, quantity, "", _twice(first), _twice(second), verdict)


def _twice(value: float | None) -> tuple[float, float] | None:
    return None if value is None else (value, value)


def _reach(cost: FormCost, pair: str) -> tuple[float, float] | None:
    """What is known of a pair: its value, else its range; from one value to the other where it has two."""
    value = cost.latencies.get(pair)
    if value is not None and pair in cost.with_room:
        return cost.with_room[pair], value
    return cost.ranges.get(pair) if value is None else (value, value)


def _of_latency(
    name: str, pair: str, first: tuple[float, float] | None, second: tuple[float, float] | None,
    tolerance: Tolerance,
) -> Comparison:  # fmt: skip
    if first is None or second is None:
        verdict = Match.FIRST_ONLY if second is None else Match.SECOND_ONLY
    elif max(abs(first[0] - second[0]), abs(first[1] - second[1])) <= tolerance.cycles:
        verdict = Match.EQUAL
    elif min(first[1], second[1]) >= max(first[0], second[0]) - tolerance.cycles:
        verdict = Match.INSIDE
    else:
        verdict = Match.DIFFERENT
    return Comparison(name, Quantity.LATENCY, pair, first, second, verdict)


def operation_count(cost: FormCost) -> float | None:
    """Micro-operations of a form, None where they are not known."""
    return None if cost.operations is None else sum(op.count for op in cost.operations)


def _of_ports(name: str, first: FormCost, second: FormCost) -> Comparison:
    """Of as many micro-operations, whether each has as many ports: names differ from source to source."""
    sizes = [sorted((len(op.ports), op.count) for op in cost.operations or ()) for cost in (first, second)]
    totals = [_twice(sum(size * count for size, count in found)) for found in sizes]
    verdict = Match.EQUAL if sizes[0] == sizes[1] else Match.DIFFERENT
    return Comparison(name, Quantity.PORTS, "", totals[0], totals[1], verdict)
