"""Sizes of structures on drawn cores, with seeds that nobody tuned on: within two, or not resolved."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import pairwise

import msgspec
import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.isa.table import load_table
from cyclescope.model.machine import Scheduler
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import NUMBERS
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Readings, Unresolved
from cyclescope.probe.run import ask
from cyclescope.probe.sizes import fillers, in_flight
from tests.support.made.probed import NOISE
from tests.support.made.queues import ANY, SIZES, draw, expected

SEED = random.SystemRandom().randrange(1 << 30)
CORES = 8
MANY_CORES = 200
PROBE = PROBES["in-flight"]


def test_places_reach_beyond_the_largest_cores_of_today():
    """Of which one has 640 in flight; a square root takes 11 cycles, in which 6 places pass each."""
    case = next(case for case in PROBE.cases("x86-64") if case.subject == CASE.subject)
    first, *places = sorted({point.x for point in case.points if point.part == "asked"})
    assert (first, places[0]) == (0, 4)
    assert 640 < places[-1] < 1000
    assert all(1.2 <= later / place <= 1.4 for place, later in pairwise(places) if place > 10)
    chain = [line for line in case.points[0].lines if line.form.startswith("SQRT")]
    assert places[-1] / 6 / 11 < len(chain) <= 16, "smaller schedulers hold no chain"


def quick(machine, noise=NOISE, table="x86-64"):
    (asked,) = ask([PROBE], SimulatedBackend(machine, noise=noise), load_table(table), quick=True)
    return {fact.subject: fact for fact in asked.facts}


def test_sizes_of_drawn_cores():
    check_sizes(CORES)


@pytest.mark.slow
def test_sizes_of_many_drawn_cores():
    check_sizes(MANY_CORES)


def check_sizes(cores):
    """Of so many cores all answers are within two, and some of each core's are there."""
    wrong, told = [], 0
    for number in range(cores):
        machine = draw(SEED + number)
        for subject, fact in quick(machine).items():
            if (subject in SIZES or subject == ANY) and fact.is_resolved:
                told += 1
                least, most = expected(machine, subject)
                off = max(least - fact.value, fact.value - most)
                wrong += [(machine.name, fact, least, most)] if off > 2 + fact.error else []
    assert wrong == [], f"seed {SEED}"
    assert told >= cores, f"seed {SEED}: {told} of {3 * cores}"


def waiting(machine, entries):
    """A core whose loads have a scheduler of their own, and room for more of them elsewhere."""
    uses = machine.forms["MOV (R64, M64)"].operations or ()
    ports = tuple(sorted({port for one in uses for port in one.ports}))
    others = tuple(queue for queue in machine.core.schedulers if not set(queue.ports) & set(ports))
    core = msgspec.structs.replace(
        machine.core,
        reorder_buffer=400,
        load_buffer=160,
        schedulers=(*others, Scheduler("loads", ports, entries)),
    )
    return msgspec.structs.replace(machine, core=core)


@pytest.mark.parametrize("cores", [6, pytest.param(MANY_CORES, marks=pytest.mark.slow)])
def test_loads_that_wait_for_their_address(cores):
    """They are what their scheduler holds, or nothing is told."""
    subject = "loads that wait"
    alone = msgspec.structs.replace(
        PROBE, cases=lambda isa: [case for case in PROBE.cases(isa) if case.subject == subject]
    )
    wrong, told = [], 0
    for number in range(cores):
        entries = random.Random(SEED + number).randint(8, 90)
        machine = waiting(draw(SEED + number), entries)
        (asked,) = ask([alone], SimulatedBackend(machine, noise=NOISE), load_table("x86-64"))
        (fact,) = asked.facts
        told += fact.is_resolved
        if fact.is_resolved and abs(fact.value - entries) > 2 + fact.error:
            wrong.append((machine.name, fact, entries))
    assert wrong == [], f"seed {SEED}"
    assert told > cores // 20, f"seed {SEED}: {told} of {cores}"


@pytest.mark.parametrize("cores", [3, pytest.param(MANY_CORES, marks=pytest.mark.slow)])
def test_a_core_that_issues_in_order_has_no_sizes(cores):
    for number in range(cores):
        machine = draw(SEED + number)
        core = msgspec.structs.replace(machine.core, in_order=True)
        found = quick(msgspec.structs.replace(machine, core=core))
        assert not any(fact.is_resolved for fact in found.values()), f"seed {SEED}"


# --- judging, on curves whose truth is known ---------------------------------------------------------

OPERATION, WIDTH = 18.0, 6
LENGTH = in_flight.CHAIN_LENGTH
CHAIN = OPERATION * LENGTH
BY_SUBJECT = {case.subject: case for case in PROBE.cases("x86-64")}
CASE, LOADS = BY_SUBJECT["additions"], BY_SUBJECT["loads"]


class Curve:
    """What kernels of a structure of so many entries take."""

    def __init__(self, size, error=0.01, operation=OPERATION, slow=1 / WIDTH, busy=0.3, again=()):
        self.size, self.error, self.operation, self.slow, self.busy = size, error, operation, slow, busy
        self.again = again  # places that overlap though they are beyond the size

    def interval(self, value):
        return Interval(value * (1 - self.error), value * (1 + self.error))

    def take(self, part, count):
        chain, rate = self.operation * LENGTH, count * self.slow
        free = max(self.busy * chain, rate)
        if part == "free":
            return self.interval(free)
        over = part == "serial" or (count > self.size and count not in self.again)
        return self.interval(max(chain, rate) if over else max(free, chain / 2 + rate / 4))

    def judged(self, case=CASE):
        """The probe's own sweep on this curve."""
        found = {(point.part, point.x): self.take(point.part, point.x) for point in case.points}
        for _ in range(PROBE.stages - 1):
            for point in PROBE.more(case, Readings(found, {})):
                found[point.part, point.x] = self.take(point.part, point.x)
        return PROBE.judge(case, Readings(found, {}))


@pytest.mark.parametrize("size", [16, 31, 32, 72, 100, 192, 256, 447, 512, 600, 700])
def test_the_step_is_found(size):
    """The next time it may be one beside."""
    found = Curve(size).judged()
    assert (found.value.value, found.value.error) == (size, 1)


def test_chains_alone_may_be_disturbed():
    """They take no more than that, which is enough to see that they overlap."""
    curve = Curve(192)
    plain, alone = curve.take, curve.take("asked", 0)
    disturbed = Interval(-math.inf, alone.high, is_steady=False)
    curve.take = lambda part, count: disturbed if (part, count) == ("asked", 0) else plain(part, count)
    assert curve.judged().value.value == 192


@pytest.mark.parametrize("isa", ["x86-64", "aarch64", "riscv64"])
def test_loads_are_kept_in_their_queue_by_an_older_one(isa):
    """Its address waits for the chain, those that are asked about have another."""
    (case,) = (case for case in PROBE.cases(isa) if case.subject == "loads")
    alone, more = (
        next(point.lines for point in case.points if (point.part, point.x) == ("asked", x)) for x in (0, 4)
    )
    converted, *_, older = alone[in_flight.CHAIN_LENGTH :]
    assert converted.registers[1] == alone[0].registers[0], "of the chain's result"
    assert older.registers[1] == converted.registers[0]
    assert {(line.form, line.registers[1]) for line in more[-4:]} == {(older.form, NUMBERS[isa]["p"])}


def test_the_older_load_is_counted():
    assert Curve(115).judged(LOADS).value.value == Curve(115).judged().value.value + 1


@pytest.mark.parametrize(
    ("curve", "reason"),
    [
        (Curve(10_000), "whatever is in between"),
        (Curve(3), "another reason than room"),
        (Curve(-1), "in order"),
        (Curve(100, busy=0.95), "nothing can overlap"),
        (Curve(400, operation=5.0), "too short|as long as the chain"),
        (Curve(300, slow=1.0), "as long as the chain|too short"),
        (Curve(100, error=0.05), "whatever is in between|differ"),
        (Curve(100, again=range(150, 206)), "overlap again"),
    ],
)
def test_what_is_no_step_has_no_size(curve, reason):
    with pytest.raises(Unresolved, match=reason):
        curve.judged()


class BlurredCurve(Curve):
    """One whose last `doubt` places with an overlap have rounds that disagree."""

    def __init__(self, size, doubt):
        super().__init__(size)
        self.doubt = doubt

    def take(self, part, count):
        taken = super().take(part, count)
        blurred = part in ("asked", *in_flight._AGAIN) and self.size - self.doubt < count <= self.size
        return msgspec.structs.replace(taken, is_steady=False) if blurred else taken


@pytest.mark.parametrize(
    ("size", "doubt", "told"), [(100, 5, True), (100, 7, False), (32, 3, True), (32, 4, False)]
)
def test_how_many_places_may_be_in_doubt(size, doubt, told):
    """Some in a hundred, of small numbers three."""
    curve = BlurredCurve(size, doubt)
    if told:
        found = curve.judged().value
        assert (found.low, found.high) == (size - doubt - 1, size + 1)
    else:
        with pytest.raises(Unresolved, match="differ"):
            curve.judged()


class SlopingCurve(Curve):
    """One of which the last `slope` places with an overlap take nearly as long as without."""

    def __init__(self, size, slope):
        super().__init__(size)
        self.slope = slope

    def take(self, part, count):
        sloping = part in ("asked", *in_flight._AGAIN) and self.size - self.slope < count <= self.size
        return self.interval(0.92 * CHAIN) if sloping else super().take(part, count)


def test_how_many_places_a_step_may_take():
    assert SlopingCurve(200, LENGTH).judged().value.high == 201
    with pytest.raises(Unresolved, match="too short"):
        SlopingCurve(200, 2 * LENGTH).judged()


class SharedCurve(Curve):
    """One of which a neighbour has a part while some sweeps ask: only so many are in flight then."""

    def __init__(self, size, shared, sweeps):
        super().__init__(size)
        self.shared, self.sweeps = shared, sweeps

    def take(self, part, count):
        if part in self.sweeps and count > self.shared:
            return Curve(self.shared, self.error).take(part, count)
        return super().take(part, count)


class TwoEndsCurve(Curve):
    """One that has room for more in the third sweep alone."""

    def __init__(self, size, last):
        super().__init__(size)
        self.last = last

    def take(self, part, count):
        return Curve(self.last if part == "third sweep" else self.size, self.error).take(part, count)


class PartlySharedCurve(SharedCurve):
    """A neighbour who was there for one place alone of the first sweep, as it was asked."""

    def take(self, part, count):
        return super().take(part, count) if count == 157 else Curve.take(self, part, count)


def test_a_neighbour_who_took_a_place_is_found_out():
    """A Zen 3 has 164 additions in flight, and had 156 while a look at 157 of them was disturbed."""
    found = PartlySharedCurve(164, 100, ("asked",)).judged().value
    assert found.low <= 164 <= found.high
    assert found.value == pytest.approx(164, abs=1)


def test_a_place_that_was_taken_again_and_again_leaves_it_open():
    seen = ("asked", "asked again", "third sweep")
    assert PartlySharedCurve(164, 100, seen[:2]).judged().value.value == 164
    with pytest.raises(Unresolved, match="overlap again"):
        PartlySharedCurve(164, 100, seen).judged()


@pytest.mark.parametrize(("shared", "doubt"), [(161, 2.5), (155, 1), (140, 1)])
def test_a_neighbour_of_a_later_sweep_takes_nothing_from_what_overlapped_before(shared, doubt):
    """Two sweeps have to agree, and what they differ by is the error; one without room at all is no end."""
    found = SharedCurve(164, shared, ("asked again",)).judged().value
    assert found.high == 165
    assert found.error == doubt


def test_one_sweep_alone_tells_no_end():
    """A neighbour who had the core from the beginning of one to its end would not show."""
    shared = SharedCurve(164, 100, ("third sweep", "fourth sweep"))
    with pytest.raises(Unresolved, match="differ"):
        shared.judged()


def test_ends_of_two_sweeps_that_differ_are_the_error():
    found = TwoEndsCurve(95, 97).judged().value
    assert (found.low, found.high) == (94, 98)
    with pytest.raises(Unresolved, match="differ"):
        TwoEndsCurve(95, 105).judged()


def test_an_end_that_was_never_seen_side_by_side_is_not_told():
    """Each sweep but the first has a neighbour: none has an overlap beside the end."""
    with pytest.raises(Unresolved, match=r"differ|again"):
        SharedCurve(164, 100, in_flight._AGAIN).judged()


# --- what is asked -----------------------------------------------------------------------------------


def asked_next(size):
    """Places that are asked after the first ones, by part."""
    curve = Curve(size)
    found = Readings({(point.part, point.x): curve.take(point.part, point.x) for point in CASE.points}, {})
    return Counter(point.part for point in PROBE.more(CASE, found))


def test_far_places_are_narrowed_down_in_eighths():
    assert 7 <= asked_next(300)["asked"] <= 9
    assert asked_next(60)["asked"] == 8, "of 17 places"
    assert asked_next(50)["asked"] <= 1 < asked_next(50)["asked again"], "of 13 all, side by side"


def test_each_sweep_may_be_narrowed_down_first():
    """From the first places to an eighth of them, to an eighth of that, to all; and after three others."""
    assert PROBE.stages == 12


@pytest.mark.parametrize(("slope", "told"), [(15, True), (16, True), (17, False)])
def test_a_step_may_take_a_chain_and_some(slope, told):
    if told:
        assert SlopingCurve(200, slope).judged().value.high == 201
    else:
        with pytest.raises(Unresolved, match="too short"):
            SlopingCurve(200, slope).judged()


@pytest.mark.parametrize(
    ("subject", "beside"), [("NOPs", (2, 4)), ("vector additions that wait", (0, 2)), ("loads", (1, 1))]
)
def test_what_else_is_in_flight_is_counted(subject, beside):
    found = Curve(115).judged(BY_SUBJECT[subject]).value
    assert (found.low, found.high) == (115 + beside[0] - 1, 115 + beside[1] + 1)


# --- mixes of several kinds --------------------------------------------------------------------------

ANY_KIND = BY_SUBJECT[ANY]


class MixedCurve(Curve):
    """One of a mix of several kinds, of which any structure may be full first, by its share of the mix."""

    def __init__(self, size, **full):
        super().__init__(size)
        self.full = full  # entries by the letter of what takes one

    def take(self, part, count):
        name, _, number = part.partition(", mix ")
        mix = fillers.FILLER_MIXES[int(number) - 1]
        sizes = [entries * len(mix) / mix.count(kind) for kind, entries in self.full.items()]
        return Curve(min([self.size, *map(int, sizes)])).take(name, count)


def test_mixes_that_end_at_one_number_tell_what_all_instructions_are_in():
    found = MixedCurve(320).judged(ANY_KIND).value
    assert (found.low, found.high) == (321, 325)
    assert MixedCurve(320, a=192, v=150, l=136, s=64).judged(ANY_KIND).value.value == found.value, "a Zen 4"


@pytest.mark.parametrize(("kind", "entries"), [("a", 110), ("v", 90), ("l", 40), ("s", 40)])
def test_what_only_some_are_in_is_not_taken_for_what_all_are_in(kind, entries):
    with pytest.raises(Unresolved, match="other numbers"):
        MixedCurve(320, **{kind: entries}).judged(ANY_KIND)


@pytest.mark.parametrize("mix", fillers.FILLER_MIXES)
def test_no_addition_of_a_mix_is_behind_a_vector_addition(mix):
    """A Zen 4 has the two in one entry; each mix is gone through again and again."""
    assert "va" not in mix + mix[0]
    assert {"a", "v", "l", "s"} == set(mix)


def test_every_kind_has_other_shares_of_the_mixes():
    for kinds in ("al", "v", "l", "s"):
        shares = {sum(map(mix.count, kinds)) / len(mix) for mix in fillers.FILLER_MIXES}
        assert max(shares) / min(shares) > 1.1, kinds
