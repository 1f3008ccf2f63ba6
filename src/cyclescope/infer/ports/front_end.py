"""What experiments tell about a core's front end: its width, what it fetches, and the slots of every form."""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import cache, cached_property, partial
from typing import Self

from cyclescope.infer.front_end.fetch import FetchLimit, fetch_limits
from cyclescope.infer.front_end.narrow import narrow_moves, narrow_of
from cyclescope.infer.front_end.slots import Estimate, SeenSlots, SlotCount, counted, probable
from cyclescope.infer.front_end.undivided import (
    MICROCODE,
    dispatches_whole,
    seen,
)
from cyclescope.infer.front_end.width import RATE_GRAIN, FoundWidth, Rate, rates_of, width_of
from cyclescope.infer.ports.candidates import files_of, is_called_move, is_candidate
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.register import register_files
from cyclescope.isa.registry import instruction_set, mnemonics
from cyclescope.isa.table import Table
from cyclescope.kernel.stream import LENGTHS
from cyclescope.measure.front_end import IDIOMS, MOVES
from cyclescope.measure.front_end import NOPS as NOP_KIND
from cyclescope.measure.ports import ALONE, INSTANCES, blocked
from cyclescope.measure.record import FAILED, STABLE, FrontEndReadings, Reading, Record
from cyclescope.model.behaviour.nops import is_nop
from cyclescope.model.machine import Narrow
from cyclescope.remarks.front_end import Dropped, Slots
from cyclescope.remarks.remark import NOTHING, Remark

_ONE_SLOT = (0.25, 0.3)  # front-end slots that a blocking instruction may have less than one, or more
EVEN = 0.03  # by which the rate of a blocking instruction may miss a whole number
UNSURE = 1.0  # slots: the error of a loop whose rounds disagree, which proves no number
ROOM = 4  # bytes: what one of 15 makes of the average of seven instructions is less than 2
FREE = 1.1  # times as long as by its throughput: an instance that waits for nothing
FASTEST = 1 / 20  # cycles: no front end delivers more
_NO_READINGS = FrontEndReadings()


def is_one_slot(slots: float) -> bool:
    """Whether so many slots are about one."""
    return -_ONE_SLOT[0] < slots - 1 < _ONE_SLOT[1]


class FrontEndFacts:
    """Width, fetching and slots.

    `throughputs` are reciprocal throughputs by form id, in cycles; `records` those of port experiments, of
    which those that failed are left out. `eliminated` are forms that the renamer executes, as
    chains show.
    """

    def __init__(
        self,
        table: Table,
        throughputs: Mapping[str, float],
        records: Iterable[Record] = (),
        readings: FrontEndReadings = _NO_READINGS,
        eliminated: Collection[str] = (),
    ) -> None:
        self.table = table
        self._eliminated = eliminated
        known = cache(table.__contains__)  # a store can be of a version with another table
        self.throughputs = {form: cycles for form, cycles in throughputs.items() if known(form)}
        some = [[reading for reading in part if known(reading.form)] for part in readings]
        self._readings, self._widths, self._lengths, self._narrow = some
        self.records = [r for r in records if r.verdict != FAILED]

    def among(self, records: Iterable[Record]) -> Self:
        """The same front end with other records of port experiments: what else is known of it stays."""
        other = copy.copy(self)
        other.__dict__.pop("alone", None)
        other.records = [r for r in records if r.verdict != FAILED]
        return other

    @cached_property
    def alone(self) -> dict[str, float]:
        """Cycles of `INSTANCES` instances with nothing around; by the throughput where rounds disagree."""
        some = [r for r in self.records if r.quantity == ALONE]
        least = [self.throughputs.get(r.form, 0.0) if r.verdict != STABLE else 0.0 for r in some]
        return {r.form: max(r.cycles, INSTANCES * cycles) for r, cycles in zip(some, least, strict=True)}

    def waits(self, form: InstructionForm, throughput: float) -> bool:
        """Whether instances of a form wait for each other.

        Through a flag that each reads and writes, or because two of them alone take longer than two of a
        sequence in which something else parts them.
        """
        parted = self.alone.get(form.id, 0.0) > INSTANCES * FREE * throughput
        return parted or bool(form.flags_read & form.flags_written)

    def is_slowed_by_waiting(self, form: InstructionForm, throughput: float) -> bool:
        """Whether that may be why a form is no faster.

        Through a flag, or through registers that even the shortest sequence has too few of: of some forms all
        instances have the same one.
        """
        chained = self.alone.get(form.id, 0.0) > LENGTHS[0] * throughput / FREE
        shared = any(op.is_register and op.fixed and op.read and op.write for op in form.operands)
        flags = bool(form.flags_read & form.flags_written)
        return chained or flags or (shared and self.waits(form, throughput))

    # --- width -----------------------------------------------------------------------------------

    @cached_property
    def width_fact(self) -> FoundWidth:
        """The width with its proof; from throughputs where its own experiments are missing."""
        return width_of(rates_of(self._widths) or self._known_rates)

    @property
    def _known_rates(self) -> list[Rate]:
        kinds = (
            (kind, name)
            for kind, names in instruction_set(self.table.isa).roles.simple.items()
            for name in names
        )
        found = [(kind, name, self.throughputs.get(name, 0.0)) for kind, name in kinds if kind != IDIOMS]
        return [
            Rate((name,), kind, 1 / cycles, RATE_GRAIN / cycles)
            for kind, name, cycles in found if cycles > FASTEST
        ]  # fmt: skip

    @cached_property
    def width(self) -> float:
        """Front-end slots per cycle: the fact, or the best guess."""
        if self.width_fact.is_told:
            return self.width_fact.slots
        rate = self.share / self.throughputs[self.filler]
        return float(round(rate)) if abs(rate - round(rate)) < EVEN * rate else rate

    @cached_property
    def fetch(self) -> tuple[FetchLimit, ...]:
        """Slots per cycle by the length of the encodings, where they are measured."""
        if not self.width_fact.is_told or not self.width_fact.per_slot:
            return ()
        return fetch_limits(self._lengths, self.width_fact.slots)

    @cached_property
    def narrow_moves(self) -> list[tuple[str, int]]:
        """Eliminated moves of one register file of which a cycle takes fewer than it has slots; how many."""
        some = sorted(name for name in self._eliminated if name in self.table)
        return narrow_moves(self.width_fact, self.throughputs, self.table, some) if self.filler else []

    @cached_property
    def narrow(self) -> Narrow | None:
        """Of which instructions a cycle takes fewer than it has slots."""
        if not self._narrow:
            return None
        return narrow_of(self.width, self._narrow, self.table, self._eliminated)

    @cached_property
    def of_files(self) -> dict[str, str]:
        """The fastest form of each register file, of those that access no memory and are no moves."""
        found: dict[str, tuple[float, bool, str]] = {}
        for name, cycles in self.throughputs.items():
            form = self.table[name]
            files = register_files(form)
            plain = len(files) == 1 and form.memory < 0 and not form.flags_read | form.flags_written
            if plain and not dropped(form) and FASTEST < cycles < 1 + EVEN:
                (file,) = files
                one = round(cycles, 1), not form.is_vex, name
                found[file] = min(found.get(file, one), one)
        return {file: name for file, (*_, name) in found.items()}

    # --- what stands between others --------------------------------------------------------------

    @cached_property
    def filler(self) -> str:
        """The form that needs a front-end slot and no port, to be put between others; "" where none is.

        A NOP that shares its slot with no other, else a move that the renamer executes, as both are as fast
        as the front end; else NOPs that share slots. Where NOPs do, one may be as fast by its bytes alone.
        """
        agreeing = [rate for rate in self.width_fact.agreeing if len(rate.forms) == 1]
        for kind in (MOVES,) if self.width_fact.per_slot > 1 else (NOP_KIND, MOVES):
            some = [rate.forms[0] for rate in agreeing if rate.kind == kind and rate.forms[0] in self.table]
            if some:
                return max(some, key=self._room)
        return self._fastest

    def _room(self, form: str) -> tuple[int, int]:
        """How many bytes longer instructions may be on average than a form before that limits; its length."""
        length = _length(self.table[form])
        longer = [one.bytes - length for one in self.fetch if one.is_limited and one.bytes > length]
        return min([*longer, ROOM]), length

    @cached_property
    def padding(self) -> int:
        """Bytes that instructions between the fillers have at least where shorter ones are slower, else 0."""
        length = _length(self.table[self.filler])
        short = [one.bytes for one in self.fetch if one.is_limited and one.bytes < length]
        return length if short else 0

    @cached_property
    def _fastest(self) -> str:
        """A move at least as fast as NOP, or half as fast, as some cores fuse NOPs in pairs; else NOP."""
        copies = mnemonics("copies")
        others = {f: t for f, t in self.throughputs.items() if t > FASTEST and self._is_filler(f)}
        best = min(
            others, key=lambda f: (round(others[f], 2), self.table[f].mnemonic not in copies, f), default=""
        )
        name = instruction_set(self.table.isa).roles.nop
        nop = self.throughputs.get(name, math.inf)
        if best and (others[best] < 1.05 * nop or abs(others[best] - 2 * nop) < 0.1 * nop):
            return best
        return name if FASTEST < nop < math.inf else ""

    def _is_filler(self, form_id: str) -> bool:
        form = self.table[form_id]
        plain = form.mnemonic in mnemonics("fillers") and form.memory < 0
        return plain and all(op.is_register and op.cls in ("R64", "XMM") for op in form.operands)

    @cached_property
    def together(self) -> int:
        """How many of the filler share a slot: they stand in groups of so many."""
        return max(self.width_fact.per_slot, 1) if is_nop(self.table[self.filler]) else 1

    @cached_property
    def share(self) -> float:
        """Slots of one instruction of the filler."""
        return 1 / self.together

    # --- slots -----------------------------------------------------------------------------------

    @cached_property
    def slots(self) -> dict[str, float]:
        """Front-end slots of each form: whole numbers where they are proved, else as measured."""
        found = self.counts.items()
        return {form: count.slots if count.whole is None else float(count.whole) for form, count in found}

    def takes(self, form: str, slots: int) -> bool:
        """Whether a form takes so many slots, about, and no two of its counts say different numbers."""
        count = self.counts.get(form)
        is_sure = count is not None and count.reason.meaning is not Slots.APART
        return is_sure and is_one_slot(self.slots[form] + 1 - slots)

    @cached_property
    def counts(self) -> dict[str, SlotCount]:
        """Front-end slots of each form, with their errors."""
        expected = _seen_of(self.width) if self.whole else None
        return counted(self._estimates, expected, self._accesses_memory)

    def _accesses_memory(self, form: str) -> bool:
        return any(op.is_memory for op in self.table[form].operands)

    def told(self, form: InstructionForm) -> tuple[float | None, Remark]:
        """Slots of a form as a fact, with a remark; None with the reason where they are none."""
        count = self.counts.get(form.id)
        if count is None:
            return None, NOTHING
        if not self.width_fact.is_told:
            return None, Slots.WITHOUT_WIDTH.of(self.width_fact.reason)
        if count.whole is None:
            return None, Slots.NOT_KNOWN.of(count.reason)
        if count.whole > 0:
            return float(count.whole), NOTHING
        mechanism = dropped(form)
        return (0.0, Slots.NONE.of(mechanism)) if mechanism else (None, Slots.NO_MECHANISM.of())

    def spare(self, form: InstructionForm) -> float:
        """Slots that have to be free behind those of a form in its cycle, as far as its slots are proved."""
        count = self.counts.get(form.id)
        return 0.0 if count is None or count.whole is None else float(count.spare)

    def slot_range(self, form: InstructionForm) -> tuple[float, float] | None:
        """The least and the most slots of what is read too vaguely to count, and of microcode, which takes
        different numbers in different loops.
        """
        count = self.counts.get(form.id)
        if count is None or count.whole is not None or not self.width_fact.is_told:
            return None
        if count.least >= MICROCODE:
            return float(math.floor(count.least)), float(math.ceil(count.most))
        ends = probable(count)
        return ends if ends[0] > 0 and ends[1] - ends[0] <= 1 else None

    @cached_property
    def whole(self) -> bool:
        """Whether the core dispatches the slots of an instruction in one cycle only."""
        return bool(self.filler) and dispatches_whole(self._estimates, self.width)

    @cached_property
    def _estimates(self) -> dict[str, list[Estimate]]:
        """By form: of loops whose rounds agree, where there are any."""
        found: dict[str, list[Reading]] = defaultdict(list)
        for reading in self._readings if self.filler else ():
            found[reading.form].append(reading)
        stable = {form: [r for r in row if r.verdict == STABLE] for form, row in found.items()}
        return {form: list(map(self._estimate, stable[form] or row)) for form, row in found.items()}

    def _estimate(self, reading: Reading) -> Estimate:
        """Slots of an instance: all of the loop but for those of what stands between."""
        fillers = round(blocked(reading.variant) * self.share)
        slots = (reading.cycles * self.width - fillers) / reading.instances
        error = reading.spread * self.width / reading.instances
        return Estimate(fillers, reading.instances, slots, error if reading.verdict == STABLE else UNSURE)

    def is_eliminated(self, form: str) -> bool:
        """Whether the renamer executes a form, as its results are there at once."""
        return form in self._eliminated

    @cached_property
    def saturating(self) -> frozenset[str]:
        """Register files with a set of ports as wide as the front end, which no experiment fills.

        What the renamer executes runs as often, and needs none.
        """
        found: set[str] = set()
        for form_id, slots in self.slots.items():
            form = self.table[form_id]
            fast = self.throughputs.get(form_id, math.inf) * self.width < 1 + EVEN
            works = slots > 1 - _ONE_SLOT[0] and is_candidate(form) and not is_called_move(form)
            if fast and works and form_id not in self._eliminated:
                found |= files_of(form)
        return frozenset(found)


@cache
def _seen_of(width: float) -> SeenSlots:
    """What is seen where slots stay empty: one for all who read the same loops."""
    return partial(seen, width=width)


def _length(form: InstructionForm) -> int:
    """Bytes of a form's encoding, 0 where it has more than one."""
    return form.encoding.length if form.encoding else 0


def dropped(form: InstructionForm) -> Remark:
    """Why a form may take no slot, nothing where nothing is known that could drop it."""
    if is_nop(form):
        return Dropped.NOP.of()
    plain = is_called_move(form) and len(form.operands) == 2
    return Dropped.MOVE.of() if plain and all(op.is_register for op in form.operands) else NOTHING
