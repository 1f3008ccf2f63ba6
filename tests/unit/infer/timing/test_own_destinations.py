"""What throughputs depend on: chains side by side do not wait for nothing, nor has a core only one state."""

from __future__ import annotations

import pytest

from cyclescope.infer.timing.laws import waits_for_its_own
from cyclescope.infer.timing.results import EXACT, UPPER_BOUND
from cyclescope.infer.timing.second_looks import throughput_questions
from cyclescope.isa.table import load_table
from cyclescope.measure.plan import Planner
from cyclescope.model.facts import HIGH, MEDIUM
from cyclescope.remarks.timing import Cause
from tests.support.files.records import stream, timing

READS, WRITES = "UNPCKLPS (XMM, XMM)", "VUNPCKLPS (XMM, XMM, XMM)"
ALL, LOADED = "overwritten x12", "overwritten by a load x12"
HALF, QUARTER = "partly overwritten 1 of 2 x12", "partly overwritten 1 of 4 x12"


def sequences(plain, **others):
    """Records of sequences with so many cycles per instance: by their lengths, and by their names."""
    names = {f"plain x{count}": (cycles, count) for count, cycles in plain.items()}
    names |= {name: (cycles, 12) for name, cycles in others.items()}
    return [stream(cycles * count, name, count) for name, (cycles, count) in names.items()]


def throughput(form, plain, others):
    return timing(form, *sequences(plain, **others)).throughput


@pytest.mark.parametrize(
    ("plain", "doubtful"),
    [
        ({8: 0.40, 12: 0.367}, True),  # no fraction
        (
            {8: 0.40, 12: 0.333},
            False,
        ),  # three a cycle are what ports do
        ({8: 0.89, 12: 0.84}, True),  # five sixths, and something else with fewer
        ({8: 0.855, 12: 0.84}, False),  # the same with fewer
        ({12: 0.667}, False),
    ],
)
def test_chains_may_be_what_takes_a_time_that_no_ports_give(plain, doubtful):
    table = load_table("x86-64")
    found = throughput(READS, plain, {})
    assert waits_for_its_own(table[READS], found) is doubtful
    assert not waits_for_its_own(table[WRITES], found)


@pytest.mark.parametrize(
    ("others", "value", "kind", "cause"),
    [
        ({}, 0.367, UPPER_BOUND, Cause.CHAINS),
        ({ALL: 0.5, HALF: 0.42, QUARTER: 0.37}, 0.367, UPPER_BOUND, Cause.CHAINS),  # a quarter says nothing
        ({ALL: 0.37, HALF: 0.37}, 0.367, EXACT, Cause.NONE),  # it is no chain
        ({ALL: 0.333}, 0.333, UPPER_BOUND, Cause.CUT),  # or what overwrites it, two of six a cycle
        ({ALL: 0.333, LOADED: 0.333}, 0.333, UPPER_BOUND, Cause.CUT),
        ({ALL: 0.333, HALF: 0.333}, 0.333, EXACT, Cause.CUT),
        ({ALL: 0.5, HALF: 0.4, QUARTER: 0.333}, 0.333, UPPER_BOUND, Cause.CUT),
        ({HALF: 0.333, QUARTER: 0.334}, 0.333, EXACT, Cause.CUT),
    ],
)
def test_a_time_is_sure_where_chains_and_what_cuts_them_are_no_part_of_it(others, value, kind, cause):
    found = throughput(READS, {8: 0.40, 12: 0.367}, others)
    assert (found.value, found.kind, found.cause) == (value, kind, cause)
    assert kind == UPPER_BOUND or found.confidence == HIGH


def test_what_reads_no_destination_takes_what_it_takes():
    found = throughput(WRITES, {8: 0.40, 12: 0.367}, {})
    assert (found.value, found.kind) == (0.367, EXACT)


def test_doubtful_times_are_asked_about():
    table = load_table("x86-64")
    planner = Planner(table, lambda form: True)
    for plain, asked in (({8: 0.40, 12: 0.367}, [ALL, HALF, QUARTER, LOADED]), ({12: 0.333}, [])):
        found = timing(READS, *sequences(plain))
        assert [e.variant for e in throughput_questions(planner, table[READS], found)] == asked


MASKS, EMPTIED = "KMOVQ (K, R64)", "emptied x12"


@pytest.mark.parametrize(
    ("emptied", "value", "confidence", "told"),
    [(1.33, 1.33, MEDIUM, True), (1.77, 1.77, HIGH, False), (1.85, 1.80, HIGH, False)],
)
def test_what_registers_for_what_is_in_flight_limit_has_both_times(emptied, value, confidence, told):
    found = throughput(MASKS, {8: 1.80, 12: 1.80}, {EMPTIED: emptied})
    assert (found.value, found.kind, found.confidence) == (value, EXACT, confidence)
    assert ("1.8 where several do" in found.note) is told


def test_sequences_with_emptied_masks_are_asked_for_once():
    table = load_table("x86-64")
    planner = Planner(table, lambda form: True)
    asked = throughput_questions(planner, table[MASKS], timing(MASKS, *sequences({8: 1.8, 12: 1.8})))
    assert [e.variant for e in asked] == ["emptied x16"]


@pytest.mark.parametrize(
    ("variant", "fast", "expected"),
    [
        ("plain x16", 7.6, MEDIUM),
        ("plain x16", 7.9, HIGH),  # noise
        ("indexed x16", 7.6, MEDIUM),  # an index makes nothing faster
        ("same register x16", 7.6, HIGH),  # an idiom does
    ],
)
def test_one_round_of_any_sequence_that_was_faster_tells_of_another_state(variant, fast, expected):
    rounds = (16.0, 16.0, 16.0, 2 * fast)
    found = timing(WRITES, stream(8.0, "plain x8", 8), stream(16.0, variant, 16, rounds=rounds)).throughput
    assert (found.value, found.confidence) == (1.0, expected)
