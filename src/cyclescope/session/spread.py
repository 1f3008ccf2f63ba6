"""Several machines of one core in one table: each value with the spread between them."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from cyclescope.errors import UsageError
from cyclescope.model.comparison.agreement import CYCLES_APART, RELATIVE, Quantity
from cyclescope.model.machine import FormCost, MachineModel


class SpreadValue(msgspec.Struct, frozen=True):
    """One value of one form in cycles: what every machine has, None where it has none.

    `pair` is a latency's.
    """

    form: str
    quantity: Quantity
    pair: str
    values: tuple[float | None, ...]

    @property
    def known(self) -> list[float]:
        """What there is."""
        return [value for value in self.values if value is not None]

    @property
    def middle(self) -> float:
        """The median."""
        return statistics.median(self.known)

    @property
    def spread(self) -> float:
        """From the least to the most."""
        return max(self.known) - min(self.known)

    @property
    def agrees(self) -> bool:
        """Whether all are equal within the tolerance of comparisons."""
        within = CYCLES_APART if self.quantity is Quantity.LATENCY else RELATIVE * max(self.known)
        return self.spread <= within


def spread(models: Sequence[MachineModel]) -> list[SpreadValue]:
    """Every throughput and latency that any machine has, form by form.

    Raises UsageError for less than two machines, or several instruction sets.
    """
    if len(models) < 2:
        raise UsageError("one machine has no spread", "name several")
    if len(isas := {model.isa for model in models}) > 1:
        raise UsageError(
            f"machines of several instruction sets: {', '.join(sorted(isas))}", "name those of one"
        )
    forms = dict.fromkeys(name for model in models for name in model.forms)
    return [value for name in forms for value in _of_form(name, [model.forms.get(name) for model in models])]


def _of_form(name: str, costs: Sequence[FormCost | None]) -> Iterator[SpreadValue]:
    throughputs = tuple(cost.throughput if cost else None for cost in costs)
    if any(value is not None for value in throughputs):
        yield SpreadValue(name, Quantity.THROUGHPUT, "", throughputs)
    known: list[Mapping[str, float]] = [cost.latencies if cost else {} for cost in costs]
    for pair in dict.fromkeys(pair for latencies in known for pair in latencies):
        yield SpreadValue(name, Quantity.LATENCY, pair, tuple(latencies.get(pair) for latencies in known))
