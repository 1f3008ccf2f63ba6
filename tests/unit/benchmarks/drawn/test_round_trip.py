"""What of a drawn machine's structure can be told."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from benchmarks.drawn.round_trip import Comparison


def comparison(width, **classes):
    """Of ports that classes have and those that were found."""
    made = object.__new__(Comparison)
    made.machine = SimpleNamespace(core=SimpleNamespace(width=width))
    made.truth = {name: frozenset(truth) for name, (truth, _) in classes.items()}
    made.found = {name: frozenset(found) for name, (_, found) in classes.items()}
    return made


@pytest.mark.parametrize(("width", "is_told"), [(4.0, True), (5.0, False), (6.0, False)])
def test_a_port_that_two_sides_share_is_hidden_where_both_fill_the_front_end(width, is_told):
    """Drawn machine 452622: five ports together that mixes of four slots cannot tell from four."""
    shared = {"vector": ((0, 4), (0, 2)), "integer": ((1, 2, 3), (1, 2, 3))}
    assert comparison(width, **shared).told_structure() == is_told


def test_three_classes_may_tell_what_two_do_not():
    truth = {"a": ((0, 1), (0, 1)), "b": ((1, 2), (1, 2)), "c": ((0, 2), (1, 3))}
    assert not comparison(4.0, **truth).told_structure()
    assert comparison(4.0, **{**truth, "c": ((0, 2), (0, 2))}).told_structure()


def test_names_of_ports_do_not_matter():
    assert comparison(6.0, a=((0, 1), (2, 3)), b=((1,), (3,))).told_structure()
