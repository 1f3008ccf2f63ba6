"""How hard a reading of a probe tries: each number is as large as its reason needs, and not twice that."""

from __future__ import annotations

import pytest

from cyclescope.backend.loops import PLACE_BYTES
from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.isa.table import load_table
from cyclescope.probe.catalogue import chosen
from cyclescope.probe.run import ask
from cyclescope.session.machines import load_model

LINE = 64  # bytes, in which the runner moves the start of a loop
ENTERING = 15.0  # cycles that entering code anew takes, of which a reading may be a thousandth too long
INTERRUPTS = 2.5e6  # cycles between two of a kernel that has a thousand a second
READING = 1e6  # cycles of all samples of a kernel: hundreds of kernels of a probe are a second


class Asked(Exception):
    """What a probe's first batch is asked with."""


class Asking(SimulatedBackend):
    def submit(self, kernels, effort):
        raise Asked(effort.rounds, effort.want, effort.target)


@pytest.fixture
def effort():
    backend = Asking(load_model("skylake"))
    with pytest.raises(Asked) as asked:
        list(ask(chosen(["stack-engine"]), backend, load_table("x86-64")))
    return asked.value.args


def test_rounds_see_loops_that_start_in_every_quarter_of_a_line_and_in_none_twice(effort):
    rounds, _, _ = effort
    assert sorted(number * PLACE_BYTES % LINE * 4 // LINE for number in range(rounds)) == [0, 1, 2, 3]


def test_samples_are_long_for_what_entering_takes_and_short_between_interrupts(effort):
    _, _, target = effort
    assert ENTERING / target < 0.001
    assert target / INTERRUPTS < 0.01


def test_samples_outvote_some_that_were_disturbed_and_are_no_longer_than_needed(effort):
    rounds, want, target = effort
    assert want // 2 > 2, "the lower half of a few has more than two that agree"
    assert rounds * want * target < READING
