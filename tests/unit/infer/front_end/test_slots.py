"""Slots from loops, with errors, and when they are a number."""

from __future__ import annotations

from functools import partial

import pytest

from cyclescope.infer.front_end import slots as module
from cyclescope.infer.front_end.slots import Estimate, SlotCount, counted, probable
from cyclescope.infer.front_end.undivided import seen
from cyclescope.remarks.front_end import Slots
from cyclescope.remarks.remark import NOTHING


def row(*slots, error=0.02, instances=4):
    return [Estimate(30 + 10 * n, instances, value, error) for n, value in enumerate(slots)]


def count(*slots, error=0.02, others=(), **more):
    """What a form's estimates tell beside forms of one slot each."""
    rows = {f"ONE {n}": row(value, value) for n, value in enumerate(others)}
    return counted({**rows, "FORM": row(*slots, error=error)}, **more)["FORM"]


@pytest.mark.parametrize(
    ("slots", "whole"),
    [
        ((1.0, 1.02), 1),
        ((0.97, 1.03), 1),
        ((1.99, 1.04, 1.02), 1),  # a single number of fillers misleads
        ((2.0, 2.02, 1.98), 2),
        ((2.01, 2.2, 2.02, 2.05, 2.3), 2),
        ((2.6, 2.98, 3.0, 3.02), 3),
        ((2.53, 3.0, 3.0, 3.0), 3),  # nearly half a slot fewer
        ((0.02, -0.01, 0.01), 0),
    ],
)
def test_whole_numbers_are_told(slots, whole):
    found = count(*slots)
    assert (found.whole, found.reason) == (whole, NOTHING)
    assert found.error < 0.1


@pytest.mark.parametrize(
    ("slots", "error", "reason"),
    [
        ((1.0, 2.0), 0.02, "its counts disagree: 1.00 to 2.00 slots"),
        ((1.008, 2.97, 3.0, 2.99), 0.02, "its counts disagree: 1.01 to 3.00 slots"),
        ((2.4, 3.0, 3.0, 3.0), 0.02, "its counts disagree: 2.40 to 3.00 slots"),
        ((1.5, 1.52, 1.51), 0.02, "which is no whole number"),
        ((0.5, 0.5, 0.5), 0.02, "which is no whole number"),
        ((1.0, 1.02), 0.3, "too vague to count"),
        ((2.0, 2.0), 0.02, "too seldom"),
        ((11.98, 9.31, 14.74), 0.02, "disagree: 9.31 to 14.74"),
        ((1.0,), 0.02, "disagree"),
    ],
)
def test_what_is_not_clear_is_not_told(slots, error, reason):
    found = count(*slots, error=error)
    assert found.whole is None
    assert reason in found.reason.text


def test_what_forms_of_one_slot_are_off_by_is_the_error_of_all():
    quiet, noisy = count(2.11, 2.11, 2.11), count(2.11, 2.11, 2.11, others=(1.06, 0.95, 1.05, 0.94, 1.04))
    assert quiet.whole is None
    assert noisy.whole == 2
    assert noisy.error > 0.05


def test_where_no_form_reads_as_one_slot_something_else_limits():
    """Bytes that are fetched, for example: all loops read as if slots were many."""
    rows = {f"FORM {n}": row(10.0 + n / 200, 10.02, 10.01) for n in range(24)}
    assert {found.whole for found in counted(rows).values()} == {None}
    few = dict(list(rows.items())[:23])
    assert {found.whole for found in counted(few).values()} == {10}
    assert counted({**rows, "ONE": row(1.0, 1.01)})["FORM 0"].whole == 10


def test_where_one_slot_cannot_be_told_nothing_is():
    found = count(1.0, 1.0, others=(1.2, 0.8, 1.15, 0.85, 1.2))
    assert found.whole is None
    assert "too much to count" in found.reason.text


def test_noise_does_not_become_a_fraction_or_a_wrong_number():
    for slots in ((1.3, 1.3, 1.31), (1.7, 1.71, 1.7), (2.4, 2.4, 2.41)):
        assert count(*slots, others=(1.05, 0.96, 1.04, 0.95)).whole is None


def test_what_all_forms_of_one_slot_read_too_much_is_no_slot_of_any():
    drawn = [1.07 + 0.01 * (n % 5 - 2) for n in range(40)]
    assert count(1.07, 1.06, others=drawn).slots == pytest.approx(1, abs=0.02)
    for more in (0, 0.07):
        assert [count(*[n + more] * 3, others=drawn).whole for n in (0, 2, 3)] == [0, 2, 3]
    assert count(1.07, 1.06, others=drawn).error < count(1.07, 1.06, others=drawn[:9]).error
    assert "too much to count" in count(1.22, 1.22, others=[value + 0.15 for value in drawn]).reason.text


def test_forms_of_one_kind_are_off_alike():
    slow = {f"SLOW {n}": row(1.14, 1.15) for n in range(30)}
    rows = {f"ONE {n}": row(1.0, 1.01) for n in range(30)} | slow | {"FORM": row(1.14, 1.14)}
    apart = counted(rows, kind_of=lambda form: form.startswith("SLOW"))
    assert {found.whole for form, found in apart.items() if form != "FORM"} == {1}
    assert (apart["FORM"].whole, apart["SLOW 0"].error < 0.05) == (None, True)


# --- constants ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "times", "slots", "error", "others"),
    [
        ("SURE", 0.5, (1.0, 1.0), 0.1, ()),
        ("SURE", 2, (1.0, 1.0), 0.2, ()),
        ("_AGREE", 0.5, (1.0, 1.12), 0.05, ()),
        ("_AGREE", 2, (2.0, 2.02, 2.05, 2.35), 0.02, ()),
        ("ERRORS", 0.5, (2.03, 2.03, 2.03), 0.03, ()),
        ("ERRORS", 2, (2.06, 2.06, 2.06), 0.03, ()),
        ("_GRAIN", 2, (2.03, 2.03, 2.03), 0.001, ()),
        ("_GRAIN", 0.5, (2.015, 2.015, 2.015), 0.001, ()),
        ("_FEW", 2, (1.0, 1.0), 0.02, ()),
        ("_MORE", 2, (2.0, 2.0, 2.0), 0.02, ()),
        ("_MORE", 0.5, (2.0, 2.0), 0.02, ()),
        ("HALF_WITHIN", 2, (2.11, 2.11, 2.11), 0.02, (1.05, 0.95, 1.05, 0.95)),
        ("HALF_WITHIN", 0.5, (2.13, 2.13, 2.13), 0.02, (1.03, 0.97, 1.03, 0.97)),
        ("_MANY", 2, (2.06, 2.06, 2.06), 0.02, (1.06,) * 30),
        ("_MANY", 0.5, (2.06, 2.06, 2.06), 0.02, (1.06,) * 15),
    ],
)
def test_every_constant_decides(monkeypatch, name, times, slots, error, others):
    def found():
        module._read.cache_clear()
        one = count(*slots, error=error, others=others)
        return one.whole, round(one.slots, 3)

    before, value = found(), getattr(module, name)
    changed = max(round(value * times), 1) if isinstance(value, int) else value * times
    monkeypatch.setattr(module, name, changed)
    after = found()
    module._read.cache_clear()
    assert after != before


@pytest.mark.parametrize(("read", "tells"), [(0.4, False), (0.6, True), (1.4, True), (1.6, False)])
def test_only_forms_of_one_slot_say_how_far_off_readings_are(read, tells):
    """Those that are nearer to one than to none, or to two."""

    def error(others):
        return count(2.0, 2.0, 2.0, others=others).error

    assert (error((read,) * 5) != pytest.approx(error(()))) == tells


def test_what_is_vague_does_not_say_how_far_off_readings_are():
    rows = {f"VAGUE {n}": row(1.3, 1.3, error=0.5) for n in range(9)}
    found = counted({**rows, "FORM": row(1.0, 1.02), "OTHER": row(0.98, 1.0)})
    assert [found["FORM"].whole, found["OTHER"].whole, found["VAGUE 0"].whole] == [1, 1, None]


@pytest.mark.parametrize("off", [0.1, -0.1])
def test_instructions_of_one_slot_may_read_low_or_high(off):
    """What they scatter by is the error of all, whichever side it is on."""
    assert count(2.0, 2.0, 2.0, others=(1 + off,) * 4).reason.meaning is Slots.LOUD


@pytest.mark.parametrize(
    ("value", "error", "ends"),
    [
        (1.12, 0.11, (1, 1)), (1.12, 0.45, (1, 2)), (1.5, 0.2, (1, 2)), (2.4, 0.25, (2, 2)),
        (0.04, 0.15, (0, 0)), (2.0, 1.1, (0, 4)),
    ],
)  # fmt: skip
def test_what_is_too_vague_to_count_is_one_of_few_numbers(value, error, ends):
    assert probable(SlotCount(value, error, None, value, value)) == ends


# a fused multiplication and addition with a load, as two runs on a Zen 5 read it: fillers, instances, slots
ALL_LOOPS = ((52, 4, 1.072), (62, 4, 1.059), (106, 8, 1.232), (119, 8, 1.092), (133, 8, 1.110),
             (104, 8, 1.080), (128, 8, 1.143))  # fmt: skip
TWO_LOOPS = ((53, 4, 1.201), (63, 4, 1.103))


@pytest.mark.parametrize("loops", [ALL_LOOPS, TWO_LOOPS])
def test_a_spare_slot_explains_what_is_no_whole_number_without(loops):
    """A tenth of a slot more in every loop is missed by none, and still no part of a number."""
    rows = {"FORM": [Estimate(fillers, instances, slots, 0.04) for fillers, instances, slots in loops]}
    found = counted({**rows, **{f"ONE {n}": row(1.0, 1.0) for n in range(4)}}, partial(seen, width=8.0))
    assert (found["FORM"].whole, found["FORM"].spare) == (1, 1)


def test_loops_that_were_read_before_are_not_read_again():
    """A store is counted again after each stage, and most forms have no more loops than before."""
    asked, rows = [], {"FORM": row(2.03, 2.01, 1.98), "ONE": row(1.01, 1.02)}

    def expected(slots, fillers, instances, spare=0):
        asked.append(slots)
        return float(slots)

    module._read.cache_clear()
    first = counted(rows, expected)
    known = len(asked)
    assert (first["FORM"].whole, first["ONE"].whole) == (2, 1)
    assert counted({form: list(some) for form, some in rows.items()}, expected) == first
    assert len(asked) == known > 0
