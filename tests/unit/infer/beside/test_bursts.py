"""Copies that run once: marks in pairs, what they cost is taken out, how many copies there are."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
from msgspec import structs

from cyclescope.backend.base import OK, SIGNAL, TOO_LONG, BurstSample
from cyclescope.errors import MeasurementError, UsageError
from cyclescope.infer.beside import bursts
from cyclescope.infer.beside.bursts import (
    PAUSES,
    RESUMES,
    Before,
    BurstPlan,
    aggregate,
    burst_of,
    pairs_of_marks,
    time_bursts,
)
from cyclescope.kernel.state import area_middle
from cyclescope.measure.bench import VECTOR_LEVELS, CodePlace, area_state, machine_code
from cyclescope.measure.record import STABLE, UNSTABLE

NOP, ADD = b"\x90", bytes.fromhex("4801d8")
ENTRY = 50.0  # cycles of a run without copies


def kernel(code, instructions=1):
    return machine_code(code, b"", instructions, 1, VECTOR_LEVELS["sse"])


class PlayedBackend:
    """Copies take `cycles` in turn, and `mark` per pair of marks; events are as many."""

    def __init__(self, cycles, mark=0.0, emulated=False, status=OK, beside=0.0):
        self.cycles, self.mark = itertools.cycle(cycles), mark
        self.emulated, self.status, self.asked = emulated, status, []
        self.beside = beside  # cycles of copies that pass beside what no copies take

    def capabilities(self):
        return SimpleNamespace(isa="x86-64", emulated=self.emulated)

    def burst(self, kernel, effort):
        self.asked.append((kernel, effort))
        if self.status != OK:
            return BurstSample((0.0,), (0.0,), (), self.status, 11, 0x10, instruction=2)
        alone = kernel.code == PAUSES + RESUMES
        each = pairs_of_marks(kernel.code) * self.mark + (0.0 if alone else next(self.cycles))
        few, many = (0, effort.unroll) if effort.basic else (effort.unroll, 2 * effort.unroll)
        few, many = (
            ENTRY + (each * number * max(effort.loop, 1) - self.beside if number else 0)
            for number in (few, many)
        )
        count = effort.measurements
        return BurstSample((few,) * count, (many,) * count, (many - few,), OK, accepted=count, calls=1)


@pytest.fixture(autouse=True)
def _hurry(monkeypatch):
    monkeypatch.setattr(bursts, "PAUSE", 0)


@pytest.mark.parametrize("plan", [BurstPlan(), BurstPlan(10), BurstPlan(10, 3), BurstPlan(10, basic=True)])
def test_a_copy_takes_what_it_takes(plan):
    (timed,) = time_bursts(PlayedBackend([3.0]), [burst_of(kernel(ADD), Before(), plan)], 5)
    assert (timed.measured.verdict, timed.measured.cycles) == (STABLE, pytest.approx(3.0))
    assert timed.measured.counters == pytest.approx((3.0,))
    assert [timed.summed(kind) for kind in ("min", "median", "avg", "max")] == pytest.approx([3.0] * 4)


@pytest.mark.parametrize("beside", [5.0, -5.0, 0.0])
@pytest.mark.parametrize(("code", "mark"), [(ADD, 0.0), (ADD + PAUSES + RESUMES, 98.0)], ids=["", "marks"])
def test_what_passes_beside_no_copies_is_in_the_error(beside, code, mark):
    """Without them nothing is amiss: of as many and twice as many the same passes there."""
    played = lambda: PlayedBackend([2.0], mark, beside=beside)  # noqa: E731
    basic, usual = (
        time_bursts(played(), [burst_of(kernel(code), Before(), BurstPlan(10, basic=is_basic))], 5)[0]
        for is_basic in (True, False)
    )
    assert (usual.measured.cycles, usual.beside) == (pytest.approx(2.0), 0.0)
    assert basic.beside == pytest.approx(beside, abs=1e-6)
    assert basic.measured.verdict == STABLE
    if not mark:  # of marks alone the same passes there, and is taken out with what they cost
        assert basic.measured.cycles == pytest.approx(2.0 - beside / 10)
    assert abs(basic.measured.cycles - 2.0) <= basic.measured.spread + 1e-6
    assert basic.measured.spread == pytest.approx(abs(beside) / 10, abs=0.01)


def test_how_unsure_twice_as_many_are_is_in_the_error():
    """Half of what passes beside is the difference of two readings: 2.0 of 10, and 2.0 to 2.1 of 20."""
    backend = PlayedBackend([2.0, 2.0, 2.0, 2.1])
    (timed,) = time_bursts(backend, [burst_of(kernel(ADD), Before(), BurstPlan(10, basic=True))], 5)
    assert timed.measured.cycles == pytest.approx(2.0)
    assert 2 * 0.1 <= timed.measured.spread <= 4 * 0.1


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (BurstSample((0.0,), (0.0,), (), SIGNAL, 11, 0x10), "cannot be timed, SIGSEGV at 0x10"),
        (BurstSample((0.0,), (0.0,), (), TOO_LONG), "cannot be timed, too long"),
    ],
)
def test_where_twice_as_many_do_not_run_the_reason_is_told(monkeypatch, broken, why):
    backend, burst = PlayedBackend([2.0]), burst_of(kernel(ADD), Before(), BurstPlan(10, basic=True))
    usual = backend.burst
    monkeypatch.setattr(
        backend, "burst", lambda kernel, effort: broken if effort.unroll > 10 else usual(kernel, effort)
    )
    with pytest.raises(MeasurementError, match=why):
        time_bursts(backend, [burst], 5)


@pytest.mark.parametrize("pairs", [1, 3])
@pytest.mark.parametrize("cycles", [0.0, 40.0])
def test_marks_cost_nothing(pairs, cycles):
    backend = PlayedBackend([cycles], mark=98.0)
    burst = burst_of(kernel((ADD + PAUSES + RESUMES) * pairs), Before(late=ADD), BurstPlan())
    (timed,) = time_bursts(backend, [burst], 5)
    assert timed.measured.verdict == STABLE
    assert (timed.measured.cycles, timed.mark) == (pytest.approx(cycles, abs=1e-9), pytest.approx(98.0))
    assert timed.measured.counters == pytest.approx((cycles,), abs=1e-9)
    assert timed.summed("avg") == pytest.approx(cycles, abs=1e-9)
    costs = [(one, effort) for one, effort in backend.asked if one.code == PAUSES + RESUMES]
    assert len(costs) * 2 == len(backend.asked)
    assert all(effort.late == 0 and effort.unroll == burst.effort.unroll for _, effort in costs)


def test_rounds_that_disagree_are_not_ok():
    (timed,) = time_bursts(PlayedBackend([3.0, 3.5]), [burst_of(kernel(ADD), Before(), BurstPlan())], 5)
    assert timed.measured.verdict == UNSTABLE


def test_code_that_faults_says_so():
    with pytest.raises(MeasurementError, match="SIGSEGV at 0x10"):
        time_bursts(PlayedBackend([], status=SIGNAL), [burst_of(kernel(ADD), Before(), BurstPlan())], 5)


@pytest.mark.parametrize("emulated", [False, True])
def test_errors_say_which_code_and_where(emulated):
    backend = PlayedBackend([], status=SIGNAL, emulated=emulated)
    places = lambda number, offset: CodePlace(f"number {number}", f"at byte {offset}")  # noqa: E731
    with pytest.raises(MeasurementError, match="number 0 cannot be timed, SIGSEGV at 0x10 at byte 2:"):
        time_bursts(backend, [burst_of(kernel(ADD), Before(), BurstPlan())], 5, places)


def test_an_emulator_runs_it_once():
    backend = PlayedBackend([3.0], emulated=True)
    time_bursts(backend, [burst_of(kernel(ADD + PAUSES + RESUMES), Before(), BurstPlan())], 5)
    assert [effort.measurements for _, effort in backend.asked] == [1]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (PAUSES, "mark 1 of the code pauses, and none resumes"),
        (RESUMES, "mark 1 of the code resumes what no mark paused"),
        (RESUMES + PAUSES, "mark 1 of the code resumes"),
        (PAUSES + NOP + PAUSES + RESUMES, "mark 2 of the code pauses what is paused"),
        (PAUSES + RESUMES + NOP + RESUMES, "mark 3 of the code resumes what no mark paused"),
    ],
)
def test_marks_come_in_pairs(code, said):
    with pytest.raises(UsageError, match=said):
        burst_of(kernel(code), Before(), BurstPlan())


@pytest.mark.parametrize("part", ["one_time", "init", "late"])
def test_marks_stand_in_the_code(part):
    with pytest.raises(UsageError, match="in code that is not counted"):
        burst_of(kernel(NOP), Before(**{part: PAUSES + RESUMES}), BurstPlan())


def test_what_comes_before():
    burst = burst_of(kernel(ADD), Before(b"\x01", b"\x02\x03", b"\x04\x05\x06"), BurstPlan(7, 2, offset=5))
    assert (burst.kernel.setup, burst.kernel.code) == (b"\x02\x03", b"\x01\x04\x05\x06" + ADD)
    effort = burst.effort
    assert (effort.one_time, effort.late, effort.unroll, effort.loop, effort.offset) == (1, 3, 7, 2, 5)


@pytest.mark.parametrize(
    ("code", "instructions", "copies"),
    [
        (NOP, 1, 600),
        (ADD * 2, 2, 300),
        (NOP * 100, 10, 50),
        (NOP * 5000, 5000, 8),
        (PAUSES + RESUMES, 1, 100),
    ],
    ids=("nops", "additions", "more", "long", "marks"),
)
def test_as_many_copies_as_fit(code, instructions, copies):
    """Twice as many are within what caches of code hold, and half of them more than a reorder buffer does."""
    assert burst_of(kernel(code, instructions), Before(), BurstPlan()).effort.unroll == copies


def test_too_many_copies():
    with pytest.raises(UsageError, match="copies of 1000 bytes are too many"):
        burst_of(kernel(NOP * 1000), Before(), BurstPlan(10_000))


@pytest.mark.parametrize(
    ("bytes_", "loop", "fits"),
    [(917_504, 0, True), (917_505, 0, False), (1, 2**32 - 1, True), (1, 2**32, False)],
)
def test_copies_and_trips_that_fit(bytes_, loop, fits):
    """Two lengths, of which one is twice the other, in the runner's room for code; a counter of 32 bits."""
    plan = BurstPlan(bytes_, loop)
    if fits:
        assert burst_of(kernel(NOP), Before(), plan).effort.unroll == bytes_
    else:
        with pytest.raises(UsageError, match="are too many"):
            burst_of(kernel(NOP), Before(), plan)


@pytest.mark.parametrize(
    ("code", "plan", "wanted"),
    [
        (NOP, BurstPlan(), 200), (NOP, BurstPlan(measurements=7), 7),
        (NOP, BurstPlan(measurements=3000), 2048),
        (PAUSES + RESUMES, BurstPlan(), 2000), (PAUSES + RESUMES, BurstPlan(measurements=7), 70),
        (PAUSES + RESUMES, BurstPlan(measurements=300), 2048),
    ],
    ids=("usual", "few", "most", "marks", "few-marks", "most-marks"),
)  # fmt: skip
def test_code_with_marks_is_measured_ten_times_as_often(code, plan, wanted):
    """Up to what the runner has room for."""
    assert burst_of(kernel(code), Before(), plan).effort.measurements == wanted


def test_a_measurement_is_long_for_a_coarse_clock_and_short_for_interrupts():
    """A step of 40 cycles is a thousandth; at 4 GHz and 1000 interrupts a second these hit one of fifty."""
    target = burst_of(kernel(NOP), Before(), BurstPlan()).effort.target
    assert 1000 * 40 < target < 4e6 / 50


def test_sums_as_nanobench_has_them():
    values = [9.0, 1.0, 2.0, 3.0, 100.0]
    found = [aggregate(kind, values) for kind in ("min", "max", "median", "avg")]
    assert found == pytest.approx([1.0, 100.0, 3.0, 14 / 3])


@pytest.mark.parametrize(
    ("isa", "pointers"), [("x86-64", (4, 5, 7, 6, 14)), ("aarch64", (31, 20, 21)), ("riscv64", (2, 9, 8))]
)
def test_pointers_have_areas_of_their_own(isa, pointers):
    state = area_state(VECTOR_LEVELS["float"], isa)
    assert [state.general[number] for number in pointers] == [area_middle(n) for n in range(len(pointers))]
    assert all(value == 0 for n, value in enumerate(state.general) if n not in pointers)
    assert area_state(VECTOR_LEVELS["float"], isa) == structs.replace(state)
