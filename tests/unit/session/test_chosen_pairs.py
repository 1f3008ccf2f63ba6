"""Which pairs of CPUs are asked."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from cyclescope.host.identity import Hypervisor
from cyclescope.host.topology import Topology
from cyclescope.remarks.probing import NoPairs
from cyclescope.session.probes import chosen_pairs, pairs_of


def topology(usable, siblings=None):
    return Topology(tuple(usable), len(usable), siblings or {}, 0.0, "", None)


@given(st.sets(st.integers(0, 200), min_size=2, max_size=60))
def test_pairs_are_those_of_the_machine(cpus):
    usable = sorted(cpus)
    pairs = chosen_pairs(topology(usable))
    assert pairs[0] == (usable[0], usable[-1])
    assert len(set(pairs)) == len(pairs) <= 28
    assert set(pairs) <= set(combinations(usable, 2))


def test_all_pairs_of_eight_and_those_of_the_first_of_more():
    assert set(chosen_pairs(topology(range(8)))) == set(combinations(range(8), 2))
    of_nine = chosen_pairs(topology(range(9)))
    assert set(of_nine) == {(0, n) for n in range(1, 9)}


def test_what_shares_a_core_comes_first():
    siblings = {n: (n % 4, n % 4 + 4) for n in range(8)}
    assert chosen_pairs(topology(range(8), siblings))[:2] == [(0, 4), (0, 7)]


def test_only_one_cpu():
    assert pairs_of(topology((3,)), Hypervisor.NONE).why_none.meaning is NoPairs.ALLOWED_ONE


def test_of_many_the_first_is_asked_with_some_at_equal_steps():
    pairs = chosen_pairs(topology(range(57)))
    assert [(one, other) for one, other in pairs[1:]] == [(0, n) for n in range(1, 55, 2)]
