"""What pauses lets others go on, and a hurry ends in time: on a clock of its own."""

from __future__ import annotations

from itertools import count

import msgspec
import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.isa.table import load_table
from cyclescope.probe import turns
from cyclescope.probe.catalogue import chosen
from cyclescope.probe.looks import MOST_LOOKS
from cyclescope.probe.run import ask
from cyclescope.probe.turns import finished, in_turns
from cyclescope.session.machines import load_model

CORE = "skylake"


class Clock:
    """Seconds that pass where somebody sleeps, or works."""

    def __init__(self):
        self.now = self.slept = 0.0

    def sleep(self, seconds):
        self.slept += seconds
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(turns.time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(turns.time, "sleep", clock.sleep)
    return clock


def working(clock, name, *pauses, work=1.0):
    """What works before each of its pauses, and after the last."""
    for pause in pauses:
        clock.now += work
        yield pause
    clock.now += work
    return name


def test_others_go_on_while_one_pauses(clock):
    three = [working(clock, "a", 1.0, 1.0), working(clock, "b", 1.0), working(clock, "c")]
    assert list(in_turns(three)) == ["c", "b", "a"]
    assert (clock.now, clock.slept) == (6.0, 0.0)


def test_where_all_pause_the_first_to_be_ready_is_waited_for(clock):
    assert list(in_turns([working(clock, "a", 5.0), working(clock, "b", 2.0)])) == ["b", "a"]
    assert clock.slept == 3.0, "b is ready at 4 and a at 6, of which each works 1"


def turns_of(clock, **workers):
    """In which order some go on, each of which works for some seconds before each pause, and at the end."""
    order = []

    def noted(name, work, pauses):
        for pause in (*pauses, None):
            order.append(name)
            clock.now += work
            if pause is not None:
                yield pause

    list(in_turns(noted(name, *one) for name, one in workers.items()))
    return "".join(order)


def test_every_question_is_looked_at_before_one_is_looked_at_for_long(clock):
    assert turns_of(clock, a=(1.0, (0.0, 0.0, 0.0)), b=(1.0, (0.0,))) == "ababaa"


def test_many_short_turns_do_not_wait_behind_long_ones(clock):
    """Of 80 seconds what is in flight had six turns, 3 in all, and jumps five, of 18: it had no answer."""
    looks = (0.1, 0.2, 0.4, 0.8, 1.6)
    order = turns_of(clock, a=(4.0, looks), b=(0.4, looks * 4), c=(4.0, looks))
    assert order[:3] == "abc"
    assert order[: order.rindex("b")].count("a") < 4, "four seconds each"


def test_one_alone_sleeps(clock):
    assert finished(working(clock, "a", 0.5)) == "a"
    assert clock.slept == 0.5


class Restless(SimulatedBackend):
    """A core whose rounds never agree, and whose batches take `seconds` each."""

    def __init__(self, clock, seconds):
        super().__init__(load_model(CORE))
        self.clock, self.seconds, self.numbers = clock, seconds, count(1)

    def capabilities(self):
        return msgspec.structs.replace(super().capabilities(), real_time=True)

    def collect(self):
        self.clock.now += self.seconds
        return [
            [msgspec.structs.replace(s, cycles=s.cycles * (1 + next(self.numbers) % 7)) for s in row]
            for row in super().collect()
        ]


PROBES = chosen(["move-elimination", "accesses", "misprediction", "stack-engine", "special-values"])


def hurried(clock, seconds, quick=True):
    table = load_table("x86-64")
    return list(ask(PROBES, Restless(clock, seconds), table, quick))


def test_a_hurry_ends_in_time(clock):
    """In 80 seconds and a little: what is under way comes on top, and two minutes are promised."""
    found = hurried(clock, 2.0)
    assert 75 < clock.now < 100
    assert len(found) == len(PROBES)
    open_ones = [fact for asked in found for fact in asked.facts if not fact.is_resolved]
    assert any(fact.unfinished for fact in open_ones)
    clock.now = 0.0
    hurried(clock, 2.0, quick=False)
    assert clock.now > 120


def test_what_no_look_is_left_for_is_not_asked(clock):
    found = hurried(clock, 30.0)
    late = [asked for asked in found if not asked.rows]
    assert late
    assert all(fact.unfinished and "no time" in fact.reason for asked in late for fact in asked.facts)


def test_with_time_enough_nothing_is_cut(clock):
    found = hurried(clock, 0.001)
    assert clock.now < 60
    assert not any(fact.unfinished for asked in found for fact in asked.facts)
    assert clock.slept > 0.1 * 2 ** (MOST_LOOKS - 3)
