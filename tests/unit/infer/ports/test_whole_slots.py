"""Slots of forms on cores that divide no instruction, and on others."""

from __future__ import annotations

import random
from contextlib import closing

import pytest

from cyclescope.infer.ports.slots import dispatches_whole, estimates, whole_slots
from cyclescope.measure.plan import Experiment, Planner
from cyclescope.measure.record import FAILED, STABLE
from cyclescope.measure.sampling import Measurement
from cyclescope.measure.store import Store
from cyclescope.model.dispatch import dispatch_cycles

SLOTS = {f"TWO {n}": 2 for n in range(6)} | {f"THREE {n}": 3 for n in range(3)} | {"ONE": 1}
COUNTS = {"far": (21, 33), "near": (27, 29, 33), "even": (30, 42)}  # `far` leave equally many gaps


def measured(whole, counts, width=6.0, noise=0.0, slots=SLOTS):
    """Readings of two instances among instructions of one slot."""
    rng = random.Random(1)
    readings = []
    for form, number in slots.items():
        for count in counts:
            items = [1.0] * (count // 2) + [number] + [1.0] * (count - count // 2) + [number]
            cycles = dispatch_cycles(items, width, whole) * (1 + rng.uniform(0, noise))
            readings.append((form, f"x{count}", cycles))
    return readings


@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_core_that_divides_instructions_is_recognised(counts, noise):
    assert not dispatches_whole(estimates(measured(False, counts, noise=noise), 6.0), 6.0)


@pytest.mark.parametrize("counts", [COUNTS["far"], COUNTS["near"]])
@pytest.mark.parametrize("noise", [0.0, 0.004])
def test_so_is_one_that_does_not(counts, noise):
    found = estimates(measured(True, counts, noise=noise), 6.0)
    assert dispatches_whole(found, 6.0)


def test_some_odd_forms_do_not_make_a_core_whole():
    others = {f"OTHER {n}": 2 for n in range(9)}
    both = measured(True, COUNTS["near"]) + measured(False, COUNTS["near"], slots=others)
    assert not dispatches_whole(estimates(both, 6.0), 6.0)


def test_gaps_are_no_slots():
    found = estimates(measured(True, (18, 21)), 6.0)
    assert min(found["TWO 0"].values()) > 2.05  # the least of all estimates is still too many
    assert whole_slots(found, 6.0) == {form: float(n) for form, n in SLOTS.items() if n > 1}


def test_one_slot_is_left_as_it_was_measured():
    assert "ONE" not in whole_slots(estimates(measured(True, COUNTS["near"]), 6.0), 6.0)


def test_what_neither_explains_is_left_as_it_was_measured():
    odd = {22: 2.6, 24: 3.4, 28: 2.1}
    assert not whole_slots({"ODD": odd}, 6.0)


def test_microcode_is_left_as_it_was_measured():
    assert not whole_slots({"MANY": {22: 5.0, 24: 5.0}}, 6.0)


def test_few_forms_prove_nothing():
    few = {"TWO 0": 2, "TWO 1": 2}
    assert not dispatches_whole(estimates(measured(True, COUNTS["near"], slots=few), 6.0), 6.0)


def test_failed_measurements_are_left_out(tmp_path, table):
    with closing(Store(tmp_path / "s.sqlite", "machine")) as store:
        store.begin_session("now", {})
        form = table["NOP"]
        kernel = Planner(table, lambda form: True).throughput(form)[0].kernel
        failed = Measurement(0.0, 0.0, FAILED, 0, 0, (), error="SIGSEGV")
        fine = Measurement(5.0, 0.0, STABLE, 8, 0, (5.0, 5.0))
        for variant, found in (("x20", failed), ("x22", fine)):
            store.write([(Experiment(form.id, "slots", "MOV", "", variant, kernel, 2), found)])
        assert store.readings("slots") == [(form.id, "x22", 5.0)]
