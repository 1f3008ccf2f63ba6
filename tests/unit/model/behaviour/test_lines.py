"""How loops get the lines of their code: of made-up cores, whose readings have noise."""

from __future__ import annotations

import random
from itertools import accumulate

import msgspec
import pytest

from cyclescope.isa.table import load_table
from cyclescope.model.behaviour.lines import SPLIT_NOPS, CodeLines, code_lines, split_loop
from cyclescope.model.facts import (
    BEGUN_LATE,
    CODE_LINES,
    LONGER_NOPS,
    SHORTEST_NOPS,
    CoreAnswer,
    Fact,
    begun_late,
    loop_of,
)
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import instruction

END = 9  # bytes of a decrement and a branch, one slot


def readings(lines, width=8, ends=1, sizes=(1, 4), noise=0.02, without=(), seed=1, nops=1):
    """Facts of a core that gets code so; None for one that always gets enough."""
    draw, facts = random.Random(seed), []
    for size, counts in zip(sizes, (SHORTEST_NOPS, LONGER_NOPS), strict=False):
        for n in counts:
            slots = [(size, 1.0 / nops)] * n + [(END, float(ends))]
            cycles = max((n / nops + ends) / width, 1.0, lines.cycles(0, slots) if lines else 0.0)
            if (size, n) not in without:
                value = cycles + draw.uniform(-noise, noise)
                facts.append(Fact(CODE_LINES, loop_of(n, size), CoreAnswer.VALUE, value, 0.01))
    return facts


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ends", [1, 2])
@pytest.mark.parametrize("truth", [CodeLines(64, 12, 2), CodeLines(64, 8, 1), CodeLines(32, 7, 1)])
def test_what_a_core_does_is_found(truth, ends, seed):
    counts = (1, 4) if truth.size == 64 else (1, 2)
    assert code_lines(readings(truth, ends=ends, sizes=counts, noise=0.14, seed=seed)) == truth


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ends", [1, 2])
@pytest.mark.parametrize(("size", "most", "width"), [(64, 8, 6), (64, 6, 5), (64, 9, 7), (64, 8, 6.1)])
def test_lines_are_found_where_slots_hide_steps(size, most, width, ends, seed):
    """Of a Zen 3, say: 17 slots take 2.83 cycles by the width, and 3 by their line."""
    truth = CodeLines(size, most, 1.0)
    facts = readings(truth, width=width, ends=ends, sizes=(2, 4), noise=0.015, seed=seed)
    assert code_lines(facts) == truth


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("size", "most", "width"), [(64, 9, 6), (64, 8, 6), (64, 9, 7)])
def test_lines_are_found_where_nops_share_slots(size, most, width, seed):
    """Of a Zen 4, say: two NOPs are a slot, and a line takes a cycle however little of it is read."""
    truth = CodeLines(size, most, 1.0, apart=True)
    facts = readings(truth, width=width, sizes=(2, 4), noise=0.015, seed=seed, nops=2)
    facts.append(Fact(CODE_LINES, begun_late(2), CoreAnswer.VALUE, 2.0, 0.01))
    assert code_lines(facts, nops=2) == truth


def late(plain, read, error=0.01):
    """The facts of a core whose lines are known, and a loop that begins late in a line."""
    count, _ = BEGUN_LATE
    facts = [f for f in readings(CodeLines(64, 8, 1), width=6) if f.subject != loop_of(count, 1)]
    told = {loop_of(count, 1): plain, begun_late(1): read}
    return [
        *facts,
        *(Fact(CODE_LINES, name, CoreAnswer.VALUE, cycles, error) for name, cycles in told.items()),
    ]


@pytest.mark.parametrize(("read", "apart"), [(2.0, True), (1.7, True), (1.5, False), (1.0, False)])
def test_whether_a_line_takes_a_cycle_however_little_of_it_is_read(read, apart):
    found = code_lines(late(1.0, read))
    assert found is not None and found.apart is apart
    assert code_lines(late(1.0, 2.0, error=0.6)).apart is False


def test_few_nops_take_no_longer_than_more_though_they_were_disturbed():
    """A Zen 3 read 1.79 of four NOPs beside a neighbour, and 1.19 of six."""
    assert code_lines(late(1.79, 2.0)).apart is True
    assert code_lines(late(1.79, 1.5)).apart is False


def test_few_slots_in_two_lines_take_two_cycles_where_lines_are_apart():
    lines = CodeLines(64, 8, 1.0, apart=True)
    assert lines.cycles(50, straight(5)) == 1.0
    assert lines.cycles(60, straight(5)) == 2.0
    assert lines.cycles(60, straight(4 + 12)) == 2.0
    assert lines.cycles(60, straight(4 + 13)) == 3.0
    assert lines.cycles(60, straight(33, size=4)) == 5.0


@pytest.mark.parametrize(("explained", "told"), [(5, False), (6, True)])
def test_six_readings_that_slots_do_not_explain_are_enough(explained, told):
    """Each of them a whole cycle, as lines of eight slots make it; of all others the width is enough."""
    facts, count = [], 0
    for size, counts in ((2, SHORTEST_NOPS), (4, LONGER_NOPS)):
        for n in counts:
            whole = CodeLines(64, 8, 1.0).each(0, [(size, 1.0)] * n + [(END, 1.0)])
            cycles = max((n + 1) / 6, 1.0)
            if whole > cycles + 0.1:
                if count == explained:
                    continue
                count += 1
            facts.append(Fact(CODE_LINES, loop_of(n, size), CoreAnswer.VALUE, max(cycles, whole), 0.01))
    assert (code_lines(facts) is not None) is told


@pytest.mark.parametrize(
    "facts",
    [
        [],
        readings(None),
        readings(None, width=2),
        readings(CodeLines(64, 12, 2), sizes=(4,)),
        readings(CodeLines(64, 12, 2), sizes=(1,)),
        readings(CodeLines(64, 40, 2)),
        readings(CodeLines(64, 12, 2), noise=0.7),
        readings(CodeLines(64, 12, 2.3)),  # no whole number of cycles
        readings(CodeLines(60, 12, 2)),  # no power of two
    ],
)
def test_nothing_is_said_without_steps_as_lines_make_them(facts):
    assert code_lines(facts) is None


def test_what_neighbours_disturbed_is_as_short_as_it_may_be():
    truth = CodeLines(64, 12, 2)
    facts = readings(truth)
    slow = {loop_of(n, 1): 0.9 for n in (10, 11, 22)}
    found = [
        Fact(CODE_LINES, f.subject, f.answer, f.value + slow.get(f.subject, 0), slow.get(f.subject, 0.01))
        for f in facts
    ]
    assert code_lines(found) == truth


@pytest.mark.parametrize(("count", "size"), [(10, 4), (20, 2), (22, 2)])
def test_a_reading_that_may_be_shorter_than_it_is_makes_no_step(count, size):
    truth = CodeLines(64, 12, 2)
    facts = readings(truth, sizes=(2, 4))
    vague = loop_of(count, size)
    found = [msgspec.structs.replace(f, error=0.9) if f.subject == vague else f for f in facts]
    assert code_lines(found) == truth


def test_a_vague_reading_is_no_shorter_than_that_of_a_nop_less():
    """As read on a Zen 5, where one loop was disturbed: 11 NOPs were taken for a step."""
    truth = CodeLines(64, 12, 2)
    read = {loop_of(9, 2): (1.29, 0.01), loop_of(10, 2): (1.292, 0.412), loop_of(11, 2): (1.535, 0.009)}
    found = []
    for fact in readings(truth, sizes=(2, 4)):
        value, error = read.get(fact.subject, (fact.value, fact.error))
        found.append(msgspec.structs.replace(fact, value=value, error=error))
    assert code_lines(found) == truth


def test_what_a_slow_front_end_adds_is_no_step():
    truth = CodeLines(64, 12, 8)
    assert code_lines(readings(truth, width=3)) == truth


def test_what_is_read_too_short_may_be_as_long_as_its_error_lets_it():
    truth = CodeLines(64, 12, 2)
    short = [msgspec.structs.replace(f, value=f.value - 0.25, error=0.3) for f in readings(truth)[18:19]]
    facts = readings(truth)
    assert code_lines([*facts[:18], *short, *facts[19:]]) == truth


def test_a_step_that_was_not_read_leaves_no_steps_so_far_apart():
    truth = CodeLines(64, 12, 2)
    assert code_lines(readings(truth, without=[(1, n) for n in (11, 12)])) is None


def straight(*counts, size=1):
    return [(size, 1.0)] * sum(counts)


@pytest.mark.parametrize(
    ("begin", "slots", "cycles"),
    [
        (0, straight(12), 0.0), (0, straight(13), 3.0), (0, straight(24), 3.0), (0, straight(25), 5.0),
        (64, straight(13), 3.0), (50, straight(14), 3.0),
        (50, straight(15), 4.0), (52, straight(30), 0.0),  # begun shortly before the next line
        (0, straight(16, size=4), 3.0), (0, straight(17, size=4), 4.0), (0, straight(29, size=4), 6.0),
        (0, [(1, 1.0)] * 11 + [(1, 2.0)], 3.0), (0, [(8, 2.0)] * 7 + [(9, 1.0)], 4.0),
    ],
)  # fmt: skip
def test_a_trip_takes_the_lines_that_it_has_bytes_in(begin, slots, cycles):
    assert CodeLines(64, 12, 2).cycles(begin, slots) == cycles


@pytest.mark.parametrize(
    ("first", "second", "cycles"),
    [(13, 17, 4.0), (13, 18, 6.0), (16, 14, 4.0), (16, 15, 6.0), (18, 12, 4.0), (18, 13, 6.0), (19, 17, 4.0)],
)
def test_a_piece_that_a_line_begins_has_what_comes_first_in_the_next(first, second, cycles):
    """As measured on a Zen 5; a compiled loop of 16 and 14 slots took 4.6 cycles, bound by its ports."""
    slots = straight(first + second, size=3)
    assert CodeLines(64, 12, 2, piece=6).cycles(64 - 3 * first, slots) == cycles


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ends", [1, 2])
def test_pieces_are_found_by_what_the_second_line_has_more(ends, seed):
    truth = CodeLines(64, 12, 2, piece=6)
    assert code_lines(readings(truth, ends=ends, noise=0.14, seed=seed)) == truth


@pytest.mark.parametrize(("share", "told"), [(0.985, True), (0.97, False)])
def test_lines_take_no_longer_than_what_was_read(share, told):
    """Whole cycles are read too low by two in a hundred at most; more says that lines take less."""
    truth = CodeLines(64, 8, 1.0)
    facts = [
        msgspec.structs.replace(
            fact, value=share * (fact.value or 0.0) if fact.value != 1.0 else 1.0, error=0.0
        )
        for fact in readings(truth, width=6, sizes=(2, 4), noise=0.0)
    ]
    assert (code_lines(facts) == truth) is told


@pytest.mark.parametrize(("least", "told"), [(0.055, False), (0.11, True)])
def test_what_slots_nearly_explain_speaks_for_no_lines(least, told):
    """Five readings that slots do not explain, and two for which they lack some hundredths of a cycle."""
    width, truth = 6.15, CodeLines(64, 8, 1.0)
    facts = {fact.subject: fact for fact in readings(truth, width=width, sizes=(2, 4), noise=0.0)}
    lacks = {
        loop_of(n, size): (facts[loop_of(n, size)].value or 0.0) - (n + 1) / width
        for size, counts in ((2, SHORTEST_NOPS), (4, LONGER_NOPS)) for n in counts
    }  # fmt: skip
    clear = [name for name, lack in lacks.items() if lack > 0.11][:5]
    near = [
        name
        for name, lack in lacks.items()
        if least < lack < (0.095 if least < 0.1 else 1) and name not in clear
    ]
    none = [name for name, lack in lacks.items() if lack < 1e-9]
    assert len(near) > 1
    kept = [facts[name] for name in (*clear, *near[:2], *none)]
    assert (code_lines(kept) is not None) is told


def split(*cycles, error=0.01):
    """A core that gets twelve slots of a line, and what loops take whose ends are in the next line."""
    told = zip(SPLIT_NOPS, cycles, strict=True)
    return [
        *readings(CodeLines(64, 12, 2)),
        *(Fact(CODE_LINES, split_loop(n, 4), CoreAnswer.VALUE, value, error) for n, value in told),
    ]


@pytest.mark.parametrize(
    ("cycles", "told"),
    [
        ((1.1, 1.1, 1.1, 2.0, 2.0, 2.0, 2.0, 2.0), (6, 2.0)),  # of a Zen 5
        ((1.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0), (4, 3.0)),
        ((1.0, 1.0, 1.0, 1.5, 1.5, 1.5, 1.5, 1.5), (0, 0.0)),  # no cycle more
        ((1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 1.0, 1.0), (0, 0.0)),  # nor however many there are
        ((1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0), (0, 0.0)),
        ((1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0), (0, 0.0)),  # slots alone, four a cycle
        ((2.0,) * len(SPLIT_NOPS), (0, 0.0)),  # each line takes a cycle
    ],
)
def test_what_a_line_takes_that_goes_on_in_the_next_is_found(cycles, told):
    found = code_lines(split(*cycles))
    assert found is not None and found.split == told


def test_readings_that_may_be_disturbed_split_no_lines():
    facts = split(1.1, 1.1, 1.1, 2.0, 2.0, 2.0, 2.0, 2.0)
    slow = [split_loop(n, 4) for n in SPLIT_NOPS[3:]]
    vague = [msgspec.structs.replace(f, error=0.5) if f.subject in slow else f for f in facts]
    found = code_lines(vague)
    assert found is not None and found.split == (0, 0.0)


@pytest.mark.parametrize(
    ("begin", "slots", "cycles"),
    [
        (36, 8, 2.0),  # seven, and one behind the line
        (37, 7, 2.0),  # the last of seven reaches into the next line
        (36, 7, 0.0),  # none goes on
        (40, 12, 0.0),  # six, and six
        (36, 12, 2.0), (36, 13, 0.0),  # more slots than are got at a time: nobody knows
        (16, 12, 0.0), (17, 12, 2.0),
        (0, 17, 4.0),  # more than are got of the first line
    ],
)  # fmt: skip
def test_a_loop_that_goes_on_behind_many_slots_takes_a_cycle_more(begin, slots, cycles):
    """As measured on a Zen 5, of NOPs of four bytes."""
    assert CodeLines(64, 12, 2, piece=6, split=(6, 2.0)).cycles(begin, straight(slots, size=4)) == cycles


@pytest.mark.parametrize(("isa", "size"), [("x86-64", 4), ("riscv64", 4)])
def test_the_probe_ends_its_loops_behind_a_line_that_nops_fill(isa, size):
    cases = {case.subject: case for case in PROBES[CODE_LINES].cases(isa)}
    table = load_table(isa)
    nop = {"x86-64": "NOP (R64)", "riscv64": "ADDI"}[isa]
    for count in SPLIT_NOPS:
        (point,) = cases[split_loop(count, size)].points
        ends = list(accumulate(len(instruction(table, line).code) for line in point.lines))
        longer = [n for n, line in enumerate(point.lines) if line.form == nop and ends[n] > 64]
        inside = next(some for some in (longer[n : n + count] for n in range(len(longer))) if some)
        assert inside == list(range(inside[0], inside[0] + count))
        assert ends[inside[-1]] % 64 == 0 and ends[inside[0]] == ends[inside[-1]] - (count - 1) * size
        assert point.lines[inside[-1] + 1].form == {"x86-64": "DEC (R64)", "riscv64": "ADD"}[isa]
