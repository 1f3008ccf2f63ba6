"""Port structures and usages from what ideal experiments would show of them."""

from __future__ import annotations

from itertools import combinations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cyclescope.infer.ports.structure import DISJOINT, SUBSET, UNION, Relation, port_sets, solve_structure
from cyclescope.infer.ports.usage import CLEAR, MOST, UsageSolver
from cyclescope.infer.timing.results import HIGH
from cyclescope.model.machine import Operation
from cyclescope.model.ports import port_throughput

PORT_SET = st.sets(st.integers(0, 5), min_size=1, max_size=4).map(frozenset)
CLASSES = st.sets(PORT_SET, min_size=1, max_size=5).map(
    lambda some: {f"class {n}": ports for n, ports in enumerate(sorted(some, key=sorted))}
)


def relation(one, other, sets):
    first, second = sets[one], sets[other]
    if first.isdisjoint(second):
        return Relation(one, other, DISJOINT)
    if first <= second or second <= first:
        return Relation(*((one, other) if first <= second else (other, one)), SUBSET)
    return Relation(one, other, UNION, len(first | second))


def relations(sets):
    return [relation(one, other, sets) for one, other in combinations(sets, 2)]


@settings(max_examples=60)
@given(sets=CLASSES)
def test_a_structure_has_the_widths_and_unions_it_was_made_of(sets):
    widths = {name: len(ports) for name, ports in sets.items()}
    found = solve_structure(widths, relations(sets))
    assert not found.left_out
    assert {name: len(ports) for name, ports in found.sets.items()} == widths
    assert found.ports <= len(frozenset().union(*sets.values()))
    for one, other in combinations(sets, 2):
        union = set(found.sets[one]) | set(found.sets[other])
        assert len(union) == len(sets[one] | sets[other])


@settings(max_examples=60)
@given(sets=CLASSES, data=st.data())
def test_a_class_that_fits_no_ports_is_left_out_alone(sets, data):
    assume(len(sets) >= 3)
    widths = {name: len(ports) for name, ports in sets.items()}
    inside = data.draw(st.sampled_from(sorted(sets)))
    claims = [Relation("odd", inside, SUBSET)]
    found = solve_structure(widths | {"odd": widths[inside] + 2}, [*relations(sets), *claims])
    assert set(found.left_out) in ({"odd"}, {inside})


@settings(max_examples=60)
@given(sets=CLASSES, order=st.randoms(use_true_random=False))
def test_ports_do_not_depend_on_the_order_of_what_was_measured(sets, order):
    widths = {name: len(ports) for name, ports in sets.items()}
    shuffled = relations(sets)
    order.shuffle(shuffled)
    names = list(widths)
    order.shuffle(names)
    again = solve_structure({name: widths[name] for name in names}, shuffled)
    assert dict(again.sets) == dict(solve_structure(widths, relations(sets)).sets)


@st.composite
def usages(draw):
    """A group of classes, and some micro-operations on their ports."""
    sets = {name: tuple(sorted(ports)) for name, ports in draw(CLASSES).items()}
    possible = port_sets(sets)
    chosen = draw(st.lists(st.sampled_from(possible), min_size=0, max_size=MOST))
    return sets, possible, sorted(chosen)


def confined(sets, chosen):
    return {name: float(sum(set(ports) <= set(wide) for ports in chosen)) for name, wide in sets.items()}


def listed(operations):
    return sorted(op.ports for op in operations for _ in range(round(op.count)))


@given(case=usages(), error=st.floats(-0.1, 0.1))
def test_a_usage_that_is_sure_is_right(case, error):
    sets, possible, chosen = case
    measured = {name: value + error for name, value in confined(sets, chosen).items()}
    throughput = port_throughput([Operation(ports) for ports in chosen])
    found = UsageSolver(sets, possible).solve(measured, max(throughput, 0.2), len(chosen))
    if found.confidence == HIGH:
        assert listed(found.operations) == chosen
    elif found.operations is not None:
        assert chosen in [listed(some) for some in (found.operations, *found.alternatives)] or (
            len(found.alternatives) == 3
        )


@given(case=usages())
def test_a_counted_usage_has_as_many_operations_as_were_counted(case):
    sets, possible, chosen = case
    found = UsageSolver(sets, possible).solve(confined(sets, chosen), 9.0, len(chosen), float(len(chosen)))
    assert found.residual <= CLEAR
    assert len(listed(found.operations)) == len(chosen)


@given(sets=CLASSES, counts=st.data())
def test_many_operations_of_classes_are_subtracted_class_by_class(sets, counts):
    ports = {name: tuple(sorted(some)) for name, some in sets.items()}
    chosen = sorted(p for p in ports.values() for _ in range(counts.draw(st.integers(0, 5))))
    assume(len(chosen) > MOST + 1)
    found = UsageSolver(ports, port_sets(ports)).solve(
        confined(ports, chosen), 100.0, len(chosen), float(len(chosen))
    )
    assert listed(found.operations) == chosen
