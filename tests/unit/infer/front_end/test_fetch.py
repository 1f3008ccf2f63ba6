"""What the length of encodings costs."""

from __future__ import annotations

import pytest

from cyclescope.infer.front_end import fetch as module
from cyclescope.infer.front_end.fetch import bytes_per_cycle, fetch_limits
from cyclescope.measure.ports import blocked
from cyclescope.measure.record import NOISY, Reading


def readings(width=6, fetch=0.0, short=None, error=0.005, together=1):
    """NOPs of 1 to 15 bytes on a core that fetches so much; `short` lengths take longer."""
    for size in range(1, 16):
        cycles = max(24 / together / width, 24 * size / fetch if fetch else 0.0) * (short or {}).get(size, 1)
        yield Reading("NOP", "", "", f"x{size}", cycles, error * cycles, 24)


@pytest.mark.parametrize(("width", "fetch"), [(6, 32.0), (6, 64.0), (4, 16.0), (8, 48.0), (2, 8.0)])
@pytest.mark.parametrize("together", [1, 2])
def test_bytes_per_cycle_are_those_of_long_instructions(width, fetch, together):
    limits = fetch_limits(readings(width, fetch, together=together), width)
    assert bytes_per_cycle(limits, width) == pytest.approx(fetch, rel=0.01)
    first = next(one.bytes for one in limits if one.is_limited)
    assert first == int(fetch / width * 1.05) + 1


def test_long_nops_that_share_no_slot_are_no_limit():
    """As on a Zen 4: up to 7 bytes two share a slot, and long ones are limited by 63 bytes a cycle."""
    shared = [one for one in readings(6, 63.0, together=2) if blocked(one.variant) < 8]
    alone = [one for one in readings(6, 63.0) if blocked(one.variant) >= 8]
    limits = fetch_limits([*shared, *alone], 6)
    assert [one.bytes for one in limits if one.is_limited] == [12, 13, 14, 15]
    assert bytes_per_cycle(limits, 6) == pytest.approx(63, rel=0.01)


def test_short_encodings_are_a_limit_of_their_own():
    limits = fetch_limits(readings(8, short={2: 1.27, 3: 1.13, 4: 1.17}), 8)
    assert [one.bytes for one in limits if one.is_limited] == [2, 3, 4]
    assert [one.cycles for one in limits[:5]] == [1.0, 1.27, 1.13, 1.17, 1.0]
    assert bytes_per_cycle(limits, 8) == 0


def test_a_length_that_several_encodings_were_asked_of_is_there_once():
    """Runs of other forms may take other NOPs: the faster one says what the length costs."""
    slower = [one._replace(form="NOP_0F18", cycles=1.01 * one.cycles) for one in readings(8, 63.0)]
    assert fetch_limits([*slower, *readings(8, 63.0)], 8) == fetch_limits(readings(8, 63.0), 8)
    assert fetch_limits([*readings(8, 63.0), *slower], 8) == fetch_limits(readings(8, 63.0), 8)


def test_no_limit_where_none_shows():
    assert bytes_per_cycle(fetch_limits(readings(6), 6), 6) == 0
    assert bytes_per_cycle(fetch_limits(readings(6, 80.0), 6), 6) == 0  # two lengths alone: by chance


def test_prefixes_that_are_slow_are_no_bytes():
    slow = {size: size - 8 for size in range(10, 16)}
    assert bytes_per_cycle(fetch_limits(readings(4, short=slow), 4), 4) == 0


def test_noisy_readings_are_left_out():
    noisy = [r._replace(verdict=NOISY) for r in readings(6, 32.0)]
    assert fetch_limits(noisy, 6) == ()


@pytest.mark.parametrize(
    ("name", "times", "made"),
    [
        ("LIMITED", 0.98, {"short": {3: 1.04}}),
        ("LIMITED", 1.05, {"short": {3: 1.08}}),
        ("ERRORS", 0.5, {"short": {3: 1.07}, "error": 0.04}),
        ("ERRORS", 2, {"short": {3: 1.12}, "error": 0.04}),
    ],
)
def test_what_counts_as_slower(monkeypatch, name, times, made):
    def limited():
        return sum(one.is_limited for one in fetch_limits(readings(8, **made), 8))

    before = limited()
    monkeypatch.setattr(module, name, getattr(module, name) * times)
    assert limited() != before


@pytest.mark.parametrize(
    ("name", "times", "made"),
    [
        ("_ENOUGH", 2, {"fetch": 72.0}),
        ("_ENOUGH", 0.5, {"fetch": 79.0}),
        ("_ALIKE", 0.5, {"fetch": 32.0, "short": {15: 1.03}}),
        ("_ALIKE", 2, {"fetch": 32.0, "short": {15: 1.06}}),
    ],
)
def test_what_counts_as_one_limit(monkeypatch, name, times, made):
    def told():
        return bytes_per_cycle(fetch_limits(readings(6, **made), 6), 6) > 0

    before = told()
    value = getattr(module, name)
    monkeypatch.setattr(module, name, type(value)(value * times))
    assert told() != before
