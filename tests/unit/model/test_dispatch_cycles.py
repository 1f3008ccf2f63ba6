"""Cycles of the front end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyclescope.model.dispatch_cycles import (
    Dispatched,
    dispatch_cycles,
    have_ports,
    narrow_cycles,
    single_cycles,
)
from cyclescope.model.machine import Narrow


@pytest.mark.parametrize(
    ("slots", "width", "divided", "whole"),
    [
        ([1] * 6, 6, 1, 1),
        ([1] * 7, 6, 7 / 6, 7 / 6),
        ([2] * 3, 6, 1, 1),
        ([2, 2], 3, 4 / 3, 2),  # a slot stays empty in every cycle
        ([1, 2, 2], 3, 5 / 3, 2),  # 2 1 | 2 and a gap
        ([4, 3], 6, 7 / 6, 2),
        ([8], 6, 8 / 6, 8 / 6),  # more than a cycle has: divided
        ([0.5, 0.5, 1], 4, 0.5, 0.5),
        ([], 4, 0, 0),
    ],
)
def test_cycles(slots, width, divided, whole):
    assert dispatch_cycles(slots, width) == pytest.approx(divided)
    assert dispatch_cycles(slots, width, whole=True) == pytest.approx(whole)


loops = st.lists(st.integers(1, 4), min_size=1, max_size=12)


@given(loops, st.integers(4, 8))
def test_gaps_only_cost(slots, width):
    whole = dispatch_cycles(slots, width, whole=True)
    assert whole >= dispatch_cycles(slots, width) - 1e-9
    assert whole <= len(slots)


@given(loops, st.integers(4, 8))
def test_without_long_instructions_nothing_is_lost(slots, width):
    ones = [1] * sum(slots)
    assert dispatch_cycles(ones, width, whole=True) == dispatch_cycles(slots, width)


@pytest.mark.parametrize(
    ("spare", "width", "cycles"),
    [
        ([1, 0, 0, 0, 0, 0, 0], 8, 1.0),  # it never fits behind seven others
        ([1, 0, 0, 0, 0], 8, 2 / 3),  # in every other cycle
        ([1, 0, 0], 8, 0.4),
        ([1], 8, 1 / 7),
        ([1, 1, 0], 4, 2 / 2),
        ([9, 0], 8, 1.0),  # a cycle begins with it: none has more left
        ([0, 0, 0], 8, 3 / 8),
    ],
)
def test_spare_slots_behind_an_instruction_are_left_to_others(spare, width, cycles):
    slots = [1.0] * len(spare)
    assert dispatch_cycles(slots, width, True, spare) == pytest.approx(cycles)
    assert dispatch_cycles(slots, width, False, spare) == pytest.approx(len(slots) / width)


ONE, EITHER, ANY = (1,), (1, 2), (0, 1, 2, 3)
BOTH = Dispatched(2.0, (EITHER, EITHER))


@pytest.mark.parametrize(
    ("instructions", "cycles"),
    [
        ([Dispatched(1.0)] * 9, 9 / 6),
        ([Dispatched(1.0, (ANY,))] * 4, 1.0),  # of each port one a cycle
        ([Dispatched(1.0, (EITHER,))] * 3, 1.5),
        ([BOTH, Dispatched(1.0, (EITHER,)), *[Dispatched(1.0)] * 3], 2.0),  # six slots, and not in one cycle
        ([BOTH, Dispatched(1.0, (EITHER,))], 2.0),
        ([Dispatched(1.0, (EITHER,)), Dispatched(1.0, (ONE,))], 1.0),  # the first leaves the only port
        ([Dispatched(1.0, (ONE,))] * 2, 2.0),
        ([Dispatched(1.0, (ONE, ONE)), Dispatched(5.0)], 2.0),  # more than its ports: alone
        ([Dispatched(9.0, (ONE,)), Dispatched(3.0)], 2.0),  # more slots than a cycle has
        ([], 0.0),
    ],
)
def test_a_single_port_gets_one_operation_in_a_cycle(instructions, cycles):
    assert single_cycles(instructions, 6.0) == pytest.approx(cycles)


@pytest.mark.parametrize(
    ("operations", "have"),
    [
        ([ANY] * 4, True),
        ([ANY] * 5, False),
        ([EITHER, EITHER, ONE], False),
        ([ANY, EITHER, ONE], True),
        ([()], False),
    ],
)
def test_operations_have_ports_of_their_own(operations, have):
    assert have_ports(operations) == have


@pytest.mark.parametrize(
    ("vectors", "others", "beside", "cycles"),
    [
        (7, 2, 3, 7 / 6),
        (7, 3, 3, 2),
        (7, 3, 0, 7 / 6),
        (13, 20, 3, 3),
        (6, 3, 3, 1),
        (5, 30, 3, 5 / 6),
        (0, 3, 3, 0),
    ],
)
def test_instructions_of_which_a_cycle_takes_fewer(table, vectors, others, beside, cycles):
    """Whole cycles for more than one takes, beside enough others: for each round of an unrolled loop."""
    narrow = Narrow(("v",), 6.0, beside)
    forms = [(table["PADDD (XMM, XMM)"], 1.0)] * vectors + [(table["ADD_01 (R64, R64)"], 1.0)] * others
    assert narrow_cycles(forms, narrow) == pytest.approx(cycles)
    assert narrow_cycles(3 * forms, narrow) == pytest.approx(3 * cycles)
    assert narrow_cycles(forms, None) == 0


def test_their_slots_count(table):
    narrow = Narrow(("k", "v"), 6.0)
    forms = [("CVTSI2SD (XMM, R32)", 2.0), ("KADDB (K, K, K)", 1.0), ("ADD_01 (R64, R64)", 1.0)]
    assert narrow_cycles([(table[name], slots) for name, slots in forms], narrow) == pytest.approx(3 / 6)
    microcode = [(table["VZEROALL"], 32.0), (table["VMASKMOVPS (M256, YMM, YMM)"], 7.0)]
    assert narrow_cycles(microcode, narrow) == 0
