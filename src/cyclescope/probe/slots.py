"""What a loop is filled with so that slots of the front end are its limit, and what a slot takes then.

NOPs need a slot each and nothing else, unless they share slots with each other or with what is before them.
Where they do, the order counts: between two others as many NOPs take more slots in odd runs than in even
ones, or the other way round, or all in one run more than in two. There instructions of several units in turn
fill loops instead. Units that limit one mix do not limit others to the same rate: what all units together
take, and two pairs of them as well, and none exceeds, is what slots allow, unless NOPs are more than twice as
fast, or the units of the third pair allow just as much. Where units are the limit of all mixes, moves fill
loops that wait for each other and take as many a cycle as with units among them, and no fewer than anything
else: a unit would take a cycle for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
_EXECUTED = 1.0  # moves a cycle, at the most, that wait for each other
_ODD, _EVEN, _ONE_RUN, _NOPS = "odd runs of NOPs", "even runs of NOPs", "one run of NOPs", "NOPs alone"


class SlotFillers(NamedTuple):
    """A NOP of four bytes, instructions of three units that wait for nothing, with @ for a target, and moves.

    Moves wait for each other: from one register to another, and back.
    """

    nop: str
    units: tuple[str, str, str]
    moves: tuple[tuple[str, str], ...]


def _moves(*forms: str, there: str = "f e", back: str = "e f") -> tuple[tuple[str, str], ...]:
    return tuple((f"{form}: {there}", f"{form}: {back}") for form in forms)


FILLERS: Mapping[str, SlotFillers] = {
    "x86-64": SlotFillers(
        "NOP (M32): p +8",
        ("VPADDD (XMM, XMM, XMM): @ d d", "LEA_B_D8 (R64): @ d +8", "MOV (R64, M64): @ p +8"),
        _moves("MOV_89 (R64, R64)", "MOV_89 (R32, R32)", "VMOVAPS_28 (XMM, XMM)", "VMOVAPS_28 (YMM, YMM)",
               "VMOVDQA_6F (XMM, XMM)", "VMOVDQA_6F (YMM, YMM)"),
    ),
    "aarch64": SlotFillers(
        "NOP",
        ("FADDDrr: @ d d", "ADDXrs: @ d d #0", "LDRXui: @ p +8"),
        (*_moves("ORRXrs", there="f z e #0", back="e z f #0"), *_moves("FMOVDr")),
    ),
    "riscv64": SlotFillers(
        "ADDI: z z #0",
        ("FADD_D: @ d d", "ADD: @ d d", "LD: @ p +8"),
        _moves("ADDI", there="f e #0", back="e f #0"),
    ),
}  # fmt: skip
UNITS = "units"  # what fills a loop, by its name


def in_turn(texts: Sequence[str], count: int) -> list[str]:
    """So many instructions of units in turn, with targets in turn."""
    return [text.replace("@", target) for text, target in islice(zip(cycle(texts), cycle(TARGETS)), count)]


def slot_points(isa: str) -> Iterator[Point]:
    """Kernels that tell whether NOPs share slots, and what slots take without them."""
    nop, units, _ = FILLERS[isa]
    yield parallel(_NOPS, *written(isa, *[nop] * _TIMES), count=_TIMES)
    for unit, text in enumerate(units[:_UNITS_BEFORE]):
        for odd in _RUNS:
            for part, runs in ((_ODD, odd), (_EVEN, (sum(odd) // 2,) * 2), (_ONE_RUN, (0, sum(odd)))):
                yield parallel(_behind(part, unit, odd), *_parted(isa, text, nop, runs))
    for some in (units, *combinations(units, 2)):
        lines = written(isa, *in_turn(some, _TIMES))
        yield parallel(_mix(some), *lines, count=len(lines))


def move_points(isa: str) -> Iterator[Point]:
    """Kernels that tell whether a renamer executes moves, and how many a cycle."""
    for move in FILLERS[isa].moves:
        for part, texts in _move_parts(isa, move).items():
            yield parallel(part, *written(isa, *in_turn(texts, _TIMES)), count=_TIMES)


def _move_parts(isa: str, move: tuple[str, str]) -> dict[str, tuple[str, ...]]:
    """Moves alone, and three to one of each of the units, which are no limit then."""
    there, back = move
    units = FILLERS[isa].units
    mixed = {unit: (there, back, there, unit, back, there, back, unit) for unit in units}
    return {f"{_name(move)} alone": move} | {f"{_name(move)} among {unit}": mixed[unit] for unit in units}


def _name(move: tuple[str, str]) -> str:
    return move[0].partition(":")[0]


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


def filling(isa: str, readings: Readings) -> str:
    """What fills loops where NOPs share slots, by its name. Raises Unresolved where nothing does."""
    for name in (UNITS, *map(_name, FILLERS[isa].moves)):
        with suppress(Unresolved):
            rate_of_slots(isa, readings, name)
            return name
    raise Unresolved(UnclearCore.UNITS_LIMIT.of())


def fillers_named(isa: str, name: str) -> Sequence[str]:
    """The texts of what fills loops."""
    return FILLERS[isa].units if name == UNITS else _move(isa, name)


def ending(name: str) -> str:
    """The end of a part's name among what fills loops; nothing among NOPs, which have no name."""
    return f", among {name}" if name else ""


def _move(isa: str, name: str) -> tuple[str, str]:
    return next(move for move in FILLERS[isa].moves if _name(move) == name)


def among(isa: str, readings: Readings, points: Callable[[str], Iterable[Point]]) -> Iterator[Point]:
    """Points by the name of what fills loops where NOPs share slots, and before it is known what tells it."""
    if nops_share(readings):
        try:
            yield from points(filling(isa, readings))
        except Unresolved:
            yield from move_points(isa)


def rate_of_slots(isa: str, readings: Readings, name: str = UNITS, each: Interval | None = None) -> Interval:
    """Slots a cycle, by mixes without NOPs. Raises Unresolved where units limit these.

    `each` are cycles per instruction of what fills, if known better than from it alone.
    """
    if name == UNITS:
        return _rate_of_units(isa, readings, each)
    alone, *mixed = _move_parts(isa, _move(isa, name))
    own = rate(readings.get(alone) if each is None else each)
    agreeing = [one for one in _known(readings, mixed) if are_same(own, one)]
    if own.low <= _EXECUTED or not agreeing or _is_exceeded(isa, readings, own):
        raise Unresolved(UnclearCore.UNITS_LIMIT.of())
    return hull([own, *agreeing])


def _known(readings: Readings, parts: Iterable[str]) -> Iterator[Interval]:
    """The rates of parts that have one."""
    for part in parts:
        with suppress(Unresolved):
            yield rate(readings.get(part))


def _is_exceeded(isa: str, readings: Readings, slots: Interval) -> bool:
    """Whether any mix is faster than so many slots a cycle, or NOPs more than so many share one."""
    units, moves = FILLERS[isa].units, FILLERS[isa].moves
    parts = [_mix(some) for some in (units, *combinations(units, 2))]
    parts += [part for move in moves for part in _move_parts(isa, move)]
    faster = any(one.value > slots.value and not are_same(slots, one) for one in _known(readings, parts))
    return faster or _nops_exceed(readings, slots)


def _nops_exceed(readings: Readings, slots: Interval) -> bool:
    return 1 / readings.get(_NOPS).high > IN_A_SLOT * (1 + SAME_RATE) * slots.value


def _rate_of_units(isa: str, readings: Readings, each: Interval | None) -> Interval:
    """Slots a cycle, by mixes of units without NOPs. Raises Unresolved where units limit these.

    `each` are cycles per instruction of all units, if known better than from the mix of them.
    """
    units = FILLERS[isa].units
    every = rate(readings.get(_mix(units)) if each is None else each)
    pairs = list(_known(readings, map(_mix, combinations(units, 2))))  # two of the three are enough
    agreeing = [one for one in pairs if are_same(every, one)]
    others = [one for one in pairs if one not in agreeing]
    faster = any(one.value > every.value for one in others)
    # What limits a pair allows all three, of which the pair is a part, so much: by chance as much as slots.
    allowed = any(are_same(every, one.scaled(len(units) / 2)) for one in others)
    if len(agreeing) < AGREEING_PAIRS or faster or allowed or _nops_exceed(readings, every):
        raise Unresolved(UnclearCore.UNITS_LIMIT.of())
    return hull([every, *agreeing])


def are_same(one: Interval, other: Interval) -> bool:
    """Whether two rates are one."""
    return abs(one.value - other.value) <= SAME_RATE * min(one.value, other.value)


def hull(rates: Sequence[Interval]) -> Interval:
    """From the least to the most of some rates."""
    steady = all(one.is_steady for one in rates)
    return Interval(min(one.low for one in rates), max(one.high for one in rates), steady)
