"""Does the front end follow the stack pointer, so that pushes and pops do not wait for each other?

Pushes and as many pops: each moves the stack pointer, so that it takes as long as an addition in a chain of
them where an execution unit does that, and at most half as long where only memory is the limit.

Where the front end follows it, its register may be out of date when something else computes with it. A chain
of additions to the stack pointer says what that takes: alone, and with a push and a pop behind each. Moves
of it are as fast as others where the renamer executes both, and as slow as additions where it does not.
Comparisons of it one after the other are slower than those of another register where each brings its register
up to date.
"""

from __future__ import annotations

from collections.abc import Iterator

from cyclescope.model.facts import STACK_ENGINE, STACK_MOVES, STACK_READS, STACK_UPDATE, CoreAnswer
from cyclescope.probe.code import NUMBERS, SOME, Setting, written
from cyclescope.probe.interval import Interval
from cyclescope.probe.levels import is_higher, steady
from cyclescope.probe.question import (
    Model,
    Point,
    Probe,
    ProbeCase,
    ProbeVerdict,
    Readings,
    Unresolved,
    chain,
    parallel,
)
from cyclescope.remarks.probing import NotAsked, Unclear, UnclearCore

WHOLE = "pushes and pops"
_PUSHES = ("x86-64",)


def _cases(isa: str) -> Iterator[ProbeCase]:
    if isa not in _PUSHES:
        return
    pushes, pops = ([f"{name} (R64): {letter}" for letter in SOME] for name in ("PUSH", "POP"))
    lines = written(isa, *pushes, *pops)
    alone = chain("alone", *written(isa, "ADD_01 (R64, R64): c d"))
    yield ProbeCase(WHOLE, (parallel("asked", *lines, count=len(lines)), alone))
    nothing = Setting(numbers=((NUMBERS[isa]["d"], 0),))
    yield ProbeCase(
        STACK_UPDATE,
        (
            chain("alone", *written(isa, "ADD_01 (R64, R64): s d"), setting=nothing),
            chain(
                "asked",
                *written(isa, "ADD_01 (R64, R64): s d", "PUSH (R64): a", "POP (R64): c"),
                setting=nothing,
            ),
        ),
    )
    yield _moves()
    yield ProbeCase(STACK_READS, tuple(_compared(part, of) for part, of in (("asked", "s"), ("others", "p"))))


def _compared(part: str, register: str) -> Point:
    """Comparisons of a register, which wait for nothing."""
    lines = written("x86-64", *[f"CMP_39 (R64, R64): {register} {letter}" for letter in SOME])
    return parallel(part, *lines, count=len(lines))


def _moves() -> ProbeCase:
    """Copies of the stack pointer, of another register, and what is computed with that."""
    texts = {
        "asked": "MOV_89 (R64, R64): {} s", "others": "MOV_89 (R64, R64): {} p",
        "computed": "LEA_B_D8 (R64): {} p +8",
    }  # fmt: skip
    points = (
        parallel(part, *written("x86-64", *map(text.format, SOME)), count=len(SOME))
        for part, text in texts.items()
    )
    return ProbeCase(STACK_MOVES, tuple(points))


def _one_after_the_other(asked: Interval, others: Interval) -> ProbeVerdict:
    """What each takes that waits for the one before, nothing where other registers are no faster."""
    taken = asked if asked.low > others.high else asked - asked
    return ProbeVerdict(CoreAnswer.VALUE, taken, steady(asked, others))


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    if case.subject == STACK_MOVES:
        others, computed = readings.get("others"), readings.get("computed")
        executed = is_higher(readings.get("asked"), others, computed)
        return ProbeVerdict(CoreAnswer.EXECUTED if executed else CoreAnswer.ELIMINATED, readings.get("asked"))
    if case.subject == STACK_READS:
        return _one_after_the_other(readings.get("asked"), readings.get("others"))
    asked, alone = readings.get("asked"), readings.get("alone")
    if case.subject == STACK_UPDATE:
        more = asked - alone
        if not steady(more):
            raise Unresolved(Unclear.LOOKS_DIFFER.of())
        return ProbeVerdict(CoreAnswer.VALUE, more)
    if is_higher(asked, alone.scaled(0.5), alone):  # a store a cycle, and loads beside them
        raise Unresolved(UnclearCore.PUSHES_WAIT.of())
    return ProbeVerdict(CoreAnswer.PRESENT, asked, alone.is_steady)


PROBE = Probe(
    STACK_ENGINE,
    "Does the front end follow the stack pointer, so that pushes and pops do not wait for each other?",
    Model.TWO_LEVEL,
    _cases,
    _judge,
    ("Agner Fog, test programs, stack_sync_uops",),
    dict.fromkeys(("aarch64", "riscv64"), NotAsked.NO_PUSHES.of()),
    events=("uops",),
)
