"""How much code is kept decoded, on cores that are drawn with seeds that nobody tuned on."""

from __future__ import annotations

import random

import pytest

from cyclescope.isa.table import load_table
from cyclescope.model.behaviour.sizes import LEAST_CODE
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import instruction
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Readings, Unresolved
from cyclescope.probe.sizes import decoded
from tests.support.made.probed import shared_slots
from tests.support.made.readings import DrawnCore, answers

SEED = random.SystemRandom().randrange(1 << 30)
CORES = 200
PROBE = PROBES["decoded"]
CASES = {case.subject: case for case in PROBE.cases("x86-64")}
COUNT = CASES["instructions"]
SIZES = {point.part: int(point.part.split()[0]) for point in COUNT.points}


def size_of(part):
    """Bytes of an instruction, those of the same line on average."""
    return SIZES.get(part) or decoded._LINE / int(part.split()[0])


def tells_of_slots(part):
    """Whether a part tells if NOPs share slots."""
    return not part[0].isdigit()


class FrontEnd(DrawnCore):
    """A core that keeps so many instructions decoded; of others it decodes so many, or so many bytes."""

    def __init__(self, seed, steady=0.98, kept=None, code=None, rate=None):
        super().__init__(seed, steady)
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
        if tells_of_slots(part):
            return Interval(0.99, 1.01)
        size = size_of(part)
        share = min(max((count - self.kept) / (self.kept / self.ways), 0.0), 1.0)
        value = (1 - share) / self.width + share * self.decoding(size)
        value += size / 16 if count * size > self.code else 0
        return self.read(value)

    def judged(self, subject="instructions"):
        found = {(point.part, point.x): self.take(point.part, point.x) for point in COUNT.points}
        for _ in range(3):
            for key in wanted(found):
                found[key] = self.take(*key)
        return PROBE.judge(CASES[subject], Readings(found, {})).value


def wanted(found):
    return sorted({(p.part, p.x) for p in PROBE.more(COUNT, Readings(found, {}))} - set(found))


@pytest.mark.parametrize(
    "steady", [pytest.param(1.0, marks=pytest.mark.slow), 0.98, pytest.param(0.8, marks=pytest.mark.slow)]
)
def test_what_drawn_cores_keep(steady):
    told = answers((FrontEnd(SEED + number, steady) for number in range(CORES)), FrontEnd.judged)
    wrong = [
        (core.seed, core.kept, value)
        for core, value in told
        if not value.low / 1.02 <= core.kept <= value.high / 0.98
    ]
    assert wrong == [], f"seed {SEED}"
    assert len(told) > (0 if steady < 0.9 else CORES / 4), f"seed {SEED}: {len(told)}"


def test_how_many_drawn_cores_decode():
    told = 0
    for number in range(0, CORES, 4):
        core = FrontEnd(SEED + number, 1.0, code=1 << 20)
        for part, size in SIZES.items():
            try:
                value = core.judged(f"{part}, decoded")
            except Unresolved:
                continue
            told += 1
            assert value.low <= 1 / core.decoding(size) <= value.high, f"seed {SEED + number}"
    assert told > CORES / 4


def test_a_cache_of_code_is_no_end_of_what_is_kept():
    core = FrontEnd(SEED, 1.0, kept=1 << 20, code=16 * 1024)
    with pytest.raises(Unresolved, match=r"cache of code|no two lengths"):
        core.judged()


def test_decoding_as_fast_as_anything_shows_nothing():
    core = FrontEnd(SEED, 1.0, kept=2048, code=1 << 20, rate=8)
    core.fetched = 1000
    with pytest.raises(Unresolved, match="no two lengths"):
        core.judged()


def answer(ends, longer=1.5, last=1 << 20, in_lines=(4000, 1.5)):
    """What is said where lengths end at a number each, and more take so many times as long."""
    found = ends_at(ends, longer, last)
    end, slower = in_lines
    for part, place in wanted(found):
        value = 0.2 * (slower if place > end else 1)
        found[part, place] = Interval(value * 0.995, value * 1.005)
    return PROBE.judge(COUNT, Readings(found, {})).value


def ends_at(ends, longer=1.5, last=1 << 20):
    """Readings of lengths that end at a number each."""
    found = {}
    for (part, size), end in zip(SIZES.items(), ends, strict=True):
        for place in {*range(512, 9001, 256), end, end + 1}:
            if place * size <= decoded.MOST_CODE and place <= last:
                value = 0.2 * (longer if place > end else 1)
                found[part, place] = Interval(value * 0.995, value * 1.005)
    return found


def rate(short, long):
    """How many of 7 bytes are decoded, where those of 2 and 7 take so long beyond 4000."""
    found = {}
    for part, size in SIZES.items():
        for place in range(512, 16001, 256):
            if place * size <= decoded.MOST_CODE:
                beyond = long if size == 7 else short if size == 2 else None
                value = 0.2 if place <= 4000 or beyond is None else beyond
                found[part, place] = Interval(value * 0.995, value * 1.005)
    return PROBE.judge(CASES["7 bytes each, decoded"], Readings(found, {})).value.value


def test_lines_of_code_are_no_decoder():
    """Where shorter ones come to more bytes a cycle than longer ones, these wait for their code."""
    assert rate(0.3, 0.3 * 3.5 * 1.07) == pytest.approx(1 / 1.12, rel=0.01)
    with pytest.raises(Unresolved, match="lines of code"):
        rate(0.3, 0.3 * 3.5 * 1.15)
    with pytest.raises(Unresolved, match="no two lengths"):
        rate(0.2, 0.7)


@pytest.mark.parametrize(("slower", "told"), [(1.0, True), (1.03, True), (1.12, False)])
def test_a_cache_of_code_that_shorter_ones_show_is_no_decoder(slower, told):
    """4 bytes each take longer from 30 000 bytes of code on, as many as the 7 bytes each have soon beyond."""
    found = {}
    for part, size in SIZES.items():
        for place in range(512, 16001, 256):
            if place * size <= decoded.MOST_CODE:
                value = 0.2 if place <= 4000 else {2: 0.5, 4: 0.5, 5: 0.62, 7: 0.85}[size]
                value *= slower if size == 4 and place * size > 30000 else 1
                found[part, place] = Interval(value * 0.999, value * 1.001)
    readings = Readings(found, {})
    if told:
        assert PROBE.judge(CASES["7 bytes each, decoded"], readings).value.value == pytest.approx(
            1 / 0.85, rel=0.001
        )
    else:
        with pytest.raises(Unresolved, match="lines of code"):
            PROBE.judge(CASES["7 bytes each, decoded"], readings)


FAR, KEPT = 9000, Interval(4000, 4000).with_error(decoded.SAME_END)


def test_two_lengths_have_to_end_at_the_same_number():
    assert answer((4000, 4000, FAR, FAR)) == KEPT
    assert answer((4000, FAR, 4100, FAR)) == Interval(4050, 4050).with_error(decoded.SAME_END)
    with pytest.raises(Unresolved, match="cache of code"):
        answer((4000, FAR, 4200, FAR))
    with pytest.raises(Unresolved, match="cache of code"):
        answer((4000, 4700, 2900, 2200))


@pytest.mark.parametrize(("most", "told"), [(4000, True), (4100, True), (4300, False)])
def test_no_length_keeps_more(most, told):
    if told:
        assert answer((4000, 4000, most, FAR)).value == pytest.approx(4000, rel=0.03)
    else:
        with pytest.raises(Unresolved, match="more instructions of another length"):
            answer((4000, 4000, FAR, most))


@pytest.mark.parametrize(
    ("end", "slower", "told"), [(4100, 1.5, True), (4500, 1.5, False), (4500, 1.0, True), (4500, 1.1, True)]
)
def test_no_other_number_in_a_line_keeps_more(end, slower, told):
    """What never takes longer is decoded as fast, which says nothing of places."""
    if told:
        assert answer((4000, 4000, FAR, FAR), in_lines=(end, slower)) == KEPT
    else:
        with pytest.raises(Unresolved, match="more instructions of another length"):
            answer((4000, 4000, FAR, FAR), in_lines=(end, slower))


@pytest.mark.parametrize("away", ["few", "many", "few of two", ""])
def test_other_numbers_in_a_line_have_to_be_seen(away):
    """What a neighbour hid may be kept: of more than the two lengths show, or of many more."""
    found = ends_at((4000, 4000, FAR, FAR))
    asked = wanted(found)
    for part, place in asked:
        found[part, place] = Interval(0.298, 0.302)
    some = [place for part, place in asked if part == "18 in a line"]
    for place in {"few": some[:1], "many": some[1:]}.get(away, []):
        found["18 in a line", place] = Interval(0.2, 0.302, is_steady=False)
    if away == "few of two":
        found["18 in a line", some[0] + 18] = Interval(0.2, 0.302, is_steady=False)
    readings = Readings(found, {})
    if away in ("few", "many"):
        with pytest.raises(Unresolved, match="looks at the same kernel differ"):
            PROBE.judge(COUNT, readings)
    else:
        assert PROBE.judge(COUNT, readings).value == KEPT


@pytest.mark.parametrize("isa", ["x86-64", "riscv64"])
def test_lines_are_full(isa):
    """So many in every line, as many in its halves where the number is even."""
    for each in decoded.IN_LINES[isa]:
        point = decoded.in_lines(isa, each, 1000)
        sizes = [len(instruction(load_table(isa), line).code) for line in point.lines]
        assert len(sizes) == point.x == point.count >= 1000
        for first in range(0, len(sizes), each):
            assert sum(sizes[first : first + each]) == 64
            assert each % 2 or sum(sizes[first : first + each // 2]) == 32


def test_lengths_have_to_be_apart():
    """4 and 5 bytes end at numbers that a cache of code would show, too."""
    with pytest.raises(Unresolved, match="cache of code"):
        answer((FAR, 4100, 4000, FAR))
    assert answer((FAR, FAR, 4000, 4000)) == KEPT, "5 and 7 bytes"


def test_how_much_longer_decoding_takes():
    assert answer((4000, 4000, FAR, FAR), longer=1.25) == KEPT
    with pytest.raises(Unresolved, match="no two"):
        answer((4000, 4000, FAR, FAR), longer=1.08)


def test_how_far_beyond_an_end_has_to_be_seen():
    assert answer((4000, 4000, FAR, FAR), last=5000) == KEPT
    with pytest.raises(Unresolved, match="no two"):
        answer((4000, 4000, FAR, FAR), last=4500)


@pytest.mark.parametrize("isa", ["x86-64", "riscv64"])
def test_loops_have_the_bytes_that_they_say(isa):
    for case in PROBE.cases(isa):
        for point in case.points:
            assert len(set(point.lines)) == 1
            assert point.count == len(point.lines) >= LEAST_CODE
            assert point.count * int(point.part.split()[0]) <= decoded.MOST_CODE


def test_nops_that_share_slots_may_share_places():
    """Of a Zen 4, which keeps 6912 instructions, 8192 NOPs of 4 bytes are as fast as few."""
    found = ends_at((4000, 4000, FAR, FAR)) | shared_slots(6.0, 6.0, 6.0, 6.0)
    for part, place in wanted(found):
        found[part, place] = Interval(0.298, 0.302)
    with pytest.raises(Unresolved, match="share slots"):
        PROBE.judge(COUNT, Readings(found, {}))
