"""Forms with sequences of their own: fast and slow values of divisions, branches."""

from __future__ import annotations

import pytest

from cyclescope.infer.timing.results import EXACT, UPPER_BOUND
from cyclescope.measure.record import FAILED, UNSTABLE
from cyclescope.model.facts import HIGH, MEDIUM
from cyclescope.remarks.timing import Cause, Idiom
from tests.support.files.records import DIV, chain, latency, stream, timing

JRCXZ = "JRCXZ (Rel8)"


def test_values_are_the_extremes():
    records = [chain(9.0, "RAX", "RAX", "fast"), chain(17.0, "RAX", "RAX", "slow")]
    found = latency(DIV, *records, source="RAX", target="RAX")
    assert (found.min, found.max, found.kind) == (9.0, 17.0, EXACT)
    assert found.values == {"fast": 9.0, "slow": 17.0}


def test_one_class_of_values_is_better_than_none():
    records = [
        chain(0.0, "RAX", "RAX", "fast", verdict=FAILED, error="SIGFPE"),
        chain(17.0, "RAX", "RAX", "slow"),
    ]
    found = latency(DIV, *records, source="RAX", target="RAX")
    assert (found.values, found.kind) == ({"slow": 17.0}, EXACT)


def test_slow_values_of_vectors_are_next_to_the_plain_ones():
    records = [chain(11.0, "op2", variant="same register"), chain(15.0, "op2", variant="slow")]
    found = latency("VDIVPD (YMM, YMM, YMM)", *records, source="op2")
    assert (found.min, found.max, found.values) == (11.0, 15.0, {"fast": 11.0, "slow": 15.0})


def test_a_class_that_is_withheld_does_not_hide_the_other():
    records = [
        chain(3.2, "RAX", "RAX", "fast", links=("v>r",)),
        chain(17.0, "RAX", "RAX", "slow"),
    ]
    found = latency(DIV, *records, source="RAX", target="RAX")
    assert (found.max, found.kind, found.reason) == (17.0, EXACT, "")


def test_an_upper_bound_of_fast_values_stays_open_below():
    records = [chain(4.0, "op2", variant="same register"), chain(15.0, "op2", variant="slow")]
    found = latency("VDIVPD (YMM, YMM, YMM)", *records, stream(32.0, "fast", 8), source="op2")
    assert (found.min, found.kind) == (0.0, UPPER_BOUND)


@pytest.mark.parametrize(
    ("variant", "fastest", "trust"),
    [("slow", 36.0, MEDIUM), ("slow", 39.0, HIGH), ("same register", 36.0, HIGH)],
)
def test_slow_values_that_are_divided_faster_tell_of_another_rate(variant, fastest, trust):
    """A core may divide at several rates: which one two rounds find is chance."""
    slow = stream(fastest, variant, 8, rounds=(40.0, fastest, 40.0), verdict=UNSTABLE)
    fast = stream(40.0, "fast", 8, rounds=(40.1, 39.9))
    found = timing("VDIVSD_EVEX (XMM, XMM, XMM)", fast, slow).throughput
    assert (found.value, found.confidence) == (5.0, trust)


@pytest.mark.parametrize(
    ("alone", "beside", "kind"),
    [
        (8, 32, EXACT),  # a branch by a known register; taken there are NOPs between
        (16, 32, UPPER_BOUND),  # its count is set before each
        (10, 32, UPPER_BOUND),
    ],
)
def test_a_branch_with_others_beside_it_has_a_bound(alone, beside, kind):
    found = timing(
        JRCXZ,
        stream(8.003, "not taken x8", count=8, instructions=alone),
        stream(7.999, "taken x8", count=8, instructions=beside),
    )
    assert found.throughput.kind == kind


@pytest.mark.parametrize(
    ("cycles", "kind"), [(1.5, UPPER_BOUND), (2.2, UPPER_BOUND), (2.3, EXACT), (5.0, EXACT)]
)
def test_what_cuts_the_x87_stack_is_executed(cycles, kind):
    """Two instructions for each: in a cycle each they may be what takes the time."""
    broken = stream(4 * cycles, "broken x4", instructions=12)
    found = timing("FSQRT", stream(88.0), broken).throughput
    assert (found.kind, found.cause) == (kind, Cause.CUT)


def test_what_cuts_the_x87_stack_for_longer_proves_nothing_of_a_chain():
    sequences = stream(8.0), stream(10.0, "broken x4", instructions=12)
    found = timing("FADD (ST0, STi)", *sequences).throughput
    assert (found.value, found.kind) == (2.0, UPPER_BOUND)


@pytest.mark.parametrize(("same", "idiom"), [(0.8, Idiom.ZERO), (2.0, Idiom.BREAKING), (4.0, "")])
def test_an_idiom_is_executed_where_it_takes_as_long_as_with_its_flags_cut(same, idiom):
    records = [stream(4.0), stream(1.8, "broken x11"), stream(same, "same register")]
    assert timing("SBB_19 (R32, R32)", *records, chain(4.0), chain(4.0, "op2", variant="swap")).idiom == idiom


@pytest.mark.parametrize(
    ("short", "said"), [(2.0, "written out; 2.0 while"), (9.8, "not seen"), (9.6, "out; 9.6")]
)
def test_lines_that_never_leave_the_buffers_are_not_said_to_be_written_out(short, said):
    """A Zen 5 takes 0.5 cycles for each of as many stores to two lines as there are."""
    few = stream(short, "plain x1", count=1)
    found = timing("MOVNTI (M64, R64)", stream(40.0), stream(40.1, "unrolled x4"), few).throughput
    assert found.value == 10.0
    assert said in found.note
