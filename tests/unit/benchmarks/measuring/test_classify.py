"""Whose mistake a disagreement is: one case per rule, and one that no rule knows."""

from __future__ import annotations

import pytest
from making import direct, latency, row, table_of, throughput, timing

from benchmarks.lib.classify import OTHER, OURS, THEIRS, UNEXPLAINED, classify, context
from benchmarks.lib.judging import latencies, throughputs
from cyclescope.infer.timing.results import UPPER_BOUND

ADD, IMUL, SHR = "ADD_01 (R64, R64)", "IMUL (R64, R64)", "SHR (R32, CL)"
PAIR, FLAGS = "2:GR64->0:GR64", "1:GR32->EFLAGS"
MERGED = "VPADDD (XMM, K, XMM, XMM)"
PLAIN = "VPADDD_EVEX (XMM, XMM, XMM)"
ZEROED = "VPADDD_Z (XMM, K, XMM, XMM)"


def verdict(table, rows, timings, what=throughputs, **more):
    """The verdict on the first disagreement; rows and timings by form id."""
    reference = table_of(*rows, **more)
    found = {r.name: (table[r.name], timings[r.name]) for r in rows}
    case = what(reference, found).disagreeing[0]
    return classify(case, context(reference, found))


def throughput_verdict(table, ours, theirs, *ours_latencies, form=IMUL, **more):
    return verdict(table, [row(form, theirs)], {form: timing(form, ours, *ours_latencies)}, **more)


def latency_verdict(table, ours, theirs, form=IMUL, tp=0.25, **more):
    return verdict(table, [row(form, None, theirs)], {form: timing(form, tp, *ours)}, latencies, **more)


# --- throughput ------------------------------------------------------------------------------------


def test_nothing_takes_no_time(table):
    assert throughput_verdict(table, 0.25, 0.0).whose == THEIRS


def test_one_register_for_all_operands(table):
    ours = throughput(1.0, plain_x4=1.0, same_register=3.0)
    found = throughput_verdict(table, ours, 3.0)
    assert (found.whose, "one register" in found.reason) == (OTHER, True)


def test_a_faster_sequence_that_was_not_chosen(table):
    ours = throughput(1.0, plain_x4=1.0, plain_x8=0.5)
    assert throughput_verdict(table, ours, 0.5).whose == OURS


def test_an_unbroken_dependency(table):
    ours = throughput(0.33, plain_x4=1.0, broken_x4=0.33)
    found = throughput_verdict(table, ours, 1.0)
    assert (found.whose, "not broken" in found.reason) == (OTHER, True)


def test_fast_and_slow_values(table):
    ours = throughput(5.0, fast=5.0, slow=9.0)
    found = throughput_verdict(table, ours, 7.0)
    assert (found.whose, "fast and slow" in found.reason) == (OTHER, True)


def test_a_latency_given_as_a_throughput(table):
    found = throughput_verdict(table, 2.0, 7.04, latency("op1", "op1", 7.0))
    assert (found.whose, "equals a latency" in found.reason) == (THEIRS, True)


def test_chains_of_too_few_registers(table):
    ours = throughput(0.5, plain_x4=0.75, plain_x6=0.5, plain_x6_again=0.5)
    found = throughput_verdict(table, ours, 0.25, latency("op1", "op1", 3.0))
    assert (found.whose, "few instances" in found.reason) == (OURS, True)


def test_another_immediate(table):
    found = throughput_verdict(table, 0.25, 0.5, form="VEXTRACTF128 (XMM, YMM, I8)", immediate=7)
    assert (found.whose, "immediate" in found.reason) == (OTHER, True)


def test_a_throughput_is_the_least_time(table):
    found = throughput_verdict(table, throughput(0.67, plain_x8=0.67, plain_x16=0.67), 0.75)
    assert (found.whose, "faster" in found.reason) == (THEIRS, True)


def test_a_length_of_sequence_that_we_lack(table):
    found = throughput_verdict(table, throughput(0.57, plain_x4=0.60, plain_x8=0.57), 0.5)
    assert (found.whose, "length" in found.reason) == (OURS, True)


def test_short_loops_read_low(table):
    ours = throughput(1.0, plain_x4=1.0, plain_x8=1.0, plain_x16=1.0)
    assert throughput_verdict(table, ours, 0.6, short=True).whose == THEIRS
    assert throughput_verdict(table, ours, 0.6).whose == UNEXPLAINED


def test_a_family_that_agrees_but_for_one(table):
    rows = [row(MERGED, 0.25), row(PLAIN, 0.25), row(ZEROED, 0.25)]
    timings = {MERGED: timing(MERGED, 0.4), PLAIN: timing(PLAIN, 0.25), ZEROED: timing(ZEROED, 0.25)}
    found = verdict(table, rows, timings)
    assert (found.whose, "family" in found.reason) == (OURS, True)


# --- latency ---------------------------------------------------------------------------------------


def test_the_shorter_encoding_was_measured(table):
    evex, vex = "VMOVDDUP_EVEX (XMM, XMM)", "VMOVDDUP (XMM, XMM)"
    pair = direct("1:VR128X->0:VR128X", 1.0)
    timings = {
        form: timing(form, 0.5, latency("op2", "op1", value)) for form, value in ((evex, 2.0), (vex, 1.0))
    }
    found = verdict(table, [row(evex, None, pair), row(vex, None)], timings, latencies)
    assert (found.whose, "VEX" in found.reason) == (THEIRS, True)


def test_below_a_cycle(table):
    found = latency_verdict(table, [latency("op2", "op1", 3.0)], direct(PAIR, 0.3))
    assert (found.whose, "below one cycle" in found.reason) == (THEIRS, True)


def test_only_an_upper_bound(table):
    found = latency_verdict(table, [latency("op2", "op1", 3.0, UPPER_BOUND)], direct(PAIR, 2.0))
    assert (found.whose, "upper bound" in found.reason) == (OURS, True)


def test_a_count_of_zero(table):
    found = latency_verdict(table, [latency("op1", "flags.CF", 1.0)], direct(FLAGS, 31.5), form=SHR)
    assert (found.whose, "count is zero" in found.reason) == (OTHER, True)


def test_several_dependencies_at_once(table):
    theirs = direct(PAIR, 4.0, status="WARN_MULTI_DEP")
    found = latency_verdict(table, [latency("op2", "op1", 2.0)], theirs)
    assert (found.whose, "several dependencies" in found.reason) == (THEIRS, True)


@pytest.mark.parametrize(("own", "whose"), [("op1", THEIRS), ("flags.CF", UNEXPLAINED)])
def test_a_chain_through_the_source_alone(table, own, whose):
    ours = [latency("op1", "flags.CF", 3.0), latency(own, own, 3.0)]
    theirs = direct("1:GR64->EFLAGS", 2.0, combined=3.04, helpers="ADC", status="RANGE")
    assert latency_verdict(table, ours, theirs).whose == whose


def test_a_chain_no_longer_than_the_throughput(table):
    found = latency_verdict(table, [latency("op2", "op1", 2.0)], direct(PAIR, 3.0), tp=3.0)
    assert (found.whose, "throughput" in found.reason) == (THEIRS, True)


def test_a_fraction_of_a_cycle_too_long(table):
    found = latency_verdict(table, [latency("op2", "op1", 1.87)], direct(PAIR, 1.01))
    assert (found.whose, "fraction" in found.reason) == (OURS, True)


def test_the_shorter_chain_wins(table):
    found = latency_verdict(table, [latency("op2", "op1", 3.0)], direct(PAIR, 1.0))
    assert (found.whose, "chain" in found.reason) == (OURS, True)
    helped = latency_verdict(table, [latency("op2", "op1", 3.0)], direct(PAIR, 1.0, helpers="MOV"))
    assert helped.whose == UNEXPLAINED


def test_microcode(table):
    found = latency_verdict(table, [latency("op2", "op1", 88.0)], direct(PAIR, 99.0))
    assert (found.whose, "microcode" in found.reason) == (OTHER, True)


def test_what_no_rule_knows_is_said_to_be_unexplained(table):
    assert latency_verdict(table, [latency("op2", "op1", 3.0)], direct(PAIR, 5.0)).whose == UNEXPLAINED


@pytest.mark.parametrize("value", [0.0, 0.2])
def test_no_dependency_against_a_latency_stays_open(table, value):
    found = latency_verdict(table, [latency("op2", "op1", value)], direct(PAIR, 1.0))
    assert (found.whose, "eliminated" in found.reason) == (UNEXPLAINED, True)
