"""Whether chains that are too short prove that there is no dependency, on records written down."""

from __future__ import annotations

import pytest

from cyclescope.infer.timing.choice import is_one_or_none, is_proof
from cyclescope.infer.timing.results import EXACT, UPPER_BOUND
from cyclescope.measure.record import STABLE, UNSTABLE
from cyclescope.remarks.timing import Cause
from tests.unit.infer.timing.test_limits_of_timings import IMUL, ONE, one
from tests.unit.infer.timing.test_timing import chain, stream

SHLD = "SHLD (M64, R64, CL)"
FLAGS = {"source": "flags.PF", "target": "flags.SF"}
TWO = ("flag>r.SF", "r>flag.PF")
LINKS = dict.fromkeys((*TWO, "r>r"), ONE)


def cut(rounds, verdict=UNSTABLE):
    spread = max(rounds) - min(rounds) if verdict == UNSTABLE else 0.01
    return chain(
        min(rounds), variant="link", links=TWO, verdict=verdict, spread=spread, rounds=rounds, **FLAGS
    )


@pytest.mark.parametrize(
    ("rounds", "proof"),
    [
        ((2.16, 2.23, 3.2), True),  # what disturbs makes none shorter
        ((2.16, 2.23, 3.2, 3.3), False),  # as many are slow: it may be another state
        ((2.16, 2.8, 3.2), True),
        ((2.76, 2.8, 3.2), False),  # too near to a cycle
        ((0.9, 0.95, 2.2), True),  # less than its links take: cut all the more
    ],
)
def test_most_rounds_of_a_chain_tell_that_it_is_too_short(rounds, proof):
    record = cut(rounds)
    nets = [cycles - 2 for cycles in rounds]
    assert is_proof(record, nets[0], nets) is proof


def test_rounds_that_agree_have_their_own_error():
    record = chain(2.5, variant="link", links=TWO, spread=0.3, rounds=(2.4, 2.6), **FLAGS)
    assert is_one_or_none(record, 0.5, [0.4, 0.6])


@pytest.mark.parametrize("verdict", [STABLE, UNSTABLE])
def test_a_chain_with_cuts_outweighs_those_that_show_another_dependency(verdict):
    """Flags of a shift that keeps them if its count is 0, beside its update of memory, which takes 8."""
    rounds = (2.16, 2.2, 2.17, 3.3) if verdict == UNSTABLE else (2.16, 2.2)
    records = [
        stream(8.0), cut(rounds, verdict),
        chain(8.82, variant="filled", links=(*TWO, *("r>r",) * 5), verdict=verdict, spread=1.5, **FLAGS),
        chain(7.96, variant="unbroken", links=TWO, **FLAGS),
    ]  # fmt: skip
    found = one(SHLD, records, LINKS, **FLAGS)
    assert (found.max, found.kind, found.cause) == (0.0, EXACT, Cause.INDEPENDENT)


@pytest.mark.parametrize(("sequence", "kind"), [(1.5, EXACT), (2.0, UPPER_BOUND)])
def test_a_flag_is_not_waited_for_where_the_form_takes_as_long_without(sequence, kind):
    """Of SHLD sequences take as long as the chain from AF, which it reads for counts of 0 alone."""
    source = {"source": "flags.AF", "target": "op1"}
    records = [stream(4 * sequence), chain(2.0, variant="link", links=("r>flag.AF",), **source)]
    found = one("SHLD (R64, R64, CL)", records, {"r>flag.AF": ONE}, **source)
    assert (found.max, found.kind) == (1.0, kind)


@pytest.mark.parametrize(("cycles", "expected"), [(8.0, 0.0), (9.4, 2.0)])
def test_what_fills_a_chain_shows_that_another_dependency_is_longer(cycles, expected):
    """A gather's mask does not wait for its address, though a short chain of both takes two cycles more."""
    filling = chain(cycles, variant="filled", links=("r>r",) * 10, verdict=UNSTABLE, spread=0.5)
    records = [stream(12.0), chain(5.0, variant="link", links=("r>r",) * 3), filling]
    assert one(IMUL, records, LINKS).max == expected
