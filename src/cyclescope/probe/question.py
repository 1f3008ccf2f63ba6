"""What a probe is: a question, kernels that answer it for each subject, and how their times are judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from cyclescope.model.facts import HIGH, MEDIUM, CoreAnswer
from cyclescope.probe.code import DEPENDENT, PARALLEL, PLAIN_SETTING, KernelLine, Setting
from cyclescope.probe.interval import Interval
from cyclescope.remarks.probing import Unclear
from cyclescope.remarks.remark import NOTHING, Remark

CYCLES = "cycles"
STAGES = 4  # looks: three that narrow a sweep down, each by ten, are enough for a thousand places


class Model(StrEnum):
    """What readings are compared with."""

    TWO_LEVEL = "two levels"  # controls of the same run say what each answer would take
    PLATEAU = "plateau"  # a sweep, and where it goes on to another level
    RATIO = "ratio"  # so many per cycle
    MATRIX = "matrix"  # two levels, or a value, for every combination


class Point(msgspec.Struct, frozen=True):
    """One kernel of a case: its part in the comparison, and its place `x` in a sweep.

    Readings are per instance of what is asked about, of which there are `count`. `setup` runs once before.
    `beside` is what the other CPU of a pair runs meanwhile, with the same setting. What `varies` takes
    differently long at each look, however quiet it is: it has the median of all of them. What is in part
    `chance` has it where no two looks agree.
    """

    part: str
    lines: tuple[KernelLine, ...]
    x: int = 0
    flags: int = DEPENDENT
    setting: Setting = PLAIN_SETTING
    count: int = 1
    setup: tuple[KernelLine, ...] = ()
    beside: tuple[KernelLine, ...] = ()
    varies: bool = False
    chance: bool = False


class GridPlace(msgspec.Struct, frozen=True):
    """Where a case is among all combinations of two things: the grid's title, its row and its column."""

    title: str
    row: str
    column: str


class ProbeCase(msgspec.Struct, frozen=True):
    """A subject with its kernels; `is_quick` for those that are asked in any hurry.

    `place` is where it is drawn, if it is a combination of two things.
    """

    subject: str
    points: tuple[Point, ...]
    is_quick: bool = True
    place: GridPlace | None = None


class ProbeVerdict(msgspec.Struct, frozen=True):
    """An answer with its value, and what it rests on."""

    answer: CoreAnswer
    value: Interval | None = None
    is_steady: bool = True
    unit: str = ""  # where it is not the probe's

    @property
    def confidence(self) -> str:
        """High where the rounds of every reading agree."""
        steady = self.is_steady and (self.value is None or self.value.is_steady)
        return HIGH if steady else MEDIUM


class Unresolved(Exception):
    """Why a case has no answer: data, not an error. `detail` is what only this case has of it."""

    def __init__(self, reason: Remark, detail: Remark = NOTHING) -> None:
        super().__init__(reason.text)
        self.reason, self.detail = reason, detail


class Readings:
    """What the kernels of a case took, in cycles per instance, by part and place in the sweep."""

    def __init__(
        self, found: Mapping[tuple[str, int], Interval], missing: Mapping[tuple[str, int], Remark]
    ) -> None:
        self._found = found
        self._missing = missing

    def get(self, part: str, x: int = 0) -> Interval:
        """A reading. Raises Unresolved where there is none."""
        if (part, x) not in self._found:
            raise Unresolved(self._missing.get((part, x), Unclear.UNMEASURED.of()))
        return self._found[part, x]

    def places(self, part: str) -> list[int]:
        """Places of a part's points in the sweep, in order, with a reading or not."""
        return sorted(x for name, x in (*self._found, *self._missing) if name == part)

    def ending(self, suffix: str) -> Readings:
        """Those of the parts whose names end so, without it."""
        found = {
            (part.removesuffix(suffix), x): one
            for (part, x), one in self._found.items()
            if part.endswith(suffix)
        }
        missing = {
            (part.removesuffix(suffix), x): one
            for (part, x), one in self._missing.items()
            if part.endswith(suffix)
        }
        return Readings(found, missing)


class Probe(msgspec.Struct, frozen=True):
    """A question about a core.

    `cases` are those of an instruction set, none where it has no such thing; `why_not` says why. `sources`
    are where the method or the expectation is described. `unit` is that of the values. `more` are points of a
    case that its readings so far ask for, none where they say enough. Those `of_pairs` are asked of pairs of
    CPUs, each case of each pair. `events` are what a core's counters tell apart as well: general names of
    the kernel, or `uops`. `stages` are how often points are asked for at the most,
    `axis` is what the places of its sweeps count.
    """

    name: str
    question: str
    model: Model
    cases: Callable[[str], Iterable[ProbeCase]]
    judge: Callable[[ProbeCase, Readings], ProbeVerdict]
    sources: tuple[str, ...]
    why_not: Mapping[str, Remark] = {}
    unit: str = CYCLES
    more: Callable[[ProbeCase, Readings], Iterable[Point]] | None = None
    of_pairs: bool = False
    events: tuple[str, ...] = ()
    stages: int = STAGES
    axis: str = "instances"


def first_of(way: Callable[[int], ProbeVerdict], places: Sequence[int]) -> ProbeVerdict:
    """The verdict at the first place of a sweep that has one. Raises Unresolved, with the first reason."""
    why: Unresolved | None = None
    for x in places:
        try:
            return way(x)
        except Unresolved as error:
            why = why or error
    raise why or Unresolved(Unclear.UNMEASURED.of())


def chain(part: str, *lines: KernelLine, x: int = 0, setting: Setting = PLAIN_SETTING) -> Point:
    """A point that waits for its own results."""
    return Point(part, lines, x, DEPENDENT, setting)


def parallel(
    part: str, *lines: KernelLine, x: int = 0, setting: Setting = PLAIN_SETTING, count: int = 1
) -> Point:
    """A point that is near the width of something."""
    return Point(part, lines, x, PARALLEL, setting, count)
