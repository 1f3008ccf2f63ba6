"""Does a branch know how another one before it went?

A branch on a random sign, which cannot be predicted, is followed by another branch on the same sign, with
always taken branches in between. If the first one helps to predict the second, only the first costs
anything. Controls are a second branch on another random sign, and one that always goes the same way (taken
at every second place, as random branches are taken every second time). All three are the same instructions:
masks in registers decide which sign the second branch looks at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.branches.misprediction import INCREMENT, MULTIPLIER
from cyclescope.probe.code import NUMBERS, PARALLEL, Setting, written
from cyclescope.probe.layout import Branch, Fill, Item, Label, laid_out
from cyclescope.probe.levels import is_higher, steady
from cyclescope.probe.question import Model, Point, Probe, ProbeCase, ProbeVerdict, Readings, Unresolved
from cyclescope.remarks.probing import UnclearBranches

BRANCHES_BETWEEN = (
    0,
    8,
    32,
    64,
)  # branches between the two: a history that is as long has to reach over them
LEAST_SIGN_COST = 1.0  # cycles that another random sign costs, wrong every second time: less is no prediction
_PAIRS = 4  # in a body, which then keeps the number
# Bytes from one branch in between to the next: near ones take longer each, and what is looked for is a part
# of what all of them take. They begin at even bytes, so that none of two is in two lines of code.
_APART, _EVEN = 8, 2
_PLACE = 64  # bytes from the data, where the number is kept
_SIGN = 1 << 63
_ASKED, _WAITS, _FREE = "same sign", "another sign", "always the same way"
_MASKS: Mapping[str, tuple[int, int, int]] = {
    _ASKED: (_SIGN, 0, 0),
    _WAITS: (0, _SIGN, 0),
    _FREE: (0, 0, _SIGN),
}  # of the number's own sign, of that of its square, and a sign that is there at every second place


class SignPair(NamedTuple):
    """The next number in a, by e and f; its sign, masked by g, with that of its square, masked by h, in d.

    A sign at $ changes it; a branch on the sign of @; one that is always taken and goes on at @, with what
    comes before the first one.
    """

    number: tuple[str, ...]
    branch: tuple[str, ...]
    before: tuple[str, ...]
    taken: str
    load: str
    store: str


_WAYS: Mapping[str, SignPair] = {
    "x86-64": SignPair(
        ("IMUL (R64, R64): a e", "ADD_01 (R64, R64): a f",
         "MOV_89 (R64, R64): c a", "IMUL (R64, R64): c a", "AND_21 (R64, R64): c h",
         "MOV_89 (R64, R64): d a", "AND_21 (R64, R64): d g", "ADD_01 (R64, R64): d c",
         "ADD_01 (R64, R64): d $"),
        ("TEST (R64, R64): @ @", "JS (Rel8): #0"), ("TEST (R64, R64): b b",), "JNZ (Rel8): #@",
        "MOV (R64, M64): a p", "MOV (M64, R64): p a",
    ),
    "aarch64": SignPair(
        ("MADDXrrr: a a e f", "MADDXrrr: c a a z", "ANDXrs: c c h #0",
         "ANDXrs: d a g #0", "ADDXrs: d d c #0", "ADDXrs: d d $ #0"),
        ("SUBSXrs: z @ z #0", "Bcc: #4 #1"), (), "CBNZX: b #@",
        "LDRXui: a p", "STRXui: a p",
    ),
    "riscv64": SignPair(
        ("MUL: a a e", "ADD: a a f", "MUL: c a a", "AND: c c h", "AND: d a g", "ADD: d d c", "ADD: d d $"),
        ("BLT: @ z #2",), (), "BNE: b z #@",
        "LD: a p", "SD: a p",
    ),
}  # fmt: skip


def _cases(isa: str) -> Iterator[ProbeCase]:
    for between in BRANCHES_BETWEEN if isa in _WAYS else ():
        points = tuple(_point(isa, part, between) for part in _MASKS)
        yield ProbeCase(f"{between} branches in between", points, is_quick=between == BRANCHES_BETWEEN[0])


def _point(isa: str, part: str, between: int) -> Point:
    way = _WAYS[isa]
    first, second = ([text.replace("@", sign) for text in way.branch] for sign in "ad")
    own, squares, fixed = _MASKS[part]
    registers = {"e": MULTIPLIER, "f": INCREMENT, "b": 1, "g": own, "h": squares, "A": fixed, "B": 0}
    numbers = tuple((NUMBERS[isa][letter], value) for letter, value in registers.items())
    items: list[Item] = []
    for n in range(_PAIRS):
        items += [*(text.replace("$", "AB"[n % 2]) for text in way.number), *first]
        items += [*_taken(way, between, n), *second]
    lines = laid_out(isa, [*items, f"{way.store} +{_PLACE}", Fill(_EVEN)])
    begin = written(isa, f"{way.load} +{_PLACE}")
    return Point(part, lines, 0, PARALLEL, Setting(numbers=numbers), _PAIRS, begin, chance=True)


def _taken(way: SignPair, between: int, pair: int) -> list[Item]:
    """So many branches, each to the next."""
    items: list[Item] = [*way.before, Fill(_EVEN)]
    for n in range(between):
        onward = f"{pair} {n}"
        items += [Branch(way.taken, onward), Fill(_APART), Label(onward)]
    return items


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    asked, waits, free = (readings.get(part) for part in _MASKS)
    if (waits - free).low < LEAST_SIGN_COST:
        raise Unresolved(UnclearBranches.RANDOM_SIGNS.of())
    answer = CoreAnswer.ABSENT if is_higher(asked, free, waits) else CoreAnswer.PRESENT
    return ProbeVerdict(answer, None, steady(asked, waits, free))


PROBE = Probe(
    "correlated-branches",
    "Does a branch know how another one before it went, on the same condition?",
    Model.TWO_LEVEL,
    _cases,
    _judge,
    ("Agner Fog, test programs, branch", "A. Seznec, TAGE"),
    events=("branch-misses",),
)
