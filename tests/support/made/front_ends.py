"""A front end of which a test says everything itself, in place of the experiments that would tell it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cyclescope.infer.front_end.slots import SlotCount
from cyclescope.infer.front_end.width import FoundWidth
from cyclescope.infer.ports.front_end import FrontEndFacts
from cyclescope.isa.table import Table


@dataclass(frozen=True)
class StatedFrontEnd:
    """What `FrontEndFacts` tells, with what is told of a form made of the counts in the same way."""

    table: Table
    width: float = 6.0
    throughputs: Mapping[str, float] = field(default_factory=dict)
    alone: Mapping[str, float] = field(default_factory=dict)
    slots: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, SlotCount] = field(default_factory=dict)
    width_fact: FoundWidth = field(default_factory=lambda: FoundWidth(6.0, 0.0))
    saturating: frozenset[str] = frozenset()
    filler: str = "NOP"
    padding: int = 0
    together: int = 1
    narrow: None = None
    _eliminated: frozenset[str] = frozenset()

    told = FrontEndFacts.told
    is_eliminated = FrontEndFacts.is_eliminated
    slot_range = FrontEndFacts.slot_range
    spare = FrontEndFacts.spare
    waits = FrontEndFacts.waits
    is_slowed_by_waiting = FrontEndFacts.is_slowed_by_waiting
