"""The slowest loop-carried dependency of a block, in C, with what else its graph shows.

Instructions are lists of numbers, made once for all blocks and put one behind the other.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from struct import pack
from typing import NamedTuple

from cyclescope.analyze.cost.instruction import PlacedCost
from cyclescope.analyze.decode.locations import STACK_POINTER, Places
from cyclescope.analyze.depend.compiled.library import library
from cyclescope.analyze.depend.compiled.numbers import NO_NUMBER, PLACE_NUMBERS

EQUAL = 1e-9  # cycles: more than rounding makes of sums of latencies, less than anybody measures
_SOURCES = ("other", "register", "address", "data")  # in the order of native/bounds/bounds.h
_PARTS = {part: number for number, part in enumerate(_SOURCES)} | {"index": _SOURCES.index("address")}


class _Answer(ctypes.Structure):
    _fields_ = [("cycles", ctypes.c_double), ("carried", ctypes.c_int64), ("waits", ctypes.c_double)]


class Passed(NamedTuple):
    """A load of what was stored, as native/bounds/bounds.h has its row, but for the trip behind it.

    `column` is that of what is stored, `late` are cycles besides the load's.
    """

    load: int
    operand: int
    store: int
    column: int
    distance: int
    late: float


class Chains:
    """`cycles` of the slowest chain, and whether any value is `carried` from one iteration to the next.

    `waits` are the cycles that all loads wait for their addresses, if what comes from outside is there.

    `trips` has by passage the cycles from a stored value to the same an iteration later, less than 0 where
    there are none.
    """

    __slots__ = ("_late", "carried", "cycles", "trips", "waits")

    def __init__(self, answer: _Answer, late: array[int], trips: Sequence[float]) -> None:
        self._late, self.trips = late, trips
        self.cycles: float = answer.cycles
        self.carried: bool = answer.carried > 0
        self.waits: float = answer.waits

    @property
    def late(self) -> int:
        """The loads, as bits, whose addresses are made of what the same iteration loads before."""
        return sum(1 << number for number, is_late in enumerate(self._late) if is_late)


Early = Sequence[tuple[float, bool]]  # by instruction: cycles until others get its result; it does not wait


def chains(
    costs: Sequence[PlacedCost],
    places: Sequence[Places],
    passages: Sequence[Passed],
    early: Early,
    stack_update: float,
) -> Chains | None:
    """What the graph of a block shows, None where Python has to look."""
    native = library()
    if native is None or not costs:
        return None
    words = [b""]
    for placed, place in zip(costs, places, strict=True):
        words += (placed.__dict__.get("words") or _words_of(placed), place.words)
    words[0] = pack(
        "5d", len(costs), len(PLACE_NUMBERS), PLACE_NUMBERS.of(STACK_POINTER), stack_update, EQUAL
    )
    block = b"".join(words)
    rows = array("d", [number for passage in passages for number in (*passage, NO_NUMBER)])
    others = array("d", [number for one in early for number in one]) if early else None
    answer, late = _Answer(), array("b", bytes(len(costs)))
    status = native.bounds_chain(
        block, len(block) // rows.itemsize, rows.buffer_info()[0], len(passages),
        *(others.buffer_info() if others else (None, 0)), ctypes.byref(answer), *late.buffer_info(),
    )  # fmt: skip
    if status < 0:
        return None
    trips = slice(len(Passed._fields), None, len(Passed._fields) + 1)
    return Chains(answer, late, rows[trips])


def _words_of(placed: PlacedCost) -> bytes:
    """An instruction's latencies as numbers, made once."""
    found = placed.__dict__["words"] = _made(placed)
    return found


def _made(placed: PlacedCost) -> bytes:
    words: list[float] = [
        len(placed.sources), len(placed.columns), len(placed.targets), len(placed.killed),
        "stack" in placed.form.attributes or placed.variant.executed, placed.loads_general,
    ]  # fmt: skip
    words += [_PARTS.get(node.part, 0) for node in placed.sources]
    words += [node.operand for node in placed.sources]
    words += placed.column_of
    words += [PLACE_NUMBERS.of(("flag", name)) for name in placed.killed]
    for column in placed.columns:
        words.append(len(column))
        words += [number for pair in column for number in pair]
    return array("d", words).tobytes()
