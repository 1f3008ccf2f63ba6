"""What readings of two classes are worth, and which ports they make: every constant by what it decides."""

from __future__ import annotations

import math
from itertools import combinations

import pytest

from cyclescope.infer.likelihood import structure
from cyclescope.infer.likelihood.evidence import (
    Class,
    ClassPair,
    are_seen_to_share,
    count_of,
    evidence_of,
    filling,
)
from cyclescope.infer.likelihood.noise import Look
from cyclescope.infer.likelihood.odds import sureness
from cyclescope.infer.likelihood.structure import solve_structure
from cyclescope.infer.likelihood.unions import UnionEvidence


def evidence(one, other, sizes, union, nats=20.0):
    return UnionEvidence(one, other, {n: nats * abs(n - union) for n in range(max(sizes), sum(sizes) + 1)})


def test_a_port_more_and_a_kind_more_are_a_surprise():
    nothing = [UnionEvidence("one", "two", {1: 0.0, 2: 0.0})]
    found = sureness(solve_structure({"one": 1, "two": 1}, nothing), nothing)
    assert found["one"] == pytest.approx(1 / (1 + math.exp(-2.0)))
    wide = [UnionEvidence("one", "two", {2: 0.0, 3: 4.0, 4: 0.5})]  # two ports and a kind
    found = sureness(solve_structure({"one": 2, "two": 2}, wide), wide)
    assert found["one"] == pytest.approx(1 / (1 + math.exp(-3.5)))


def test_what_nobody_asked_takes_no_confidence():
    """Which ports of one kind of vectors are which of the other's is open, and no claim."""
    apart = UnionEvidence("one", "two", {1: 6.0, 2: 0.0})
    unknown = [
        UnionEvidence(name, other, {1: 0.0, 2: 0.0}, False) for name in ("one", "two") for other in "zy"
    ]
    every = [apart, UnionEvidence("z", "y", {1: 6.0, 2: 0.0}), *unknown]
    widths = dict.fromkeys(("one", "two", "z", "y"), 1)
    assert sureness(solve_structure(widths, every), every) == {}
    doubt = [UnionEvidence("one", "two", {1: 0.0, 2: 1.0}), *every[1:]]
    assert sureness(solve_structure(widths, doubt), doubt).keys() == {"one", "two"}


def test_what_two_classes_share_is_no_doubt_of_one_that_has_the_ports_of_both():
    """Whether shifts and multiplications share a port says nothing of additions, which use all of theirs."""
    widths = {"add": 4, "shift": 2, "times": 2}
    open_pair = UnionEvidence("shift", "times", {2: 20.0, 3: 0.0, 4: 1.0})
    every = [
        open_pair,
        *(UnionEvidence("add", name, {4: 0.0, 5: 20.0, 6: 20.0}) for name in ("shift", "times")),
    ]
    assert sureness(solve_structure(widths, every), every).keys() == {"shift", "times"}


@pytest.mark.parametrize(("nats", "leaves"), [(6.9, False), (8.1, True)])
def test_a_class_leaves_where_all_readings_together_say_so(nats, leaves):
    """One port inside of three pairs that share none: two of the three claims are wrong, or it is no port."""
    widths = {"a": 2, "b": 2, "c": 2, "odd": 1}
    claims = [evidence(*some, (2, 2), 4) for some in ("ab", "ac", "bc")]
    claims += [evidence(name, "odd", (2, 1), 2, nats) for name in "abc"]
    found = solve_structure(widths, claims)
    assert set(found.left_out) == ({"odd"} if leaves else set())


def test_classes_leave_one_after_the_other_while_that_is_likelier():
    """Two that are each one port inside of four pairs which share none."""
    widths = dict.fromkeys("abcd", 2) | {"odd": 1, "other": 1}
    claims = [evidence(*some, (2, 2), 4) for some in combinations("abcd", 2)]
    claims += [evidence(name, odd, (2, 1), 2, 11.0) for name in "abcd" for odd in ("odd", "other")]
    found = solve_structure(widths, [*claims, evidence("odd", "other", (1, 1), 2)])
    assert set(found.left_out) == {"odd", "other"}
    assert found.ports == 8


@pytest.mark.parametrize(("nats", "leaves"), [(11.0, False), (13.0, True)])
def test_sizes_that_are_far_from_likely_are_not_tried(nats, leaves):
    widths = {"a": 2, "b": 2, "odd": 1}
    claims = [evidence("a", "b", (2, 2), 4)]
    claims += [evidence(name, "odd", (2, 1), 2, nats) for name in "ab"]
    assert bool(solve_structure(widths, claims).left_out) == leaves


def pair(ratio, inside=(0.0, 0.0), sides=("v", "v"), widths=(2, 3)):
    one, other = (Class(n, w, frozenset(s)) for n, w, s in zip("ab", widths, sides, strict=True))
    looks = [(Look(value, 0.03),) for value in inside]
    return ClassPair(one, other, Look(ratio, 0.02), *looks)


def likeliest(pairs, slots=6.0):
    return [min(one.nats, key=one.nats.get) for one in evidence_of(pairs, slots)]


def test_late_results_inside_of_a_class_cost_it_their_turns():
    late = pair(9 / 6, (2.0, 0.0), widths=(3, 6))._replace(turns=2.0)
    assert likeliest([late], 8.0) == [6]
    [found] = evidence_of([late], 8.0)
    assert found.against(7) > evidence_of([late._replace(turns=1.0)], 8.0)[0].against(7) + 2


def test_unions_follow_from_times():
    assert likeliest([pair(1.0), pair(5 / 4), pair(5 / 3, (1.0, 0.0))]) == [5, 4, 3]


def test_sharing_is_seen_where_one_reading_is_clear():
    some = [pair(1.0), pair(5 / 3, (1.0, 0.0)), pair(8 / 6, widths=(4, 4))]
    assert [are_seen_to_share([one], 6.0) for one in some] == [False, True, False]


def test_a_union_wider_than_the_front_end_is_open():
    [one] = evidence_of([pair(7 / 5, widths=(4, 3))], 5.0)
    assert one.nats[5] == one.nats[6] == one.nats[7]
    assert one.nats[4] > one.nats[5] + 2.0


def test_accesses_to_memory_are_dealt_out_unevenly():
    """Loads beside stores take a seventh longer than on ports of their own, which is too fast for three."""
    [dealt] = evidence_of([pair(8 / 7, sides=("m", "m"), widths=(2, 2))], 8.0)
    [vectors] = evidence_of([pair(8 / 7, widths=(2, 2))], 8.0)
    assert dealt.against(3) > vectors.against(3) + 2.0
    assert dealt.against(4) == 0.0


def test_sides_share_ports_in_all_pairs_or_none():
    sides = [("r", "r"), ("r", "v"), ("v", "r"), ("m", "v")]
    found = evidence_of([pair(1.0, sides=some) for some in sides], 6.0)
    assert [one.across for one in found] == [False, True, True, False]


def test_memory_shares_no_port_unless_readings_clearly_say_so():
    [apart] = evidence_of([pair(5 / 3, (1.0, 0.0), ("v", "m"))], 6.0)
    [same] = evidence_of([pair(5 / 3, (1.0, 0.0))], 6.0)
    assert apart.nats[3] - same.nats[3] == pytest.approx(8.0)
    assert apart.nats[5] == same.nats[5]


def test_loops_that_nearly_fill_the_front_end_prove_less():
    [full] = evidence_of([pair(7 / 6, (2.0, 0.0), widths=(2, 5))], 6.0)
    [wide] = evidence_of([pair(1.0, (2.0, 0.0), widths=(2, 5))], 9.0)
    assert full.nats[7] < wide.nats[7] - 2.0


@pytest.mark.parametrize(
    ("values", "full", "count"),
    [
        ((1.05,), False, 1),
        ((2.0,), False, 2),
        ((0.1,), False, 0),
        ((1.4,), True, 1),
        ((0.9, 1.1), False, 1),
    ],
)
def test_micro_operations_among_their_own_class(values, full, count):
    assert count_of([Look(value, 0.05) for value in values], full) == count


def vague(count):
    """Classes of which hardly anything is known: any two may have any union."""
    widths = {str(place): 1 + place % 4 for place in range(count)}
    evidence = []
    for one, other in combinations(widths, 2):
        least, most = max(widths[one], widths[other]), widths[one] + widths[other]
        nats = {size: 4.5 * (size > least) for size in range(least, most + 1)}
        evidence.append(UnionEvidence(one, other, nats))
    return widths, evidence


def test_classes_of_which_hardly_anything_is_known_are_none():
    """Anything fits them: 4095 sets of them are too many, whatever time a computer would take."""
    widths, evidence = vague(12)
    found = solve_structure(widths, evidence)
    assert {*found.left_out} == set(widths)
    assert not any(map(len, found.sets.values()))
    assert len(structure._atoms(*vague(11), leaving=True)[0]) == 2047, "of one less, half as many"


def test_of_many_classes_only_those_share_ports_that_likely_do():
    """Each may share ports with each at 6 nats: the likeliest is that none does but one pair."""
    names = "abcdefghijklmn"
    evidence = [UnionEvidence(one, other, {1: 6.0, 2: 0.0}) for one, other in combinations(names, 2)]
    evidence[0] = UnionEvidence("a", "b", {1: 0.0, 2: 6.0})
    found = solve_structure(dict.fromkeys(names, 1), evidence)
    assert found.ports == 13
    assert found.sets["a"] == found.sets["b"]


def test_a_class_that_is_hidden_leaves_the_names_of_ports_of_others():
    """Of moves that are eliminated, but for some: they have ports that no other class has."""
    widths = {"a moves": 6, "shuffles": 2, "additions": 4}
    unions = {("a moves", "shuffles"): 6, ("a moves", "additions"): 6, ("additions", "shuffles"): 4}

    def sets(names):
        some = {name: widths[name] for name in names}
        evidence = [UnionEvidence(*pair, {size: 0.0}) for pair, size in unions.items() if {*pair} <= {*names}]
        return solve_structure(some, evidence, {name: (0, name) for name in names}).sets

    every, few = sets(widths), sets(["shuffles", "additions"])
    assert every == {"a moves": (0, 1, 2, 3, 4, 5), "shuffles": (0, 1), "additions": (0, 1, 2, 3)}
    assert few == {name: every[name] for name in few}


# --- classes that fill ports together ------------------------------------------------------------------


def test_classes_that_share_some_ports_are_asked_in_numbers_that_fill_all():
    one, other = Class("one", 3, frozenset("r")), Class("other", 3, frozenset("r"))
    found = UnionEvidence("one", "other", {3: 40.0, 4: 4.0, 5: 0.0, 6: 7.0})
    assert set(filling(one, other, found, 8.0)) == {(3, 1), (1, 3), (3, 2), (2, 3)}
    assert set(filling(one, other, found, 6.0)) == {(3, 1), (1, 3)}, "five would nearly fill the front end"
    apart = UnionEvidence("one", "other", {3: 40.0, 4: 30.0, 5: 13.0, 6: 0.0})
    assert not list(filling(one, other, apart, 8.0))


@pytest.mark.parametrize(("took", "together", "size"), [(1.0, 1.38, 5), (1.25, 1.49, 4)])
def test_what_fills_ports_together_tells_how_many_there_are(took, together, size):
    """Three and three take a core that deals ports out badly what neither four nor five ports would."""
    vague = pair(together, (0.0, 0.0), widths=(3, 3))
    assert likeliest([vague._replace(knees={5: Look(took, 0.02)})], 8.0) == [size]
    [found] = evidence_of([vague._replace(knees={5: Look(1.0, 0.02)})], 8.0)
    assert found.against(4) > evidence_of([vague], 8.0)[0].against(4) + 3
