"""Levels of branch targets, on cores that are drawn with seeds that nobody tuned on."""

from __future__ import annotations

import random

import pytest

from cyclescope.probe.branches import targets as branch_targets
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Readings, Unresolved
from tests.support.made.readings import DrawnCore, answers

SEED = random.SystemRandom().randrange(1 << 30)
CORES = 200
PROBE = PROBES["branch-targets"]
CASES = {case.subject: case for case in PROBE.cases("x86-64")}
FIRST = CASES["first level, jumps"]
PLACES = tuple((point.part, point.x) for point in CASES["first level, jumps"].points)


class Targets(DrawnCore):
    """A core with two levels of targets and a cache of code; near jumps may be limited by fetching."""

    def __init__(self, seed, steady=0.98, first=None, code=None, second=None):
        super().__init__(seed, steady)
        draw = self.draw
        self.first = first or draw.choice((64, 96, 128, 256, 512, 1024, 1536))
        self.second = second or draw.choice((2, 2.5, 3)) * max(self.first, 512)
        self.code = code or draw.choice((32, 64, 128)) * 1024
        self.ways = draw.choice((2, 4, 8))
        self.times = [1.0, draw.choice((2.0, 3.0, 4.0)), draw.uniform(9, 15)]
        self.near = draw.choice((1.0, 1.7))  # cycles at the least of jumps that are 8 bytes apart

    def take(self, part, count):
        spacing = int(part.split()[0])
        value = self.times[0] + (self.times[1] - self.times[0]) * self.over(count, self.first)
        value += (self.times[2] - self.times[1]) * self.over(count, self.second)
        value += 6 * spacing / 64 * self.over(count * spacing, self.code)
        value = max(value, self.near if spacing == 8 else 0)
        return self.read(value)

    def over(self, count, size):
        return min(max((count - size) / (size / self.ways), 0.0), 1.0)

    def judged(self, subject):
        found = {key: self.take(*key) for key in PLACES}
        for key in asked(found, subject):
            found[key] = self.take(*key)
        return PROBE.judge(CASES[subject], Readings(found, {})).value


def asked(found, subject):
    """Places between the last of a level and the next, as the probe asks for them, without making kernels."""
    wanted = set()
    for spacing in branch_targets.JUMP_SPACINGS:
        own = branch_targets.apart(Readings(found, {}), spacing)
        for count in branch_targets.between(own, CASES[subject]):
            wanted.add((f"{spacing} bytes apart", count))
    return sorted(wanted - set(found))


@pytest.mark.parametrize("steady", [1.0, 0.98, 0.7])
def test_what_drawn_cores_know(steady):
    wrong, told = [], 0
    for number in range(CORES):
        core = Targets(SEED + number, steady)
        truth = {
            "first level, jumps": core.first, "first level, each": core.times[0],
            "second level, jumps": core.second, "second level, each": core.times[1],
        }  # fmt: skip
        found = answers(truth, core.judged)
        told += len(found)
        wrong += [(core.seed, *one) for one in found if not near(one[1], truth[one[0]])]
    assert wrong == [], f"seed {SEED}"
    assert told > (0 if steady < 0.9 else CORES), f"seed {SEED}: {told}"


def near(value, right):
    return value.low * 0.93 <= right <= value.high * 1.07


def test_a_cache_of_code_is_no_level_of_targets():
    core = Targets(SEED, 1.0, first=100_000, second=200_000, code=16 * 1024)
    with pytest.raises(Unresolved):
        core.judged("first level, jumps")


def answer(numbers, each=(1.0, 1.0, 1.0)):
    """What the probe says where levels end at a number per distance, and jumps in them take so long each."""
    found = {}
    for (spacing, number), cycles in zip(
        zip(branch_targets.JUMP_SPACINGS, numbers, strict=True), each, strict=True
    ):
        places = {*branch_targets.counts(spacing), number, number + 1}
        for place in places:
            value = cycles if place <= number else 4 * cycles
            found[f"{spacing} bytes apart", place] = Interval(value * 0.995, value * 1.005)
    return PROBE.judge(FIRST, Readings(found, {})).value


def test_two_distances_have_to_show_the_same():
    assert answer((256, 256, 256)) == Interval(256, 256)
    assert answer((1024, 256, 256)) == Interval(256, 256), "near jumps may have another limit"
    assert answer((1024, 512, 540)).low == 512
    with pytest.raises(Unresolved, match="other numbers"):
        answer((1024, 512, 256))
    with pytest.raises(Unresolved, match="other numbers"):
        answer((1024, 512, 600))
    with pytest.raises(Unresolved, match="other numbers"):
        answer((1000, 400, 256), each=(1.0, 1.0, 1.0))


def test_jumps_have_to_take_the_same_too():
    assert answer((1024, 256, 256), each=(1, 1, 1.05)).low == 256
    with pytest.raises(Unresolved, match="other numbers"):
        answer((1024, 256, 256), each=(1, 1, 1.1))


@pytest.mark.parametrize(("faster", "told"), [(0.97, True), (0.9, False), (0.5, False)])
def test_jumps_that_miss_a_level_whatever_their_number_tell_of_none(faster, told):
    """Two of a line may be in each other's place: then only jumps of other lines are as fast as any."""
    each = (1.0, 1.0, faster)
    if told:
        assert answer((1024, 1024, 64), each=each) == Interval(1024, 1024)
    else:
        with pytest.raises(Unresolved, match="no two distances"):
            answer((1024, 1024, 64), each=each)
        assert answer((64, 64, 1024), each=(faster, faster, 1.0)) == Interval(64, 64)


def rising(*steps, each=(1.0, 1.0, 1.0)):
    """What the probe says where jumps beyond 512 are so far up the way to four times as long, by distance."""
    found = {}
    for spacing, step in zip(branch_targets.JUMP_SPACINGS, steps, strict=True):
        for place in {*branch_targets.counts(spacing), *range(496, 704, 16), 513}:
            share = 0 if place <= 512 else step if place < 1000 else 1
            found[f"{spacing} bytes apart", place] = Interval(0.995 + 3 * share, 1.005 + 3 * share)
    return PROBE.judge(FIRST, Readings(found, {})).value


def test_one_of_two_distances_has_a_steep_end():
    """Targets that collide by chance make jumps slower by and by, however far apart they are."""
    assert rising(0.2, 0.2, 0.6) == Interval(512, 512)
    assert rising(0.6, 0.0, 0.2) == Interval(512, 512), "two of three"
    with pytest.raises(Unresolved, match="by and by"):
        rising(0.4, 0.4, 0.4)
    with pytest.raises(Unresolved, match="no two distances"):
        rising(0.05, 0.05, 0.6)


def test_what_jumps_beyond_take_need_not_be_steady():
    found = {}
    for spacing in branch_targets.JUMP_SPACINGS:
        for place in {*branch_targets.counts(spacing), 513}:
            low, high = (0.99, 1.01) if place <= 512 else (3.0, 4.5)
            found[f"{spacing} bytes apart", place] = Interval(low, high, is_steady=place <= 512)
    assert PROBE.judge(FIRST, Readings(found, {})).value == Interval(512, 512)


@pytest.mark.parametrize(("unsure", "is_told"), [(600, True), (700, False)])
def test_how_much_of_a_number_noise_may_leave_open(unsure, is_told):
    """A tenth on either side."""
    found = {}
    for spacing in branch_targets.JUMP_SPACINGS:
        for place in {*branch_targets.counts(spacing), *range(520, 720, 8)}:
            high = 1.01 if place <= 512 else 4.1
            found[f"{spacing} bytes apart", place] = Interval(
                4.0 if place > unsure else 0.99, high, is_steady=not 512 < place <= unsure
            )
    if is_told:
        assert PROBE.judge(FIRST, Readings(found, {})).value.high >= 600
    else:
        with pytest.raises(Unresolved):
            PROBE.judge(FIRST, Readings(found, {}))


def test_a_body_is_the_only_one_in_its_loop():
    for isa in ("x86-64", "aarch64", "riscv64"):
        for spacing in branch_targets.JUMP_SPACINGS:
            point = branch_targets.jumps(isa, spacing, branch_targets.LEAST_JUMPS)
            assert len(point.lines) >= 400, "as many instructions as a loop has at the least"
