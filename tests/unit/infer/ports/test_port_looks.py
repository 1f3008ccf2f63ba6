"""What forms show beside blocking instructions, and what of it tells ports: of several looks at the same the
lowest ones, if they are as sure as the others. And what counters tell where no blocking instruction does.
"""

from __future__ import annotations

import pytest

from benchmarks.drawn.round_trip import compare
from cyclescope.backend.simulated import QUIET
from cyclescope.infer.likelihood.noise import SMALLEST_ERROR, Look
from cyclescope.infer.ports.counted import CountedEvidence, Counters
from cyclescope.infer.ports.evidence import lowest
from cyclescope.isa.table import load_table
from cyclescope.measure.ports import INSTANCES, PAIRS, PORTS
from cyclescope.measure.record import Record
from cyclescope.model.facts import MEDIUM
from cyclescope.session.machines import load_model
from tests.support.made.classes import classes_of, cost_records, facts_by_time
from tests.support.made.front_ends import StatedFrontEnd

TWO, MOVED = "VPHMINPOSUW (XMM, XMM)", "CMOVB (R64, R64)"
FILES = {TWO: frozenset("v"), MOVED: frozenset("r")}


def port_record(form, source, variant, cycles):
    return Record(form, PORTS, source, "", variant, cycles, 0.0, "ok", 2, ())


@pytest.mark.parametrize(
    ("cycles", "cost"),
    [
        ({"x8": 9.0}, 1.0),
        ({"x8": 9.0, "x13": 14.1}, 1.05),  # noise
        ({"x8": 9.0, "x8.2": 11.0, "x13.2": 14.1}, 1.05),  # a neighbour took part of the core
        ({"x8": 10.0, "x13": 14.0, "x13.2": 13.9}, 0.95),
    ],
)
def test_what_disturbs_a_look_only_makes_it_more(table, cycles, cost):
    records = [port_record("ADD", TWO, v, c) for v, c in cycles.items()]
    facts = facts_by_time(classes_of(table, {TWO: 2}, FILES), records)
    assert facts.confined["ADD"][TWO] == pytest.approx(cost)


@pytest.mark.parametrize("cycles", [8.5, 17.0])
def test_counts_tell_ports_whatever_else_takes_time(table, cycles):
    """One micro-operation of each of two instances beside eight cycles of blocking on two ports."""
    records = [
        Record(TWO, PAIRS, TWO, "", "x8", 16.0, 0.0, "ok", 2, (), counters=(16.0, 16.0, 0.0)),
        Record("ADD", PORTS, TWO, "", "x8", cycles, 0.0, "ok", 2, (), counters=(9.0, 9.0, 1.0)),
    ]
    counters = Counters(records, ("p0", "p1", "p2"))
    [look] = CountedEvidence(classes_of(table, {TWO: 2}, FILES), counters).looks("ADD")[TWO]
    assert INSTANCES == 2
    assert look.value == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("form", "cost", "told"),
    [("SHL (R64, 0)", 4.6, False), ("SHL (R64, 0)", 4.4, True), ("NOT (R64)", 31.0, True)],
)
def test_what_waits_for_flags_tells_no_ports(table, form, cost, told):
    """Conditional moves wait for those that a shift by 0 leaves as they are; of NOT they read none."""
    classes = classes_of(table, {MOVED: 2}, FILES)
    records = cost_records(classes, {form: {MOVED: cost}, MOVED: {MOVED: 1.0}})
    facts = facts_by_time(classes, records, StatedFrontEnd(table, 6.0))
    assert (MOVED in facts.evidence.looks(form)) == told
    assert MOVED in facts.confined[form]


@pytest.mark.parametrize(("error", "counts"), [(2.0, True), (2.9, True), (3.1, False), (5.0, False)])
def test_a_reading_beside_surer_ones_tells_nothing(error, counts):
    surest = 4 * SMALLEST_ERROR
    sure, vague = Look(1.0, surest), Look(0.6, error * surest)
    assert lowest([sure, vague]) == [vague if counts else sure]


@pytest.mark.parametrize(("beyond", "counts"), [(0.07, True), (0.11, True), (0.13, False), (0.2, False)])
def test_readings_that_noise_parts_count_together(beyond, counts):
    least, other = Look(1.0, SMALLEST_ERROR), Look(1.0 + beyond, SMALLEST_ERROR)
    assert lowest([other, least]) == ([other, least] if counts else [least])


@pytest.mark.parametrize(
    ("machine", "form"),
    [
        ("sifive-p550", "BGEU"),  # on one of three ports that a class has
        ("neoverse-v2", "CBBHSWrr"),  # on two that no class has
    ],
)
def test_ports_of_no_class_are_those_on_which_was_counted(machine, form):
    model = load_model(machine)
    table = load_table(model.isa)
    comparison, [verdict], _ = compare(model, table, [table[form]], QUIET, counters=True)
    usage = comparison.builder.usage(table[form], comparison.builder.facts.front_end.throughputs.get(form))
    assert verdict.right
    assert usage.confidence == MEDIUM
    assert "no class has just these ports" in usage.note


def found_with_counters(machine, names):
    model = load_model(machine)
    table = load_table(model.isa)
    _, verdicts, _ = compare(model, table, [table[name] for name in names], QUIET, counters=True)
    assert all(verdict.right for verdict in verdicts)
    return {verdict.form: verdict.found for verdict in verdicts}


def test_several_beside_classes_are_on_ports_that_others_show_alone():
    two, loads = (
        "PEXTRW (R64, XMM, I8)",
        "PREFETCHW (M8)",
    )  # on the ports of MOVD; on those of LFENCE and more
    found = found_with_counters("znver4", ["MOVD (R32, XMM)", "LFENCE", two, loads])
    assert found[two] == "2*pFP45.0,FP45.1"
    assert found[loads] == "1*pAGU0,AGU1,AGU2+1*pLSU0,LSU1,LSU2"


@pytest.mark.parametrize(
    ("machine", "form", "usage"),
    [
        ("znver4", "CMC", "1*pALU0,ALU1,ALU2,ALU3"),  # a chain of flags
        ("znver4", "LEA_B_IS_D32 (R32)", "1*pALU0,ALU1,ALU2,ALU3"),  # two slots of six
        ("sifive-p550", "C_ADDI16SP", "1*pIEXQ0,IEXQ1,IEXQ2"),  # a chain of the stack pointer
    ],
)
def test_what_slots_or_chains_limit_need_not_use_all_its_ports(machine, form, usage):
    assert found_with_counters(machine, [form]) == {form: usage}


def test_ports_on_which_nothing_was_counted_are_a_doubt_where_others_limit_the_form():
    model = load_model("neoverse-v2")  # two loads, and two for four of the six ports that a class has
    table = load_table(model.isa)
    comparison, [verdict], _ = compare(model, table, [table["LD2H"]], QUIET, counters=True)
    usage = comparison.builder.usage(table["LD2H"], comparison.builder.facts.front_end.throughputs["LD2H"])
    assert not verdict.right
    assert usage.confidence == MEDIUM
    assert "never counted on M0, M1" in usage.note
