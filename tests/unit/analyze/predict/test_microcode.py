"""Instructions from microcode: each has its cycles for itself, and one in which others come."""

from __future__ import annotations

import pytest

from cyclescope.analyze.predict.predictor import Predictor
from tests.support.code.blocks import block, changed, measured


def microcode(code, slots, cycles):
    """Cycles that microcode takes of a core of 4 slots where both moves come from it."""
    costs = {"operations": None, "throughput": cycles, "slots": slots, "microcoded": True}
    machine = changed(measured(), VMOVD_XMM_R32=costs, VMOVD_R32_XMM=costs)
    assert machine.core.width == 4
    found = Predictor(machine).predict(block(code), simulate=False)
    return found.bounds.get("microcode", 0.0), found.lower


@pytest.mark.parametrize(
    ("slots", "cycles", "each"),
    [
        (4.0, 2.0, 2.0),  # one cycle of slots, and one more
        (10.0, 4.0, 4.0),
        (10.0, 9.0, 4.0),  # something else takes the rest of its time
        (3.0, 2.0, 2.0),
        (3.0, 1.1, 0.0),  # as fast as others of so many slots
        (9.0, 3.0, 3.0),  # the last of its slots come in the one more cycle
    ],
)
def test_instructions_from_microcode_come_one_after_the_other(slots, cycles, each):
    """On a Zen 5 two that take 2.0 cycles each take 4.0, whatever they are and whatever ports they use."""
    assert microcode("vmovd xmm0, edi; vmovd ecx, xmm1", slots, cycles)[0] == pytest.approx(2 * each)


def test_what_is_not_from_microcode_is_no_part_of_it():
    assert microcode("vmovd xmm0, edi; lea rcx, [rsi + 8]", 4.0, 2.0)[0] == 2.0
    assert microcode("lea rcx, [rsi + 8]", 4.0, 2.0)[0] == 0.0


def test_it_is_assumed():
    """That it takes a cycle to begin may be so of one core and not of another."""
    bound, lower = microcode("vmovd xmm0, edi; vmovd ecx, xmm1", 4.0, 2.0)
    assert lower < bound
