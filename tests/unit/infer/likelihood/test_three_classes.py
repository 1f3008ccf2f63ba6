"""Three classes each two of which share ports: whether these are the same ports, and what asks for it."""

from __future__ import annotations

import math
from itertools import combinations

import pytest

from cyclescope.infer.likelihood.odds import sureness
from cyclescope.infer.likelihood.structure import searched, solve_structure
from cyclescope.infer.likelihood.threes import evidence_of_threes, open_threes, told_by_three
from cyclescope.infer.likelihood.unions import UnionEvidence

SLOTS, ERROR = 8.0, 0.02
NAMES = ("add", "lea", "set")
ONE_FOR_ALL = {"add": (0, 1, 3, 6), "lea": (1, 3, 5), "set": (0, 1, 2), "wide": (0, 1, 2, 3, 5, 6)}
NONE_FOR_ALL = {"add": (0, 1, 3, 4), "lea": (0, 2, 3), "set": (1, 2, 4), "wide": (0, 1, 2, 3, 4, 5)}
WIDTHS = {name: len(ports) for name, ports in ONE_FOR_ALL.items()}
COUNTS = 4, 3, 3


def pairs_of(sets):
    """What clear readings of all pairs tell of classes with these ports."""
    found = []
    for one, other in combinations(sorted(sets), 2):
        union = len({*sets[one], *sets[other]})
        sizes = range(max(len(sets[one]), len(sets[other])), len(sets[one]) + len(sets[other]) + 1)
        found.append(UnionEvidence(one, other, {size: 20.0 * abs(size - union) for size in sizes}))
    return found


PAIRS = pairs_of(ONE_FOR_ALL)
ASKED = {e.classes for e in PAIRS}


def three_of(cycles, slots=SLOTS):
    [found] = evidence_of_threes({NAMES: {COUNTS: cycles}}, WIDTHS, PAIRS, slots, ERROR)
    return found


def common(structure):
    return set.intersection(*(set(structure.sets[name]) for name in NAMES))


def test_pairs_do_not_tell_whether_two_classes_share_with_a_third_what_they_share():
    assert pairs_of(NONE_FOR_ALL) == PAIRS
    for sets in (ONE_FOR_ALL, NONE_FOR_ALL):
        [three] = open_threes(sets, ASKED)
        assert (three.names, three.sizes) == (NAMES, range(5, 7))


@pytest.mark.parametrize(
    "sets",
    [
        {"a": (0, 1), "b": (1, 2), "c": (0, 1, 2)},  # one has the ports of another
        {"a": (0, 1), "b": (1, 2), "c": (2, 3)},  # two share none
        {"a": (0, 1), "b": (1,), "c": (1, 2)},
    ],
)
def test_what_pairs_tell_is_no_question(sets):
    asked = {frozenset(pair) for pair in combinations(sets, 2)}
    assert list(open_threes(sets, asked)) == []


def test_one_of_classes_with_the_same_ports_is_asked_if_it_was_compared():
    sets = {**ONE_FOR_ALL, "vadd": ONE_FOR_ALL["add"]}
    asked = {frozenset(pair) for pair in combinations(sets, 2)}
    assert len(list(open_threes(sets, asked))) == 1
    assert len(list(open_threes(sets, asked - {frozenset(("add", "vadd"))}))) == 2
    apart = {pair for pair in asked if "vadd" not in pair}
    assert [three.names for three in open_threes(sets, apart)] == [NAMES]


def test_all_three_are_asked_in_numbers_that_tell_most():
    assert list(told_by_three(NONE_FOR_ALL, PAIRS, SLOTS, ERROR)) == [(NAMES, COUNTS)]


def test_what_the_front_end_hides_is_not_asked():
    assert list(told_by_three(NONE_FOR_ALL, PAIRS, 5.0, ERROR)) == []


@pytest.mark.parametrize(("cycles", "size"), [(10 / 6, 6), (10 / 5, 5), (1.72, 6), (1.9, 6), (1.96, 5)])
def test_the_time_of_three_tells_their_ports(cycles, size):
    """Ports that are dealt out badly take longer than all would let them, and never less."""
    assert min(three_of(cycles).nats, key=three_of(cycles).nats.get) == size


@pytest.mark.parametrize(("cycles", "shared"), [(10 / 6, 1), (10 / 5, 0)])
def test_three_classes_decide_what_pairs_leave_open(cycles, shared):
    every = [*PAIRS, three_of(cycles)]
    found = solve_structure(WIDTHS, every)
    assert len(common(found)) == shared
    assert min(sureness(found, every).values(), default=1.0) > 0.995


def test_without_them_no_structure_is_sure():
    """Two kinds of ports less are all that speaks for one, a nat each; the class around them is as it is."""
    found = solve_structure(WIDTHS, PAIRS)
    assert len(common(found)) == 0
    sure = sureness(found, PAIRS)
    assert {name: sure[name] for name in NAMES} == pytest.approx(
        dict.fromkeys(NAMES, 1 / (1 + math.exp(-2.0)))
    )
    assert sure.get("wide", 1.0) > 0.995


def test_classes_with_the_ports_of_one_of_three_are_no_surer():
    sets = {**ONE_FOR_ALL, "vadd": ONE_FOR_ALL["add"]}
    pairs = pairs_of(sets)
    found = solve_structure({name: len(ports) for name, ports in sets.items()}, pairs)
    assert sureness(found, pairs)["vadd"] < 0.9


def test_three_of_which_one_is_no_set_of_ports_tell_nothing():
    known = [e for e in PAIRS if "add" not in e.classes]
    assert list(evidence_of_threes({NAMES: {COUNTS: 2.0}}, WIDTHS, known, SLOTS, ERROR)) == []


def test_sets_that_no_class_can_have_do_not_count_for_there_being_too_many():
    """Fourteen ports with two classes each, of which the second alone are known to share none."""
    names = [f"{number:02}{kind}" for number in range(14) for kind in "ab"]
    every = []
    for one, other in combinations(names, 2):
        twins, seconds = one[:2] == other[:2], one[2] == other[2] == "b"
        every.append(UnionEvidence(one, other, {1: 0.0 if not seconds else 20.0, 2: 20.0 if twins else 0.0}))
    found = searched(dict.fromkeys(names, 1), every)
    assert found.bound == math.inf
    assert found.best is not None
    assert len(found.best.atoms) == 14
