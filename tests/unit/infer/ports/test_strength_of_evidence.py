"""How much readings of classes say: by nats, and by what is believed of a core because of them."""

from __future__ import annotations

import math
from itertools import combinations

import pytest

from cyclescope.infer.likelihood import structure
from cyclescope.infer.likelihood.evidence import Class, ClassPair, are_seen_to_share, count_of, evidence_of
from cyclescope.infer.likelihood.noise import Look, Tail, alike, learned
from cyclescope.infer.likelihood.odds import sureness
from cyclescope.infer.likelihood.structure import SIDES_APART, Structure, solve_structure
from cyclescope.infer.likelihood.unions import UnionEvidence
from cyclescope.infer.likelihood.usage import UsageSolver
from cyclescope.infer.timing.solver import LinearProgram
from cyclescope.model.machine import Operation

EXACT = alike(Tail(0.1, 0.2))
ERROR = 0.02  # of ratios, and of micro-operations


def against(size, ratio=None, inside=None, slots=20.0, widths=(2, 3)):
    """Nats against a size of two classes' union, by their time together and what one costs the other."""
    one, other = (Class(name, width, frozenset("v")) for name, width in zip("ab", widths, strict=True))
    together = None if ratio is None else Look(ratio, ERROR)
    looks = () if inside is None else (Look(inside, ERROR),)
    [found] = evidence_of([ClassPair(one, other, together, looks, ())], slots)
    return found.nats[size]


@pytest.mark.parametrize(
    ("size", "readings", "nats"),
    [
        (5, {"ratio": 1.15}, 6.4),  # with ports apart a neighbour hardly adds anything
        (4, {"ratio": 1.70}, 5.8),  # with shared ones how they are dealt out does
        (5, {"inside": 0.3}, 7.0),
        (4, {"inside": 0.9}, 6.4),
        (5, {"inside": 3.0, "slots": 3.5}, 7.0),  # a full front end delays anything
    ],
)
def test_what_is_added_to_a_reading_is_a_surprise(size, readings, nats):
    assert against(size, **readings) == pytest.approx(nats, abs=0.15)


@pytest.mark.parametrize(
    ("readings", "full", "room"), [({"ratio": 1.2}, 6.0, 6.5), ({"inside": 1.2}, 3.5, 4.0)]
)
def test_four_in_five_slots_nearly_fill_the_front_end(readings, full, room):
    """Three or five micro-operations of a cycle in so many slots."""
    assert against(5, slots=full, **readings) < against(5, slots=room, **readings) - 3


@pytest.mark.parametrize(("more", "apart"), [(0, False), (2, True)])
def test_what_takes_more_slots_than_it_has_ports_is_not_slow_for_shared_ones(more, apart):
    """Two stores of two slots and three loads in six slots take 7/6 of a cycle with ports of their own."""
    stores, loads = Class("stores", 2, frozenset("m"), more), Class("loads", 3, frozenset("m"))
    [found] = evidence_of([ClassPair(stores, loads, Look(7 / 6, ERROR), (), ())], 6.0)
    assert (found.nats[5] < 1) == apart


@pytest.mark.parametrize(("ratio", "seen"), [(1.27, False), (1.28, True)])
def test_what_is_seen_to_share(ratio, seen):
    pair = ClassPair(*(Class(n, 2, frozenset("v")) for n in "ab"), Look(ratio, ERROR), (), ())
    assert are_seen_to_share([pair], 20.0) is seen


def test_several_pairs_that_hardly_show_sharing_do_so_together():
    """One that shows that a class is apart from another says nothing of what it shares with the others."""
    hardly, apart = (
        ClassPair(*(Class(n, 2, frozenset("v")) for n in "ab"), Look(ratio, ERROR), (), ())
        for ratio in (1.27, 1.0)
    )
    assert are_seen_to_share([hardly, hardly, apart], 20.0)
    assert not are_seen_to_share([hardly, apart], 20.0)


@pytest.mark.parametrize(("value", "count"), [(3.0, 3), (4.0, 4), (7.0, 4)])
def test_micro_operations_of_what_is_no_blocking_instruction(value, count):
    assert count_of([Look(value, ERROR)], True) == count


def test_two_readings_among_twenty_expected_ones():
    found = learned([[(0.8, 0.05)] * 2, [], [], []])
    assert 0.11 < found.tails[0].share < 0.17


# --- structures --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("nats", "asked"), [(4.5, True), (5.5, False)])
def test_a_size_that_may_be_lowers_confidence(nats, asked):
    """The odds of `high` are a hundred and fifty to one."""
    pair = [UnionEvidence("one", "two", {1: nats, 2: 0.0})]
    assert bool(sureness(solve_structure({"one": 1, "two": 1}, pair), pair)) is asked


def doubtful(names, first, others=100.0):
    """Classes of a port, the first of which could share it with each other one, and hardly two of these."""
    return [
        UnionEvidence(one, other, {1: first if one == names[0] else others, 2: 0.0})
        for one, other in combinations(names, 2)
    ]


def test_all_doubtful_pairs_are_asked_for_their_odds():
    names = "abcdefghijkl"
    pairs = doubtful(names, 3.0)
    found = sureness(solve_structure(dict.fromkeys(names, 1), pairs), pairs)
    assert sorted(found) == list(names)


def test_all_other_structures_together_are_what_is_against_one():
    """Each of three is a port and a kind less at four nats."""
    names = "abcd"
    pairs = doubtful(names, 4.0)
    found = sureness(solve_structure(dict.fromkeys(names, 1), pairs), pairs)
    assert found["a"] == pytest.approx(1 / (1 + 3 * math.exp(-2.0)))
    assert found["b"] == pytest.approx(1 / (1 + math.exp(-2.0)))


def across(count, price=True):
    """Classes of two sides, each of which is likelier to share its port by three and a half nats with one."""
    names = [(side, n) for side in "rv" for n in range(count)]
    return [
        UnionEvidence(
            f"{one}{m}", f"{other}{n}", {1: 0.0 if m == n else 100.0, 2: 1.5}, across=price and one != other
        )
        for (one, m), (other, n) in combinations(names, 2)
    ]


@pytest.mark.parametrize(("count", "price", "ports"), [(2, True, 4), (3, True, 3), (1, False, 1)])
def test_that_two_sides_share_ports_surprises_once(count, price, ports):
    """However many of their classes do: eight nats."""
    pairs = across(count, price)
    widths = {name: 1 for one in pairs for name in (one.first, one.second)}
    found = solve_structure(widths, pairs)
    assert found.ports == ports
    sure = sureness(found, pairs)
    assert sure.keys() == widths.keys()
    assert max(sure.values()) < 0.995, "the other case is likely enough"


SIDES = frozenset("rv")


@pytest.mark.parametrize(("hidden", "sides", "nats"), [
    (3, SIDES, 0.0), (4, SIDES, SIDES_APART), (3, frozenset(), 0.0),
])  # fmt: skip
def test_what_no_reading_could_show_of_two_sides_is_open(hidden, sides, nats):
    """A port that they share, where a union of three fills the front end as one of four does."""
    pair = UnionEvidence("add", "blend", {3: 0.0, 4: 0.0}, across=bool(sides), sides=sides, hidden=hidden)
    found = Structure(4, {"add": (0, 1), "blend": (2, 3)})
    share = 1 / (1 + math.exp(-nats))
    assert sureness(found, [pair]) == pytest.approx({"add": share, "blend": share})


def test_sides_that_are_seen_to_share_ports_may_share_others():
    """Multiplications of both are; then additions and blends may, where that would fill the front end."""
    hidden = UnionEvidence("add", "blend", {3: 4.0, 4: 0.0}, sides=SIDES, hidden=3)
    seen = UnionEvidence("imul", "vmul", {1: 0.0, 2: 20.0}, sides=SIDES, hidden=3)
    apart = [
        UnionEvidence(one, other, {2: 100.0, 3: 0.0})
        for one in ("add", "blend") for other in ("imul", "vmul")
    ]  # fmt: skip
    widths = {"add": 2, "blend": 2, "imul": 1, "vmul": 1}
    evidence = [hidden, seen, *apart]
    assert sureness(solve_structure(widths, evidence), evidence).keys() == {"add", "blend"}


@pytest.mark.parametrize(("nodes", "found"), [(700, True), (1500, False)])
def test_the_search_for_a_structure_has_a_thousand_nodes(monkeypatch, nodes, found):
    """With a solver that needs so many: not some time, which would depend on how fast a computer is."""

    class Large(LinearProgram):
        def solve(self, limit=None):
            best = super().solve(limit)
            return best if limit >= nodes else best._replace(feasible=False)

    monkeypatch.setattr(structure, "LinearProgram", Large)
    monkeypatch.setattr(structure, "_searched", structure._searched.__wrapped__)
    solved = solve_structure({"one": 1}, [])
    assert solved.sets == ({"one": (0,)} if found else {})
    assert ("one" in solved.left_out) is not found


SAME = {1: 0.0, 2: 20.0}


def contradicted(nats):
    """Four classes of one port, which is that of the first and the last as well, so many nats against it."""
    unions = {"ab": {1: 0.0, 2: 4.0}, "ac": SAME, "bc": SAME, "ad": {1: nats, 2: 0.0}, "bd": SAME, "cd": SAME}
    return [UnionEvidence(one, other, sizes) for (one, other), sizes in unions.items()]


@pytest.mark.parametrize("nats", [0.0, 8.0])
def test_that_no_structure_of_likely_sizes_was_found_is_no_proof(nats):
    """Others need a size that is not tried, for 12 nats: what the best misses is no more against them."""
    evidence = contradicted(nats)
    found = solve_structure(dict.fromkeys("abcd", 1), evidence)
    assert found.ports == 1
    searches = {"a": 2, "b": 1, "d": 1}  # each for another size of one pair of these
    shares = {name: 1 / (1 + count * math.exp(nats - 12)) for name, count in searches.items()}
    assert sureness(found, evidence) == pytest.approx(shares)


@pytest.mark.parametrize(("bound", "known"), [(math.inf, True), (9.0, True), (4.0, False)])
def test_a_search_that_was_not_through_leaves_open_what_may_be_as_likely(monkeypatch, bound, known):
    """One port of one kind costs two nats: another structure may be seven nats less likely, or two."""
    pair = UnionEvidence("a", "b", {1: 0.0, 2: 20.0})

    class Slow(LinearProgram):
        def solve(self, limit=None):
            return super().solve(limit)._replace(bound=bound)

    monkeypatch.setattr(structure, "LinearProgram", Slow)
    monkeypatch.setattr(structure, "_searched", structure._searched.__wrapped__)
    found = sureness(solve_structure({"a": 1, "b": 1}, [pair]), [pair])
    assert all(share > 0.99 for share in found.values()) is known
    assert bool(found) is (bound < math.inf)


def test_the_same_evidence_is_searched_once(monkeypatch):
    solved = []

    class Noted(LinearProgram):
        def solve(self, limit=None):
            solved.append(limit)
            return super().solve(limit)

    def found(nats):
        evidence = [UnionEvidence("once", "more", {1: 0.0, 2: nats})]
        best = solve_structure({"once": 1, "more": 1}, evidence)
        return best, sureness(best, evidence), len(solved)

    monkeypatch.setattr(structure, "LinearProgram", Noted)
    first = found(3.25)
    assert first[2]
    assert found(3.25) == first
    assert found(2.75)[2] > first[2], "other readings are"


def test_too_many_sets_of_classes_prove_nothing():
    """Where any two of so many classes may share a port, only the likeliest sets are tried."""
    names = "abcdefghijklmn"
    evidence = [UnionEvidence(one, other, {1: 6.0, 2: 0.0}) for one, other in combinations(names, 2)]
    found = solve_structure(dict.fromkeys(names, 1), evidence)
    assert found.ports == len(names)
    assert all(share < 0.01 for share in sureness(found, evidence).values())


# --- usage -------------------------------------------------------------------------------------------

LEFT, BOTH = Operation((0, 1)), Operation((1,))
SETS = {"left": (0, 1), "right": (1, 2)}


def usage(looks, throughput=float("inf"), slots=4, classes=SETS, sets=((0, 1), (1, 2), (1,))):
    """Nats of explanations by their micro-operations."""
    shown = {name: (Look(value, ERROR),) for name, value in looks.items()}
    found = UsageSolver(classes, list(sets), noise=EXACT).candidates(shown, throughput, slots)
    return {one.operations: one.nats for one in found}


def test_four_micro_operations_are_tried():
    """More would be sure whatever else might be."""
    found = usage({"left": 4.0, "right": 0.0})
    assert found[(Operation((0, 1), 4.0),)] == pytest.approx(4 * 1.2, abs=0.3)


def test_a_throughput_is_hardly_wrong():
    """Where no micro-operations are fast enough, and both classes see one."""
    found = usage({"left": 1.0, "right": 1.0}, 0.1)
    assert found[(BOTH,)] == pytest.approx(20.0 + 1.2 + 2.0, abs=0.3)


def test_explanations_that_are_far_from_the_best_are_not_kept():
    """Nothing measured, one slot: each micro-operation more costs six nats."""
    found = usage({}, slots=1, sets=SETS.values())
    assert max(sum(op.count for op in some or ()) for some in found) == 2


def test_a_dozen_explanations_are_kept():
    assert (
        9 < len(usage({}, classes={str(n): (n,) for n in range(6)}, sets=[(n,) for n in range(6)])) - 1 < 16
    )


@pytest.mark.parametrize("cycles", [1, 2, 3])
def test_everything_may_stand_still_for_some_cycles(cycles):
    """Then each class misses as many micro-operations as it has ports; one reading is spoiled."""
    classes = {"one": (0,), "two": (1,), "three": (2,), "wide": (3, 4, 5)}
    looks = {name: float(cycles) for name in ("one", "two", "three")} | {"wide": 0.0}
    stands, moves = (usage(some, slots=1, classes=classes, sets=classes.values())[None]
                     for some in (looks, looks | {"one": cycles + 0.5, "two": cycles + 0.4}))  # fmt: skip
    assert stands < moves - 2
