"""Mixes that nobody measured before: which forms are drawn."""

from __future__ import annotations

import math
import random
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from cyclescope.infer.ports.front_end import FREE
from cyclescope.infer.refute.kinds import FEWEST_FORMS, MOST_FORMS, MOSTLY, PROVED
from cyclescope.infer.refute.mixes import MixModel
from cyclescope.infer.refute.planner import Forms, MixPlanner
from cyclescope.isa.form import InstructionForm
from cyclescope.measure.ports import INSTANCES
from cyclescope.model.calibration import ENOUGH
from cyclescope.model.machine import Halves

_WAITING = 0.75  # of the predicted cycles that an instance may wait for the one before with its registers
TRIES = 3  # mixes for which a form is dealt before it goes without


class MixDrawer:
    """Draws mixes whose kernels can be made."""

    def __init__(self, model: MixModel, planner: MixPlanner, draw: random.Random) -> None:
        self._model = model
        self._planner = planner
        self._draw = draw
        self._table = model.facts.table

    def covering(self, names: Sequence[str]) -> Iterator[Forms]:
        """Mixes that have every form once: half of them with any others, half with some of like ports."""
        some = self._draw.sample(list(names), len(names))
        half = len(some) // 2
        kinds: dict[object, float] = defaultdict(self._draw.random)
        alike = sorted(some[half:], key=lambda name: kinds[self._kind(name)])
        for part in (some[:half], alike):
            yield from self._in_order(part)

    def dealt(self, names: Sequence[str]) -> Iterator[Forms]:
        """Mixes that have every form once, with any others of them."""
        return self._in_order(self._draw.sample(list(names), len(names)))

    def of_all_kinds(self, names: Sequence[str], count: int) -> list[str]:
        """So many of the forms, of each kind and confidence one after the other."""
        kinds: dict[object, list[str]] = defaultdict(list)
        for name in self._draw.sample(list(names), len(names)):
            kinds[self._kind(name), self._model.usages[name].confidence].append(name)
        turns = zip_longest(*kinds.values())
        return [name for turn in turns for name in turn if name is not None][:count]

    def _kind(self, name: str) -> object:
        return tuple(sorted(op.ports for op in self._model.usages[name].operations or ()))

    def _in_order(self, names: Sequence[str]) -> Iterator[Forms]:
        left = deque((name, 0) for name in names)
        while left:
            size = self._draw.randint(FEWEST_FORMS, MOST_FORMS)
            mix: list[InstructionForm] = []
            tried: list[tuple[str, int]] = []
            while left and len(mix) < size and len(tried) < size:
                name, tries = left.popleft()
                if self._works([*mix, self._table[name]]):
                    mix.append(self._table[name])
                else:
                    tried.append((name, tries + 1))
            waiting = self._waiting(mix)
            mix = [form for form in mix if form.id not in waiting]
            left.extend((name, tries) for name, tries in tried if tries < TRIES)
            if len(mix) > 1 and not self._waiting(mix):
                yield tuple(mix)

    def of_units(self) -> Iterator[Forms]:
        """Mixes of two forms that take the same unit, which tell whether they share it."""
        for unit in self._model.units:
            takers = self._model.takers(unit)
            for _ in range(math.ceil(PROVED / MOSTLY) if len(takers) > 1 else 0):
                pair = [self._table[name] for name in self._draw.sample(takers, 2)]
                if self._works(pair) and not self._waiting(pair):
                    yield tuple(pair)

    def of_halves(self, halves: Halves) -> Iterator[Forms]:
        """Mixes that tell whether operations go to and fro between two halves of their ports."""
        usages, kinds = self._model.usages, (halves.both, halves.second)
        sure = {name: usages[name].operations or () for name in self._model.claimed
                if self._model.tells_halves(name)}  # fmt: skip
        with_ports = [[n for n, ops in sure.items() if any(op.ports == k for op in ops)] for k in kinds]
        wanted = ENOUGH * MOST_FORMS // len(kinds)
        some = [self._draw.sample(names, min(wanted, len(names))) for names in with_ports]
        yield from self.dealt(list(dict.fromkeys([*some[0], *some[1]])))

    def beside(self, name: str, partners: Sequence[str]) -> Forms | None:
        """A mix of a form, twice in it, with some of its partners; None where there is none."""
        form = self._table[name]
        for _ in range(TRIES):
            mix = [form]
            for other in self._draw.sample(list(partners), min(len(partners), 2 * FEWEST_FORMS)):
                if other != name and len(mix) < FEWEST_FORMS and self._works([*mix, self._table[other]]):
                    mix.append(self._table[other])
            if len(mix) > 1 and not self._waiting(mix):
                return form, mix[1], form, *mix[2:]
        return None

    def _works(self, forms: Sequence[InstructionForm]) -> bool:
        return len({form.id for form in forms}) == len(forms) and self._planner.parts(forms) is not None

    def _waiting(self, forms: Sequence[InstructionForm]) -> set[str]:
        """Forms of which an instance may wait for the one before it with the same registers."""
        parts = self._planner.parts(forms)
        predicted = self._model.cycles([form.id for form in forms])
        if parts is None or not predicted:
            return {form.id for form in forms}
        return {
            name
            for name, part in parts.items()
            if self._latency(name) / (part.ring or INSTANCES) > _WAITING * predicted
        }

    def _latency(self, name: str) -> float:
        """Cycles from an instance to the next with the same registers; 0 where none is seen.

        Alone, two instances that wait for nothing take as long as two do in a longer sequence.
        """
        front_end = self._model.facts.front_end
        alone = front_end.alone.get(name, 0.0)
        return alone if alone > INSTANCES * FREE * front_end.throughputs.get(name, 0.0) else 0.0
