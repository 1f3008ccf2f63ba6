"""What addresses and constants that are stored need more of, from what was found."""

from __future__ import annotations

import pytest

from cyclescope.model.behaviour.found import measured_behaviour
from cyclescope.model.behaviour.published import MoreWork
from cyclescope.model.facts import (
    ADDRESSING,
    BANKS,
    Addressed,
    AddressMade,
    CoreAnswer,
    Fact,
    More,
    addressed_subject,
    constants_alone,
    later_subject,
    stacked_constant,
    stored_constant,
    stores_apart,
)


@pytest.mark.parametrize(
    ("value", "error", "count"),
    [
        (0.02, 0.17, 0),
        (0.45, 0.1, 0),
        (0.6, 0.2, 0),
        (0.9, 0.2, 1),
        (1.0, 0.2, 1),
        (1.31, 0.18, 1),
        (1.9, 0.1, 2),
    ],
)
def test_what_an_address_needs_more_is_a_whole_number(value, error, count):
    subjects = (
        addressed_subject(Addressed.STORE, More.SLOTS),
        addressed_subject(stacked_constant(32), More.ADDITIONS),
    )
    told = [Fact(ADDRESSING, subject, CoreAnswer.VALUE, value, error) for subject in subjects]
    found = measured_behaviour(told, isa="x86-64").addressing
    assert found.indexed == ({Addressed.STORE: MoreWork(slots=count)} if count else {})
    assert found.constants == ({32: MoreWork(additions=count)} if count else {})


@pytest.mark.parametrize(
    ("value", "alone", "found"),
    [
        (1.3, 0.556, MoreWork(additions=1, stored=True, alone=0.556)),
        (1.3, 0.503, MoreWork(additions=1, stored=True)),  # as registers, which take .5
        (1.3, None, MoreWork(additions=1, stored=True)),
        (0.1, 0.556, None),
    ],
)
def test_constants_need_additions_and_take_longer_alone_where_both_were_found(value, alone, found):
    subjects = {addressed_subject(stored_constant(64), More.ADDITIONS): value, constants_alone(64): alone}
    told = [Fact(ADDRESSING, subject, CoreAnswer.VALUE, one, 0.005) for subject, one in subjects.items()]
    told.append(Fact(BANKS, stores_apart(0), CoreAnswer.VALUE, 2.0, 0.005))
    assert measured_behaviour(told, isa="x86-64").addressing.stored == ({64: found} if found else {})
    registers_unknown = measured_behaviour(told[:2], isa="x86-64").addressing.stored
    assert registers_unknown == ({64: found._replace(alone=0.0)} if found else {})


def later(error=0.1, **cycles):
    """What is known of addresses with an index, whose cycles from base and index are given by their names."""
    told = [
        Fact(ADDRESSING, later_subject(end, AddressMade[made]), CoreAnswer.VALUE, value, error)
        for made, values in cycles.items()
        for end, value in zip(("base", "index"), values, strict=True)
    ]
    return measured_behaviour(told, isa="x86-64").addressing.later


def test_addresses_of_three_parts_are_later_from_the_base_and_those_of_two_sooner_from_the_index():
    found = later(INDEXED=(0.01, -0.02), DISPLACED=(1.01, 0.98), SCALED=(1.0, 1.0))
    assert found == {
        AddressMade.INDEXED: (0, -1), AddressMade.DISPLACED: (1, 0), AddressMade.SCALED: (1, 0),
    }  # fmt: skip
    assert later(INDEXED=(0.0, 1.0), DISPLACED=(0.0, 1.0)) == {}


def test_what_is_not_known_of_addresses_is_as_the_forms_say():
    assert later(INDEXED=(0.0, 0.0)) == {}  # nobody knows what the form's own is
    assert later(0.45, DISPLACED=(1.0, 1.0)) == {AddressMade.DISPLACED: (1, 0)}
    assert later(0.5, DISPLACED=(1.0, 1.0)) == {}
