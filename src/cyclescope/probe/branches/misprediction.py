"""What does a branch cost that was predicted wrongly?

A branch on the sign of random numbers is compared with one on the sign of a constant: half of the first are
predicted wrongly, none of the others. Each run continues with new random numbers, since some predictors
remember thousands of branches. How many of a look are wrong is chance, so where no two looks agree the
median of all counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cyclescope.model.facts import MISPREDICTION, WRONG_BRANCH, CoreAnswer
from cyclescope.probe.code import NUMBERS, PARALLEL, Setting, written
from cyclescope.probe.interval import Interval
from cyclescope.probe.levels import MOST_ERROR, steady
from cyclescope.probe.question import Model, Point, Probe, ProbeCase, ProbeVerdict, Readings, Unresolved
from cyclescope.remarks.probing import Unclear, UnclearBranches

# Knuth's linear congruential generator: the sign is the bit with the longest period.
MULTIPLIER, INCREMENT = 6364136223846793005, 1442695040888963407
WRONG = 0.5  # of the branches on a random sign
PENALTIES_DIFFER = 0.18  # of the cost: a Zen 5 takes 18.6 cycles in some processes, 21.7 in others
_LEAST = 2.0  # cycles: what is predicted wrongly costs more than a load takes to be used
_BRANCHES = 8  # in a body, which then keeps the number
_PLACE = 64  # bytes from the data, where the number is kept
_RANDOM, _STEADY = "random", "steady"


class SignBranch(NamedTuple):
    """The next number in a; a branch on the sign of @ to what follows it anyway; where the number is kept."""

    number: tuple[str, ...]
    branch: tuple[str, ...]
    load: str
    store: str


_WAYS: Mapping[str, SignBranch] = {
    "x86-64": SignBranch(
        ("IMUL (R64, R64): a e", "ADD_01 (R64, R64): a f"),
        ("TEST (R64, R64): @ @", "JS (Rel8): #0"),
        "MOV (R64, M64): a p", "MOV (M64, R64): p a",
    ),
    "aarch64": SignBranch(
        ("MADDXrrr: a a e f",), ("SUBSXrs: z @ z #0", "Bcc: #4 #1"), "LDRXui: a p", "STRXui: a p"
    ),
    "riscv64": SignBranch(("MUL: a a e", "ADD: a a f"), ("BLT: @ z #2",), "LD: a p", "SD: a p"),
}  # fmt: skip


def _cases(isa: str) -> Iterator[ProbeCase]:
    if isa in _WAYS:
        yield ProbeCase(WRONG_BRANCH, sign_branches(isa))


def sign_branches(isa: str) -> tuple[Point, Point]:
    """Branches on random signs and on one that stays: what `wrong_prediction` compares."""
    return _point(isa, _RANDOM, "a"), _point(isa, _STEADY, "b")


def _point(isa: str, part: str, tested: str) -> Point:
    way = _WAYS[isa]
    branch = [text.replace("@", tested) for text in way.branch]
    lines = written(isa, *[*way.number, *branch] * _BRANCHES, f"{way.store} +{_PLACE}")
    registers = {"e": MULTIPLIER, "f": INCREMENT, "b": 1}
    numbers = tuple((NUMBERS[isa][letter], value) for letter, value in registers.items())
    begin = written(isa, f"{way.load} +{_PLACE}")
    return Point(part, lines, 0, PARALLEL, Setting(numbers=numbers), _BRANCHES, begin, chance=part == _RANDOM)


def wrong_prediction(readings: Readings) -> Interval:
    """Cycles that a wrong prediction takes. Raises Unresolved where that is next to nothing."""
    random, steady_sign = readings.get(_RANDOM), readings.get(_STEADY)
    longer = random - steady_sign
    if longer.high < _LEAST * WRONG:
        raise Unresolved(UnclearBranches.RANDOM_SIGNS.of())
    if not steady(steady_sign) or longer.error > MOST_ERROR * longer.value:
        raise Unresolved(Unclear.LOOKS_DIFFER.of())
    if longer.low < _LEAST * WRONG:
        raise Unresolved(UnclearBranches.RANDOM_SIGNS.of())
    return Interval(longer.low / WRONG, longer.high / WRONG)


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    return ProbeVerdict(CoreAnswer.VALUE, wrong_prediction(readings).with_error(PENALTIES_DIFFER))


PROBE = Probe(
    MISPREDICTION,
    "What does a branch cost that was predicted wrongly?",
    Model.TWO_LEVEL,
    _cases,
    _judge,
    ("Agner Fog, test programs, branch",),
    events=("branch-misses",),
)
