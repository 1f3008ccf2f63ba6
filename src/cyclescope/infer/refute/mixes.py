"""Mixes that nobody measured before: how they are drawn, and what the model predicts of them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property

import msgspec

from cyclescope.infer.ports.builder import PortBuilder, PortUsage
from cyclescope.infer.ports.resources import UNTOLD, ResourceView, Shares, port_resources
from cyclescope.infer.refute.halves import (
    EIGHTHS,
    ClassHalves,
    DealtMix,
    by_halves,
    dealt_by_turns,
    late_by_halves,
    undecided_halves,
)
from cyclescope.infer.refute.planner import ORDERS
from cyclescope.model.calibration import ENOUGH, NEAR
from cyclescope.model.dispatch_cycles import dispatch_cycles
from cyclescope.model.facts import LOW
from cyclescope.model.machine import MEASURED, Core, FormCost, Halves, MachineModel, Operation, Provenance
from cyclescope.model.ports import even_throughput
from cyclescope.model.resources import busy_resources, more_evenly, narrow_throughput

SLOWEST = 12.0  # cycles of a form: one that takes longer hides all others


class MixModel:
    """What claimed usages say of mixes.

    `usages` are those of all forms, `without` the units to leave out. `shares` is how much counts of what
    forms cost others beyond their micro-operations, `evenness` how far mixes are from the best use of the
    ports to an even one, `halves` the ports between whose halves operations go to and fro.
    """

    def __init__(
        self,
        builder: PortBuilder,
        usages: Mapping[str, PortUsage],
        without: frozenset[str] = frozenset(),
    ) -> None:
        self._builder = builder
        self._without = without
        self.shares = UNTOLD
        self.evenness = 0.0
        self.halves: Halves | None = None
        self.facts = builder.facts
        self.usages = usages
        self._view = ResourceView(builder, frozenset(form for form, usage in usages.items() if usage.late))
        self._models: dict[Shares, MachineModel] = {}
        self._in_slots: dict[tuple[str, ...], float] = {}
        self._model = self._made(self.shares)

    def _made(self, shares: Shares) -> MachineModel:
        """The model where so much counts of what forms cost others."""
        if shares not in self._models:
            self._models[shares] = self._make(shares)
        return self._models[shares]

    def _make(self, shares: Shares) -> MachineModel:
        found, capacities = self._view.with_resources(self._costs, shares)
        front_end = self.facts.front_end
        core = Core(front_end.width, whole=front_end.whole, narrow=front_end.narrow)
        return MachineModel(
            "", self.facts.table.isa, Provenance(MEASURED), core, self._builder.names, found, capacities
        )

    @cached_property
    def _ends(self) -> tuple[MachineModel, MachineModel]:
        """The model where forms cost others nothing beyond their operations, and where they cost all."""
        return self._made(Shares(0.0, 0.0)), self._made(Shares(1.0, 1.0))

    @cached_property
    def _costs(self) -> dict[str, FormCost]:
        return {form: self._cost(form, usage) for form, usage in self.usages.items()}

    def _cost(self, form: str, usage: PortUsage) -> FormCost:
        """With slots as they were read where they are not told."""
        slots = self.facts.front_end.slots.get(form) if usage.slots is None else usage.slots
        return FormCost(
            slots, usage.operations, throughput=self.facts.front_end.throughputs.get(form), spare=usage.spare,
            microcoded=usage.microcoded, confidence=usage.confidence, alternatives=usage.alternatives,
        )  # fmt: skip

    @cached_property
    def claimed(self) -> list[str]:
        """Forms whose ports are told, and which are fast enough to be in a mix."""
        return [
            form for form, usage in sorted(self.usages.items())
            if usage.operations is not None and not usage.microcoded
            and self._model.forms[form].slots is not None
            and self.facts.front_end.throughputs.get(form, math.inf) <= SLOWEST
        ]  # fmt: skip

    @property
    def units(self) -> list[str]:
        """Resources that are no sets of ports."""
        sets = set(port_resources(self._builder))
        return [name for name in self._model.resources if name not in sets]

    def taken(self, forms: Iterable[str]) -> set[str]:
        """Resources that some forms take."""
        return {name for form in forms for name in self._model.forms[form].resources}

    def takers(self, unit: str) -> list[str]:
        """Claimed forms that take a resource."""
        return self._takers.get(unit, [])

    @cached_property
    def _takers(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for form in self.claimed:
            for name in self._model.forms[form].resources:
                found[name].append(form)
        return found

    def only_with(self, units: Container[str]) -> MixModel:
        """The same model without the other units."""
        found = copy(self)
        found._without = frozenset(u for u in self.units if u not in units)
        return found

    def with_halves(self, halves: Halves) -> MixModel:
        """The same model with other halves of ports."""
        found = copy(self)
        found.halves = halves
        return found

    def with_confidence(self, usages: Mapping[str, PortUsage]) -> MixModel:
        """The same model with usages that differ in confidence alone, which predicts nothing else."""
        found = copy(self)
        found.usages, found._models = usages, {}
        vars(found).pop("_costs", None)
        return found

    def fitted(self, measured: Sequence[tuple[tuple[str, ...], float]]) -> MixModel:
        """The same model with halves of ports, as much of what forms cost each other as fits mixes best, kind
        by kind, and then of what ports that are dealt out evenly would.

        Each mix is given with its measured cycles; only those count that take something else by it. Of how
        evenly ports are used a few mixes say nothing, and most that are predicted decide: one that is not may
        be off by anything.
        """
        found, shares = copy(self), [step / EIGHTHS for step in range(EIGHTHS + 1)]
        if self._builder.blind:
            found.halves = dealt_by_turns(self._dealt(measured), self.facts.structure.sets.values())
        telling = [(mix, cycles) for mix, cycles in measured if self._depends_on_order(mix)]
        if telling:
            forms = {form: self._model.forms[form] for mix, _ in telling for form in mix}
            told = {"uneven": [0.0]} if found.halves else {}  # what accesses take of each other is known then
            for field in Shares._fields:
                ways = [found.shares._replace(**{field: share}) for share in told.get(field, shares)]
                misses = {way: found._misses(forms, telling, way) for way in ways}
                found.shares = min(ways, key=lambda way: (misses[way], way != found.shares))
            found._model = self._made(found.shares)
            vars(found).pop("_takers", None)
        if self._builder.blind and len(measured) >= ENOUGH:
            ends = [(cycles, found.cycles(mix), found._even(mix)) for mix, cycles in measured]
            found.evenness = max(shares, key=lambda share: _predicted(ends, share))
        return found

    def _dealt(self, measured: Sequence[tuple[tuple[str, ...], float]]) -> list[DealtMix]:
        """Mixes of sure forms with what they take where forms cost others nothing beyond their operations."""
        least, _ = self._ends
        sure = (one for one in measured if all(map(self.tells_halves, one[0])))
        some = ((mix, cycles, self._bound(least, mix)) for mix, cycles in sure)
        return [DealtMix(self._operations(mix), cycles, bound) for mix, cycles, bound in some if bound]

    def tells_halves(self, form: str) -> bool:
        """Whether a form is sure, and costs others nothing for its width, whichever half they are in."""
        wide = self._builder.wide_loads
        costs = bool(wide.heads) and bool(wide.of(self.facts.table[form], wide.heads))
        return self.usages[form].confidence != LOW and not costs

    def undecided_halves(self, measured: Sequence[tuple[tuple[str, ...], float]]) -> list[Halves]:
        """Halves of ports of which mixes do not tell whether operations go to and fro between them."""
        sets = self.facts.structure.sets.values()
        return undecided_halves(self._dealt(measured), sets) if self._builder.blind else []

    @property
    def classes_in_halves(self) -> ClassHalves | None:
        """The classes of these halves."""
        if (two := self.halves) is None:
            return None
        names = {tuple(sorted(some)): name for name, some in sorted(self.facts.structure.sets.items())}
        return ClassHalves(names[two.first], names[two.second], two.astray, two.late)

    def _operations(self, forms: Iterable[str]) -> tuple[tuple[Operation, ...], ...]:
        return tuple(self.usages[form].operations or () for form in forms)

    def _in_halves(self, forms: Iterable[str]) -> float:
        """Cycles that a mix takes of the fuller half of the ports that are dealt out so."""
        if self.halves and self.halves.late:
            return late_by_halves(map(self._model.forms.__getitem__, forms), self.halves, self._model.core)
        return by_halves(self._operations(forms), self.halves) if self.halves else 0.0

    def _depends_on_order(self, mix: Sequence[str]) -> bool:
        least, most = self._in_any_order(mix)
        return least is not None and most is not None and most > least

    def _misses(
        self, forms: Mapping[str, FormCost], mixes: Sequence[tuple[tuple[str, ...], float]], shares: Shares
    ) -> float:
        """By how much mixes miss their predictions in all, relative, where so much counts."""
        costs, capacities = self._view.dealt_out(forms, shares)
        model = msgspec.structs.replace(
            self._model, forms=costs, resources={**self._model.resources, **capacities}
        )
        made = (
            (cycles, max(self._bound(model, mix) or math.inf, self._in_halves(mix))) for mix, cycles in mixes
        )
        return sum(abs(cycles / predicted - 1) for cycles, predicted in made)

    @property
    def kept_units(self) -> list[str]:
        """Units that take part in predictions."""
        return [unit for unit in self.units if unit not in self._without]

    def cycles(self, forms: Sequence[str], without: frozenset[str] = frozenset()) -> float | None:
        """Least cycles of a mix, without some units; None where a form is not known."""
        least = self._bound(self._model, forms, without)
        return least and max(least, self._in_halves(forms))

    def predicted(self, forms: Sequence[str]) -> float | None:
        """Cycles of a mix with what ports that are dealt out evenly add; None where a form is not known."""
        least = self.cycles(forms)
        return least and more_evenly(least, self._even(forms), self.evenness)

    def span(self, forms: Sequence[str]) -> tuple[float, float] | None:
        """The least and the most cycles of a mix, as ports that are dealt out unevenly let it take."""
        least, most = self._in_any_order(forms)
        if least is None or most is None:
            return None
        if self._builder.blind:
            most = max(most, self._evenly(forms), self._in_halves(forms))
        return least, max(least, most)

    def _in_any_order(self, forms: Sequence[str]) -> tuple[float | None, float | None]:
        """The least and the most cycles of a mix by what accesses and late results take of others."""
        least, most = self._ends
        return self._bound(least, forms), self._bound(most, forms)

    def _evenly(self, forms: Iterable[str], without: Container[int] = ()) -> float:
        """Cycles where each micro-operation goes to any of its ports as often, whichever are free."""
        every = (op for form in forms for op in self.usages[form].operations or ())
        return even_throughput(op for op in every if not all(port in without for port in op.ports))

    def _even(self, forms: Iterable[str]) -> float:
        """The same of ports of which it is not known how else they are dealt out."""
        return self._evenly(forms, self.halves.both if self.halves else ())

    def _bound(
        self, model: MachineModel, forms: Sequence[str], without: frozenset[str] = frozenset()
    ) -> float | None:
        counts: dict[str, float] = {}
        for form in forms:
            if form not in model.forms or model.forms[form].slots is None:
                return None
            counts[form] = counts.get(form, 0.0) + 1.0
        bounds, leaving = busy_resources(model, counts), without | self._without
        busy = max((cycles for name, cycles in bounds.items() if name not in leaving), default=0.0)
        return max(busy, self._dispatched(tuple(forms)))

    def _dispatched(self, forms: tuple[str, ...]) -> float:
        """Cycles that the front end takes for a mix, in all of the models alike."""
        if forms not in self._in_slots:
            self._in_slots[forms] = _dispatched(self._model, forms)
        return self._in_slots[forms]

    def matters(self, forms: Sequence[str], form: str, least: float) -> bool:
        """Whether the ports of a form decide: without its micro-operations the mix is so much faster."""
        whole = self.cycles(forms)
        if whole is None:
            return False
        rest = [other for other in forms if other != form]
        slots = sum(self._model.forms[other].slots or 0.0 for other in forms) / self._model.core.width
        without = max(self.cycles(rest) or 0.0 if rest else 0.0, slots)
        own = (self._model.forms[form].throughput or 0.0) * forms.count(form)
        return whole > (1 + least) * max(without, own)


def _dispatched(model: MachineModel, forms: Sequence[str]) -> float:
    """Cycles that the front end takes for a mix in the better of the orders in which it is measured."""
    costs, core = [(model.forms[form].slots or 0.0, model.forms[form].spare) for form in forms], model.core
    some = ([cost for cost in costs for _ in range(times)] for times in (1, ORDERS))
    one, two = (dispatch_cycles([s for s, _ in r], core.width, core.whole, [x for _, x in r]) for r in some)
    narrow = narrow_throughput(model, zip(forms, [slots for slots, _ in costs], strict=True))
    return max(min(one, two / ORDERS), narrow)


def _predicted(mixes: Iterable[tuple[float, float | None, float]], evenness: float) -> int:
    """How many mixes are predicted where ports are used so evenly: of measured, least and even cycles."""
    some = ((cycles, more_evenly(least, even, evenness)) for cycles, least, even in mixes if least)
    return sum(abs(cycles / predicted - 1) <= NEAR for cycles, predicted in some)
