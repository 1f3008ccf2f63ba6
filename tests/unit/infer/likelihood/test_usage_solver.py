"""Usages by what a form costs among the blocking instructions, and beside what others cost there."""

from __future__ import annotations

import pytest

from cyclescope.infer.likelihood.noise import Look
from cyclescope.infer.likelihood.structure import port_sets
from cyclescope.infer.likelihood.usage import (
    Told,
    UsageCandidate,
    UsageSolver,
    are_no_limit,
    explanations,
    most_needed,
)
from cyclescope.infer.ports.builder import level_of
from cyclescope.infer.ports.evidence import ERROR
from cyclescope.model.facts import HIGH
from cyclescope.model.machine import Operation

SETS = {"two": (0, 1), "three": (0, 1, 2), "four": (0, 1, 2, 3)}


def solver(usual):
    return UsageSolver(SETS, port_sets(SETS), usual)


def solved(some, confined, throughput, slots, per_slot=1, beside=(), error=ERROR):
    """Explanations of a form's readings, and of those on another group of ports."""
    looks = {name: (Look(value, error),) for name, value in confined.items()}
    groups = [some.candidates(looks, throughput, slots, per_slot=per_slot), *beside]
    return explanations(groups, Told(throughput, slots / per_slot + len(beside)))


def test_what_forms_of_a_class_cost_usually_is_no_misfit():
    confined = {"two": 0.0, "three": 0.8, "four": 1.0}
    found = solved(solver({"four": {"two": 0.0, "three": 0.8}}), confined, 0.25, 1)[0]
    assert found.operations == (Operation((0, 1, 2, 3)),)
    assert level_of(found) == HIGH
    assert solved(solver({}), confined, 0.25, 1)[0].missed > found.missed == 0.0


def test_what_a_class_costs_others_more_than_one_by_how_ports_are_dealt_out_is_no_misfit():
    """Multiplications of a Zen 3 cost shifts 1.3 and additions 1.5, all of them, and need one port."""
    sets = {"one": (0,), **SETS}
    confined = {"one": 1.0, "two": 1.33, "four": 1.5}
    usual = {"one": {"two": 1.28, "four": 1.47}}
    blind, knowing = (
        solved(UsageSolver(sets, port_sets(sets), some), confined, 1.0, 1)[0] for some in ({}, usual)
    )
    assert blind.operations == knowing.operations == (Operation((0,)),)
    assert level_of(knowing) == HIGH
    assert knowing.share > blind.share


def test_a_form_that_costs_more_than_its_class_does_is_not_of_it():
    confined = {"two": 0.5, "three": 1.0, "four": 1.0}
    usual = {"four": {"two": 0.0, "three": 0.8}, "three": {"two": 0.5}}
    assert solved(solver(usual), confined, 1 / 3, 1)[0].operations == (Operation((0, 1, 2)),)


OVERLAPPING = {"left": (0, 1), "right": (1, 2)}


def test_running_slower_counts_against_ports_that_others_do_not_explain():
    both = UsageSolver(OVERLAPPING, port_sets(OVERLAPPING))
    confined = {"left": 1.0, "right": 1.0}
    slow = solved(both, confined, 1.0, 2)[0]
    elsewhere = [UsageCandidate((Operation((7,)),), 0.0, 0.0)]
    explained = solved(both, confined, 1.0, 2, beside=[elsewhere])
    assert slow.operations == (Operation((1,)),)
    assert {*explained[0].operations} >= {Operation((0, 1)), Operation((1, 2))}
    assert Operation((1,)) in explained[1].operations
    assert level_of(explained[0]) != HIGH  # another run may prefer the other


def test_a_form_that_costs_less_than_its_class_does_is_not_of_it():
    usual = {"four": {"two": 0.0, "three": 0.8}, "three": {"two": 0.5}}
    found = solved(solver(usual), {"two": -0.02, "three": 0.95, "four": 1.0}, 0.5, 1)[0]
    assert found.operations == (Operation((0, 1, 2, 3)),)


def test_half_of_a_pair_is_not_likely():
    """As VPADDD (ZMM, ZMM, M512) on Zen 4: what is below usual speaks for one, the slot for two."""
    confined = {"two": 0.0, "three": 0.9, "four": 1.7}
    usual = {"four": {"two": 0.0, "three": 0.8}, "three": {"two": 0.0}}
    single = solved(solver(usual), confined, 0.98, 2, error=0.15)
    paired = solved(solver(usual), confined, 0.98, 2, per_slot=2, error=0.15)
    two, twice = Operation((0, 1, 2, 3), 2), Operation((0, 1, 2, 3), 1, 2)
    assert paired[0].operations == (twice,)
    assert share_of(paired, twice) > share_of(single, two)


def test_what_takes_two_turns_takes_both_of_one_port():
    """A 512-bit addition of a Zen 4: two micro-operations might have one port each, or other ports."""
    confined = {"left": 2.0, "right": 0.0}
    every = UsageSolver(OVERLAPPING, port_sets(OVERLAPPING))
    found = solved(every, confined, 1.0, 2, per_slot=2)[0]
    assert found.operations == (Operation((0, 1), 1, 2),)
    assert level_of(found) == HIGH
    odd = solved(every, {"left": 3.0, "right": 0.0}, 1.5, 4, per_slot=2)[0]
    assert odd.operations == (Operation((0, 1), 1, 2), Operation((0, 1)))
    counted = every.candidates({"left": (Look(2.0, ERROR),)}, 1.0, 2, total=2.0, per_slot=2)[0]
    assert counted.operations == (Operation((0, 1), 2),)


@pytest.mark.parametrize(("turns", "most"), [(1, 6.0), (2, 3.0)])
def test_more_turns_than_can_be_tried_are_of_as_few_micro_operations(turns, most):
    found = solved(solver({}), {"two": 0.0, "three": 0.0, "four": 6.0}, 1.5, 6, per_slot=turns)[0]
    assert found.operations == (Operation((0, 1, 2, 3), most, turns),)


def share_of(found, operation):
    return sum(one.share for one in found if one.operations == (operation,))


NARROW = {"one": (0,), "both": (0, 2), "other": (1, 2), "all": (0, 1, 2)}


def narrow(*operations):
    """Readings of micro-operations that keep a port for two cycles."""
    return {name: 2.0 * sum(set(ports) <= set(wide) for ports in operations) for name, wide in NARROW.items()}


@pytest.mark.parametrize(
    "operations",
    [((0,), (0, 2), (0, 1, 2)), ((0,), (0, 1, 2), (0, 1, 2)), ((0, 2), (0, 1, 2), (0, 1, 2), (0, 1, 2))],
)
def test_four_micro_operations_are_tried_however_many_turns_each_takes(operations):
    """What units half as wide take two turns for, of three or four ports: six turns or eight."""
    readings = narrow(*operations) | {"other": 0.4}  # ports are not dealt out evenly
    found = solved(UsageSolver(NARROW, port_sets(NARROW)), readings, 3.0, 2 * len(operations), per_slot=2)[0]
    assert sorted(op.ports for op in found.operations for _ in range(int(op.count))) == sorted(operations)
    assert {op.cycles for op in found.operations} == {2.0}


def test_one_of_them_may_take_a_single_turn():
    readings = {name: value + (name == "all") for name, value in narrow((0,), (0, 2)).items()}
    found = solved(UsageSolver(NARROW, port_sets(NARROW)), readings, 2.0, 6, per_slot=2)[0]
    some = {(op.ports, op.cycles) for op in found.operations}
    assert some == {((0,), 2.0), ((0, 2), 2.0), ((0, 1, 2), 1.0)}


@pytest.mark.parametrize(("alone", "sure"), [(0, True), (1, False)])
def test_turns_alone_among_more_than_are_tried_are_hardly_sure(alone, sure):
    some = UsageSolver({"all": (0, 1)}, [(0, 1)])
    found = some.candidates({"all": (Look(10.0 + alone, ERROR),)}, 5.5, 12, per_slot=2)
    assert (found[0].operations is not None and found[1].nats > found[0].nats) is sure


@pytest.mark.parametrize(("cycles", "is_allowed"), [(1.04, True), (1.07, False)])
def test_ports_may_need_a_twentieth_longer(cycles, is_allowed):
    assert (cycles <= most_needed(1.0)) == is_allowed


@pytest.mark.parametrize(("cycles", "is_limit"), [(0.87, True), (0.83, False)])
def test_ports_that_allow_a_sixth_less_are_no_limit(cycles, is_limit):
    assert are_no_limit(cycles, 1.0) != is_limit
