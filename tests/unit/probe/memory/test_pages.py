"""Entries for translated addresses, on hierarchies that are drawn with seeds that nobody tuned on."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.interval import Interval
from cyclescope.probe.memory.pages import ENTRIES, MISS
from cyclescope.probe.question import Readings, Unresolved
from tests.support.made.readings import DrawnCore, answers, wanted

SEED = random.SystemRandom().randrange(1 << 30)
CORES = 200
PROBE = PROBES["pages"]
CASES = {case.subject: case for case in PROBE.cases("x86-64")}


class Translation(DrawnCore):
    """Two levels of entries over two of caches; every set that has more pages than ways misses them all."""

    probe = PROBE

    def __init__(self, seed, steady=0.97):
        super().__init__(seed, steady)
        draw = self.draw
        self.entries, self.ways = draw.randint(12, 160), draw.choice((4, 6, 8, 1000))
        self.second, self.lines = draw.choice((1024, 1536, 2048)), draw.choice((512, 768, 1024))
        self.load, self.far = draw.uniform(3, 5), draw.uniform(12, 17)
        self.miss, self.walk = draw.uniform(5, 9), draw.uniform(15, 40)

    def take(self, part, count):
        value = self.load + (self.far - self.load) * self.over(count, self.lines, 8)
        if part == "pages":
            value += self.miss * self.over(count, self.entries, self.ways)
            value += self.walk * self.over(count, self.second, 8)
        return self.read(value)

    @staticmethod
    def over(count, size, ways):
        """Share of the loads that miss."""
        return min(max((count - size) / max(size / ways, 1), 0.0), 1.0)


@pytest.mark.parametrize("steady", [1.0, 0.97, 0.6])
def test_what_drawn_cores_have(steady):
    told = 0
    for subject, most in ((ENTRIES, 2), (MISS, 0.6)):
        cores = (Translation(SEED + number, steady) for number in range(CORES))
        found = answers(cores, lambda core, case=CASES[subject]: core.judged(case))
        truth = {ENTRIES: "entries", MISS: "miss"}[subject]
        wrong = [
            (core.seed, subject, value)
            for core, value in found
            if abs(value.value - getattr(core, truth)) > most + value.error
        ]
        assert wrong == [], f"seed {SEED}"
        told += len(found)
    assert told > (0 if steady < 0.9 else 0.5 * 2 * CORES), f"seed {SEED}: {told}"


@pytest.mark.parametrize("line", [64, 128])
def test_no_two_loads_are_in_one_line_or_nearer_in_their_sets_than_without_pages(line):
    """Of caches whose ways are as large as pages: what takes longer by itself is no translation."""
    crowds = {}
    for point in CASES[ENTRIES].points:
        count, step = point.setting.chain
        lines = {n * step // line for n in range(count)}
        assert len(lines) == count
        crowds[point.part, count] = max(Counter(number % (4096 // line) for number in lines).values())
    for part, count in crowds:
        assert crowds["pages", count] <= crowds["lines", count], (part, count)
    assert line > 64 or crowds["lines", 256] <= 8, "32 KiB of eight ways hold a line of as many pages"


def known(part, pages):
    """Loads where 63 pages are known, and some of 64."""
    value = 4.0 + (part == "pages") * (7.0 if pages > 64 else 5.4 if pages == 64 else 0.0)
    return Interval(value, value)


def test_how_much_longer_is_told_where_the_end_is_between_two_numbers():
    """64 pages have some that are known, 45 and 91 have all or none of them."""
    case = CASES[MISS]
    keys = {(point.part, point.x) for point in case.points}
    for _ in range(3):
        found = {(part, x): known(part, x) for part, x in keys}
        keys |= wanted(PROBE, case, found)
    assert PROBE.judge(case, Readings(found, {})).value == Interval(7.0, 7.0)


def test_one_page_more_may_be_known_than_is_walked():
    """Of 64 entries of a Zen 3 a walk of 64 pages has 63: what times it has one."""
    core = Translation(1, steady=1.0)
    core.entries, core.ways, core.second = 63, 1000, 2048
    found = core.judged(CASES[ENTRIES])
    assert (found.low, found.high) == (63, 64)


def test_where_translation_takes_no_time_there_is_no_end():
    flat = {(point.part, point.x): Interval(4.0, 4.02) for point in CASES[ENTRIES].points}
    for case in CASES.values():
        with pytest.raises(Unresolved, match="no longer"):
            PROBE.judge(case, Readings(flat, {}))
