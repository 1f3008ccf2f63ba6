"""Slots of forms on cores that divide no instruction, and on others."""

from __future__ import annotations

import itertools
import random
from contextlib import closing
from functools import partial

import pytest

from cyclescope.infer.front_end.slots import Estimate, counted
from cyclescope.infer.front_end.undivided import dispatches_whole, seen
from cyclescope.measure.plan import Experiment, Planner
from cyclescope.measure.record import FAILED, STABLE, Reading
from cyclescope.measure.sampling import Measurement
from cyclescope.measure.store import Store
from cyclescope.model.dispatch_cycles import SETTLING, dispatch_cycles
from tests.support.made.classes import classes_of, cost_records, facts_by_time
from tests.support.made.front_ends import StatedFrontEnd

SLOTS = {f"TWO {n}": 2 for n in range(6)} | {f"THREE {n}": 3 for n in range(3)} | {"ONE": 1}
COUNTS = {"far": (21, 33), "near": (27, 29, 33), "even": (30, 42)}  # `far` leave equally many gaps


def measured(whole, counts, width=6.0, noise=0.0, slots=SLOTS):
    """Estimates from two instances among instructions of one slot."""
    rng = random.Random(1)
    rows = {}
    for form, number in slots.items():
        for count in counts:
            items = [1.0] * (count // 2) + [number] + [1.0] * (count - count // 2) + [number]
            cycles = dispatch_cycles(items, width, whole) * (1 + rng.uniform(0, noise))
            estimate = Estimate(count, 2, (cycles * width - count) / 2, 0.02)
            rows.setdefault(form, []).append(estimate)
    return rows


def slots_of(rows, width=6.0):
    return {form: count.whole for form, count in counted(rows, partial(seen, width=width)).items()}


@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_core_that_divides_instructions_is_recognised(counts, noise):
    assert not dispatches_whole(measured(False, counts, noise=noise), 6.0)


@pytest.mark.parametrize("counts", [COUNTS["far"], COUNTS["near"]])
@pytest.mark.parametrize("noise", [0.0, 0.004])
def test_so_is_one_that_does_not(counts, noise):
    found = measured(True, counts, noise=noise)
    assert dispatches_whole(found, 6.0)


def test_some_odd_forms_do_not_make_a_core_whole():
    others = {f"OTHER {n}": 2 for n in range(9)}
    both = measured(True, COUNTS["near"]) | measured(False, COUNTS["near"], slots=others)
    assert not dispatches_whole(both, 6.0)


@pytest.mark.parametrize("width", [2, 5, 6, 8])
def test_what_is_seen_is_what_the_model_of_a_core_says(width):
    for slots, fillers, instances in itertools.product((1, 2, 3, 5, 9), (13, 24, 41), (2, 4, 8)):
        items = []
        for number in range(instances):
            count = fillers * (number + 1) // instances - fillers * number // instances
            items += [*[1.0] * count, float(slots)]
        truth = (dispatch_cycles(items, width, True) * width - fillers) / instances
        assert seen(slots, fillers, instances, float(width)) == pytest.approx(truth, rel=0.02)
        assert seen(slots, fillers, instances, float(width), False) == slots


def seen_one_by_one(slots, fillers, instances, width):
    """What is seen, repetition by repetition."""
    ends, used = [], 0.0
    for _ in range(2 * SETTLING):
        for number in range(instances):
            used += fillers * (number + 1) // instances - fillers * number // instances
            free = width - used % width
            used += slots + (free if free < slots <= width else 0)
        ends.append(used)
    return ((ends[-1] - ends[SETTLING - 1]) / SETTLING - fillers) / instances


@pytest.mark.parametrize("width", [4.0, 5.7, 6.0, 6.25])
def test_repetitions_that_come_again_are_not_counted_again(width):
    for slots, fillers, instances in itertools.product((1, 2, 4, 7), (0, 13, 24, 41), (1, 3, 8)):
        assert seen(slots, fillers, instances, width) == seen_one_by_one(slots, fillers, instances, width)


def test_gaps_are_no_slots():
    found = measured(True, (18, 21, 29))
    assert min(e.slots for e in found["TWO 0"][:2]) > 2.05  # the least of these is still too many
    assert slots_of(found) == SLOTS


@pytest.mark.parametrize("noise", [0.0, 0.02])
@pytest.mark.parametrize("width", [6.0, 8.0])
def test_forms_that_do_not_fit_into_the_last_slot_of_a_cycle_are_told(width, noise):
    """What accesses memory has its slots, and one behind them is to be free; others have none too many."""
    rng, rows = random.Random(1), {}
    for slots, spare in itertools.product((1, 2), (0, 1)):
        rows[f"{slots} {spare}"] = [
            Estimate(count, 4, seen(slots, count, 4, width, spare=spare) + rng.uniform(0, noise), 0.02)
            for count in (25, 35, 52, 65)
        ]
    found = counted(rows, partial(seen, width=width))
    told = {form: (one.whole, one.spare) for form, one in found.items()}
    assert told == {form: tuple(map(int, form.split())) for form in rows}


def test_what_neither_explains_is_no_number():
    odd = [Estimate(22, 2, 2.6, 0.02), Estimate(24, 2, 3.4, 0.02), Estimate(28, 2, 2.1, 0.02)]
    assert slots_of({"ODD": odd}) == {"ODD": None}


def test_few_forms_prove_nothing():
    few = {"TWO 0": 2, "TWO 1": 2}
    assert not dispatches_whole(measured(True, COUNTS["near"], slots=few), 6.0)


def test_failed_measurements_are_left_out(tmp_path, table):
    with closing(Store(tmp_path / "s.sqlite", "machine")) as store:
        store.begin_session("now", {})
        form = table["NOP"]
        kernel = Planner(table, lambda form: True).throughput(form)[0].kernel
        failed = Measurement(0.0, 0.0, FAILED, 0, 0, (), error="SIGSEGV")
        fine = Measurement(5.0, 0.0, STABLE, 8, 0, (5.0, 5.0))
        for variant, found in (("x20", failed), ("x22", fine)):
            store.write([(Experiment(form.id, "slots", "MOV", "", variant, kernel, 2), found)])
        assert store.readings(("slots",)) == [[Reading(form.id, "MOV", "", "x22", 5.0, 0.0, 2, STABLE)]]


FOUR, WIDE, BOTH = "VPADDB (XMM, XMM, XMM)", "VPADDB (ZMM, ZMM, ZMM)", "CVTPD2PI (MM, XMM)"


def per_slot(table, costs, own=None, among=FOUR):
    """Of 512-bit and of 128-bit forms with one slot that cost this among blocking instructions of a class.

    `own` is what blocking instructions of 512 bits cost others.
    """
    wide = [f.id for f in table if [op.cls for op in f.operands if not op.implicit] == ["ZMM"] * 3]
    assert len(wide) > len(costs)
    files = {FOUR: frozenset("v"), BOTH: frozenset("vx")} | ({WIDE: frozenset("z")} if own else {})
    widths = {name: 4 if name == FOUR else 2 for name in files}
    classes = classes_of(table, widths, files, {name: wide if name == FOUR else [name] for name in files})
    confined = {n: {among: cost} for n, cost in zip(wide, costs, strict=False)}
    records = cost_records(classes, confined | ({WIDE: own} if own else {}))
    facts = facts_by_time(classes, records, StatedFrontEnd(table, slots=dict.fromkeys(wide, 1.0)))
    narrow = table["VPADDD (XMM, XMM, XMM)"]
    return facts.per_slot(table[wide[0]]), facts.per_slot(narrow)


def test_slots_of_operands_wider_than_the_units_bring_two_micro_operations(table):
    assert per_slot(table, [2.03, 1.98, 2.4] * 10 + [0.0]) == (2, 1)  # some are eliminated


@pytest.mark.parametrize("costs", [[1.0] * 25 + [2.0] * 5, [2.0] * 25 + [1.0] * 5, [2.0] * 10])
def test_they_bring_one_where_some_have_one_or_few_were_measured(table, costs):
    assert per_slot(table, costs) == (1, 1)


TURNS = {FOUR: 2.0, WIDE: 1.0}  # of a class of 512 bits, whose instances take two turns of a port each


@pytest.mark.parametrize(("costs", "slots"), [([1.0] * 30, 2), ([0.5] * 30, 1), ([1.0] * 25 + [0.5] * 5, 1)])
def test_what_costs_instructions_that_take_two_turns_one_of_them_takes_as_many(table, costs, slots):
    """What takes turns of ports that shorter vectors fill the front end with costs none of these anything."""
    assert per_slot(table, costs, TURNS, WIDE) == (slots, 1)


@pytest.mark.parametrize(("own", "slots"), [(TURNS, 2), ({FOUR: 1.0, WIDE: 1.0}, 1)])
def test_where_too_few_forms_tell_it_blocking_instructions_do(table, own, slots):
    assert per_slot(table, [own[FOUR]] * 3, own) == (slots, 1)


@pytest.mark.parametrize(("own", "slots"), [(TURNS, 2), ({FOUR: 0.0, WIDE: 1.0}, 1)])
def test_instructions_of_two_register_files_do_not_tell_turns(table, own, slots):
    """Something else may limit them."""
    assert per_slot(table, [1.0], own | {BOTH: 1.0}) == (slots, 1)
