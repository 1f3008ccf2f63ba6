"""Which answers of probes stand for loads that were not asked about."""

from __future__ import annotations

import pytest

from cyclescope.model.behaviour.passing import MemoryPassing, StoredLoad
from cyclescope.model.facts import FORWARDING, CoreAnswer, Fact, MemoryWay, forwarding_subject

OF_TWO_STORES = StoredLoad(512, 512, 8, MemoryWay.OTHER)  # the end of what is loaded is from elsewhere


def failed(stored):
    """A load of 512 bits that waits for a store of so many, for as many cycles as that has bits."""
    subject = forwarding_subject(stored, 512, 0)
    return Fact(FORWARDING, subject, CoreAnswer.FAILED, float(stored), 0.0)


@pytest.mark.parametrize("known", range(6))
def test_a_load_of_two_stores_waits_as_the_first_that_is_known(known):
    sizes = (32, 64, 16, 8, 128, 256)[known:]
    assert MemoryPassing([failed(size) for size in sizes]).cycles(OF_TWO_STORES) == sizes[0]


def test_what_is_loaded_from_as_large_a_store_stands_for_none_of_two():
    assert MemoryPassing([failed(384)]).cycles(OF_TWO_STORES) is None
