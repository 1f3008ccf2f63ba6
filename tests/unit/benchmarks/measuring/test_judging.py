"""What agrees with a reference."""

from __future__ import annotations

import pytest
from making import direct, latency, row, table_of, timing

from benchmarks.lib.judging import latencies, same_latency, same_throughput, throughputs
from benchmarks.lib.reference import summary
from cyclescope.infer.timing.results import UPPER_BOUND

ADD = "ADD_01 (R64, R64)"
PAIR = "2:GR64->0:GR64"


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [(0.25, 0.28, True), (0.25, 0.29, False), (10.0, 10.5, True), (10.0, 10.6, False), (10.6, 10.0, False)],
)
def test_throughput_within_five_percent_or_three_hundredths(ours, theirs, same):
    assert same_throughput(ours, theirs) is same


@pytest.mark.parametrize(
    ("ours", "low", "high", "same"),
    [
        (1.02, 1.0, 1.0, True), (1.87, 1.0, 1.0, False), (3.0, 2.0, 4.0, True), (4.4, 2.0, 4.0, False),
        (20.9, 20.0, 20.0, True), (0.0, 1.0, 1.0, False),
    ],
)  # fmt: skip
def test_latency_within_the_noise_of_a_whole_number(ours, low, high, same):
    assert same_latency(ours, low, high) is same


def judged(table, ours, theirs, form=ADD, **more):
    """Tally of one form with these latencies."""
    reference = table_of(row("X", 0.25, *theirs))
    return latencies(reference, {"X": (table[form], timing(form, 0.25, *ours, **more))})


def test_equal_latencies_agree(table):
    tally = judged(table, [latency("op2", "op1", 1.01)], [direct(PAIR, 1.0)])
    assert (tally.compared, tally.agreeing) == (1, 1)


def test_a_different_latency_is_listed_with_both_values(table):
    tally = judged(table, [latency("op2", "op1", 1.87)], [direct(PAIR, 1.0)])
    (case,) = tally.disagreeing
    assert (case.what, case.ours(), case.reference()) == ("op2 -> op1", "1.87", "1.00")


def test_a_pair_that_only_one_side_has_is_not_compared(table):
    assert judged(table, [latency("op1", "op1", 1.0)], [direct(PAIR, 1.0)]).compared == 0


def test_an_upper_bound_above_their_value_disagrees(table):
    bound = latency("op2", "op1", 3.0, UPPER_BOUND)
    assert judged(table, [bound], [direct(PAIR, 1.0)]).agreeing == 0
    assert judged(table, [bound], [direct(PAIR, 3.0)]).agreeing == 1


def test_the_open_end_of_a_bound_is_no_value(table):
    ours = [latency("op1", "op1", 2.0), latency("op2", "op1", 2.0, UPPER_BOUND)]
    assert judged(table, ours, summary("2")).agreeing == 1


def test_any_class_of_values_may_agree(table):
    ours = latency("op2", "op1", 18.0, values={"fast": 10.0, "slow": 18.0})
    assert judged(table, [ours], [direct(PAIR, 10.0)]).agreeing == 1
    assert judged(table, [ours], [direct(PAIR, 13.0)]).agreeing == 0


def test_one_flag_is_enough(table):
    ours = [latency("op2", "flags.CF", 1.0), latency("op2", "flags.ZF", 3.0)]
    assert judged(table, ours, [direct("2:GR64->EFLAGS", 3.0)]).agreeing == 1


@pytest.mark.parametrize(
    ("text", "values", "same"),
    [
        ("1", (1.0, 1.0), True),
        ("1", (1.0, 2.0), False),
        ("[1;≤6]", (1.0, 5.0), True),
        ("[1;≤6]", (1.0, 7.0), False),
        ("[1;≤6]", (2.0, 5.0), False),
        ("≤9", (3.0, 8.0), True),
        ("[≤7;12]", (5.0, 12.0), True),
        ("[≤7;12]", (5.0, 9.0), False),
    ],
)
def test_a_summary_is_compared_with_our_extremes(table, text, values, same):
    ours = [latency("op1", "op1", values[0]), latency("op2", "op1", values[1])]
    assert judged(table, ours, summary(text)).agreeing == same


def test_an_idiom_has_latency_zero_in_a_summary(table):
    ours = [latency("op1", "op1", 1.0), latency("op2", "op1", 1.0)]
    assert judged(table, ours, summary("[0;1]")).agreeing == 0
    assert judged(table, ours, summary("[0;1]"), idiom="zero idiom").agreeing == 1


def test_af_is_not_part_of_a_summary(table):
    ours = [latency("op1", "op1", 1.0), latency("op1", "flags.AF", 3.0)]
    assert judged(table, ours, summary("1")).agreeing == 1


def test_false_dependencies_are_not_part_of_a_summary(table):
    """That a result waits for nothing of its old register is no latency of a reference."""
    ours = [latency("op2", "op1", 1.0), latency("op1.old", "op1", 0.0)]
    assert judged(table, ours, summary("1")).agreeing == 1


def test_throughputs_are_compared_where_both_have_one(table):
    reference = table_of(row("A", 0.25), row("B", 0.5), row("C"))
    form = table[ADD]
    found = {name: (form, timing(ADD, value)) for name, value in (("A", 0.25), ("B", 0.25), ("C", 0.25))}
    tally = throughputs(reference, found)
    assert (tally.compared, [case.row.name for case in tally.disagreeing]) == (2, ["B"])
