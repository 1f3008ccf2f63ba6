"""What is believed before any reading, and what readings are worth: every constant by what it decides."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from cyclescope.infer.likelihood.noise import Look, Scatter, Tail, alike, learned, tail_of
from cyclescope.infer.likelihood.usage import Explanation, Told, UsageCandidate, UsageSolver, explanations
from cyclescope.infer.ports.builder import level_of
from cyclescope.model.facts import HIGH, LOW, MEDIUM
from cyclescope.model.machine import Operation

SETS = {"left": (0, 1), "right": (1, 2)}
LEFT, RIGHT, BOTH = Operation((0, 1)), Operation((1, 2)), Operation((1,))
EXACT = alike(Tail(0.1, 0.2))


def nats_of(candidates, *operations):
    """Nats of an explanation, by its micro-operations."""
    wanted = tuple(sorted(operations, key=lambda op: op.ports))
    found = {
        None if one.operations is None else tuple(sorted(one.operations, key=lambda op: op.ports)): one.nats
        for one in candidates
    }
    return found[wanted]


def priors(slots=4.0, throughput=math.inf, per_slot=1, counts=True):
    solver = UsageSolver(SETS, [(1,), (0, 1), (1, 2)], noise=EXACT, counts=counts)
    return solver.candidates({}, throughput, slots, per_slot=per_slot)


def test_before_any_reading_every_micro_operation_is_a_surprise():
    some = priors()
    assert nats_of(some) == 0.0
    assert nats_of(some, LEFT) == pytest.approx(1.2)
    assert nats_of(some, LEFT, RIGHT) == pytest.approx(2.4)
    assert nats_of(some, BOTH) == pytest.approx(3.2)  # no class has it alone


def test_more_than_slots_bring_are_a_surprise_but_for_memory():
    assert nats_of(priors(slots=1.0), LEFT, RIGHT) == pytest.approx(7.4)
    assert nats_of(priors(slots=1.0, counts=False), LEFT, RIGHT) == pytest.approx(2.4)


def test_half_of_a_pair_is_a_surprise():
    assert nats_of(priors(per_slot=2), LEFT) == pytest.approx(4.2)


def test_ports_that_are_too_slow_are_refuted():
    found = UsageSolver(SETS, [(0, 1), (1, 2)], noise=EXACT).candidates(
        {"left": (Look(1.0, 0.05),), "right": (Look(0.0, 0.05),)}, 0.25, 4
    )
    allowed = UsageSolver(SETS, [(0, 1), (1, 2)], noise=EXACT).candidates(
        {"left": (Look(1.0, 0.05),), "right": (Look(0.0, 0.05),)}, 0.5, 4
    )
    assert nats_of(allowed, LEFT) < 1.5
    assert all(one.operations != (LEFT,) or one.nats > 20 for one in found)


@pytest.mark.parametrize(("throughput", "refuted"), [(0.4725, False), (0.469, True), (0.5, False)])
def test_a_throughput_may_be_off_by_one_in_twenty(throughput, refuted):
    found = priors(throughput=throughput)
    assert any(one.operations == (LEFT,) for one in found) == (not refuted)


def test_that_nothing_fits_competes():
    assert min(one.nats for one in priors() if one.operations is None) == pytest.approx(6.0)


@pytest.mark.parametrize(("slots", "nats"), [(6, 0.0), (5, 5.0)])
def test_more_micro_operations_than_can_be_tried_are_hardly_sure(slots, nats):
    six = {"left": (Look(6.0, 0.05),), "right": (Look(0.0, 0.05),)}
    found = UsageSolver(SETS, [(0, 1), (1, 2)], noise=EXACT).candidates(six, math.inf, slots)
    assert nats_of(found, Operation((0, 1), 6.0)) == nats
    assert [one.nats for one in found if one.operations is None] == [3.0]


@pytest.mark.parametrize(("apart", "fits"), [(0.24, True), (0.26, False)])
def test_many_micro_operations_are_whole_numbers(apart, fits):
    six = {"left": (Look(6.0 + apart, 0.05),), "right": (Look(0.0, 0.05),)}
    found = UsageSolver(SETS, [(0, 1), (1, 2)], noise=EXACT).candidates(six, math.inf, 6)
    assert any(one.operations for one in found) == fits


def test_slowness_that_nothing_explains_and_idle_slots_are_a_surprise():
    one, two = UsageCandidate((LEFT,), 0.0, 0.0), UsageCandidate((BOTH,), 0.0, 0.0)
    slow = explanations([[one, two]], Told(1.0))
    assert slow[0].operations == (BOTH,)
    assert math.log(slow[0].share / slow[1].share) == pytest.approx(2.5)
    more = UsageCandidate((LEFT, RIGHT), 0.0, 0.0)
    idle = explanations([[one, more]], Told(0.5, 2.0))
    assert idle[0].operations == (LEFT, RIGHT)
    assert math.log(idle[0].share / idle[1].share) == pytest.approx(1.0)


@pytest.mark.parametrize(("throughput", "slow"), [(0.58, False), (0.60, True)])
def test_ports_explain_a_throughput_that_is_a_seventh_slower(throughput, slow):
    found = explanations(
        [[UsageCandidate((LEFT,), 0.0, 0.0), UsageCandidate((BOTH,), 0.0, 0.0)]], Told(throughput)
    )
    assert (found[0].operations == (BOTH,)) == slow


def test_what_has_no_share_of_the_odds_is_left_out():
    some = [UsageCandidate((LEFT,), nats, 0.0) for nats in (0.0, 7.5, 8.5)]
    assert len(explanations([some], Told(math.inf))) == 2


def test_a_count_of_all_is_off_by_a_tenth():
    solver = UsageSolver(SETS, [(0, 1), (1, 2)], noise=EXACT)
    found = solver.candidates({}, math.inf, 1, total=1.2)
    assert nats_of(found, LEFT) == pytest.approx(1.2 + 0.5 * 2.0**2)


def test_accesses_have_micro_operations_for_them():
    some = [UsageCandidate((), 0.0, 0.0), UsageCandidate((RIGHT,), 0.0, 0.0)]
    memory = frozenset({1, 2})
    for accesses, wanted in ((True, (RIGHT,)), (False, ())):
        found = explanations([some], Told(math.inf, None, accesses, memory))
        assert found[0].operations == wanted
        assert math.log(found[0].share / found[1].share) == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("share", "level"), [(0.996, HIGH), (0.994, MEDIUM), (0.96, MEDIUM), (0.94, LOW), (0.5, LOW)]
)
def test_levels_are_shares_of_the_odds(share, level):
    one = Explanation((UsageCandidate((LEFT,), 0.0, 0.0),), share)
    assert level_of(one) == level
    assert level_of(one, 0.5) == LOW
    assert level_of(Explanation((UsageCandidate(None, 0.0, 0.0),), 1.0)) == LOW


@pytest.mark.parametrize(("missed", "level"), [(0.0, HIGH), (0.9, HIGH), (1.1, LOW)])
def test_what_misses_a_class_by_a_whole_micro_operation_is_hardly_sure(missed, level):
    assert level_of(Explanation((UsageCandidate((LEFT,), 0.0, missed),), 1.0)) == level


# --- readings --------------------------------------------------------------------------------------


def cost(noise, value, expected=0.0, error=0.05, tail=0):
    one = noise.costs(np.array([value]), np.array([error]), np.array([expected]), np.array([tail]))
    return float(one[0])


def test_what_a_reading_costs():
    noise = Scatter(1.0, (Tail(0.1, 0.2), Tail(0.5, 1.0), Tail(0.1, 0.2), Tail(0.1, 0.2)), 0.01)
    assert cost(noise, 0.0) < 0.01
    assert cost(noise, -0.1) == pytest.approx(2.0, abs=0.01)  # two errors
    assert cost(noise, -1.0) == pytest.approx(8.07, abs=0.02)  # worth nothing
    assert cost(noise, 0.4) == pytest.approx(5.39, abs=0.03)  # the tail, after two lengths
    assert cost(noise, 0.4, tail=tail_of(near=True, full=False)) == pytest.approx(3.85, abs=0.03)
    assert cost(noise, -0.05, error=0.001) == pytest.approx(
        3.1, abs=0.1
    )  # no error is smaller than a fiftieth


def test_scatter_is_learned():
    draw = random.Random(3)
    near = [
        (draw.gauss(0, 0.1) + draw.choice((0.0, 0.0, draw.expovariate(1 / 0.6))), 0.05) for _ in range(900)
    ]
    apart = [(draw.gauss(0, 0.1) - 3.0 * (draw.random() < 0.05), 0.05) for _ in range(900)]
    found = learned([apart, near, [], []])
    assert found.scale == pytest.approx(2.0, rel=0.15)
    assert found.spoiled == pytest.approx(0.05, rel=0.4)
    assert found.tails[0].share < 0.02
    assert found.tails[1].share == pytest.approx(0.2, abs=0.07)
    assert found.tails[1].length == pytest.approx(0.8, abs=0.25)
    assert found.tails[2:] == Scatter().tails[2:]  # nothing was seen of them


def test_a_few_readings_teach_little():
    few = learned([[(0.8, 0.05)] * 2, [], [], []])
    assert few.tails[0].share < 0.2
    assert few.scale == Scatter().scale


@pytest.mark.parametrize(("value", "nats"), [(1.0, 0.0), (0.0, 3.0), (0.5, 3.0)])
def test_what_forms_of_a_class_cost_as_a_rule(value, nats):
    """As usual, as little as its ports cost, or anything between."""
    usual = {"left": {"right": 1.0}}
    solver = UsageSolver(SETS, [(0, 1)], usual, EXACT)
    looks = {"left": (Look(1.0, 0.05),), "right": (Look(value, 0.05),)}
    rest = 1.2 + cost(EXACT, 1.0, 1.0)
    found = nats_of(solver.candidates(looks, math.inf, 1), LEFT) - rest
    assert found == pytest.approx(nats, abs=0.15)


WITHIN = {"some": (0, 1), "all": (0, 1, 2)}


def late_solver(crowded=("left", "right"), late=()):
    return UsageSolver(SETS, [(1,), (0, 1), (1, 2)], noise=EXACT, crowded=crowded, late=late)


def best_of(solver, left, throughput=0.5):
    looks = {"left": (Look(left, 0.05),), "right": (Look(0.0, 0.05),)}
    return solver.candidates(looks, throughput, 1)[0]


def test_a_late_result_costs_others_two_turns_where_a_core_is_known_to_do_so():
    known = best_of(late_solver(), 2.0)
    assert (known.operations, known.late) == ((LEFT,), True)
    assert not best_of(late_solver(()), 2.0).late
    assert not best_of(late_solver(), 1.0).late
    assert not best_of(late_solver(), 3.0, 1.5).late  # three micro-operations or something else


def test_a_late_result_is_a_surprise():
    looks = {"left": (Look(2.0, 0.05),), "right": (Look(0.0, 0.05),)}
    found = nats_of(late_solver().candidates(looks, 0.5, 1), LEFT)
    rest = 1.2 + cost(EXACT, 2.0, 2.0) + cost(EXACT, 0.0)
    assert found - rest == pytest.approx(3.0, abs=0.1)


def test_what_comes_as_late_keeps_nothing_from_a_port():
    assert not best_of(late_solver(late=("left",)), 2.0).late


@pytest.mark.parametrize(("crowded", "late"), [("left", True), ("right", False)])
def test_a_late_result_costs_two_turns_only_those_that_lose_some_to_others_as_well(crowded, late):
    assert best_of(late_solver((crowded,)), 2.0).late == late


@pytest.mark.parametrize(("among", "late"), [(1.0, False), (2.0, True)])
def test_what_has_ports_of_a_class_that_comes_late_is_late_without_surprise(among, late):
    """In time it is one: among others it costs as many turns as the class does."""
    solver = UsageSolver(WITHIN, [(0, 1), (0, 1, 2)], noise=EXACT, crowded=("all",), late=("some",))
    looks = {"some": (Look(1.0, 0.05),), "all": (Look(among, 0.05),)}
    found = next(one for one in solver.candidates(looks, 0.5, 1) if one.operations == (LEFT,))
    rest = 1.2 + cost(EXACT, 1.0, 1.0) + cost(EXACT, among, among)
    assert found.late == late
    assert found.nats - rest == pytest.approx(0.0 if late else 3.0, abs=0.2)


def test_late_results_explain_that_a_form_is_slower_than_its_ports():
    some = [UsageCandidate((LEFT,), 0.0, 0.0, late) for late in (True, False)]
    late, other = (explanations([[one, UsageCandidate(None, 2.5, 0.0)]], Told(1.0)) for one in some)
    assert late[0].late
    assert late[0].share == pytest.approx(1 / (1 + math.exp(-2.5)))
    assert other[0].share == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("ports", "value", "count"), [(3, 1.5, 1.0), (3, 1.0, 1.0), (3, 2.0, 2.0), (3, 3.0, 3.0), (4, 2.0, 2.0)]
)
def test_loops_of_whole_cycles_cost_more_than_a_part_of_one(ports, value, count):
    """Two loads among three in a cycle take two thirds of it, or one; among four one is two of each."""
    every = tuple(range(ports))
    solver = UsageSolver({"load": every}, [every], noise=EXACT, counts=False, instances=2)
    best = solver.candidates({"load": (Look(value, 0.05),)}, math.inf, 1)[0]
    assert best.operations == (Operation(every, count),)
    assert best.missed == pytest.approx(0.0)


def test_without_loops_of_whole_cycles_one_and_a_half_is_neither():
    solver = UsageSolver({"load": (0, 1, 2)}, [(0, 1, 2)], noise=EXACT, counts=False)
    assert solver.candidates({"load": (Look(1.5, 0.05),)}, math.inf, 1)[0].missed == pytest.approx(0.5)


@pytest.mark.parametrize(("accesses", "nats"), [(0, 3.6), (2, 8.6), (3, 3.6)])
def test_more_than_accesses_bring_are_a_surprise(accesses, nats):
    """Three for memory, of one slot: as many as a load and a store have, and more than two loads."""
    solver = UsageSolver(SETS, [(0, 1), (1, 2)], noise=EXACT, counts=False)
    some = solver.candidates({}, math.inf, 1.0, accesses=accesses)
    assert nats_of(some, Operation((0, 1), 2.0), RIGHT) == pytest.approx(nats)
