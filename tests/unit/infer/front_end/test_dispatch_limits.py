"""Whether a core dispatches instructions whole, from estimates on both sides of every limit."""

from __future__ import annotations

import pytest

from cyclescope.infer.front_end.slots import Estimate
from cyclescope.infer.front_end.undivided import dispatches_whole, seen

WIDTH = 6.0
LOOPS = ((29, 4), (31, 4), (34, 4), (37, 4))  # fillers and instances


def row(slots, whole, off=0.0, width=WIDTH):
    """Estimates of a form, each off by as much to one side and the other."""
    return [
        Estimate(fillers, instances, seen(slots, fillers, instances, width, whole) + off * (-1) ** n, 0.02)
        for n, (fillers, instances) in enumerate(LOOPS)
    ]


def rows(whole=0, divided=0, ones=4, slots=3, **more):
    """Forms of several slots on cores of both kinds, and forms of one slot."""
    found = {f"WHOLE {n}": row(slots, True, **more) for n in range(whole)}
    found |= {f"DIVIDED {n}": row(slots, False, **more) for n in range(divided)}
    return found | {f"ONE {n}": row(1, False) for n in range(ones)}


def test_a_core_that_divides_no_instruction():
    assert dispatches_whole(rows(whole=8), WIDTH)
    assert not dispatches_whole(rows(divided=8), WIDTH)


@pytest.mark.parametrize(("whole", "expected"), [(4, False), (5, True), (9, True)])
def test_five_forms_have_to_say_so(whole, expected):
    """A few may be odd; a machine has hundreds of forms of several slots."""
    assert dispatches_whole(rows(whole=whole), WIDTH) is expected


@pytest.mark.parametrize(("divided", "expected"), [(0, True), (2, True), (3, False), (4, False)])
def test_four_times_as_many_as_say_otherwise(divided, expected):
    assert dispatches_whole(rows(whole=10, divided=divided), WIDTH) is expected


@pytest.mark.parametrize(("off", "expected"), [(0.0, True), (0.2, True), (0.3, False)])
def test_an_explanation_misses_a_quarter_of_a_slot_at_most(off, expected):
    """More is no explanation: every number of slots is within half a slot of everything."""
    assert dispatches_whole(rows(whole=8, off=off), WIDTH) is expected


def between(share):
    """Estimates between those of both kinds, so that the better explanation is better by a part only."""
    ends = zip(row(2, True), row(2, False), strict=True)
    return [Estimate(w.fillers, w.instances, share * w.slots + (1 - share) * d.slots, 0.02) for w, d in ends]


def apart():
    """Slots that both kinds of dispatch differ by, on average of the loops."""
    difference = [w.slots - d.slots for w, d in zip(row(2, True), row(2, False), strict=True)]
    return sum(map(abs, difference)) / len(difference)


@pytest.mark.parametrize(("slots", "expected"), [(0.05, False), (0.075, False), (0.085, True), (0.12, True)])
def test_the_better_explanation_is_clearly_better(slots, expected):
    """By 0.08 slots: twice the error of four loops' mean, so that noise does not choose."""
    share = 0.5 + slots / apart() / 2
    assert dispatches_whole({f"FORM {n}": between(share) for n in range(8)}, WIDTH) is expected


@pytest.mark.parametrize(
    ("slots", "least", "expected"), [(2, 1.3, False), (2, 1.4, True), (5, 4.5, True), (5, 4.7, False)]
)
def test_forms_of_several_slots_but_no_microcode(slots, least, expected):
    """One slot leaves none empty; what the microcode sequencer issues comes in other portions.

    The least estimate of a form decides: one loop is set to it, the others are as whole dispatch makes them.
    """
    one, *others = row(slots, True, width=12.0)
    estimates = [Estimate(one.fillers, one.instances, least, 0.02), *others, *others, *others]
    assert dispatches_whole({f"FORM {n}": estimates for n in range(8)}, 12.0) is expected


@pytest.mark.parametrize("width", [2.0, 3.0])
def test_two_slots_are_tried_on_the_narrowest_cores(width):
    """Half a cycle's is one slot there, which forms of several do not have; three are hardly told."""
    assert dispatches_whole({f"FORM {n}": row(2, True, width=width) for n in range(8)}, width)
    assert not dispatches_whole({f"FORM {n}": row(2, False, width=width) for n in range(8)}, width)
    assert not dispatches_whole({f"FORM {n}": row(3, True, width=width) for n in range(8)}, width)
