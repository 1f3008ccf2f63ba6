"""What is known of loads of vectors that are in two lines of the cache."""

from __future__ import annotations

import pytest

from cyclescope.model.behaviour.found import SPACINGS, measured_behaviour
from cyclescope.model.behaviour.published import WideLoads
from cyclescope.model.facts import (
    BANKS,
    CROSSING,
    CoreAnswer,
    Fact,
    WideLoad,
    loads_across,
    loads_apart,
    wide_loads,
)

LOADS_ACROSS = [
    *(Fact(BANKS, loads_apart(apart), CoreAnswer.VALUE, 3.0, 0.01) for apart in SPACINGS),
    Fact(CROSSING, loads_across("64 bytes"), CoreAnswer.VALUE, 0.33, 0.01),
]  # fmt: skip


def wide(bits, *cycles):
    """Loads of so many bits inside a line, across its end, and with a half on either side."""
    return [
        Fact(CROSSING, wide_loads(bits, where), CoreAnswer.VALUE, one, 0.02)
        for where, one in zip(WideLoad, cycles, strict=False)
    ]


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        (wide(512, 1.0, 1.5, 1.0), (WideLoads(64, 1.0, 1.5, 1.0),)),
        (
            wide(128, 0.5, 1.0, 1.0) + wide(256, 0.5, 1.0),
            (WideLoads(16, 0.5, 1.0, 1.0), WideLoads(32, 0.5, 1.0, 1.0)),
        ),
        (wide(512, 1.0, 1.1, 1.0), ()),
        (wide(512, 1.0, 1.25, 1.0), (WideLoads(64, 1.0, 1.25, 1.0),)),
        (wide(512, 1.0), ()),
        (wide(64, 0.33, 0.67), ()),
    ],
)
def test_loads_of_vectors_that_take_longer_across_lines(facts, found):
    assert measured_behaviour(LOADS_ACROSS + facts, isa="x86-64").crossing.wide == found
