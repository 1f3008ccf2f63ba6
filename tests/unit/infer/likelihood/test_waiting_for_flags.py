"""Forms among blocking instructions whose flags they wait for, and behind setters that end this."""

from __future__ import annotations

import pytest

from benchmarks.drawn.round_trip import compare, core_named, sample
from cyclescope.backend.simulated import QUIET
from cyclescope.infer.likelihood.noise import Look
from cyclescope.infer.likelihood.structure import port_sets
from cyclescope.infer.likelihood.usage import Told, UsageSolver, explanations
from cyclescope.infer.ports.builder import level_of
from cyclescope.infer.ports.candidates import domains, is_candidate
from cyclescope.infer.ports.evidence import ERROR, waits_among
from cyclescope.isa.table import load_table
from cyclescope.measure.plan import Planner
from cyclescope.measure.ports import PORTS, PortPlanner
from cyclescope.measure.record import Record
from cyclescope.model.facts import HIGH, LOW
from cyclescope.model.machine import Operation
from tests.support.made.classes import classes_of, facts_by_time

ADC, BLOCKER, SETTER = "ADC_10 (R8h, R8l)", "BLSFILL (R64, R64)", "NEG (R64)"
SETS = {"one": (1,), "two": (0, 1)}
BOTH = (Operation((0, 1), 2.0),)


def likeliest(cost, waits):
    looks = {"one": (Look(cost, ERROR, waits=waits),), "two": (Look(2.0, ERROR),)}
    return explanations([UsageSolver(SETS, port_sets(SETS)).candidates(looks, 1.0, 2)], Told(1.0, 2))


def test_what_waits_for_flags_may_take_a_port_of_two_though_the_other_would_do():
    waiting = likeliest(1.0, True)
    assert level_of(waiting[0]) == LOW
    assert {BOTH, (Operation((1,)), Operation((0, 1)))} == {one.operations for one in waiting[:2]}
    assert level_of(likeliest(1.0, False)[0]) == HIGH


def test_those_of_a_single_port_leave_the_others_to_what_is_ready_with_them():
    """Two for port 0 and one for any of three cost the other two a turn."""
    sets = {"first": (0,), "others": (1, 2), "all": (0, 1, 2)}
    values = {"first": Look(2.0, ERROR), "others": Look(1.0, ERROR, waits=True), "all": Look(3.0, ERROR)}
    found = UsageSolver(sets, port_sets(sets)).candidates(
        {name: (one,) for name, one in values.items()}, 2.0, 3
    )
    assert level_of(explanations([found], Told(2.0, 3))[0]) == LOW


@pytest.mark.parametrize("waits", [True, False])
def test_what_costs_a_port_nothing_has_another_whether_it_waits_or_not(waits):
    [found, *_] = likeliest(0.0, waits)
    assert (found.operations, level_of(found)) == (BOTH, HIGH)


def record(setter, cycles):
    return Record(ADC, PORTS, BLOCKER, setter, "x8", cycles, 0.02, "ok", 2, ())


def facts(table, *records, form=ADC):
    known = classes_of(table, {BLOCKER: 1}, {BLOCKER: frozenset("r")}, {BLOCKER: [BLOCKER]})
    return facts_by_time(known, records)


def test_only_readings_behind_setters_count_where_there_are_some(table):
    waiting = facts(table, record("", 10.0))
    assert [look.waits for look in waiting.looks(ADC)[BLOCKER]] == [True]
    assert [head for head, _ in waits_among(waiting, table[ADC])] == [BLOCKER]
    behind = facts(table, record("", 10.0), record(SETTER, 8.0))
    [look] = behind.looks(ADC)[BLOCKER]
    assert (look.value, look.waits) == (pytest.approx(0.0), False)
    assert not [*waits_among(behind, table[ADC])]


def test_what_costs_nothing_or_reads_no_flags_is_not_asked_again(table):
    assert not [*waits_among(facts(table, record("", 8.0)), table[ADC])]
    other = Record("ADD_00 (R8l, R8l)", PORTS, BLOCKER, "", "x8", 10.0, 0.02, "ok", 2, ())
    assert not [*waits_among(facts(table, other), table[other.form])]


def test_a_setter_stands_before_each_instance_and_waits_for_nothing(table):
    plans = PortPlanner(Planner(table, lambda form: True))
    question = plans.against(table[ADC], table[BLOCKER], 1, 8, setter=table[SETTER])
    kernel = question.make().kernel
    names = [item.form.id for item in kernel.body]
    places = [place for place, name in enumerate(names) if name == ADC]
    assert [names[place - 1] for place in places] == [SETTER, SETTER]
    own = {kernel.body[place - 1].registers[0] for place in places}
    others = {n for one in kernel.body if one.form.id != SETTER for n in one.registers}
    assert own.isdisjoint(others)


def test_two_micro_operations_on_two_ports_are_not_taken_for_one_on_one_of_them():
    """ADC on a drawn core waits for the flags of the only blocking instructions of one of its ports."""
    machine, front_end = core_named("drawn:179196")
    table = load_table(machine.isa)
    forms = [form for form in sample(table, machine, 600) if form.id == ADC or is_candidate(form)]
    forms = [form for form in forms if domains(form) == {"r"}]
    _, verdicts, _ = compare(machine, table, forms, QUIET, front_end=front_end)
    [adc] = [verdict for verdict in verdicts if verdict.form == ADC]
    assert adc.right
    assert adc.confidence == HIGH
