"""What speaks against a usage that fits all that was measured."""

from __future__ import annotations

import pytest

from cyclescope.infer.front_end.slots import SlotCount
from cyclescope.infer.front_end.width import FoundWidth
from cyclescope.infer.likelihood.noise import Look
from cyclescope.infer.likelihood.structure import Structure
from cyclescope.infer.ports.builder import PortBuilder
from cyclescope.infer.ports.evidence import PortFacts
from cyclescope.infer.ports.timed import TimedJudge
from cyclescope.model.facts import HIGH, LOW, MEDIUM
from cyclescope.model.machine import Operation
from cyclescope.remarks.front_end import Wide
from cyclescope.remarks.ports import Usage
from tests.support.made.classes import StatedEvidence, classes_of
from tests.support.made.front_ends import StatedFrontEnd

LOAD, MOVED = "MOV (R64, M64)", "VMOVAPD_28 (XMM, XMM)"


def doubts(
    table, name, known, slots, throughput, turns=1.0, hiding=(), load=(), sets=(), readings=(), alone=(),
    eliminated=(),
):  # fmt: skip
    """Of a core where one set of ports of some register files may be as wide as the front end."""
    every = {LOAD: load, **dict(sets)}
    files = {one: "m" if one == LOAD else "r" for one in every}
    classes = classes_of(table, {one: len(ports) for one, ports in every.items()}, files)
    front_end = StatedFrontEnd(
        table, 5.0, alone=dict(alone), saturating=frozenset(hiding), _eliminated=eliminated
    )
    facts = PortFacts(front_end, StatedEvidence(classes, dict(readings), Structure(4, every)), ())
    return dict(TimedJudge(facts, None).doubts(table[name], known, slots, throughput, turns))


def test_what_is_slow_for_few_cycles_may_have_fewer_ports(table):
    one = (Operation((0, 1)),)
    assert doubts(table, "IMUL (R64, R64)", one, 1.0, 0.5) == {}
    assert list(doubts(table, "IMUL (R64, R64)", one, 1.0, 1.0).values()) == [LOW]


@pytest.mark.parametrize(("cycles", "level"), [(0.94, MEDIUM), (0.97, LOW), (1.16, LOW), (1.2, MEDIUM)])
def test_what_fewer_ports_do_not_explain_is_slow_for_something_else(table, cycles, level):
    """One of two ports would take a cycle: a form that takes more is slower than that."""
    assert list(doubts(table, "IMUL (R64, R64)", (Operation((0, 1)),), 1.0, cycles).values()) == [level]


@pytest.mark.parametrize(("ports", "level"), [((0, 1), [LOW]), ((0,), [])])
def test_what_no_sequence_times_may_have_fewer_ports(table, ports, level):
    """Branches of a core for which two of four ports are, among instructions for any of the four."""
    assert list(doubts(table, "IMUL (R64, R64)", (Operation(ports),), 1.0, 0.0).values()) == level


@pytest.mark.parametrize(("cycles", "level"), [(2.4, LOW), (2.6, MEDIUM)])
def test_what_is_slow_for_long_divides(table, cycles, level):
    many = (Operation((0, 1), 2.4),)
    assert list(doubts(table, "DIVPD (XMM, XMM)", many, 1.0, cycles).values()) == [level]


@pytest.mark.parametrize(
    ("classes", "level"),
    [
        ({}, LOW),
        ({"MOVSX (R64, R8l)": (0, 2)}, LOW),
        ({"MOVSX (R64, R8l)": (0, 2), "NOT (R64)": (1, 3)}, MEDIUM),
    ],
)
def test_fewer_ports_would_show_where_a_class_has_each_without_the_others(table, classes, level):
    readings = {"IMUL (R64, R64)": {name: [Look(0.0, 0.05)] for name in classes}}
    found = doubts(table, "IMUL (R64, R64)", (Operation((0, 1)),), 1.0, 1.0, sets=classes, readings=readings)
    assert list(found.values()) == [level]


@pytest.mark.parametrize(("name", "alone", "level"), [
    ("IMUL (R64, R64)", 7.2, LOW), ("IMUL (R64, R64)", 7.4, MEDIUM), ("ADC_11 (R64, R64)", 2.0, MEDIUM),
    ("CDQE", 2.1, LOW), ("CDQE", 2.3, MEDIUM),
])  # fmt: skip
def test_what_waits_for_itself_is_no_slower_than_its_ports(table, name, alone, level):
    """Eight registers hide what takes less than eight times as long as it should; CDQE has but one."""
    found = doubts(table, name, (Operation((0, 1)),), 1.0, 1.0, alone={name: alone})
    assert list(found.values()) == [level]


@pytest.mark.parametrize(("eliminated", "level"), [({MOVED}, MEDIUM), (set(), LOW)])
def test_what_the_renamer_executes_has_no_port_however_slow_renaming_is(table, eliminated, level):
    """A Zen 5 renames six moves of vectors in a cycle, and eight instructions of other kinds."""
    found = doubts(table, MOVED, (), 1.0, 0.3, eliminated=eliminated)
    assert max(found.values(), key=[MEDIUM, LOW].index) == level


def test_only_what_is_dropped_needs_no_port(table):
    assert list(doubts(table, "IMUL (R64, R64)", (), 1.0, 0.2).values()) == [LOW]
    assert list(doubts(table, "NOP", (), 1.0, 0.2).values()) == [MEDIUM]
    assert list(doubts(table, "NOP", (), 1.0, 0.4).values()) == [LOW, MEDIUM]
    assert list(doubts(table, "IMUL (R64, R64)", (Operation((0, 1)),), 2.0, 0.5).values()) == [MEDIUM]


def test_turns_that_late_results_take_explain_slowness(table):
    one = (Operation((0, 1)),)
    assert list(doubts(table, "IMUL (R64, R64)", one, 1.0, 1.0).values()) == [LOW]
    assert doubts(table, "IMUL (R64, R64)", one, 1.0, 1.0, turns=2.0) == {}


@pytest.mark.parametrize(
    ("name", "hiding", "level"),
    [("MOV_89 (R64, R64)", "", MEDIUM), ("MOV_89 (R64, R64)", "r", LOW), ("NOP", "r", MEDIUM)],
)
def test_a_move_may_need_a_port_where_ports_are_as_many_as_slots(table, name, hiding, level):
    """Nothing tells one that was eliminated from one for any of those ports; a NOP needs none."""
    assert list(doubts(table, name, (), 1.0, 0.2, hiding=hiding).values()) == [level]


@pytest.mark.parametrize(("slots", "hiding", "level"), [(1.0, "r", []), (2.0, "r", [LOW]), (2.0, "", [])])
def test_a_slot_that_accesses_do_not_need_may_bring_what_never_shows(table, slots, hiding, level):
    """Where as many ports as the front end has slots may be one set: a load comes in the slot of another."""
    known = (Operation((2, 3)), Operation((0, 1)))
    found = doubts(table, "CMOVNL (R32, M32)", known, slots, 0.5, hiding=hiding, load=(2, 3))
    assert list(found.values()) == level


GUESSED = FoundWidth(6.0, 0.0, Wide.UNKNOWN.of())
WIDE, PAIR = "VADDPD (ZMM, ZMM, ZMM)", "VCVTDQ2PD (XMM, XMM)"


@pytest.mark.parametrize(
    ("turns", "cost", "ports", "level"),
    [(2, 2.0, "1*p01/2", HIGH), (1, 2.0, "2*p01", MEDIUM), (2, 4.0, "2*p01/2", MEDIUM)],
)
def test_one_of_several_micro_operations_may_have_one_port(monkeypatch, table, turns, cost, ports, level):
    """Two with one or two ports take as long; one that takes two turns takes both of one port."""
    classes = classes_of(table, {PAIR: 2}, {PAIR: "v"})
    readings = {WIDE: {PAIR: [Look(cost, 0.05)]}}
    slots = round(cost / turns)
    counts = {WIDE: SlotCount(slots, 0.02, slots, slots, slots)}
    front_end = StatedFrontEnd(table, 6.0, slots={WIDE: float(slots)}, counts=counts)
    facts = PortFacts(front_end, StatedEvidence(classes, readings, Structure(2, {PAIR: (0, 1)})), ())
    monkeypatch.setattr(facts, "per_slot", lambda form: turns)
    builder = PortBuilder(TimedJudge(facts, None))
    found = builder.usage(table[WIDE], cost / 2)
    assert (found.ports, found.confidence) == (ports, level)
    assert (Usage.FEWER.of() in found.remarks) == (level == MEDIUM)
    assert not builder.missed(table[WIDE], found)


@pytest.mark.parametrize(("width", "level"), [(FoundWidth(6.0, 0.0), MEDIUM), (GUESSED, LOW)])
def test_ports_are_doubted_where_the_width_is_a_guess(table, width, level):
    """Half of it may be right: a class that is as wide is missed then, and what has it seems to need none."""
    classes = classes_of(table, {PAIR: 2}, {PAIR: "v"})
    readings = {WIDE: {PAIR: [Look(1.0, 0.05)]}}
    front_end = StatedFrontEnd(table, 6.0, slots={WIDE: 1.0}, width_fact=width)
    facts = PortFacts(front_end, StatedEvidence(classes, readings, Structure(2, {PAIR: (0, 1)})), ())
    found = PortBuilder(TimedJudge(facts, None)).usage(table[WIDE], 0.5)
    assert (found.ports, found.confidence) == ("1*p01", level)


@pytest.mark.parametrize(("name", "levels"), [("MOV (M64, R64)", [MEDIUM]), ("ADD (M64, R64)", [])])
def test_the_datum_of_a_store_may_have_fewer_ports(table, name, levels):
    """A store a cycle, as addresses let: of three ports for what is stored, one would do."""
    known = Operation((3,)), Operation((0, 1, 2))
    assert list(doubts(table, name, known, 1.0, 1.0, load=(3,)).values()) == levels


WIDE = "LEA_B (R64)"


@pytest.mark.parametrize(
    ("there", "back", "levels"),
    [(2.0, 0.5, [LOW]), (2.1, 0.6, [LOW]), (1.0, 0.0, []), (2.0, 0.3, []), (1.8, 0.5, [])],
)
def test_what_all_classes_cost_each_other_may_be_ports_in_turn(table, there, back, levels):
    """A class of one port, beside one of two that would get its ports in turn."""
    one, wide = "IMUL (R64, R64)", WIDE
    readings = {one: {one: [Look(1.0, 0.01)], wide: [Look(there, 0.01)]},
                wide: {one: [Look(back, 0.01)], wide: [Look(1.0, 0.01)]}}  # fmt: skip
    found = doubts(table, "VPMULLD (XMM, XMM, XMM)", (Operation((0, 1), 2),), 2.0, 1.0,
                   sets={one: (0,), wide: (0, 1)}, load=(3,), readings=readings)  # fmt: skip
    assert list(found.values()) == levels
