"""Which chain of a pair tells its latency, on records written down."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.infer.timing.choice import (
    as_long_as_filled,
    best_looks,
    doubt,
    is_disputed,
    left_out,
    preferred,
    undercut,
)
from cyclescope.measure.record import NOISY, STABLE, UNSTABLE, Record
from cyclescope.model.facts import HIGH, MEDIUM
from cyclescope.remarks.timing import Timing
from tests.support.files.records import IMUL, chain, latency

LINK, FILL = ("v>k",), ("v>k", "k>k", "k>k")
CYCLES = {"v>k": 6.0, "k>k": 1.0, "mem>v.128": 6.0, "r>r": 1.0}


def record(variant, cycles, links=(), verdict=STABLE, spread=0.02):
    return Record("f", "latency", "op2", "op1", variant, cycles, spread, verdict, 1, links)


def loose(*rounds):
    """A chain whose rounds disagree."""
    return msgspec.structs.replace(record("link", min(rounds), LINK, UNSTABLE), rounds=rounds)


def alone(*rounds):
    """A chain of the form alone whose rounds disagree."""
    return msgspec.structs.replace(record("swap", min(rounds), (), UNSTABLE), rounds=rounds)


def net(one):
    return one.cycles - sum(CYCLES[key] for key in one.links)


def chosen(*records, hidden=()):
    return preferred(records, net, lambda one: one.variant in hidden).variant


@pytest.mark.parametrize(
    ("first", "again", "spread", "expected"),
    [
        (STABLE, STABLE, 0.2, 9.1), (UNSTABLE, STABLE, 0.2, 9.1), (UNSTABLE, UNSTABLE, 0.2, 9.1),
        (STABLE, UNSTABLE, 0.16, 9.4), (STABLE, UNSTABLE, 0.14, 9.1), (STABLE, NOISY, 0.14, 9.4),
    ],
)  # fmt: skip
def test_another_look_takes_the_place_of_the_first(first, again, spread, expected):
    """Of more rounds, unless it is worse; what is surely faster is another state, and the chain's own."""
    longer = msgspec.structs.replace(record("link again", 9.1, LINK, again), rounds=(9.1, 9.4, 9.1))
    both = record("link", 9.4, LINK, first, spread), longer
    other = record("filled", 12.0, FILL)
    (found, same) = best_looks([*both, other])
    assert (found.variant, found.cycles, same) == ("link", expected, other)


def test_a_state_that_is_seldom_takes_no_place():
    first, again = record("self", 7.5), record("self again", 6.0, (), UNSTABLE)
    for rounds, expected in (((6.0, 7.5, 6.0, 7.5), 7.5), ((6.0, 7.5, 6.0), 6.0)):
        (found,) = best_looks([first, msgspec.structs.replace(again, rounds=rounds)])
        assert found.cycles == expected


def test_sequences_are_looked_at_again_apart():
    first = msgspec.structs.replace(record("plain x8", 9.4), quantity="throughput")
    again = msgspec.structs.replace(first, variant="plain x8 again")
    assert best_looks([first, again]) == [first, again]


def test_the_least_latency_counts():
    other_path = record("link", 11.0, LINK)
    assert chosen(other_path, record("filled", 10.0, FILL)) == "filled"


@pytest.mark.parametrize(
    ("alone", "filled", "expected"),
    [(6.1, 14.4, "self"), (6.3, 14.4, "self"), (6.5, 14.4, "filled"), (6.0, 14.2, "filled")],
)
def test_a_form_alone_bounds_what_links_show(alone, filled, expected):
    """Though it is hidden: no latency is longer than its own chain, but for noise."""
    some = record("self", alone), record("filled", filled, FILL)
    assert chosen(*some, hidden=("self",)) == expected


def test_what_rounds_disagree_about_is_no_reading():
    steady, loose = record("link", 9.0, LINK), record("filled", 9.0, FILL, UNSTABLE, spread=4.0)
    assert chosen(steady, loose) == "link"
    assert chosen(loose) == "filled"


@pytest.mark.parametrize(("link", "expected"), [(8.72, "unbroken"), (8.3, "filled")])
def test_two_chains_that_agree_are_not_overruled(link, expected):
    """One of them cuts all other dependencies: what is left is the pair's, or nearly so."""
    some = record("link", link, LINK), record("unbroken", 8.96, LINK), record("filled", 10.0, FILL)
    assert chosen(*some) == expected


@pytest.mark.parametrize(
    ("agreed", "filled", "expected"),
    [(8.5, 16.0, "filled"), (8.6, 17.0, "filled"), (8.2, 16.0, "unbroken"), (8.8, 17.0, "unbroken")],
)
def test_what_agrees_on_an_average_confirms_nothing(agreed, filled, expected):
    """Of a core that takes 8 cycles or 9, now and then, in both chains; a third one meets one state alone."""
    link, unbroken = record("link", agreed + 6.05, LINK), record("unbroken", agreed + 6, LINK)
    assert chosen(link, unbroken, record("filled", filled, FILL)) == expected


def test_through_memory_they_are():
    links = (*LINK, "mem>v.128")
    filled = record("filled", 17.8, (*FILL, "mem>v.128"))
    assert chosen(record("link", 16.0, links), record("unbroken", 15.9, links), filled) == "filled"


@pytest.mark.parametrize(("filled", "expected"), [(9.2, "link"), (9.4, "filled")])
def test_filled_chains_have_to_be_longer_than_what_other_dependencies_take(filled, expected):
    """A compare-and-exchange at one address takes 9 cycles whatever its flags do."""
    some = record("link", 4.0, LINK[:0]), record("unbroken", 9.0, ("r>r",)), record("filled", filled, FILL)
    assert chosen(*some, hidden=("link",)) == expected


def test_a_bound_below_what_is_shown_is_taken():
    assert chosen(record("link", 8.0, LINK), record("unbroken", 14.0, LINK), hidden=("link",)) == "link"
    assert chosen(record("link", 3.0, LINK), record("unbroken", 14.0, LINK), hidden=("link",)) == "unbroken"


@pytest.mark.parametrize(
    ("average", "whole", "expected"),
    [(9.53, 10.0, "link"), (9.53, 11.0, "filled"), (9.05, 10.0, "filled"), (9.53, 10.4, "filled")],
)
def test_whole_cycles_go_before_an_average_just_below(average, whole, expected):
    filled = record("filled", average + 8, FILL)
    assert chosen(record("link", whole + 6, LINK), filled) == expected


def test_chains_of_the_form_alone_are_facts():
    assert chosen(record("self", 3.0), record("filled", 10.9, FILL)) == "self"
    assert chosen(record("unbroken", 4.0), record("link", 9.0, LINK)) == "link"


MEMORY = ("mem>v.128", "v>k")


@pytest.mark.parametrize("variant", ["unbroken", "filled"])
@pytest.mark.parametrize(("slowest", "expected"), [(1.0, "link"), (7.0, "own")])
def test_chains_without_cuts_that_take_longer_show_another_dependency(variant, slowest, expected):
    """The carry of `adc [m], i` takes a cycle, what it stored eight: alone it takes as long as the memory."""
    links = LINK if variant == "unbroken" else FILL
    whole = record(variant, 14.0 + (2.0 if variant == "filled" else 0.0), links)
    loose = record("link", 7.1, LINK, UNSTABLE, spread=slowest)
    assert chosen(loose, whole) == (variant if expected == "own" else expected)


@pytest.mark.parametrize(("beyond", "expected"), [(0.3, "link"), (0.5, "loose")])
def test_they_show_the_same_dependency_within_part_of_a_cycle(beyond, expected):
    loose = record("link", 7.0, LINK, UNSTABLE, spread=0.1)
    found = chosen(loose, record("unbroken", 7.1 + beyond, LINK))
    assert found == ("unbroken" if expected == "link" else "link")


@pytest.mark.parametrize(("filled", "expected"), [(21.9, "link"), (21.7, "filled")])
def test_two_chains_of_a_busy_form_are_overruled(filled, expected):
    """A locked addition takes 7.5 cycles, whatever its carry does: links lose a cycle at most."""
    ten = record("filled", filled, ("v>k", *("k>k",) * 10))
    some = record("link", 13.2, LINK), record("unbroken", 13.3, LINK), ten
    assert chosen(*some) == expected


@pytest.mark.parametrize(("filled", "expected"), [(14.5, "self"), (14.3, "filled")])
def test_a_busy_form_alone_is_no_fact(filled, expected):
    assert chosen(record("self", 7.8), record("filled", filled, FILL)) == expected


def test_alone_through_memory_it_is_one_though_rounds_differ():
    """Its rounds differ by a part of a cycle, and a chain with room by two: that shows another state."""
    loose = record("self", 8.1, verdict=UNSTABLE, spread=0.4)
    assert chosen(loose, record("filled", 14.0, (*FILL[1:], "mem>v.128"))) == "self"
    assert chosen(loose, record("filled", 14.0, FILL)) == "filled"


def test_alone_through_memory_a_form_is_a_fact():
    """A chain through memory may find the core in another state."""
    assert chosen(record("self", 8.2), record("filled", 18.1, MEMORY)) == "self"


@pytest.mark.parametrize(("filled", "less"), [(18.1, 6.1), (19.3, None)])
def test_what_takes_less_elsewhere_is_said(filled, less):
    alone, other = record("self", 8.1), record("filled", filled, MEMORY)
    found = undercut(alone, [alone, other], net)
    assert found == (None if less is None else pytest.approx(less))
    assert undercut(other, [alone, other], net) is None


@pytest.mark.parametrize(
    ("alone", "filled", "less"), [(2.87, 15.4, 2.4), (2.87, 15.6, None), (3.0, 15.4, None), (8.75, 21.0, 8.0)]
)
def test_beside_an_average_of_the_form_alone_less_is_said(alone, filled, less):
    """VPAVGB with a mask, two registers in turn, takes 2.87 cycles on a Zen 4, and 2 with others beside."""
    average, other = record("self", alone), record("filled", filled, MEMORY)
    found = undercut(average, [average, other], lambda one: one.cycles - 13 * bool(one.links))
    assert found == (None if less is None else pytest.approx(less))


def test_unsteady_and_lawless_chains_undercut_nothing():
    alone = record("self", 8.2)
    assert undercut(alone, [alone, record("filled", 18.1, MEMORY, UNSTABLE)], net) is None
    assert undercut(alone, [alone, record("filled", 12.5, MEMORY)], net) is None


@pytest.mark.parametrize(
    ("own", "filled", "less"),
    [(7.9, 7.1, 7.1), (7.76, 7.24, 7.24), (7.9, 7.3, None), (7.74, 7.1, None), (7.2, 6.9, None)],
)
def test_fewer_whole_cycles_elsewhere_are_said(own, filled, less):
    """Of a masked load the address takes 8 in two chains, and 7 with other instructions on the way."""
    eight, other = record("unbroken", own + 6, LINK), record("filled", filled + 8, FILL)
    found = undercut(eight, [eight, other], net)
    assert found == (None if less is None else pytest.approx(less))


@pytest.mark.parametrize(
    ("rounds", "other", "disputed"),
    [
        ((9.4, 9.41), None, False),
        ((9.4, 9.7, 9.4, 9.4), None, False),  # noise
        ((9.4, 9.8, 9.4, 9.4), None, True),  # another state
        ((9.4, 9.41), 9.7, False),
        ((9.4, 9.41), 9.8, True),
        ((9.4, 9.41), 9.0, True),
    ],
)
@pytest.mark.parametrize("links", [(), LINK])
def test_another_state_that_a_round_or_look_meets_makes_a_latency_less_sure(rounds, other, disputed, links):
    first = msgspec.structs.replace(record("link", 9.4, links), rounds=rounds)
    looks = [first, *([] if other is None else [record("link again", other, links)])]
    looks.append(record("filled", 20.0, FILL))  # another chain
    assert is_disputed(first, looks, {}) is disputed


@pytest.mark.parametrize(("spread", "disputed"), [(0.19, True), (0.21, False)])
def test_what_is_within_twice_the_error_is_noise(spread, disputed):
    first = record("link", 9.4, LINK, spread=spread)
    assert is_disputed(first, [first, record("link again", 9.8, LINK)], {}) is disputed


@pytest.mark.parametrize(
    ("rounds", "disputed"),
    [
        ((9.4, 25.0, 25.0, 9.4), True),  # two states, each found twice
        ((9.4, 9.4, 9.4, 25.0), False),  # one round, which may be disturbed
        ((5.0, 9.4, 9.4, 25.0), False),
    ],
)
def test_another_look_whose_rounds_disagree_tells_what_it_found_twice(rounds, disputed):
    first = record("link", 9.4, LINK)
    again = msgspec.structs.replace(record("link again", 9.4, LINK, UNSTABLE), rounds=rounds)
    assert is_disputed(first, [first, again], {}) is disputed


def test_chains_of_many_instances_are_told_apart_by_one_of_them():
    """0.35 cycles each: of 16 atomic operations, that depends on memory, 5.6."""
    first = msgspec.structs.replace(record("link", 404.0, LINK), count=16)
    for cycles, disputed in ((409.0, False), (410.0, True)):
        assert is_disputed(first, [record("link again", cycles, LINK)], {}) is disputed


def test_a_latency_with_two_states_has_medium_confidence():
    for rounds, trust in (((3.0, 3.0, 3.0), HIGH), ((3.0, 3.0, 3.5), MEDIUM)):
        assert latency(IMUL, chain(3.0, rounds=rounds)).confidence == trust


@pytest.mark.parametrize(
    ("others", "hidden", "doubted"),
    [
        ([record("link", 10.4, LINK)], (), False),  # the same but for half a cycle
        ([record("link", 10.6, LINK)], (), True),
        ([record("link", 10.6, LINK)], ("link",), False),
        ([record("link", 10.6, LINK, UNSTABLE)], (), False),
        ([record("link", 10.6, LINK), record("unbroken", 10.2, LINK)], (), False),  # one says the same
        ([record("unbroken", 10.4, LINK)], (), False),
        ([record("unbroken", 10.6, LINK)], (), True),  # another state, by a cycle or so
        ([record("unbroken", 11.3, LINK)], (), True),
        ([record("unbroken", 11.4, LINK)], (), False),  # another dependency
        ([record("unbroken", 10.6, LINK)], ("unbroken",), False),
        ([record("unbroken", 10.6, LINK), record("link", 10.2, LINK)], (), False),  # one says the same
        ([record("link", 9.7, LINK)], (), False),
        ([record("link", 9.6, LINK), record("unbroken", 10.2, LINK)], (), True),  # less, whatever others say
        ([loose(10.0, 10.0, 10.6, 10.6)], (), True),
        ([loose(9.4, 9.4, 10.0, 10.0)], (), True),
        ([loose(10.0, 10.0, 10.4, 10.6)], (), False),  # one round, which may be disturbed
        ([loose(10.0)], (), False),
        ([record("unbroken", 9.4, LINK)], (), True),
        ([alone(4.6, 4.6, 5.0, 5.0)], (), True),  # all of its rounds say otherwise
        ([alone(4.2, 4.6, 5.0, 5.0)], (), True),
        ([alone(4.2, 4.2, 5.0, 5.0)], (), False),  # two say the same
    ],
)
def test_what_another_chain_says_otherwise_makes_a_latency_less_sure(others, hidden, doubted):
    """If none says the same: a run that finds the other one alone gives that."""
    first = record("filled", 12.0, FILL)
    found = doubt(first, [first, *others], net, lambda one: one.variant in hidden)
    assert (found is not None) is doubted


@pytest.mark.parametrize(("first", "doubted"), [(10.24, True), (10.3, False), (10.0, False)])
def test_a_whole_number_is_doubted_if_it_is_further_from_another_chain_than_the_average_is(first, doubted):
    """10.24 is told as 10, which 10.62 contradicts; the average of 10.3 is told as one."""
    filled, other = record("filled", first + 2, FILL), record("link", first + 0.38, LINK)
    found = doubt(filled, [filled, other], net, lambda one: False)
    assert (found is not None) is doubted


def test_what_is_near_the_average_but_not_the_whole_number_does_not_say_the_same():
    """Of 3.78 and 3.48 one is told as 4; a third chain takes 3.36."""
    filled, link = record("filled", 8 + 3.78, FILL), record("link", 6 + 3.48, LINK)
    found = doubt(filled, [filled, link], net, lambda one: False)
    assert found == Timing.BY_ANOTHER.of(pytest.approx(3.48))
    same, uncut = record("link", 6 + 3.87, LINK), record("unbroken", 6 + 3.48, LINK)
    found = doubt(filled, [filled, same, uncut], net, lambda one: False)
    assert found == Timing.OTHERWISE.of(pytest.approx(3.48))
    assert doubt(filled, [filled, same, record("unbroken", 6 + 3.52, LINK)], net, lambda one: False) is None


@pytest.mark.parametrize(
    ("shown", "longer", "doubted"),
    [
        (11.0, 15.4, True),
        (11.0, 15.3, False),  # as much more as it has in it
        (11.0, 14.6, False),  # something else is slower than both
        (10.4, 15.4, False),  # says the same
        (9.4, 15.4, True),
    ],
)
def test_a_filled_chain_that_met_another_state_than_a_longer_one_makes_a_latency_less_sure(
    shown, longer, doubted
):
    link, filled = record("link", shown, LINK), record("filled", 12.0, FILL)
    more = record("filled longer", longer, (*FILL, "k>k", "k>k", "k>k"))
    found = left_out(link, [link, filled], more, net)
    assert found == (Timing.BY_ANOTHER.of(4.0) if doubted else None)
    assert left_out(filled, [link, filled], more, net) is None


@pytest.mark.parametrize(("spread", "kept"), [(0.2, True), (0.1, False)])
def test_a_filled_chain_is_as_long_as_another_but_for_twice_their_errors(spread, kept):
    """Half a cycle is noise of chains of some hundred cycles."""
    link = record("link", 240.0, LINK)
    filled = record("filled", 212.0, FILL, spread=spread)
    more = record("filled longer", 215.5, (*FILL, "k>k", "k>k", "k>k"), spread=spread)
    assert (filled in as_long_as_filled([link, filled], more, net)) is kept


def test_a_chain_of_the_form_alone_is_not_doubted():
    alone = record("self", 5.0)
    assert doubt(alone, [alone, record("link", 13.7, LINK)], net, lambda one: False) is None


@pytest.mark.parametrize(
    ("longer", "verdict", "expected"),
    [
        (15.3, STABLE, ["link", "filled"]), (15.4, STABLE, ["link"]), (14.6, STABLE, ["link"]),
        (14.6, UNSTABLE, ["link", "filled"]), (None, STABLE, ["link", "filled"]),
    ],
)  # fmt: skip
def test_a_filled_chain_takes_as_much_longer_as_has_more_in_it(longer, verdict, expected):
    """Or what it takes is something else's: with three instructions more it would tell another latency."""
    link, filled = record("link", 14.0, LINK), record("filled", 12.0, FILL)
    more = longer and record("filled longer", longer, (*FILL, "k>k", "k>k", "k>k"), verdict)
    assert [one.variant for one in as_long_as_filled([link, filled], more, net)] == expected
    assert as_long_as_filled([filled], more, net) == [filled]


def test_what_is_cut_is_so_whatever_the_length():
    link, filled = record("link", 14.0, LINK), record("filled", 6.0, FILL)
    more = record("filled longer", 6.0, (*FILL, "k>k", "k>k", "k>k"))
    assert as_long_as_filled([link, filled], more, net) == [link, filled]
