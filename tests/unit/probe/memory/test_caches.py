"""Sizes and times of caches, on hierarchies that are drawn with seeds that nobody tuned on."""

from __future__ import annotations

import random

import pytest

from cyclescope.probe import plateaus
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.interval import Interval
from cyclescope.probe.memory import caches
from cyclescope.probe.question import Readings, Unresolved
from tests.support.made.readings import DrawnCore, answers

SEED = random.SystemRandom().randrange(1 << 30)
CORES = 200
PROBE = PROBES["caches"]
CASES = {case.subject: case for case in PROBE.cases("x86-64")}
KIB = 1024
LEAST = caches.LEAST_SIZE


class Hierarchy(DrawnCore):
    """Caches by size and time; `soft` is how far in front of its end the second one begins to miss."""

    probe, error = PROBE, 0.003

    def __init__(self, seed, soft=0.0, steady=0.97, narrow=False, miss=0.0):
        super().__init__(seed, steady)
        draw, self.soft = self.draw, soft
        first, second = draw.choice((16, 24, 32, 48, 64, 96, 128)), draw.choice((256, 512, 1024, 1280, 2048))
        self.sizes = [first * KIB, first * 2 * KIB if narrow else second * KIB, 1 << 40]
        times = [draw.uniform(3, 5), draw.uniform(11, 18), draw.uniform(40, 80)]
        self.miss, self.pages = miss, 64  # what others take longer
        self.times, self.ways = times, [draw.choice((4, 8, 12)), draw.choice((8, 16))]

    def take(self, part, size):
        """Every set of a cache that has more lines than ways misses them all."""
        if part != plateaus.WALKED:
            return self.translated(part, size // 4096)
        value = self.times[0]
        for level in (0, 1):
            begin, end = self.sizes[level] * (1 - self.soft * level), self.sizes[level]
            more = (size - begin) / (end / self.ways[level] + self.soft * level * end)
            value += (self.times[level + 1] - self.times[level]) * min(max(more, 0.0), 1.0)
        return self.read(value)

    def translated(self, part, pages):
        """Loads of so many pages, or of as many lines."""
        value = self.times[0] + (self.miss if part == "pages" and pages > self.pages else 0.0)
        return Interval(value * 0.997, value * 1.003)

    @property
    def most(self):
        """Bytes of the longest walk."""
        return max(size for part, size in self.found if part == plateaus.WALKED)


def more(case, found):
    """What the readings ask for, nothing where they say nothing."""
    try:
        return list(PROBE.more(case, Readings(found, {})))
    except Unresolved:
        return []


def at_once(found):
    """Readings of pages and lines, as where every page is translated at once."""
    return {(part, x): Interval(4.0, 4.0) for part in ("pages", "lines") for _, x in found}


def scored(subject, truth, **more):
    """How many hierarchies have an answer, and those that are wrong."""
    memories = (Hierarchy(SEED + number, **more) for number in range(CORES))
    told = answers(memories, lambda memory: memory.judged(CASES[subject]))
    both = [(memory.seed, value, truth(memory)) for memory, value in told]
    return len(told), [one for one in both if not one[1].low * 0.97 <= one[2] <= one[1].high * 1.03]


@pytest.mark.parametrize(("level", "name"), list(enumerate(caches.CACHE_LEVELS[:2])))
def test_what_drawn_hierarchies_have(level, name):
    told, wrong = scored(f"{name} level, load", lambda memory: memory.times[level])
    assert (wrong, told > 0.6 * CORES) == ([], True), f"seed {SEED}: {told}"
    told, wrong = scored(f"{name} level, size", lambda memory: memory.sizes[level] / KIB)
    assert (wrong, told > 0.4 * CORES) == ([], True), f"seed {SEED}: {told}"


@pytest.mark.parametrize(
    ("kib", "subject", "most"),
    [(512, "first level, size", 256), (256, "second level, size", 1024), (512, "second level, size", 2048),
     (2048, "second level, load", 8192)],
)  # fmt: skip
def test_walks_are_no_longer_than_a_level_needs(kib, subject, most):
    """Three times its size, and the next: what is larger takes long beside neighbours, and says nothing."""
    memory = Hierarchy(SEED, steady=1.0)
    memory.sizes, memory.times = [32 * KIB, kib * KIB, 1 << 40], [4.0, 14.0, 54.0]
    memory.judged(CASES[subject])
    assert memory.most // KIB == most


def test_walks_become_four_times_as_long_where_no_level_shows():
    case = CASES["second level, load"]
    found = {(p.part, p.x): Interval(4.0, 4.0) for p in case.points if p.part == plateaus.WALKED}
    assert max(size for _, size in found) == 256 * KIB
    assert max(point.x for point in more(case, found)) == 1024 * KIB


@pytest.mark.parametrize("soft", [0.3, 0.6, 0.9])
def test_a_soft_edge_is_no_size(soft):
    _, wrong = scored("second level, size", lambda memory: memory.sizes[1] / KIB, soft=soft)
    assert wrong == [], f"seed {SEED}"


@pytest.mark.parametrize(("share", "told"), [(0.2, True), (0.5, False)])
def test_what_pages_may_end_is_no_cache(share, told):
    """Far beyond the second level loads take so much of what they take longer for their pages."""
    memory = Hierarchy(SEED, steady=1.0)
    memory.sizes, memory.times = [32 * KIB, 512 * KIB, 1 << 40], [4.0, 14.0, 54.0]
    memory.pages, memory.miss = 200, share * 40
    if told:
        assert memory.judged(CASES["second level, size"]).low == pytest.approx(512, rel=0.1)
    else:
        with pytest.raises(Unresolved, match="translated"):
            memory.judged(CASES["second level, size"])
    assert memory.judged(CASES["first level, size"]).low == pytest.approx(32, rel=0.1)


def test_a_level_that_ends_because_of_its_pages_is_no_cache():
    """Its last sizes have some that are not translated at once: what comes before them is compared with."""
    case = CASES["second level, size"]
    found = {(p.part, p.x): walked_pages(p.part, p.x) for p in case.points}
    for _ in range(3):
        found |= {(p.part, p.x): walked_pages(p.part, p.x) for p in more(case, found)}
    with pytest.raises(Unresolved, match="translated"):
        PROBE.judge(case, Readings(found, {}))


def walked_pages(part, size):
    """Loads where 40 pages are translated at once, and walks take longer when the 41st is half walked."""
    value = 12.0 if size > 32 * KIB else 4.0
    if part != plateaus.WALKED:
        value = 13.0 if part == "pages" and size // 4096 > 40 else 4.0
    elif size > 40.5 * 4 * KIB:
        value = 18.0
    return Interval(value, value)


@pytest.mark.parametrize(("less", "told"), [(1.0, True), (0.99, True), (0.97, False)])
def test_more_memory_that_takes_less_is_in_no_cache(less, told):
    """Pages share sets by where they lie: more of them are fewer in the sets that have too many."""
    sizes = [round(LEAST * 1.05**n) for n in range(150)]
    edge = next(size for size in sizes if size > LEAST * 8)
    times = {x: 4.0 if x < edge else 8.0 * (less if x > 1.5 * edge else 1) for x in sizes}
    found = {(plateaus.WALKED, x): Interval(value, value) for x, value in times.items()}
    found |= at_once(found)
    for subject in ("first level, size", "second level, load"):
        if told:
            assert PROBE.judge(CASES[subject], Readings(found, {})).value is not None
        else:
            with pytest.raises(Unresolved, match="more memory take less"):
                PROBE.judge(CASES[subject], Readings(found, {}))


def with_others(kib):
    """Loads as on a Zen 4: a few lines of 32 KiB are others', so that the last sizes take a little longer."""
    if kib <= 26:
        return 4.0
    return 4.0 + 0.37 * (kib - 26) / 6 if kib <= 32 else min(4.5 + 2.4 * (kib - 32), 14.0)


def test_a_level_that_takes_a_little_longer_before_it_ends():
    """Sizes between the last of those and the first beyond are asked too, as they are a quarter apart."""
    case = CASES["first level, size"]
    found = {}
    new = list(case.points)
    for _ in range(PROBE.stages):
        for p in new:
            value = with_others(p.x / KIB) if p.part == plateaus.WALKED else 4.0
            found[p.part, p.x] = Interval(value * 0.997, value * 1.003)
        new = [p for p in more(case, found) if (p.part, p.x) not in found]
    value = PROBE.judge(case, Readings(found, {})).value
    assert value.low <= 32 <= value.high
    assert value.error < 0.15 * value.value


@pytest.mark.parametrize("pages", [16, 100, 300])
def test_a_hurry_knows_what_the_second_level_takes(pages):
    """What is asked first says what translating takes, of levels of 128 pages."""
    memory = Hierarchy(SEED, steady=1.0)
    memory.sizes, memory.times = [96 * KIB, 1024 * KIB, 1 << 40], [4.0, 14.0, 54.0]
    memory.pages, memory.miss = pages, 5.0
    case = CASES["second level, load"]
    found = Readings({(point.part, point.x): memory.take(point.part, point.x) for point in case.points}, {})
    if pages == 16:
        with pytest.raises(Unresolved, match="translated"):
            PROBE.judge(case, found)
    else:
        assert PROBE.judge(case, found).value.value == pytest.approx(14.0, rel=0.01)


def test_few_pages_are_no_reason():
    assert {p.part for p in PROBE.more(CASES["first level, size"], Readings(stepped(4096), {}))} == {"walk"}
    parts = {p.part for p in PROBE.more(CASES["first level, size"], Readings(stepped(12000), {}))}
    assert parts == {"walk", "pages", "lines"}


def stepped(end):
    """Readings of loads that take twice as long behind a size."""
    sizes = [point.x for point in CASES["first level, size"].points]
    return {(plateaus.WALKED, x): Interval(*[8.0 if x > 2 * end else 4.0] * 2) for x in sizes}


@pytest.mark.parametrize(("longer", "told"), [(1.05, True), (1.2, False)])
def test_what_comes_by_and_by_is_no_edge(longer, told):
    """At three times the size loads take what they take at twice the size."""
    sizes = [round(LEAST * 1.02**n) for n in range(300)]
    end = 4.0 * LEAST
    times = {x: 4.0 if x < end else 10.0 * (longer if 2.5 < x / end < 5 else 1) for x in sizes}
    known = Readings({(plateaus.WALKED, x): Interval(value, value) for x, value in times.items()}, {})
    level = plateaus.numbered_level(known, 0)
    if told:
        assert plateaus.level_end(level, known) == pytest.approx(end, rel=0.05)
    else:
        with pytest.raises(Unresolved, match="soft"):
            plateaus.level_end(level, known)


def test_where_hardly_anything_agrees_nothing_is_told_wrong():
    for subject, level in (("first level, size", 0), ("second level, size", 1)):
        _, wrong = scored(subject, lambda memory, n=level: memory.sizes[n] / KIB, steady=0.5)
        assert wrong == [], f"seed {SEED}"


def test_a_level_that_hardly_shows_is_not_passed_over():
    """The next one is not called by its number."""
    _, wrong = scored("second level, load", lambda memory: memory.times[1], narrow=True)
    assert wrong == [], f"seed {SEED}"


@pytest.mark.parametrize(
    ("longer", "levels"), [(0.93, 2), (0.95, 1), (1.04, 1), (1.055, 1), (1.065, 2), (1.1, 2)]
)
def test_what_loads_of_a_level_differ_by(longer, levels):
    sizes = [point.x for point in CASES["first level, size"].points]
    edge = sizes[len(sizes) // 2]
    found = {(plateaus.WALKED, x): Interval(*[4.0 * (longer if x >= edge else 1)] * 2) for x in sizes}
    assert len(plateaus.levels_of(Readings(found, {}))) == levels


@pytest.mark.parametrize(("wide", "levels"), [(1.3, 2), (1.4, 2), (1.6, 3), (2.5, 3)])
def test_a_level_spans_more_than_two_neighbouring_sizes(wide, levels):
    sizes = [round(LEAST * 1.05**n) for n in range(150)]
    edges = LEAST * 8, LEAST * 8 * wide
    times = {x: 4.0 * 2 ** sum(x >= edge for edge in edges) for x in sizes}
    found = {(plateaus.WALKED, x): Interval(value, value) for x, value in times.items()}
    assert len(plateaus.levels_of(Readings(found, {}))) == levels


@pytest.mark.parametrize(("longer", "told"), [(1.2, False), (1.28, False), (1.35, True), (2.0, True)])
def test_an_edge_is_where_loads_take_clearly_longer(longer, told):
    sizes = [round(LEAST * 1.02**n) for n in range(200)]
    found = {(plateaus.WALKED, x): Interval(*[4.0 * (longer if x >= LEAST * 8 else 1)] * 2) for x in sizes}
    case = CASES["first level, size"]
    if told:
        size = PROBE.judge(case, Readings(found | at_once(found), {})).value
        assert size.high == pytest.approx(LEAST * 8 / KIB, rel=0.05)
    else:
        with pytest.raises(Unresolved, match="hardly longer"):
            PROBE.judge(case, Readings(found, {}))


@pytest.mark.parametrize(("share", "end"), [(0.8, 1.3), (0.9, 1.0)])
def test_a_cache_ends_where_loads_take_most_of_what_they_do_beyond(share, end):
    sizes = [round(LEAST * 1.02**n) for n in range(200)]
    last = LEAST * 8
    found = {
        (plateaus.WALKED, x): Interval(*[4.0 if x < last else 10.0 * (share if x < 1.3 * last else 1)] * 2)
        for x in sizes
    }
    size = PROBE.judge(CASES["first level, size"], Readings(found | at_once(found), {})).value
    assert size.high == pytest.approx(end * last / KIB, rel=0.05)


def test_memory_without_levels():
    flat = {(point.part, point.x): Interval(4.0, 4.01) for point in CASES["first level, size"].points}
    with pytest.raises(Unresolved, match="to the largest walk"):
        PROBE.judge(CASES["first level, size"], Readings(flat, {}))
    with pytest.raises(Unresolved, match="no more sizes"):
        PROBE.judge(CASES["second level, load"], Readings(flat, {}))


def test_walks_go_on_where_they_ended():
    for isa in ("x86-64", "aarch64", "riscv64"):
        point = caches.walk(isa, 64 * KIB)
        assert point.setting.chain == (1024, 64)
        assert len(point.lines) == point.count + 1
        assert point.setup[0].at == point.lines[-1].at, "where a walk ends the next one begins"
