"""What is in flight at once, as sizes of structures."""

from __future__ import annotations

import pytest

from cyclescope.model.behaviour.sizes import Registers, free_registers, with_sizes
from cyclescope.model.facts import IN_FLIGHT, MISPREDICTION, WRONG_BRANCH, CoreAnswer, Fact, InFlight
from cyclescope.model.machine import Core


def in_flight(**counts):
    return tuple(
        Fact(IN_FLIGHT, InFlight[name], CoreAnswer.VALUE, float(value), 1.5, "instructions")
        for name, value in counts.items()
    )


def test_structures_that_are_full_first():
    facts = in_flight(NOPS=440, ADDITIONS=200, VECTORS=330, LOADS=120, STORES=100)
    core = with_sizes(Core(8), facts)
    assert (core.reorder_buffer, core.load_buffer, core.store_buffer) == (440, 120, 100)
    assert free_registers(facts) == {Registers.INTEGER: 200, Registers.VECTOR: 330}


def test_nothing_is_told_of_what_another_structure_may_limit():
    facts = in_flight(NOPS=224, ADDITIONS=222, VECTORS=221, DOUBLES=220, LOADS=100, STORES=224)
    assert free_registers(facts) == {Registers.FLOATING: 220}, "errors of the others meet the buffer's"
    core = with_sizes(Core(8), facts)
    assert (core.load_buffer, core.store_buffer) == (100, 0)
    assert with_sizes(Core(8), in_flight(NOPS=440, ADDITIONS=205, LOADS=205)).load_buffer == 0, "registers"


def test_nothing_is_told_of_what_was_not_resolved():
    assert free_registers(in_flight(ADDITIONS=200)) == {}, "the buffer may be smaller"
    reason = Fact(IN_FLIGHT, InFlight.NOPS, reason="chains overlap whatever is in between")
    assert with_sizes(Core(8), (reason, *in_flight(LOADS=100, STORES=60))) == Core(8)


def test_what_a_model_has_stays_and_nops_that_share_an_entry_are_not_counted():
    facts = in_flight(NOPS=440, STORES=100)
    core = with_sizes(Core(8, reorder_buffer=512, store_buffer=64, mispredict_penalty=11), facts)
    assert (core.reorder_buffer, core.store_buffer, core.mispredict_penalty) == (512, 64, 11)
    assert with_sizes(Core(8, nops=2), facts).reorder_buffer == 0


def test_mixes_of_any_kind_say_it_where_nops_share_entries():
    """Numbers of a Zen 4."""
    facts = in_flight(ADDITIONS=192, VECTORS=154, LOADS=136, STORES=64, ANY=320)
    core = with_sizes(Core(6, nops=2), facts)
    assert (core.reorder_buffer, core.load_buffer, core.store_buffer) == (320, 136, 64)
    assert with_sizes(Core(6, nops=2), (*facts, *in_flight(NOPS=640))).reorder_buffer == 320
    assert with_sizes(Core(6), (*facts, *in_flight(NOPS=318))).reorder_buffer == 318


@pytest.mark.parametrize("subject", [WRONG_BRANCH, "another"])
def test_the_cost_of_a_wrong_branch(subject):
    fact = Fact(MISPREDICTION, subject, CoreAnswer.VALUE, 18.5, 0.2, "cycles")
    assert with_sizes(Core(8), (fact,)).mispredict_penalty == (18.5 if subject == WRONG_BRANCH else 0)
