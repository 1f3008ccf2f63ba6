"""Where a scheduling model differs from what was measured, by what the model takes for the same.

A compiler's model gives all instructions of a scheduling class one cost. Forms of equal cost in it stand for
such a class here: the class's name is not part of the extracted models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

import msgspec

from cyclescope.infer.timing.results import EXACT
from cyclescope.isa.table import load_table
from cyclescope.measure.kernels import ShownKernel, shown_kernels
from cyclescope.measure.plan import LATENCY, THROUGHPUT
from cyclescope.measure.record import STABLE
from cyclescope.measure.store import Store
from cyclescope.model.comparison.agreement import Comparison, Match, Quantity, compare
from cyclescope.model.facts import LOW
from cyclescope.model.machine import FormCost, MachineModel
from cyclescope.model.ports import notation
from cyclescope.session.subjects import Subject

_KERNELS = 4  # that a text has: more of the same say the same
_COMPARED = (Quantity.THROUGHPUT, Quantity.LATENCY)


class Difference(msgspec.Struct, frozen=True):
    """A value of a form in cycles, measured and as modelled; `kernel` is behind the measured one."""

    form: str
    opcode: str
    what: str
    measured: tuple[float, float]
    modelled: tuple[float, float]
    confidence: str
    kernel: ShownKernel | None = None

    @property
    def ratio(self) -> float:
        """How far apart, at least 1; one cycle is added to both, so that 0 against 1 is no infinity."""
        low, high = sorted((self.measured[1] + 1, self.modelled[1] + 1))
        return high / low


class CostClass(msgspec.Struct, frozen=True):
    """Forms that a model gives one cost, with what differs: `forms` is how many there are in all."""

    cost: str
    forms: int
    differences: tuple[Difference, ...]

    @property
    def differing(self) -> int:
        """Forms with a difference."""
        return len({one.form for one in self.differences})


def differing_classes(subject: Subject, model: MachineModel) -> list[CostClass]:
    """Classes of a model with differences from a measured machine, those with most forms first.

    Only values of medium and high confidence count.
    """
    table = load_table(model.isa)
    members: dict[str, int] = {}
    for name, cost in model.forms.items():
        if name in subject.model.forms:
            said = _said(cost, model)
            members[said] = members.get(said, 0) + 1
    found: dict[str, list[Difference]] = {}
    for one in compare(subject.model, model).comparisons:
        trust = _confidence(subject, one)
        if (
            one.verdict is Match.DIFFERENT
            and one.quantity in _COMPARED
            and trust
            and one.first
            and one.second
        ):
            form = table.get(one.form)
            opcode = form.llvm if form else ""
            difference = Difference(
                one.form, opcode, one.pair or one.quantity.value, one.first, one.second, trust
            )
            found.setdefault(_said(model.forms[one.form], model), []).append(difference)
    classes = [CostClass(said, members[said], tuple(some)) for said, some in found.items()]
    return sorted(classes, key=lambda one: (-one.differing, one.cost))


def _said(cost: FormCost, model: MachineModel) -> str:
    """A model's cost in one line."""
    latencies = sorted({f"{value:g}" for value in cost.latencies.values()}, key=float)
    ports = notation(cost.operations, model.ports) if cost.operations is not None else "unknown ports"
    number = "unknown" if cost.slots is None else f"{cost.slots:g}"
    slots = f"{number} micro-operation{'' if cost.slots == 1 else 's'}"
    return f"latency {' or '.join(latencies) or 'unknown'}, {slots}, {ports}"


def _confidence(subject: Subject, one: Comparison) -> str:
    """How sure a measured value is; "" where it is no value to build on."""
    timing = subject.timings.get(one.form)
    if timing is None:
        return ""
    if one.quantity is Quantity.THROUGHPUT:
        found = timing.throughput
        return found.confidence if found and found.kind == EXACT and found.confidence != LOW else ""
    for latency in timing.latencies:
        if f"{latency.source}->{latency.target}" == one.pair:
            sure = latency.kind == EXACT and latency.confidence != LOW and not latency.convention
            return latency.confidence if sure else ""
    return ""


# --- kernels -----------------------------------------------------------------------------------------


def with_kernels(one: CostClass, subject: Subject) -> CostClass:
    """The farthest differences of different forms with the kernels behind the measured values."""
    if subject.path is None:
        return one
    ranked = sorted(one.differences, key=lambda difference: -difference.ratio)
    chosen = list({difference.form: difference for difference in reversed(ranked)}.values())[::-1][:_KERNELS]
    with closing(Store(subject.path, readonly=True)) as store:
        known = dict(shown_kernels(store, [difference.form for difference in chosen]))
    proved = {id(d): msgspec.structs.replace(d, kernel=_kernel(d, known)) for d in chosen}
    return msgspec.structs.replace(one, differences=tuple(proved.get(id(d), d) for d in one.differences))


def _kernel(difference: Difference, known: Mapping[str, Sequence[ShownKernel]]) -> ShownKernel | None:
    """The kernel of a latency, or the fastest one of a throughput."""
    found = list(_candidates(difference, known.get(difference.form, ())))
    return min(found, key=lambda kernel: (kernel.record.per_instance, kernel.record.id), default=None)


def _candidates(difference: Difference, kernels: Sequence[ShownKernel]) -> Iterator[ShownKernel]:
    source, _, target = difference.what.partition("->")
    for kernel in kernels:
        record = kernel.record
        asked = record.quantity == LATENCY and (record.source, record.target) == (source, target)
        if record.verdict == STABLE and (asked if target else record.quantity == THROUGHPUT):
            yield kernel
