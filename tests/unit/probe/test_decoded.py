"""How much code is kept decoded, on cores that are drawn with seeds that nobody tuned on."""

from __future__ import annotations

import random

import pytest

from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Readings, Unresolved
from cyclescope.probe.sizes import decoded

SEED = random.SystemRandom().randrange(1 << 30)
CORES = 200
PROBE = PROBES["decoded"]
CASES = {case.subject: case for case in PROBE.cases("x86-64")}
COUNT = CASES["instructions"]
SIZES = {point.part: int(point.part.split()[0]) for point in COUNT.points}


class FrontEnd:
    """A core that keeps so many instructions decoded; of others it decodes so many, or so many bytes."""

    def __init__(self, seed, steady=0.98, kept=None, code=None, rate=None):
        self.draw, self.steady = random.Random(seed), steady
        draw = self.draw
        self.kept = kept or draw.choice((1536, 2048, 2304, 3072, 4096, 6144, 6912))
        self.code = code or draw.choice((32, 64)) * 1024
        self.width = draw.choice((6, 8))
        self.rate = rate or draw.choice((3, 4))
        self.fetched = draw.choice((16, 32))  # bytes a cycle
        self.ways = draw.choice((4, 8))

    def decoding(self, size):
        return max(1 / self.rate, size / self.fetched, 1 / self.width)

    def take(self, part, count):
        size = SIZES[part]
        share = min(max((count - self.kept) / (self.kept / self.ways), 0.0), 1.0)
        value = (1 - share) / self.width + share * self.decoding(size)
        value += size / 16 if count * size > self.code else 0
        value *= self.draw.gauss(1, 0.002)
        if self.draw.random() > self.steady:
            return Interval(value * 0.9, value * self.draw.uniform(1, 2), is_steady=False)
        return Interval(value * 0.99, value * 1.01)

    def judged(self, subject="instructions"):
        found = {(point.part, point.x): self.take(point.part, point.x) for point in COUNT.points}
        for key in wanted(found):
            found[key] = self.take(*key)
        return PROBE.judge(CASES[subject], Readings(found, {})).value


def wanted(found):
    return sorted({(p.part, p.x) for p in PROBE.more(COUNT, Readings(found, {}))} - set(found))


@pytest.mark.parametrize("steady", [1.0, 0.98, 0.8])
def test_what_drawn_cores_keep(steady):
    wrong, told = [], 0
    for number in range(CORES):
        core = FrontEnd(SEED + number, steady)
        try:
            value = core.judged()
        except Unresolved:
            continue
        told += 1
        if not value.low <= core.kept * 1.02 or not value.high >= core.kept * 0.98:
            wrong.append((SEED + number, core.kept, value))
    assert wrong == [], f"seed {SEED}"
    assert told > (0 if steady < 0.9 else CORES / 4), f"seed {SEED}: {told}"


def test_how_many_drawn_cores_decode():
    told = 0
    for number in range(CORES):
        core = FrontEnd(SEED + number, 1.0, code=1 << 20)
        for part, size in SIZES.items():
            try:
                value = core.judged(f"{part}, decoded")
            except Unresolved:
                continue
            told += 1
            assert value.low <= 1 / core.decoding(size) <= value.high, f"seed {SEED + number}"
    assert told > CORES


def test_a_cache_of_code_is_no_end_of_what_is_kept():
    core = FrontEnd(SEED, 1.0, kept=1 << 20, code=16 * 1024)
    with pytest.raises(Unresolved, match=r"cache of code|no two lengths"):
        core.judged()


def test_decoding_as_fast_as_anything_shows_nothing():
    core = FrontEnd(SEED, 1.0, kept=2048, code=1 << 20, rate=8)
    core.fetched = 1000
    with pytest.raises(Unresolved, match="no two lengths"):
        core.judged()


def answer(ends, longer=1.5, last=1 << 20):
    """What is said where lengths end at a number each, and more take so many times as long."""
    found = {}
    for (part, size), end in zip(SIZES.items(), ends, strict=True):
        for place in {*range(512, 9001, 256), end, end + 1}:
            if place * size <= decoded.MOST_CODE and place <= last:
                value = 0.2 * (longer if place > end else 1)
                found[part, place] = Interval(value * 0.995, value * 1.005)
    return PROBE.judge(COUNT, Readings(found, {})).value


FAR = 9000


def test_two_lengths_have_to_end_at_the_same_number():
    assert answer((4000, 4000, FAR, FAR)) == Interval(4000, 4000)
    assert answer((4000, FAR, 4300, FAR)) == Interval(4000, 4300)
    with pytest.raises(Unresolved, match="cache of code"):
        answer((4000, 4700, 2900, 2200))


def test_lengths_have_to_be_apart():
    """4 and 5 bytes end at numbers that a cache of code would show, too."""
    with pytest.raises(Unresolved, match="cache of code"):
        answer((FAR, 4300, 4000, FAR))
    assert answer((FAR, FAR, 4000, 4000)) == Interval(4000, 4000), "5 and 7 bytes"


def test_how_much_longer_decoding_takes():
    assert answer((4000, 4000, FAR, FAR), longer=1.25) == Interval(4000, 4000)
    with pytest.raises(Unresolved, match="no two"):
        answer((4000, 4000, FAR, FAR), longer=1.08)


def test_how_far_beyond_an_end_has_to_be_seen():
    assert answer((4000, 4000, FAR, FAR), last=5000) == Interval(4000, 4000)
    with pytest.raises(Unresolved, match="no two"):
        answer((4000, 4000, FAR, FAR), last=4500)


@pytest.mark.parametrize("isa", ["x86-64", "riscv64"])
def test_loops_have_the_bytes_that_they_say(isa):
    for case in PROBE.cases(isa):
        for point in case.points:
            assert len(set(point.lines)) == 1
            assert point.count == len(point.lines) >= decoded.LEAST_CODE
            assert point.count * int(point.part.split()[0]) <= decoded.MOST_CODE
