"""Port structures and usages from what ideal experiments would show of them."""

from __future__ import annotations

from itertools import combinations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cyclescope.infer.likelihood.noise import MOST_TRIED, Look
from cyclescope.infer.likelihood.odds import sureness
from cyclescope.infer.likelihood.structure import port_sets, solve_structure
from cyclescope.infer.likelihood.unions import UnionEvidence
from cyclescope.infer.likelihood.usage import KEPT, Told, UsageSolver, explanations
from cyclescope.infer.ports.builder import level_of
from cyclescope.model.facts import HIGH
from cyclescope.model.machine import Operation
from cyclescope.model.ports import port_throughput

PORT_SET = st.sets(st.integers(0, 5), min_size=1, max_size=4).map(frozenset)
CLASSES = st.sets(PORT_SET, min_size=1, max_size=5).map(
    lambda some: {f"class {n}": ports for n, ports in enumerate(sorted(some, key=sorted))}
)


def evidence(one, other, sizes, union):
    """Every size as far from the measured one as a clear reading makes it."""
    least, most = max(sizes), sum(sizes)
    return UnionEvidence(one, other, {n: 20.0 * abs(n - union) for n in range(least, most + 1)})


def measured(sets):
    return [
        evidence(one, other, (len(sets[one]), len(sets[other])), len(sets[one] | sets[other]))
        for one, other in combinations(sets, 2)
    ]


@settings(max_examples=60)
@given(sets=CLASSES)
def test_a_structure_has_the_widths_and_unions_it_was_made_of(sets):
    widths = {name: len(ports) for name, ports in sets.items()}
    found = solve_structure(widths, measured(sets))
    assert not found.left_out
    assert {name: len(ports) for name, ports in found.sets.items()} == widths
    assert found.ports <= len(frozenset().union(*sets.values()))
    for one, other in combinations(sets, 2):
        union = set(found.sets[one]) | set(found.sets[other])
        assert len(union) == len(sets[one] | sets[other])


@settings(max_examples=60)
@given(sets=CLASSES, data=st.data())
def test_a_class_that_fits_no_ports_is_left_out_alone(sets, data):
    """A class of one port that two others, which share none, both contain."""
    assume(len(sets) >= 3)
    apart = [(a, b) for a, b in combinations(sets, 2) if sets[a].isdisjoint(sets[b])]
    assume(apart)
    pair = data.draw(st.sampled_from(apart))
    widths = {name: len(ports) for name, ports in sets.items()}
    claims = [evidence("odd", name, (1, widths[name]), widths[name] + (name not in pair)) for name in sets]
    found = solve_structure(widths | {"odd": 1}, [*measured(sets), *claims])
    assert len(found.left_out) == 1
    assert found.left_out.keys() <= {"odd", *pair}


@settings(max_examples=60)
@given(sets=CLASSES, order=st.randoms(use_true_random=False))
def test_ports_do_not_depend_on_the_order_of_what_was_measured(sets, order):
    widths = {name: len(ports) for name, ports in sets.items()}
    shuffled = measured(sets)
    order.shuffle(shuffled)
    names = list(widths)
    order.shuffle(names)
    again = solve_structure({name: widths[name] for name in names}, shuffled)
    assert dict(again.sets) == dict(solve_structure(widths, measured(sets)).sets)


@given(first=st.integers(1, 4), second=st.integers(1, 4))
def test_a_union_that_nothing_shows_is_not_sure(first, second):
    """Two classes of which nothing is known beyond their widths: the smaller structure, by few odds."""
    sizes = range(max(first, second), first + second + 1)
    nothing = [UnionEvidence("one", "two", dict.fromkeys(sizes, 0.0))]
    found = solve_structure({"one": first, "two": second}, nothing)
    shares = sureness(found, nothing)
    assert found.ports == max(first, second)
    assert set(shares) == {"one", "two"}
    assert all(0.5 < share < 0.98 for share in shares.values())


@st.composite
def usages(draw):
    """A group of classes, and some micro-operations on their ports."""
    sets = {name: tuple(sorted(ports)) for name, ports in draw(CLASSES).items()}
    possible = port_sets(sets)
    chosen = draw(st.lists(st.sampled_from(possible), min_size=0, max_size=MOST_TRIED))
    return sets, possible, sorted(chosen)


def confined(sets, chosen):
    return {name: float(sum(set(ports) <= set(wide) for ports in chosen)) for name, wide in sets.items()}


def listed(operations):
    return sorted(op.ports for op in operations for _ in range(round(op.count)))


def looked(values):
    return {name: (Look(value, 0.05),) for name, value in values.items()}


@given(case=usages(), error=st.floats(-0.1, 0.1))
def test_a_usage_that_is_sure_is_right(case, error):
    sets, possible, chosen = case
    readings = looked({name: value + error for name, value in confined(sets, chosen).items()})
    throughput = max(port_throughput([Operation(ports) for ports in chosen]), 0.2)
    candidates = UsageSolver(sets, possible).candidates(readings, throughput, len(chosen))
    found = explanations([candidates], Told(throughput, len(chosen)))
    if level_of(found[0]) == HIGH:
        assert listed(found[0].operations) == chosen
    elif found[0].complete:
        assert chosen in [listed(some.operations) for some in found] or len(found) > KEPT


@given(case=usages())
def test_a_counted_usage_has_as_many_operations_as_were_counted(case):
    sets, possible, chosen = case
    looks = looked(confined(sets, chosen))
    found = UsageSolver(sets, possible).candidates(looks, 9.0, len(chosen), float(len(chosen)))[0]
    assert found.missed == 0.0
    assert len(listed(found.operations)) == len(chosen)


@given(sets=CLASSES, counts=st.data())
def test_many_operations_of_classes_are_subtracted_class_by_class(sets, counts):
    ports = {name: tuple(sorted(some)) for name, some in sets.items()}
    chosen = sorted(p for p in ports.values() for _ in range(counts.draw(st.integers(0, 5))))
    assume(len(chosen) > MOST_TRIED + 1)
    looks = looked(confined(ports, chosen))
    found = UsageSolver(ports, port_sets(ports)).candidates(looks, 100.0, len(chosen), float(len(chosen)))[0]
    assert listed(found.operations) == chosen
