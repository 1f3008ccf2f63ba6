"""Instructions of which a cycle takes fewer than it has slots, by the files of their registers.

Moves that the renamer executes need slots and nothing else. Where a cycle takes fewer of them than slots,
that may be a limit of moves alone: then another instruction of the same registers beside them takes no
longer than a general one does. Where it takes a place of theirs, all that have such registers share it; so
do those of other files that take one, too. Loops with more than a cycle takes of them may need whole cycles
as soon as so many others are in them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from statistics import median
from typing import NamedTuple

from cyclescope.infer.front_end.width import FASTER, RATE_GRAIN, FoundWidth
from cyclescope.isa.register import register_files
from cyclescope.isa.table import Table
from cyclescope.measure.front_end import FULL_OF_MOVES, MOST_BESIDE
from cyclescope.measure.ports import in_rounds
from cyclescope.measure.record import ERRORS, Reading
from cyclescope.model.machine import Narrow
from cyclescope.probe.interval import Interval
from cyclescope.probe.levels import is_higher
from cyclescope.probe.question import Unresolved
from cyclescope.remarks.front_end import Wide
from cyclescope.remarks.probing import Unclear


def narrow_moves(
    width: FoundWidth, throughputs: Mapping[str, float], table: Table, eliminated: Iterable[str]
) -> list[tuple[str, int]]:
    """One of each file of which the renamer executes fewer a cycle than it has slots, and how many.

    Forms that keep upper halves of vectors may wait for them: others go first. What most of the fastest take
    counts: a single one may be read as faster than it is.
    """
    by_file: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for name in eliminated if width.is_told else ():
        files = register_files(table[name])
        if len(files) == 1 and throughputs.get(name):
            by_file[next(iter(files))].append((1 / throughputs[name], name))
    found: list[tuple[str, int]] = []
    for _, rates in sorted(by_file.items()):
        fastest, _ = max(rates)
        most = median(rate for rate, _ in rates if rate > fastest - FASTER)
        slots = round(most)
        if most < width.slots - FASTER and abs(most - slots) <= RATE_GRAIN * most:
            same = [name for rate, name in rates if abs(rate - slots) <= RATE_GRAIN * rate]
            found.append((min(same, key=lambda name: (not table[name].is_vex, name)), slots))
    return found


class _Loop(NamedTuple):
    """So many moves and so many of another form, in rounds that take so many cycles."""

    other: str
    moves: int
    others: int
    rounds: int
    cycles: Interval

    @classmethod
    def of(cls, reading: Reading) -> _Loop:
        moves, others, rounds = in_rounds(reading.variant)
        off = ERRORS * reading.spread
        taken = Interval(reading.cycles - off, reading.cycles + off).scaled(1 / rounds)
        return cls(reading.source, moves, others, rounds, taken)

    def is_slower(self, more: float, width: float, each: int) -> bool:
        """Whether it takes `more` cycles, not what its slots and the moves alone do. Raises Unresolved."""
        least = max((self.moves + self.others) / width, self.moves / each)
        levels = [Interval(cycles, cycles) for cycles in (least, more, 2 * more - least)]
        if is_higher(self.cycles, *levels[1:]):
            raise Unresolved(Unclear.BETWEEN_LEVELS.of())
        return is_higher(self.cycles, *levels[:2])


def narrow_of(
    width: float, readings: Iterable[Reading], table: Table, eliminated: Container[str]
) -> Narrow | None:
    """Which files share the places, and whether loops take whole cycles; None where only moves do."""
    by_form: dict[str, list[_Loop]] = defaultdict(list)
    for one in readings:
        if one.form in eliminated:
            by_form[one.form].append(_Loop.of(one))
    found = (_told(form, loops, width, table) for form, loops in by_form.items())
    return min((one for one in found if one is not None), key=lambda one: one.slots, default=None)


def _told(form: str, loops: Sequence[_Loop], width: float, table: Table) -> Narrow | None:
    """What the loops with one form of moves tell."""
    each = min(one.moves for one in loops)
    fillers = {(one.moves // each, one.others): one for one in loops if one.rounds == 1}
    filler = next((one.other for one in fillers.values()), "")
    slower: list[str] = []
    for one in loops:
        with suppress(Unresolved):
            if one.rounds > 1 and one.is_slower((each + 1) / each, width, each):
                slower.append(one.other)
    files = {file for name in slower for file in register_files(table[name])}
    if filler in slower or not register_files(table[form]) <= files:
        return None
    whole: list[bool] = []
    with suppress(Unresolved, KeyError):  # up to the first number that tells nothing, or was not asked
        for others in range(1, MOST_BESIDE + 1):
            said = [fillers[k, others].is_slower(k + 1, width, each) for k in FULL_OF_MOVES]
            whole.append(all(said))
    beside = whole.index(True) + 1 if any(whole) and whole == sorted(whole) else 0  # all from some number on
    source = Wide.NARROW.of(each, form, ", ".join(sorted(slower))).text
    return Narrow(tuple(sorted(files)), float(each), beside, source)
