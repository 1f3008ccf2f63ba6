"""What stores to more lines in turn take than a core gathers, by how many follow each other to one."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cyclescope.model.facts import BANKS, Fact

LINE = 64  # bytes from one place to the next
ROWS = (1, 2, 3, 4, 5, 6, 8)  # stores of eight bytes to one line before those to the next
MANY = 16  # lines in turn
FEWER_LINES = (4, 8, 12)  # lines, in rising order
COUNTED_ROWS = (1, 6)  # stores to each of fewer lines


def stores_in_lines(stores: int, lines: int, *, whole: bool = False) -> str:
    """So many stores to each of so many lines, in turn; `whole` lines have all their bytes written."""
    return f"{stores} stores to {'all' if whole else 'some'} of each of {lines} lines"


class StoreLines(msgspec.Struct, frozen=True):
    """A line of `size` bytes takes longer than its stores where `many` or more are stored to in turn.

    A store takes `each` cycles; `rows` has, in rising order, numbers of stores to a line before those to the
    next, and the cycles that a line takes in addition then; one with all its bytes written takes `whole`.
    """

    size: int
    many: int
    each: float
    rows: tuple[tuple[int, float], ...]
    whole: float = 0.0

    def longer(self, before: int, stores: int) -> float:
        """Cycles that a line takes in addition for its stores and those to the line before it, in turn."""
        return next((more for row, more in self.rows if 2 * row >= before + stores), self.rows[-1][1])

    @property
    def alone(self) -> int:
        """Cycles, which are whole ones, in which a line leaves that was stored to once, as the one before."""
        return round(self.each + self.longer(1, 1))


def store_lines(facts: Sequence[Fact], fastest: float) -> StoreLines | None:
    """Which rows take longer than the fastest stores do in a cycle, from how many lines on, and how much."""
    known = {fact.subject: fact for fact in facts if fact.probe == BANKS and fact.value}
    asked = [known.get(stores_in_lines(row, MANY)) for row in ROWS]
    if None in asked or not fastest:
        return None
    rows = tuple((row, _longer(row, fact, fastest)) for row, fact in zip(ROWS, asked, strict=True))
    slow = [row for row, longer in rows if longer]
    if not slow or len(slow) == len(rows):
        return None
    counted = [row for row in COUNTED_ROWS if row in slow]

    def is_slow(lines: int) -> bool:
        """Whether so many lines are too many, for every row that is asked about."""
        return all(_longer(row, known.get(stores_in_lines(row, lines)), fastest) for row in counted)

    many = next((lines for lines in FEWER_LINES if counted and is_slow(lines)), MANY)
    whole = _longer(ROWS[-1], known.get(stores_in_lines(ROWS[-1], MANY, whole=True)), fastest)
    return StoreLines(LINE, many, 1 / fastest, rows, whole)


def _longer(row: int, fact: Fact | None, fastest: float) -> float:
    """Cycles that a line takes longer than by the fastest, 0 where that is nearer to none than to a half."""
    if fact is None or not fact.value:
        return 0.0
    least = row / (fact.value + (fact.error or 0.0)) - row / fastest
    return row / fact.value - row / fastest if round(2 * least) > 0 else 0.0
