"""Ways from one place to another: links, helper instructions that carry a dependency.

A latency chain runs through the form under test and back through links. Every link has a key; its latency
is measured first (see infer/timing/latency_system.py) and subtracted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.place import LinkStep, Place

Emitter = Callable[[Place, Place], list[Instruction]]
Edges = Mapping[tuple[str, str], tuple[str, Emitter]]


class Links(ABC):
    """Links of an instruction set, as far as `executes` says that they may be used.

    `routes` are the places to go through where there is no link of one step, shortest first.
    """

    routes: Sequence[tuple[Place, ...]] = ((),)

    def __init__(self, table: Table, executes: Callable[[InstructionForm], bool]) -> None:
        self._table = table
        self._executes = executes

    def has(self, form_id: str) -> bool:
        """Whether this CPU executes a form."""
        form = self._table.get(form_id)
        return form is not None and self._executes(form)

    def form(self, form_id: str) -> InstructionForm:
        """A form of the table."""
        return self._table[form_id]

    def fits(self, source: Place, target: Place) -> bool:
        """Whether the one-step link exists for these widths."""
        return True

    @property
    @abstractmethod
    def edges(self) -> Edges:
        """Key and maker of each link of one step, by register files."""

    @abstractmethod
    def detail(self, source: Place, target: Place) -> str:
        """What distinguishes links between the same register files: widths and flags."""

    def step(self, source: Place, target: Place) -> LinkStep | None:
        """A one-step link, or None where none exists."""
        edge = self.edges.get((source.kind, target.kind))
        if edge is None or not self.fits(source, target):
            return None
        key, emit = edge
        return LinkStep(tuple(emit(source, target)), (key + self.detail(source, target),))

    def path(self, source: Place, target: Place) -> LinkStep | None:
        """The shortest way from one place to another: directly, or through up to two registers."""
        found = (self.through(source, middle, target) for middle in self.routes)
        return next((step for step in found if step is not None), None)

    def through(self, source: Place, middle: tuple[Place, ...], target: Place) -> LinkStep | None:
        """The way from one place to another through given ones, or None where a step is missing."""
        steps = [self.step(a, b) for a, b in pairwise((source, *middle, target))]
        if any(step is None for step in steps):
            return None
        some = [step for step in steps if step is not None]
        instructions = tuple(i for step in some for i in step.instructions)
        return LinkStep(instructions, tuple(key for step in some for key in step.keys))
