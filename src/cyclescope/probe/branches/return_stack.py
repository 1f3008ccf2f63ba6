"""How many calls inside each other does the core know the return addresses of?

A number of nested calls is compared with as many calls that are nested only four deep, each time after
everything before has finished: return addresses that the core has forgotten are predicted wrongly. The cost
of a wrong prediction is measured as well, by returns to another place than behind their calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.code import KernelLine
from cyclescope.probe.edges import TWICE, check_edge, edge, inside
from cyclescope.probe.interval import Interval
from cyclescope.probe.layout import TARGET, Branch, Distance, Fill, Item, Label, laid_out
from cyclescope.probe.levels import steady
from cyclescope.probe.question import (
    Model,
    Point,
    Probe,
    ProbeCase,
    ProbeVerdict,
    Readings,
    Unresolved,
    parallel,
)
from cyclescope.remarks.probing import UnclearBranches

SHALLOW = 4  # calls inside each other that whatever has such a thing knows
COARSE = (8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128)  # calls that are asked first
LEAST_WRONG = 4.0  # cycles of a wrong prediction: less tells nothing
MOST_EACH = 1.1  # times what each of the fewest calls takes: more, and their targets are forgotten as well
# Bytes from one function to the next, as few branches are known of each line of code; it begins so far
# behind that no call is in two lines, wherever the runner puts the kernel.
_FUNCTION, _BEHIND = 64, 4
_RETURNS = 4  # in the bodies of controls
_NESTED, _SHALLOW, _OTHER, _SAME = "inside each other", "in fours", "to another place", "to its place"
_SUBJECT = "calls inside each other"


class CallWay(NamedTuple):
    """How functions are made.

    `serial` waits until everything before has finished: what hides behind other calls would not be seen.
    `space` is as long as a function begins behind its line. `enter` and `leave` keep the return address on
    the stack, where calls do not; `change` makes it another: @ is how much further, or how far away on
    x86-64. `gap` is what may be passed over.
    """

    serial: str
    call: str
    jump: str
    ret: str
    change: tuple[str, ...]
    gap: str
    space: str
    enter: tuple[str, ...] = ()
    leave: tuple[str, ...] = ()


_WAYS: Mapping[str, CallWay] = {
    "x86-64": CallWay(
        "LFENCE", "CALL_NEAR (Rel32): #@", "JMP (Rel32): #@", "RET_NEAR",
        ("POP (R64): d", f"LEA_R_D32 (R64): c {TARGET}", "PUSH (R64): c"), "NOP", "NOP (R64): a",
    ),
    "aarch64": CallWay(
        "ISB: #15", "BL: #@", "B: #@", "RET: r",
        (f"ADDXri: r r #{TARGET}",), "NOP", "NOP", ("STRXpre: s r -16",), ("LDRXpost: s r #16",),
    ),
    "riscv64": CallWay(
        "FENCE_I", "JAL: r #@", "JAL: z #@", "JALR: z r #0",
        (f"ADDI: r r #{TARGET}",), "ADDI: z z #0", "ADDI: z z #0",
        ("ADDI: s s #4080", "SD: r s"), ("LD: r s", "ADDI: s s #16"),
    ),
}  # fmt: skip


def _cases(isa: str) -> Iterator[ProbeCase]:
    if isa in _WAYS:
        controls = [returns(isa, is_other) for is_other in (True, False)]
        yield ProbeCase(_SUBJECT, (*controls, *(point for count in COARSE for point in _points(isa, count))))


def _points(isa: str, count: int) -> Iterator[Point]:
    """So many calls inside each other, and no more than a few."""
    fours, rest = divmod(count, SHALLOW)
    shallow = [SHALLOW] * fours + [rest] * bool(rest)
    yield parallel(_NESTED, *nested(isa, [count], len(shallow) - 1), x=count)
    yield parallel(_SHALLOW, *nested(isa, shallow), x=count)


def nested(isa: str, depths: list[int], jumps: int = 0) -> tuple[KernelLine, ...]:
    """Calls of functions that call functions, so deep each; the last of each call none.

    Behind each there is a jump, and behind them so many more.
    """
    way = _WAYS[isa]
    items: list[Item] = [way.serial, Fill(_BEHIND)]
    for number, depth in enumerate(depths):
        end = f"end {number}"
        items += [Branch(way.call, f"{number} 1"), Branch(way.jump, end)]
        for level in range(1, depth + 1):
            items += [*_line(way), Label(f"{number} {level}")]
            items += _function(way, f"{number} {level + 1}" if level < depth else "")
        items += [*_line(way, is_last=number + 1 == len(depths) and not jumps), Label(end)]
    for number in range(jumps):
        items += [Branch(way.jump, f"jump {number}"), *_line(way, is_last=number + 1 == jumps)]
        items += [Label(f"jump {number}")]
    return laid_out(isa, items)


def _line(way: CallWay, is_last: bool = False) -> list[Item]:
    """What nobody executes, up to where a function or a call begins, or the last ends: its copies follow."""
    return [Fill(_FUNCTION)] if is_last else [Fill(_FUNCTION), way.space]


def _function(way: CallWay, called: str) -> list[Item]:
    if not called:
        return [way.ret]
    return [*way.enter, Branch(way.call, called), *way.leave, way.ret]


def returns(isa: str, is_other: bool) -> Point:
    """Calls of a function that returns behind what follows them, or to that."""
    way = _WAYS[isa]
    items: list[Item] = [way.space]
    for number in range(_RETURNS):
        function, back, beyond, end = (f"{name} {number}" for name in ("function", "back", "beyond", "end"))
        items += [Branch(way.call, function), Label(back), way.gap, Label(beyond), Branch(way.jump, end)]
        items += [*_line(way), Label(function), *_changed(way, back, beyond if is_other else back), way.ret]
        items += [*_line(way, is_last=number + 1 == _RETURNS), Label(end)]
    return parallel(_OTHER if is_other else _SAME, *laid_out(isa, items), count=_RETURNS)


def _changed(way: CallWay, back: str, to: str) -> list[Item]:
    """What changes where a function returns to, from behind its call to a place."""
    return [Distance(text, back, to) if TARGET in text else text for text in way.change]


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    wrong, longer = _wrong(readings), _longer(readings)
    low, high = edge(longer, wrong, SHALLOW, UnclearBranches.NO_CALLS.of())
    if low <= SHALLOW:
        raise Unresolved(UnclearBranches.FEW_CALLS.of())
    check_edge(longer, wrong, low, high, UnclearBranches.CALLS_AGAIN.of())
    _check_fours(readings, high)
    every = [readings.get(part, count) for part in (_NESTED, _SHALLOW) for count in (low, high)]
    return ProbeVerdict(CoreAnswer.VALUE, Interval(low, high - 1, steady(wrong, *every)))


def _check_fours(readings: Readings, high: int) -> None:
    """Raise Unresolved where a call in fours takes longer, the more there are, soon behind an edge."""
    fours = {n: readings.get(_SHALLOW, n) for n in readings.places(_SHALLOW) if n <= TWICE * high}
    fewest = min(fours)
    most = MOST_EACH * fours[fewest].high / fewest
    if any(taken.low > most * count for count, taken in fours.items()):
        raise Unresolved(UnclearBranches.CALLS_SLOWER.of())


def _wrong(readings: Readings) -> Interval:
    """Cycles that a wrong prediction takes. Raises Unresolved where that is next to nothing."""
    wrong = readings.get(_OTHER) - readings.get(_SAME)
    if wrong.low < LEAST_WRONG:
        raise Unresolved(UnclearBranches.RETURNS_ELSEWHERE.of())
    return wrong


def _longer(readings: Readings) -> dict[int, Interval]:
    """Cycles that calls take longer inside each other, by their number."""
    return {
        count: readings.get(_NESTED, count) - readings.get(_SHALLOW, count)
        for count in readings.places(_NESTED)
    }


def _more(case: ProbeCase, readings: Readings) -> Iterator[Point]:
    """Numbers between the last that takes no longer and the first that does."""
    low, high = edge(_longer(readings), _wrong(readings), SHALLOW, UnclearBranches.NO_CALLS.of())
    isa = next(isa for isa in _WAYS if case.points[0] == returns(isa, is_other=True))
    for count in inside(low, high):
        yield from _points(isa, count)


PROBE = Probe(
    "return-stack",
    "How many calls inside each other does the core know the return addresses of?",
    Model.PLATEAU,
    _cases,
    _judge,
    ("Agner Fog, test programs, returnstack",),
    unit="calls",
    more=_more,
    events=("branch-misses",),
    axis="calls",
)
