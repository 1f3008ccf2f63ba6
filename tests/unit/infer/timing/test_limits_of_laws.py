"""What asks for a second look, from both sides of every limit."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.infer.timing.laws import (
    is_doubtful,
    is_undecided,
    is_uneven,
    is_unsure,
    may_be_delayed,
    outliers,
)
from cyclescope.infer.timing.results import (
    EXACT,
    INTERVAL,
    UPPER_BOUND,
    Latency,
    Throughput,
    confidence,
    first_error,
    rounded,
    whole,
)
from cyclescope.isa.table import load_table
from cyclescope.measure.record import NOISY, STABLE, UNSTABLE, Record
from cyclescope.model.facts import HIGH, LOW, MEDIUM
from cyclescope.remarks.timing import Cause

FAMILY = ("VPADDD (XMM, XMM, XMM)", "VPADDD (YMM, YMM, YMM)")


def latency(cycles, measured=None, kind=EXACT, **more):
    return Latency("op1", "op1", cycles, cycles, kind, 0.01, measured=measured, **more)


@pytest.mark.parametrize(
    ("cycles", "throughput", "doubtful"),
    [(3.0, 1.9, False), (3.0, 2.1, True), (3.0, 1.0, False), (1.0, 1.0, False)],
)
def test_a_latency_near_the_throughput_may_be_made_by_it(cycles, throughput, doubtful):
    """Nearer than one and a half times."""
    assert is_doubtful(latency(cycles), throughput) == doubtful


@pytest.mark.parametrize(
    ("measured", "doubtful"),
    [(4.10, False), (4.14, True), (4.5, True), (4.86, True), (4.9, False), (0.5, False), (20.5, False)],
)
def test_a_latency_of_no_whole_number(measured, doubtful):
    """Further than 0.12 cycles from one, where noise is less than that."""
    assert is_doubtful(latency(round(measured), measured), 0.5) == doubtful


@pytest.mark.parametrize(
    ("told", "measured", "spread", "undecided"),
    [
        (4.4, 4.4, 0.01, True),  # no whole number
        (4.0, 4.2, 0.04, False),
        (4.0, 4.2, 0.06, True),  # 4.26 would be none
        (4.0, 3.8, 0.06, True),
        (4.0, 3.8, 0.04, False),
        (0.0, 0.2, 0.5, False),  # that there is no dependency is another question
    ],
)
def test_a_latency_that_more_rounds_may_change(told, measured, spread, undecided):
    assert is_undecided(msgspec.structs.replace(latency(told, measured), spread=spread)) is undecided


def test_latencies_by_values_may_change_where_one_is_no_whole_number():
    assert is_undecided(latency(9.3, values={"fast": 9.0, "slow": 9.3}))
    assert not is_undecided(latency(9.0, values={"fast": 8.0, "slow": 9.0}))
    assert is_undecided(latency(17.0, 16.6, kind=INTERVAL, values={"fast": 17.0, "slow": 17.0}))
    assert not is_undecided(latency(4.4, 4.4, kind=UPPER_BOUND))
    assert not is_undecided(latency(None))


@pytest.mark.parametrize(("confidence", "undecided"), [(HIGH, False), (MEDIUM, True), (LOW, True)])
def test_a_bound_by_rounds_that_disagree_is_undecided(confidence, undecided):
    """The least of a locked operation's rounds is 5.7 to 6.6 cycles, of long ones 6.0."""
    assert is_undecided(latency(6.6, 6.6, kind=UPPER_BOUND, confidence=confidence)) is undecided


def test_what_is_withheld_or_hidden_is_doubtful():
    assert is_doubtful(latency(None, cause=Cause.WITHHELD), 1.0)
    assert is_doubtful(latency(3.0, kind=UPPER_BOUND, cause=Cause.HIDDEN), 1.0)
    assert not is_doubtful(latency(3.0, kind=UPPER_BOUND), 1.0)


@pytest.mark.parametrize(
    ("cycles", "delayed"), [(1.0, False), (1.1, False), (1.2, True), (2.0, True), (2.4, True), (3.0, False)]
)
def test_short_chains_may_wait_for_what_cuts_others(cycles, delayed):
    assert may_be_delayed(latency(cycles)) == delayed


@pytest.mark.parametrize(
    ("throughput", "uneven"),
    [
        (0.5, False), (0.507, False), (0.509, True), (2 / 3, False), (0.7, True), (1.25, False), (1.3, True),
        (0.19, False), (0.21, True), (3.9, True), (7.1, False),
    ],
)  # fmt: skip
def test_throughputs_of_equal_ports_are_simple_fractions(throughput, uneven):
    """Within 1.5 %, from 0.2 cycles on; of what takes long, one is always as near."""
    assert is_uneven(throughput) == uneven


@pytest.mark.parametrize(
    ("ratio", "alone"), [(1.02, False), (1.04, True), (1.45, True), (1.55, False), (2.0, False)]
)
def test_widths_of_one_instruction_are_alike_or_clearly_not(ratio, alone):
    table = load_table("x86-64")
    forms = [table[name] for name in FAMILY]
    values = {FAMILY[0]: 5.0, FAMILY[1]: 5.0 * ratio}
    assert outliers(forms, values) == ({FAMILY[1]} if alone else set())


@pytest.mark.parametrize(
    ("value", "chain", "expected"),
    [
        (2.89, 3.0, 3.0), (2.87, 3.0, 2.87), (3.24, 3.5, 3.0), (3.26, 3.5, 3.26), (3.24, 9.0, 3.0),
        (3.26, 9.0, 3.26), (3.0, 3.0, 3.0), (2.76, 9.0, 3.0), (2.74, 9.0, 2.74), (2.8, 3.9, 2.8),
        (2.8, 4.1, 3.0),
    ],
)  # fmt: skip
def test_whole_numbers_but_for_noise(value, chain, expected):
    """Noise makes chains longer rather than shorter; links of long ones may be too long or too short."""
    assert whole(value, chain) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(8.75, 8.75), (8.87, 8.87), (8.89, 9.0), (6.11, 6.0), (6.13, 6.13), (1.14, 1.14)]
)
def test_a_form_alone_is_neither_too_short_nor_too_long(value, expected):
    """Nothing is subtracted from what it takes, and nothing else is in the way."""
    assert whole(value, value, linked=False) == expected


@pytest.mark.parametrize(
    ("value", "error", "expected"),
    [
        (5.71, 0.15, 6.0), (5.69, 0.15, 5.69), (5.67, 0.3, 6.0), (5.63, 0.3, 5.63), (4.31, 0.16, 4.0),
        (4.31, 0.15, 4.31), (4.37, 0.3, 4.37), (5.73, 0.0, 5.73),
    ],
)  # fmt: skip
def test_whole_numbers_within_twice_the_error(value, error, expected):
    """What is 0.35 cycles from any is an average, whatever the error."""
    assert whole(value, 20.0, error) == expected


def record(verdict, exceptions=0, error=""):
    return Record("f", "latency", "a", "b", "self", 1.0, 0.0, verdict, 1, (), exceptions, error)


@pytest.mark.parametrize(
    ("verdict", "exceptions", "expected"),
    [
        (STABLE, 0, "high"), (STABLE, 0x20, "high"), (STABLE, 0x10, "medium"), (STABLE, 1, "medium"),
        (UNSTABLE, 0, "medium"), (NOISY, 0, "low"),
    ],
)  # fmt: skip
def test_confidence(verdict, exceptions, expected):
    assert confidence(record(verdict, exceptions)) == expected


def test_decimals():
    assert [rounded(x) for x in (0.12345, 1.2345, -0.5554, 123.456)] == [0.123, 1.23, -0.555, 123.46]


def test_the_first_error_is_told():
    assert (
        first_error([record(STABLE), record(STABLE, error="SIGSEGV"), record(STABLE, error="hang")])
        == "SIGSEGV"
    )


@pytest.mark.parametrize(
    ("value", "confidence", "cause", "unsure"),
    [
        (0.4, HIGH, Cause.NONE, False),
        (0.4, MEDIUM, Cause.NONE, True),
        (0.4, LOW, Cause.NONE, True),
        (None, "", Cause.NONE, False),
        (None, "", Cause.WITHHELD, True),
    ],
)
def test_throughputs_that_sequences_do_not_agree_about_are_looked_at_again(value, confidence, cause, unsure):
    assert is_unsure(Throughput(value, 0.0, EXACT, confidence=confidence, cause=cause)) == unsure
    assert not is_unsure(None)


@pytest.mark.parametrize(
    ("names", "unsure"),
    [
        (("with FLD ST(0) x8",), True),
        (("fast x4", "slow x4"), True),  # slow values are another question
        (("plain x8", "same register", "indexed x8"), True),
        (("plain x8", "unrolled x8"), False),
    ],
)
def test_a_throughput_of_one_sequence_alone_is_looked_at_again(names, unsure):
    found = Throughput(0.5, 0.0, EXACT, dict.fromkeys(names, 0.5), confidence=HIGH)
    assert is_unsure(found) is unsure
