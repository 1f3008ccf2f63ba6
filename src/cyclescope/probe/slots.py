"""What a loop is filled with so that slots of the front end are its limit, and what a slot takes then.

NOPs need a slot each and nothing else, unless they share slots with each other or with what is before them.
Where they do, the order counts: between two others as many NOPs take more slots in odd runs than in even
ones, or the other way round, or all in one run more than in two. There instructions of several units in turn
fill loops instead. Units that limit one mix do not limit others to the same rate: what all units together
take, and two pairs of them as well, and none exceeds, is what slots allow, unless NOPs are more than twice as
fast.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import combinations, cycle, islice, product
from typing import NamedTuple

from cyclescope.probe.code import KernelLine, written
from cyclescope.probe.interval import Interval
from cyclescope.probe.levels import rate
from cyclescope.probe.question import Point, Readings, Unresolved, parallel
from cyclescope.remarks.probing import Unclear, UnclearCore

SAME_RATE = 0.03  # of a rate that several mixes show: they differ by less
LIKE = 0.25  # of what more of them cost: what differs by more has another limit than slots
# Of the time: orders differ by more where NOPs share slots, by one of twelve at the least.
ORDER_COUNTS = 0.04
IN_A_SLOT = 2  # instructions, one of them a NOP, at the most
TARGETS = "efgh"  # registers that nothing reads
_RUNS = ((1, 3), (9, 11))  # of NOPs between two others: odd ones, and the even one as long as both on average
AGREEING_PAIRS = 2  # of units: one pair alone may have a limit that is by chance that of all three
_TIMES = 12  # rounds of units in a body, which all of them and pairs share evenly
_UNITS_BEFORE = 2  # of the three: what stands before runs of NOPs
_ODD, _EVEN, _ONE_RUN, _NOPS = "odd runs of NOPs", "even runs of NOPs", "one run of NOPs", "NOPs alone"


class SlotFillers(NamedTuple):
    """A NOP of four bytes, and instructions of three units that wait for nothing, with @ for a target."""

    nop: str
    units: tuple[str, str, str]


FILLERS: Mapping[str, SlotFillers] = {
    "x86-64": SlotFillers(
        "NOP (M32): p +8",
        ("VPADDD (XMM, XMM, XMM): @ d d", "LEA_B_D8 (R64): @ d +8", "MOV (R64, M64): @ p +8"),
    ),
    "aarch64": SlotFillers("NOP", ("FADDDrr: @ d d", "ADDXrs: @ d d #0", "LDRXui: @ p +8")),
    "riscv64": SlotFillers("ADDI: z z #0", ("FADD_D: @ d d", "ADD: @ d d", "LD: @ p +8")),
}


def in_turn(texts: Sequence[str], count: int) -> list[str]:
    """So many instructions of units in turn, with targets in turn."""
    return [text.replace("@", target) for text, target in islice(zip(cycle(texts), cycle(TARGETS)), count)]


def slot_points(isa: str) -> Iterator[Point]:
    """Kernels that tell whether NOPs share slots, and what slots take without them."""
    nop, units = FILLERS[isa]
    yield parallel(_NOPS, *written(isa, *[nop] * _TIMES), count=_TIMES)
    for unit, text in enumerate(units[:_UNITS_BEFORE]):
        for odd in _RUNS:
            for part, runs in ((_ODD, odd), (_EVEN, (sum(odd) // 2,) * 2), (_ONE_RUN, (0, sum(odd)))):
                yield parallel(_behind(part, unit, odd), *_parted(isa, text, nop, runs))
    for some in (units, *combinations(units, 2)):
        lines = written(isa, *in_turn(some, _TIMES))
        yield parallel(_mix(some), *lines, count=len(lines))


def _behind(part: str, unit: int, odd: tuple[int, int]) -> str:
    return f"{part}, {sum(odd)} behind unit {unit + 1}"


def _mix(units: Sequence[str]) -> str:
    return f"units: {', '.join(text.partition(':')[0] for text in units)}"


def _parted(isa: str, text: str, nop: str, runs: Sequence[int]) -> tuple[KernelLine, ...]:
    """Runs of NOPs, each behind an instruction of a unit."""
    rows = zip(in_turn([text], len(runs)), runs, strict=True)
    return written(isa, *(one for other, count in rows for one in (other, *[nop] * count)))


def nops_share(readings: Readings) -> bool:
    """Whether NOPs share slots, with each other or with what is before them. Raises Unresolved.

    Where code lies, and what disturbs, only add to the least that an order takes.
    """
    parts = product((_ODD, _ONE_RUN), range(_UNITS_BEFORE), _RUNS)
    pairs = [(_behind(one, unit, run), _behind(_EVEN, unit, run)) for one, unit, run in parts]
    orders = [(readings.get(one), readings.get(even)) for one, even in pairs if readings.places(one)]
    if any(_is_less(one, even) or _is_less(even, one) for one, even in orders):
        return True
    if sum(math.isfinite(one.low) and math.isfinite(even.low) for one, even in orders) < len(orders) / 2:
        raise Unresolved(Unclear.ALWAYS_DISTURBED.of())
    return False


def _is_less(one: Interval, other: Interval) -> bool:
    """Whether the least that one order takes is less than that of another; a disturbed one takes no more."""
    least = one.low if math.isfinite(one.low) else one.high
    return other.low > (1 + ORDER_COUNTS) * least


def rate_of_units(isa: str, readings: Readings, each: Interval | None = None) -> Interval:
    """Slots a cycle, by mixes of units without NOPs. Raises Unresolved where units limit these.

    `each` are cycles per instruction of all units, if known better than from the mix of them.
    """
    units = FILLERS[isa].units
    every, pairs = rate(readings.get(_mix(units)) if each is None else each), list[Interval]()
    for some in combinations(units, 2):
        with suppress(Unresolved):  # two of the three are enough
            pairs.append(rate(readings.get(_mix(some))))
    agreeing = [one for one in pairs if are_same(every, one)]
    faster = any(one.value > every.value and one not in agreeing for one in pairs)
    nops = 1 / readings.get(_NOPS).high > IN_A_SLOT * (1 + SAME_RATE) * every.value
    if len(agreeing) < AGREEING_PAIRS or faster or nops:
        raise Unresolved(UnclearCore.UNITS_LIMIT.of())
    return hull([every, *agreeing])


def are_same(one: Interval, other: Interval) -> bool:
    """Whether two rates are one."""
    return abs(one.value - other.value) <= SAME_RATE * min(one.value, other.value)


def hull(rates: Sequence[Interval]) -> Interval:
    """From the least to the most of some rates."""
    steady = all(one.is_steady for one in rates)
    return Interval(min(one.low for one in rates), max(one.high for one in rates), steady)
