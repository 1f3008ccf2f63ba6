"""How long may a pattern of branches be that the core predicts, and how many targets of one jump?

One branch on a bit of random numbers, which repeat after a power of two, and one jump through that many
targets, always in the same order. A pattern that is predicted takes as long as a branch that always goes
the same way; the control that cannot be predicted are numbers that never repeat. Every run passes the whole
pattern many times, and continues where the last run ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.branches.misprediction import INCREMENT, MULTIPLIER
from cyclescope.probe.code import DEPENDENT, NUMBERS, Setting, written
from cyclescope.probe.interval import Interval
from cyclescope.probe.layout import ALONE_IN_LOOP, TARGET, Branch, Distance, Fill, Item, Label, laid_out
from cyclescope.probe.question import Model, Point, Probe, ProbeCase, ProbeVerdict, Readings, Unresolved
from cyclescope.remarks.probing import Read, Unclear, UnclearBranches

PASSED = 1024  # branches of a body, of which a run has many: patterns pass as a whole again and again
LEARNED = 0.1  # of what nobody can predict: what costs less is predicted
LEAST_COST = 1.0  # cycles that what nobody can predict costs, each: less tells nothing
COARSE_PERIODS, COARSE_TARGETS = (1, 4, 7, 10, 13, 16), (1, 3, 5, 7, 9)  # powers of two that are asked first
TARGET_SPACING = 32  # bytes from one target to the next; the numbers are multiples of it
MOST_DOUBTED = 4  # times the last that is predicted: the first that is not, with one in doubt between them
RANDOM_TARGETS = 4  # power of two: as many as a random order goes through
_RANDOM_BIT = 40  # of numbers: it does not come again for long
_PLACE = 64  # bytes from the data, where the number is kept
_PATTERN, _RANDOM, _SAME = "pattern", "random", "same"
_BRANCH, _JUMP = "pattern of one branch", "targets of one jump, in turn"
_UNITS: Mapping[str, str] = {_BRANCH: "branches", _JUMP: "targets"}
_COARSE: Mapping[str, tuple[int, ...]] = {_BRANCH: COARSE_PERIODS, _JUMP: COARSE_TARGETS}
_WHOLE = (1 << 64) - 1


class PatternWay(NamedTuple):
    """The next number in a, made of e and f; h cuts it to multiples; p is where it is kept.

    `take` leaves of it, shifted right by @ bits, what g selects, in c; `branch` is on whether that is 0, `go`
    jumps so many bytes behind what `base` has in d. A counts down from B in steps of C.
    """

    number: tuple[str, ...]
    kept: tuple[str, str, str]
    take: tuple[str, ...]
    branch: tuple[str, ...]
    base: tuple[str, str]
    go: tuple[str, str]
    counting: tuple[str, str, str]
    jump: str
    nop: str


_WAYS: Mapping[str, PatternWay] = {
    "x86-64": PatternWay(
        ("IMUL (R64, R64): a e", "ADD_01 (R64, R64): a f"),
        ("MOV (R64, M64): a p", "AND_21 (R64, R64): a h", "MOV (M64, R64): p a"),
        ("MOV_89 (R64, R64): c a", "SHR (R64, I8): c #@", "AND_21 (R64, R64): c g"),
        ("JZ (Rel8): #0",),
        ("LEA_R_D32 (R64): d @", ""), ("ADD_01 (R64, R64): d c", "JMP (R64): d"),
        ("MOV_89 (R64, R64): A B", "ADD_01 (R64, R64): A C", "JNZ (Rel8): #@"),
        "JMP (Rel32): #@", "NOP",
    ),
    "aarch64": PatternWay(
        ("MADDXrrr: a a e f",),
        ("LDRXui: a p", "ANDXrs: a a h #0", "STRXui: a p"),
        ("UBFMXri: c a #@ #63", "ANDXrs: c c g #0"),
        ("CBZX: c #1",),
        ("ADR: d #@", ""), ("ADDXrs: d d c #0", "BR: d"),
        ("ORRXrs: A z B #0", "ADDXrs: A A C #0", "CBNZX: A #@"),
        "B: #@", "NOP",
    ),
    "riscv64": PatternWay(
        ("MUL: a a e", "ADD: a a f"),
        ("LD: a p", "AND: a a h", "SD: a p"),
        ("SRLI: c a #@", "AND: c c g"),
        ("BEQ: c z #2",),
        ("AUIPC: d #0", "ADDI: d d #@"), ("ADD: d d c", "JALR: z d #0"),
        ("ADD: A B z", "ADD: A A C", "BNE: A z #@"),
        "JAL: z #@", "ADDI: z z #0",
    ),
}  # fmt: skip


def _cases(isa: str) -> Iterator[ProbeCase]:
    for subject in _UNITS if isa in _WAYS else ():
        controls = [_point(isa, subject, part) for part in (_SAME, _RANDOM)]
        points = [_point(isa, subject, _PATTERN, power) for power in _COARSE[subject]]
        yield ProbeCase(subject, (*controls, *points), is_quick=False)


def _point(isa: str, subject: str, part: str, power: int = 0) -> Point:
    """A pattern of two to so many, or a control: the same direction or target each time, or a random one."""
    way = _WAYS[isa]
    bits = {_SAME: 0, _RANDOM: 1 if subject == _BRANCH else RANDOM_TARGETS, _PATTERN: power}[part]
    shift = _RANDOM_BIT if part == _RANDOM else 0
    take = [text.replace(TARGET, str(shift)) for text in way.take]
    passed: list[Item] = [*take, *way.branch]
    select, behind = (TARGET_SPACING << bits - 1 if bits else 0), list[Item]()
    if subject == _JUMP:
        passed = [*take, *_base(way), *way.go]
        select, behind = TARGET_SPACING * ((1 << bits) - 1), _targets(way, 1 << bits)
    begin, count, back = way.counting
    items: list[Item] = [
        begin, Label("next"), *way.number, *passed, Label("passed"), count, Branch(back, "next"),
        f"{way.kept[-1]} +{_PLACE}", Branch(way.jump, "end"), *[way.nop] * ALONE_IN_LOOP, *behind,
        Label("end"),
    ]  # fmt: skip
    setup = written(isa, f"{way.kept[0]} +{_PLACE}", way.kept[1])
    return Point(
        part,
        laid_out(isa, items),
        1 << power if power else 0,
        DEPENDENT,
        _setting(isa, select),
        PASSED,
        setup,
    )


def _base(way: PatternWay) -> list[Item]:
    """Where targets begin, from an instruction on, or from its end."""
    return [
        Label("base"),
        *[Distance(text, "base", "targets") if TARGET in text else text for text in way.base if text],
    ]


def _targets(way: PatternWay, count: int) -> list[Item]:
    """Jumps to where all come together again."""
    items: list[Item] = [Fill(TARGET_SPACING), Label("targets")]
    for _ in range(count):
        items += [Branch(way.jump, "passed"), Fill(TARGET_SPACING)]
    return items


def _setting(isa: str, select: int) -> Setting:
    numbers = {
        "e": MULTIPLIER, "f": TARGET_SPACING * INCREMENT & _WHOLE, "g": select, "h": -TARGET_SPACING & _WHOLE,
        "B": PASSED, "C": _WHOLE,
    }  # fmt: skip
    return Setting(numbers=tuple((NUMBERS[isa][letter], value) for letter, value in numbers.items()))


def _shares(readings: Readings) -> dict[int, Interval]:
    """How much of what nobody can predict each pattern costs, by its length. Raises Unresolved."""
    same, random = readings.get(_SAME), readings.get(_RANDOM)
    cost = random.low - same.high
    if not same.is_steady or cost < LEAST_COST:
        raise Unresolved(UnclearBranches.RANDOM_ORDER.of())
    every = {length: readings.get(_PATTERN, length) for length in readings.places(_PATTERN)}
    return {length: (one - same).scaled(1 / cost) for length, one in every.items()}


def _between(readings: Readings) -> tuple[int, int]:
    """The longest pattern that is predicted, 1 for none, and the first that is not. Raises Unresolved."""
    last = 1
    for length, share in _shares(readings).items():
        if share.low > LEARNED:
            return last, length
        last = length if share.high < LEARNED else last
    raise Unresolved(UnclearBranches.ALL_PATTERNS.of(), Read.AT.of(last))


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    last, first = _between(readings)
    shares = _shares(readings)
    if any(share.high < LEARNED for length, share in shares.items() if length > first):
        raise Unresolved(UnclearBranches.PATTERNS_AGAIN.of())
    if last == 1:
        raise Unresolved(UnclearBranches.NO_PATTERN.of())
    if first > MOST_DOUBTED * last:
        raise Unresolved(Unclear.LOOKS_DIFFER.of(), Read.PREDICTED.of(last, first))
    is_steady = shares[last].is_steady and shares[first].is_steady
    return ProbeVerdict(CoreAnswer.VALUE, Interval(last, first // 2, is_steady), unit=_UNITS[case.subject])


def _more(case: ProbeCase, readings: Readings) -> Iterator[Point]:
    """Powers of two between the longest pattern that is predicted and the first that is not."""
    last, first = _between(readings)
    isa = next(isa for isa in _WAYS if case.points[0] == _point(isa, case.subject, _SAME))
    for power in range(last.bit_length(), first.bit_length() - 1):
        yield _point(isa, case.subject, _PATTERN, power)


PROBE = Probe(
    "branch-patterns",
    "How long may a pattern of branches be that is predicted, and through how many targets may one jump go?",
    Model.PLATEAU,
    _cases,
    _judge,
    ("Agner Fog, test programs, branch",),
    unit="branches",
    more=_more,
    events=("branch-misses",),
    axis="branches of a pattern, or targets",
)
