"""Latency systems on drawn truths: exact where determined, bounded otherwise."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyclescope.infer.timing.latency_system import Equation, LatencySystem, conventions, lower_bound

FREE = ("r>r", "xor", "v>v.128", "v>v.256", "k>k", "bypass.fp.128", "r>flag.CF", "flag>r.CF", "v>mem.64")
PAIRED = ("r>m", "m>r", "r>h", "h>r", "transfer.r>v", "v>r", "v>k", "sync.mask", "load.v.64", "mem>v.64")


@st.composite
def systems(draw, keys=FREE, conventional=False):
    """True latencies (whole cycles, as the law wants) and equations that they satisfy."""
    some = draw(st.lists(st.sampled_from(keys), min_size=1, max_size=6, unique=True))
    truth = {key: lower_bound(key, isa="x86-64") + draw(st.integers(0, 6)) for key in some}
    if conventional:
        for _, a, b in conventions(some, isa="x86-64"):
            truth[a] = truth[b]
    chains = draw(st.lists(st.lists(st.sampled_from(some), min_size=1, max_size=4), min_size=1, max_size=9))
    return truth, [Equation(tuple(chain), sum(truth[k] for k in chain)) for chain in chains]


def rank(rows):
    """Rank of a matrix of whole numbers, exactly."""
    rows, found = [[Fraction(x) for x in row] for row in rows], 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((r for r in rows[found:] if r[column]), None)
        if pivot is None:
            continue
        rows.remove(pivot)
        rows.insert(found, pivot)
        found += 1
        rows[found:] = [
            [x - row[column] / pivot[column] * y for x, y in zip(row, pivot, strict=True)]
            for row in rows[found:]
        ]
    return found


def determined(equations, keys):
    """Keys whose value follows from the equations alone: their unit vector is in the row space."""
    rows = [[e.keys.count(k) for k in keys] for e in equations]
    full = rank(rows)
    return [k for k in keys if rank([*rows, [int(k == other) for other in keys]]) == full]


def solved(equations):
    system = LatencySystem(equations, isa="x86-64")
    return system.keys, system.solve()


@settings(max_examples=80)
@given(systems())
def test_determined_links_are_exact(case):
    truth, equations = case
    keys, found = solved(equations)
    for key in determined(equations, keys):
        assert found[key].value == pytest.approx(truth[key], abs=1e-6)


@settings(max_examples=80)
@given(systems())
def test_bounds_contain_the_truth_and_the_value(case):
    truth, equations = case
    _, found = solved(equations)
    for key, link in found.items():
        assert link.least - 1e-6 <= truth[key] <= link.most + 1e-6
        assert link.least - 1e-6 <= link.value <= link.most + 1e-6
        assert link.least >= lower_bound(key, isa="x86-64") - 1e-6


@settings(max_examples=80)
@given(systems(PAIRED, conventional=True))
def test_conventions_that_hold_keep_bounds_and_values_together(case):
    truth, equations = case
    keys, found = solved(equations)
    for key in keys:
        assert found[key].least - 1e-6 <= truth[key] <= found[key].most + 1e-6
        assert found[key].least - 1e-6 <= found[key].value <= found[key].most + 1e-6
    for _, a, b in conventions(keys, isa="x86-64"):
        assert found[a].value == pytest.approx(found[b].value, abs=1e-6)


@settings(max_examples=80)
@given(systems(), st.randoms(use_true_random=False))
def test_noise_leaves_the_truth_within_the_bounds(case, random):
    truth, equations = case
    noisy = [Equation(e.keys, e.cycles * (1 + random.uniform(-0.01, 0.01))) for e in equations]
    _, found = solved(noisy)
    for key, link in found.items():
        assert link.least - 1e-6 <= truth[key] <= link.most + 1e-6


@settings(max_examples=80)
@given(systems(), st.data())
def test_infeasible_equations_still_give_lawful_values(case, data):
    _, equations = case
    wrong = data.draw(st.sampled_from(equations))
    _, found = solved([*equations, Equation(wrong.keys, data.draw(st.floats(0.01, 200.0)))])
    for key, link in found.items():
        assert link.value >= lower_bound(key, isa="x86-64") - 1e-6
        assert link.least <= link.most + 1e-6


@settings(max_examples=60)
@given(systems())
def test_an_open_link_names_its_convention(case):
    _, equations = case
    _, found = solved(equations)
    assert all(link.determined != bool(link.convention) for link in found.values())
