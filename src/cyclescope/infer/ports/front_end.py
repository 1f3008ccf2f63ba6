"""What experiments tell about a core's front end: its width, and the slots of every form."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from statistics import median

from cyclescope.infer.ports.candidates import NOPS, files_of, is_candidate
from cyclescope.infer.ports.slots import FITS, Estimates, dispatches_whole, estimates, whole_slots
from cyclescope.isa.table import Table

ONE_SLOT = (0.75, 1.3)  # front-end slots of a blocking instruction
EVEN = 0.03  # by which the rate of a blocking instruction may miss a whole number
SIMPLE = 1.5  # front-end slots: less than those of two
FASTEST = 1 / 20  # cycles: no front end delivers more


class FrontEndFacts:
    """Width and slots.

    `throughputs` are reciprocal throughputs by form id, in cycles; `readings` form, variant and cycles of
    the experiments for slots.
    """

    def __init__(
        self,
        table: Table,
        throughputs: Mapping[str, float],
        readings: Iterable[tuple[str, str, float]],
    ) -> None:
        self.table = table
        known = cache(table.__contains__)  # a store can be of a version with another table
        self.throughputs = {form: cycles for form, cycles in throughputs.items() if known(form)}
        self._readings = [reading for reading in readings if known(reading[0])]

    @cached_property
    def filler(self) -> str:
        """The form that needs a front-end slot and no port, to be put between others; "" where none is.

        A move that the renamer executes, seen by its being at least as fast as NOP, or half as fast: some
        cores fuse NOPs in pairs; NOP where there is none.
        """
        others = {f: t for f, t in self.throughputs.items() if t > FASTEST and self._is_filler(f)}
        best = min(
            others, key=lambda f: (round(others[f], 2), self.table[f].mnemonic != "MOV", f), default=""
        )
        name = NOPS[self.table.isa]
        nop = self.throughputs.get(name, math.inf)
        if best and (others[best] < 1.05 * nop or abs(others[best] - 2 * nop) < 0.1 * nop):
            return best
        return name if FASTEST < nop < math.inf else ""

    def _is_filler(self, form_id: str) -> bool:
        form = self.table[form_id]
        plain = form.mnemonic in ("MOV", "VMOVAPS") and form.memory < 0
        return plain and all(op.is_register and op.cls in ("R64", "XMM") for op in form.operands)

    @cached_property
    def width(self) -> float:
        """Front-end slots per cycle."""
        rate = 1 / self.throughputs[self.filler]
        return float(round(rate)) if abs(rate - round(rate)) < EVEN * rate else rate

    @cached_property
    def slots(self) -> dict[str, float]:
        """Front-end slots of each form: the median of several counts, as errors of the clock go both ways."""
        found = {form: median(row.values()) for form, row in self._estimates.items()}
        return found | whole_slots(self._estimates, self.width) if self.whole else found

    @cached_property
    def is_counted(self) -> bool:
        """Whether slots can be told: with a disturbed width the simplest forms do not take one."""
        simple = [slots for slots in self.slots.values() if slots < SIMPLE]
        return not simple or abs(median(simple) - 1) < FITS

    @cached_property
    def whole(self) -> bool:
        """Whether the core dispatches the slots of an instruction in one cycle only."""
        return bool(self.filler) and dispatches_whole(self._estimates, self.width)

    @cached_property
    def _estimates(self) -> Estimates:
        return estimates(self._readings, self.width) if self.filler else {}

    @cached_property
    def saturating(self) -> frozenset[str]:
        """Register files with a set of ports as wide as the front end, which no experiment fills."""
        found: set[str] = set()
        for form_id, slots in self.slots.items():
            form = self.table[form_id]
            fast = self.throughputs.get(form_id, math.inf) * self.width < 1 + EVEN
            if fast and slots > ONE_SLOT[0] and is_candidate(form) and "MOV" not in form.mnemonic:
                found |= files_of(form)
        return frozenset(found)
