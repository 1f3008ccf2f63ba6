"""Ways, size and lines of a first cache, on caches that are drawn with seeds that nobody tuned on."""

from __future__ import annotations

import random

import pytest

from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import NUMBERS
from cyclescope.probe.interval import Interval
from cyclescope.probe.memory import cache_sets
from cyclescope.probe.plateaus import SAME_LEVEL
from cyclescope.probe.question import STAGES, Readings, Unresolved
from tests.support.made.readings import DrawnCore, answers

SEED = random.SystemRandom().randrange(1 << 30)
CORES = 200
PROBE = PROBES["cache-sets"]
CASES = {case.subject: case for case in PROBE.cases("x86-64")}
WAYS, SIZE, LINE = CASES
KIB, LEAST_PAGE = 1024, cache_sets.LEAST_PAGE
WALKS = {cache_sets._part(distance) for distance in cache_sets.LINE_DISTANCES}


class Cache(DrawnCore):
    """A cache by ways, bytes of a way and of a line; lines in a set that has too many all miss.

    `physical` says that pages lie anywhere, and that this is what sets go by.
    """

    def __init__(self, seed, way=0, physical=False, steady=1.0, page=LEAST_PAGE):
        super().__init__(seed, steady)
        draw, self.physical, self.page = self.draw, physical, page
        self.ways = draw.choice((2, 3, 4, 5, 6, 8, 10, 12, 16, 20))
        self.way = way or draw.choice((2048, 4096))
        self.line = draw.choice((32, 64, 128))
        self.hit, self.miss = draw.uniform(3, 5), draw.uniform(11, 20)
        self.frames = {}

    def place(self, address):
        """Where a line is, in a cache that knows where pages are."""
        if not self.physical:
            return address
        frame, rest = divmod(address, self.page)
        return self.frames.setdefault(frame, self.draw.randrange(1 << 20)) * self.page + rest

    def taken(self, addresses):
        sets = {}
        for address in addresses:
            line = self.place(address) // self.line
            sets.setdefault(line % (self.way // self.line), set()).add(line)
        lines = [line for own in sets.values() for line in own]
        missed = sum(len(own) for own in sets.values() if len(own) > self.ways)
        return self.read(self.hit + (self.miss - self.hit) * missed / len(lines))

    def take(self, part, x, ways):
        if part in WALKS:
            distance = int(part.split()[0]) * KIB
            return self.taken(distance * n for n in range(x))
        first = [LEAST_PAGE * n for n in range(ways)]
        behind = [LEAST_PAGE * (n + ways) + x for n in range(ways)]
        return self.taken(first if part == "lines of one set" else first + behind)

    def judged(self, subject):
        """What the probe says in as many stages as it has."""
        case = CASES[subject]
        found = {(point.part, point.x): self.take(point.part, point.x, 0) for point in case.points}
        for _ in range(STAGES - 1):
            for point in PROBE.more(case, Readings(found, {})):
                ways = point.count if point.part == "lines of one set" else point.count // 2
                key = point.part, point.x
                found[key] = found.get(key) or self.take(*key, ways)
        return PROBE.judge(case, Readings(found, {})).value


def scored(truth, **more):
    told, wrong = 0, []
    for number in range(CORES):
        for subject in CASES:
            for cache, value in answers(
                [Cache(SEED + number, **more)], lambda one, of=subject: one.judged(of)
            ):
                told += 1
                if (value.low, value.high) != (truth(cache, subject),) * 2:
                    wrong.append((cache.seed, subject, value, truth(cache, subject)))
    return told, wrong


def known(cache, subject):
    return {WAYS: cache.ways, SIZE: cache.ways * cache.way / KIB, LINE: cache.line}[subject]


def test_what_drawn_caches_have():
    told, wrong = scored(known)
    assert wrong == [], f"seed {SEED}"
    assert told == 3 * CORES, f"seed {SEED}"


@pytest.mark.parametrize("steady", [pytest.param(0.97, marks=pytest.mark.slow), 0.7])
def test_nothing_is_told_wrong_beside_neighbours(steady):
    told, wrong = scored(known, steady=steady)
    assert wrong == [], f"seed {SEED}"
    assert told > CORES / 20 if steady > 0.9 else told < 3 * CORES


@pytest.mark.parametrize(
    "way", [8192, *(pytest.param(way, marks=pytest.mark.slow) for way in (16384, 65536))]
)
def test_where_pages_lie_anywhere_no_distance_shows_the_sets(way):
    """Physical addresses: lines a page apart are in any set."""
    _, wrong = scored(lambda cache, subject: None, way=way, physical=True)
    assert wrong == [], f"seed {SEED}"


def test_larger_ways_of_a_cache_that_knows_no_pages_have_no_answer():
    """A way of 16 KiB by virtual addresses would have synonyms: nobody builds that."""
    for way in (8192, 16384):
        with pytest.raises(Unresolved, match="do not share"):
            Cache(1, way=way).judged(WAYS)


def test_few_lines_more_than_a_level_are_too_many():
    """Of pseudo-random replacement one line of thirteen misses: 19 % longer on a Zen 5."""
    low, high = ((1 + SAME_LEVEL) * more for more in (0.98, 1.03))
    readings = {("4 KiB apart", n): Interval(4.0, 4.0) for n in range(2, 13)}
    for times, last in ((low, 13), (high, 12)):
        found = readings | {
            ("4 KiB apart", 13): Interval(4 * times, 4 * times),
            ("4 KiB apart", 14): Interval(9, 9),
        }
        assert cache_sets._edge(Readings(found, {}), LEAST_PAGE)[0] == last


def linked(isa, point):
    """Where each address of a circle leads, by what its setup does: sums, copies and stores of registers."""
    registers = dict(point.setting.numbers) | dict(point.setting.pointers)
    registers |= {NUMBERS[isa]["z"]: 0} if "z" in NUMBERS[isa] else {}
    memory = {}
    for line in point.setup:
        stores = line.form.startswith(("MOV (M64", "STR", "SD"))
        target, *sources = line.registers
        if stores:
            address, value = (target, sources[0]) if isa == "x86-64" else (sources[0], target)
            memory[registers[address]] = registers[value]
        elif line.form.startswith("MOV"):
            registers[target] = registers[sources[0]]
        else:
            added = [target, *sources] if isa == "x86-64" else sources
            registers[target] = sum(registers[one] for one in added)
    return memory


@pytest.mark.parametrize("isa", ["x86-64", "aarch64", "riscv64"])
@pytest.mark.parametrize("offset", [None, 0, 64])
def test_a_circle_leads_through_all_lines_once(isa, offset):
    """One after the other, those behind in pages of their own, and back to the first."""
    point = cache_sets.circle(isa, 12, offset, "lines of one set")
    memory = linked(isa, point)
    begin = dict(point.setting.pointers)[NUMBERS[isa]["o"]]
    wanted = [begin + KIB * 4 * n for n in range(12)]
    wanted += [] if offset is None else [begin + KIB * 4 * (12 + n) + offset for n in range(12)]
    assert set(memory) == set(wanted)
    at, seen = begin, []
    for _ in range(point.count):
        seen.append(at)
        at = memory[at]
    assert at == begin
    assert sorted(seen) == sorted(wanted)


@pytest.mark.parametrize("isa", ["x86-64", "aarch64", "riscv64"])
def test_a_walk_has_a_load_for_each_line(isa):
    point = cache_sets.circle(isa, 12, 64, "as many behind them")
    assert len(point.lines) == point.count == 24
    assert cache_sets.circle(isa, 12, None, "lines of one set").count == 12
