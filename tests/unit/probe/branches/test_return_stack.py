"""Depths of return stacks, on cores that are drawn with seeds that nobody tuned on."""

from __future__ import annotations

import random

import pytest

from cyclescope.isa.table import load_table
from cyclescope.probe.branches import return_stack
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import instruction
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Readings, Unresolved
from tests.support.made.readings import DrawnCore, answers

SEED = random.SystemRandom().randrange(1 << 30)
CORES = 200
PROBE = PROBES["return-stack"]
(CASE,) = PROBE.cases("x86-64")
ALL, LAST, ONCE = "all of them", "what is too much", "once, and then a little each"


class Returns(DrawnCore):
    """A core that knows so many return addresses, and what it does with more."""

    probe = PROBE

    def __init__(self, seed, steady=0.97, known=None, kind=None, error=0.01):
        super().__init__(seed, steady)
        draw, self.error, self.scatter = self.draw, error, error / 4
        self.known = draw.randint(6, 100) if known is None else known
        self.kind = kind or draw.choice((ALL, LAST, ONCE))
        self.call, self.begin = draw.uniform(1, 3), draw.uniform(5, 30)
        self.wrong, self.slower = draw.uniform(10, 30), draw.uniform(0.8, 1.3)

    def forgotten(self, depth):
        """Cycles of wrong predictions in calls so deep."""
        more = max(depth - self.known, 0)
        if not more or self.kind == ONCE:
            return self.wrong * self.slower + 3 * more if more else 0.0
        return self.wrong * (depth if self.kind == ALL else more)

    def take(self, part, count):
        if part == "to another place":
            value = 4 + self.wrong
        elif part == "to its place":
            value = 4.0
        else:
            shallow = [4] * (count // 4) + [count % 4] * bool(count % 4)
            depths = [count] if part == "inside each other" else shallow
            value = self.begin + self.call * count + sum(map(self.forgotten, depths))
        return self.read(value)


@pytest.mark.parametrize(
    "steady", [pytest.param(1.0, marks=pytest.mark.slow), 0.97, pytest.param(0.6, marks=pytest.mark.slow)]
)
def test_what_drawn_cores_know(steady):
    told = answers(
        (Returns(SEED + number, steady) for number in range(CORES)), lambda core: core.judged(CASE)
    )
    wrong = [(core.seed, core.kind, value) for core, value in told if abs(value.value - core.known) > 2]
    assert wrong == [], f"seed {SEED}"
    assert len(told) > (0 if steady < 0.9 else 0.5 * CORES), f"seed {SEED}: {len(told)}"


@pytest.mark.parametrize(
    ("core", "reason"),
    [
        (Returns(1, 1.0, known=1000), "no longer"),
        (Returns(1, 1.0, known=2, kind=LAST), "so few|no longer|differ"),
        (Returns(1, 1.0, known=0, kind=ALL), "no longer|differ"),
        (Returns(1, 1.0, known=30, error=0.3), "differ|so few"),
    ],
)
def test_what_is_no_edge_has_no_number(core, reason):
    with pytest.raises(Unresolved, match=reason):
        core.judged(CASE)


def test_nothing_is_told_where_wrong_predictions_take_no_time():
    core = Returns(SEED, 1.0, known=20)
    core.wrong = 2.8
    with pytest.raises(Unresolved, match="nothing predicts"):
        core.judged(CASE)
    core.wrong = 6.0
    core.kind = LAST
    assert abs(core.judged(CASE).value - 20) <= 2


def bumped(begin, end):
    """Readings of a core that is slow for some depths only."""
    core = Returns(SEED, 1.0, known=1000)
    found = {(p.part, p.x): core.take(p.part, p.x) for p in CASE.points}
    more = {n: 60.0 for n in return_stack.COARSE if begin <= n < end}
    raised = {
        key: Interval(i.low + more.get(key[1], 0), i.high + more.get(key[1], 0))
        if key[0] == "inside each other" else i for key, i in found.items()
    }  # fmt: skip
    return Readings(raised, {})


def test_what_is_slow_for_a_while_is_no_edge():
    with pytest.raises(Unresolved, match="no longer again"):
        PROBE.judge(CASE, bumped(24, 40))


def edged(known, part, until=1000, doubt=(), further=9, each={}):  # noqa: B006
    """What a core is told that takes a part of a wrong prediction from a number on."""
    found = {("to another place", 0): 24.0, ("to its place", 0): 4.0}
    for n in (*return_stack.COARSE, *range(known - 6, known + further)):
        found["in fours", n] = 10.0 + n + each.get(n, 0.0) * n
        found["inside each other", n] = (
            10.0 + n + each.get(n, 0.0) * n + (20 * part if known < n <= until else 0)
        )
    error = dict.fromkeys(doubt, 8.0)
    readings = {
        (part, n): Interval(value - error.get(n, 0.2), value + error.get(n, 0.2))
        for (part, n), value in found.items()
    }
    return PROBE.judge(CASE, Readings(readings, {})).value


def test_how_much_longer_is_an_edge():
    assert edged(40, 0.7) == Interval(40, 40)
    with pytest.raises(Unresolved, match="no longer"):
        edged(40, 0.35)


@pytest.mark.parametrize(("more", "is_told"), [(0.06, True), (0.14, False)])
def test_calls_in_fours_take_the_same_each(more, is_told):
    """Ten cycles and one each, for as many as are looked at; beyond more of them each."""
    each = {n: more * (10 / 8 + 1) + 10 / 8 - 10 / n for n in range(30, 81)}
    if is_told:
        assert edged(40, 1.0, each=each) == Interval(40, 40)
    else:
        with pytest.raises(Unresolved, match="may be forgotten as well"):
            edged(40, 1.0, each=each)


def test_what_is_twice_as_deep_may_be_slow_anyway():
    assert edged(30, 1.0, until=64) == Interval(30, 30)
    with pytest.raises(Unresolved, match="no longer again"):
        edged(30, 1.0, until=50)


def test_what_is_slow_for_so_few_only_is_not_far_enough():
    """The next number asked is a wrong reading or a right one: nobody knows."""
    with pytest.raises(Unresolved, match=r"differ|no longer again"):
        edged(40, 1.0, until=44)


def test_how_much_further_numbers_have_to_be_slow():
    assert edged(125, 1.0, further=9) == Interval(125, 125)
    with pytest.raises(Unresolved, match="differ"):
        edged(125, 1.0, further=8)


@pytest.mark.parametrize(("doubt", "is_told"), [((40,), True), ((40, 41), True), ((40, 41, 42, 43), False)])
def test_how_many_numbers_noise_may_leave_open(doubt, is_told):
    if is_told:
        value = edged(40, 1.0, doubt=doubt)
        assert value.low <= 40 <= value.high
    else:
        with pytest.raises(Unresolved, match="differ"):
            edged(40, 1.0, doubt=doubt)


def test_calls_are_balanced():
    """As many returns as calls, also in fours."""
    for point in CASE.points:
        forms = [line.form for line in point.lines]
        calls, returns = forms.count("CALL_NEAR (Rel32)"), forms.count("RET_NEAR")
        if point.x:
            assert calls == returns == point.x
            assert forms.count("JMP (Rel32)") == -(-point.x // 4), "as many jumps"


PLACES = (0, 20, 40, 60)  # bytes behind a line, where the runner puts kernels


def test_no_branch_is_in_two_lines_wherever_the_runner_puts_it():
    """Of a Zen 3, branches in two lines cost a cycle and more, and no two places took the same."""
    table = load_table("x86-64")
    for point in CASE.points:
        at = 0
        for line in point.lines:
            size = len(instruction(table, line).code)
            if line.form.startswith(("CALL", "RET", "JMP")):
                assert all((at + place) % 64 + size <= 64 for place in PLACES), (point.part, point.x, at)
            at += size
        assert at % 64 == 0, "copies lie like the first"


def test_few_functions_are_in_a_line_and_little_code_is_none():
    """One in each 64 bytes: two would share what is known of a line, and more bytes are lines without one."""
    table = load_table("x86-64")
    for point in CASE.points:
        if point.x > 8 and point.part != "to its place":
            size = sum(len(instruction(table, line).code) for line in point.lines)
            returns = sum(line.form.startswith("RET") for line in point.lines)
            assert 64 <= size / returns < 128, (point.part, point.x)
