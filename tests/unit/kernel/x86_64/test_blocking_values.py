"""Blocking instructions, and the instances of mixes, have the immediates with which forms are timed."""

from __future__ import annotations

import pytest

from cyclescope.kernel.x86_64.blocking import block_of
from cyclescope.kernel.x86_64.values import immediates
from cyclescope.measure.plan import Planner


@pytest.mark.parametrize(
    "form",
    ["VEXTRACTI128 (XMM, YMM, I8)", "VSHUFF64X2 (ZMM, ZMM, ZMM, I8)", "VPERM2I128 (YMM, YMM, YMM, I8)"],
)
def test_lanes_that_are_chosen_do_not_stay_in_place(table, form):
    """The usual value, 2, takes the lane that is there already, which some cores do for less."""
    values = immediates(table[form])
    assert values
    assert {one.immediates for one in block_of(table[form]).instructions} == {values}
    timed = Planner(table, lambda form: True).throughput(table[form])
    assert {i.immediates for e in timed for i in e.kernel.body if i.form.id == form} <= {values}


@pytest.mark.parametrize("form", ["VEXTRACTI128 (XMM, YMM, 0)", "VEXTRACTF64X4 (YMM, K, ZMM, 0)"])
def test_the_lane_in_place_is_a_form_of_its_own(table, form):
    """Its cost is another one: .25 cycles for .50 on a Zen 5, and a latency of 1 for 3."""
    assert {one.code[-1] for one in block_of(table[form]).instructions} == {0}
    for experiment in (*(planner := Planner(table, lambda form: True)).throughput(table[form]),
                       *planner.latency(table[form])):  # fmt: skip
        own = [i for i in experiment.kernel.body if i.form.id == form]
        assert own and {i.code[-1] for i in own} == {0}


def test_others_have_the_usual_ones(table):
    assert {one.immediates for one in block_of(table["VPSHUFD (XMM, XMM, I8)"]).instructions} == {None}
