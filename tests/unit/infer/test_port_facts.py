"""Which classes of blocking instructions are ports: what was measured of them decides."""

from __future__ import annotations

import pytest

from cyclescope.infer.port_facts import PortFacts
from cyclescope.infer.port_mapping import port_sets
from cyclescope.infer.port_usage import UsageSolver
from cyclescope.infer.results import HIGH, MEDIUM
from cyclescope.model.machine import Operation

TWO, OTHER, THREE = "VPHMINPOSUW (XMM, XMM)", "VCVTDQ2PD (XMM, XMM)", "VBROADCASTSS (XMM, XMM)"
FOUR, LOAD = "VMOVQ_7E (XMM, XMM)", "MOV (R64, M64)"
WIDTHS = {TWO: 2, OTHER: 2, THREE: 3, FOUR: 4, LOAD: 2}
FILES = {name: frozenset("m" if name == LOAD else "v") for name in WIDTHS}


def facts_of(table, pairs, confined, width=6.0):
    """Facts with pairs as times (of one class alone) and confinements as measured."""
    facts = PortFacts(table, {}, (), ())
    facts.__dict__ |= {
        "width": width, "widths": WIDTHS, "files": FILES, "confined": confined,
        "_grouped": ({name: [name] for name in WIDTHS}, []),
        "pairs": {frozenset(pair): ratio for pair, ratio in pairs.items()},
    }  # fmt: skip
    return facts


@pytest.fixture
def uneven(table):
    """As on Zen 4: a class of three of four ports, beside which the fourth is hardly used."""
    pairs = {
        (TWO, OTHER): 4 / 3, (TWO, THREE): 5 / 3, (OTHER, THREE): 5 / 3,
        (TWO, FOUR): 6 / 4, (OTHER, FOUR): 6 / 4, (THREE, FOUR): 7 / 4,
        (THREE, LOAD): 1.2,
    }  # fmt: skip
    confined = {
        TWO: {TWO: 1.0, OTHER: 0.0, THREE: 1.0, FOUR: 1.0},
        OTHER: {TWO: 0.0, OTHER: 1.0, THREE: 1.0, FOUR: 1.0},
        THREE: {TWO: 0.55, OTHER: 0.0, THREE: 1.0, FOUR: 1.0, LOAD: 0.0},
        FOUR: {TWO: 0.0, OTHER: 0.0, THREE: 0.8, FOUR: 1.0},
        LOAD: {LOAD: 1.0, THREE: 0.02},
    }
    return pairs, confined


def test_a_class_that_holds_others_up_is_ports_where_pairs_show_that_they_escape(table, uneven):
    facts = facts_of(table, *uneven)
    assert facts.units == {}
    sets = {name: set(ports) for name, ports in facts.structure.sets.items()}
    assert sets[THREE] == sets[TWO] | sets[OTHER]
    assert sets[THREE] < sets[FOUR]


def test_a_class_that_holds_others_up_is_a_unit_where_they_do_not_escape(table, uneven):
    pairs, confined = uneven
    facts = facts_of(table, pairs | {(THREE, FOUR): 7 / 3}, confined)
    assert facts.units.keys() == {THREE}


def test_a_class_that_slows_another_side_of_the_core_down_is_a_unit(table, uneven):
    pairs, confined = uneven
    facts = facts_of(table, pairs, confined | {LOAD: {LOAD: 1.0, THREE: 1.0}})
    assert facts.units.keys() == {THREE}


SETS = {"two": (0, 1), "three": (0, 1, 2), "four": (0, 1, 2, 3)}


def solver(usual):
    return UsageSolver(SETS, port_sets(SETS), usual)


def test_what_forms_of_a_class_cost_usually_is_no_misfit():
    confined = {"two": 0.0, "three": 0.8, "four": 1.0}
    found = solver({"four": {"two": 0.0, "three": 0.8}}).solve(confined, 0.25, 1)
    assert found.operations == (Operation((0, 1, 2, 3)),)
    assert found.confidence == HIGH
    assert solver({}).solve(confined, 0.25, 1).residual > found.residual == 0.0


def test_a_form_that_costs_more_than_its_class_does_is_not_of_it():
    confined = {"two": 0.5, "three": 1.0, "four": 1.0}
    usual = {"four": {"two": 0.0, "three": 0.8}, "three": {"two": 0.5}}
    assert solver(usual).solve(confined, 1 / 3, 1).operations == (Operation((0, 1, 2)),)


OVERLAPPING = {"left": (0, 1), "right": (1, 2)}


def test_running_slower_counts_against_ports_that_others_do_not_explain():
    both = UsageSolver(OVERLAPPING, port_sets(OVERLAPPING))
    confined = {"left": 1.0, "right": 1.0}
    slow = both.solve(confined, 1.0, 2)
    assert slow.operations == (Operation((1,)),)
    explained = both.solve(confined, 1.0, 2, elsewhere=1.0)
    assert set(explained.alternatives) == {(Operation((0, 1)), Operation((1, 2)))}
    assert explained.confidence == MEDIUM


def test_a_form_that_costs_less_than_its_class_does_is_not_of_it():
    usual = {"four": {"two": 0.0, "three": 0.8}, "three": {"two": 0.5}}
    found = solver(usual).solve({"two": -0.02, "three": 0.95, "four": 1.0}, 0.5, 1)
    assert found.operations == (Operation((0, 1, 2, 3)),)
