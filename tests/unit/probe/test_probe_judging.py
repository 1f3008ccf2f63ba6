"""How readings become answers: intervals, levels, looks. The constants are noticed when halved or doubled."""

from __future__ import annotations

import math

import msgspec
import pytest

from cyclescope.kernel.kernel import Kernel
from cyclescope.measure.bench import default_state
from cyclescope.measure.plan import Experiment
from cyclescope.measure.record import FAILED, NOISY, STABLE
from cyclescope.measure.sampling import DISTURBED, Measurement
from cyclescope.model.facts import COUNTED_AMONG, CoreAnswer
from cyclescope.probe import looks
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.edges import inside
from cyclescope.probe.interval import Interval, interval_of
from cyclescope.probe.levels import is_higher
from cyclescope.probe.looks import Looks, look
from cyclescope.probe.plateaus import WALKED, level_end, levels_of
from cyclescope.probe.question import ProbeVerdict, Readings, Unresolved
from cyclescope.probe.run import _bounded
from cyclescope.probe.turns import finished

LOW, HIGH = Interval(1.0, 1.0), Interval(2.0, 2.0)


def measured(cycles, spread=0.01, verdict=STABLE, rounds=()):
    return Measurement(cycles, spread, verdict, 8, 0, rounds or (cycles,) * 4)


def around(value, error=0.0):
    return Interval(value - error, value + error)


def test_a_steady_reading_is_within_twice_its_spread():
    assert interval_of(measured(3.0, 0.1)) == Interval(2.8, 3.2)


def test_of_rounds_that_disagree_all_count():
    found = interval_of(measured(3.0, 2.0, NOISY, (2.5, 3.0, 5.0)))
    assert (found.low, found.high, found.is_steady) == (2.5, 5.0, False)


def test_what_was_never_undisturbed_may_take_any_less():
    """A neighbour that never rests makes all rounds slower alike."""
    found = interval_of(msgspec.structs.replace(measured(9.0, 0.5, NOISY), error=DISTURBED))
    assert (found.low, found.high, found.is_steady) == (-math.inf, 9.5, False)
    longer = found - Interval(4.0, 4.0)
    assert (longer.low, longer.high) == (-math.inf, 5.5)
    assert not is_higher(found - Interval(8.0, 8.0), Interval(2.0, 2.0), Interval(4.0, 4.0))
    with pytest.raises(Unresolved):
        is_higher(found, Interval(1.0, 1.0), Interval(2.0, 2.0))
    with pytest.raises(Unresolved, match="undisturbed"):
        _bounded(ProbeVerdict(CoreAnswer.VALUE, found))


@pytest.mark.parametrize(("value", "answer"), [(0.9, False), (1.25, False), (1.75, True), (2.4, True)])
def test_a_reading_is_at_the_level_that_is_near(value, answer):
    assert is_higher(around(value), LOW, HIGH) is answer


@pytest.mark.parametrize("value", [1.4, 1.5, 1.6])
def test_a_reading_between_two_levels_is_at_none(value):
    with pytest.raises(Unresolved, match="not clearly"):
        is_higher(around(value), LOW, HIGH)


def test_an_answer_holds_wherever_in_the_intervals_things_are():
    assert is_higher(around(1.1, 0.1), LOW, HIGH) is False
    with pytest.raises(Unresolved):
        is_higher(around(1.1, 0.4), LOW, HIGH)
    with pytest.raises(Unresolved):
        is_higher(around(1.7), LOW, around(2.0, 0.5))
    with pytest.raises(Unresolved, match="not apart"):
        is_higher(around(1.0), around(1.4, 0.4), around(2.0, 0.3))


def test_what_varies_has_the_median_of_all_rounds():
    seen = Looks(experiment())
    for rounds in ((100.0, 104.0, 108.0), (112.0, 116.0, 120.0), (96.0, 900.0, 110.0)):
        seen.add(measured(rounds[0], rounds=rounds))
    found = seen.median
    assert found.value == pytest.approx(110)
    assert found.error == pytest.approx(16)
    assert not found.is_steady


def test_what_is_in_part_chance_has_the_median_where_no_two_looks_agree():
    seen = Looks(experiment())
    seen.add(measured(100.0, 1.0, rounds=(100.0, 102.0, 98.0, 100.0)))
    assert seen.read(varies=False, chance=True) == seen.median
    seen.add(measured(101.0, 1.0))
    assert seen.read(varies=False, chance=True) == seen.interval == Interval(98.0, 103.0)
    assert seen.read(varies=True, chance=False) == seen.median != seen.interval


@pytest.mark.parametrize(("rounds", "told"), [((1.0, 2.0, 3.0), False), ((1.0, 2.0, 3.0, 4.0), True)])
def test_four_rounds_have_quarters(rounds, told):
    seen = Looks(experiment())
    seen.add(measured(rounds[1], verdict=NOISY, rounds=rounds))
    assert (seen.median != seen.interval) == told


def test_a_range_is_looked_at_in_eighths():
    assert list(inside(100, 180)) == list(range(110, 180, 10))
    assert list(inside(100, 104)) == [101, 102, 103]


def test_units_limit_bodies_of_additions():
    """Also where a core has a third more slots; but for a chain. 100 instructions are decoded once."""
    kinds = ("LEA_B_D8 (R64)", *COUNTED_AMONG.values())
    for case in PROBES["fused-branches"].cases("x86-64"):
        for point in [point for point in case.points if point.part != "waiting"]:
            others = [line for line in point.lines if line.form in kinds]
            assert len(others) > len(point.lines) * 3 / 4
            assert len(point.lines) <= 100


def test_updates_are_at_eight_places():
    """Each waits for the one before at its place, which takes less than a body."""
    for case in PROBES["addressing"].cases("x86-64"):
        (asked,) = (point.lines for point in case.points if point.part == "asked")
        if "M" in asked[0].form.partition("(")[2] and not case.subject.startswith("loads"):
            assert len({line.at for line in asked if line.form == asked[0].form}) == 8


@pytest.mark.parametrize(
    ("times", "sizes"),
    [
        ({4: 4.0, 8: 4.2, 16: 8.0, 32: 8.0}, [(4, 8), (16, 32)]),
        ({4: 4.0, 8: 4.3, 16: 8.0, 32: 8.0}, [(16, 32)]),
        ({4: 4.0, 6: 4.0, 16: 8.0, 22: 8.0}, [(4, 6)]),
    ],
)
def test_levels_of_a_sweep(times, sizes):
    """Readings of one differ by less than six percent, and the largest size is half as large again."""
    readings = Readings({(WALKED, size): Interval(value, value) for size, value in times.items()}, {})
    assert [level.places for level in levels_of(readings)] == sizes


@pytest.mark.parametrize(("rise", "end"), [({125: 7.0}, 125), ({125: 5.5, 150: 7.0}, None)])
def test_an_edge_that_takes_more_than_a_third_of_its_level_is_soft(rise, end):
    times = {50: 4.0, 100: 4.0} | rise | {200: 8.0, 300: 8.0}
    readings = Readings({(WALKED, size): Interval(value, value) for size, value in times.items()}, {})
    level = levels_of(readings)[0]
    if end is None:
        with pytest.raises(Unresolved, match="soft"):
            level_end(level, readings)
    else:
        assert level_end(level, readings) == end


def experiment():
    return Experiment("a probe", "probe", "s", "part", "x0", Kernel(b"\x90", 1, default_state(0)), 1)


def test_two_looks_that_agree_settle():
    seen = Looks(experiment())
    seen.add(measured(4.0))
    assert not seen.is_settled, "one look may be wrong as a whole"
    seen.add(measured(6.0))
    assert not seen.is_settled
    seen.add(measured(4.03))
    assert seen.is_settled
    assert (seen.interval.low, seen.interval.high) == pytest.approx((3.98, 4.05))
    assert seen.measurement.cycles == 4.0


def test_the_lower_of_two_agreements_counts():
    seen = Looks(experiment())
    for cycles in (6.0, 4.0, 6.01, 4.01):
        seen.add(measured(cycles))
    assert seen.interval.high < 5


def test_looks_that_never_agree_leave_everything_open():
    seen = Looks(experiment())
    for cycles in (4.0, 5.0, 6.0):
        seen.add(measured(cycles))
    assert not seen.is_settled
    assert (seen.interval.low, seen.interval.high, seen.interval.is_steady) == (3.98, 6.02, False)


class Played:
    """A sampler that answers from a list."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def measure(self, experiments):
        yield [(one, self.answers.pop(0)) for one in experiments]


def test_a_kernel_is_looked_at_until_two_agree():
    sampler = Played(measured(9.0), measured(4.0), measured(7.0), measured(4.0), measured(1.0))
    (seen,) = finished(look(sampler, [experiment()], once=False, pause=0.0))
    assert len(sampler.answers) == 1
    assert seen.measurement.cycles == 4.0


def test_it_is_not_looked_at_for_ever():
    sampler = Played(*[measured(float(n)) for n in range(1, 20)])
    (seen,) = finished(look(sampler, [experiment()], once=False, pause=0.0))
    assert 5 <= 19 - len(sampler.answers) == looks.MOST_LOOKS <= 10
    assert not seen.interval.is_steady


def test_what_does_not_run_is_not_tried_again():
    sampler = Played(Measurement(0.0, 0.0, FAILED, 0, 0, (), error="SIGILL"), measured(1.0))
    (seen,) = finished(look(sampler, [experiment()], once=False, pause=0.0))
    assert seen.failed is not None
    assert len(sampler.answers) == 1


def test_pauses_outlast_what_disturbs():
    slept = list(look(Played(*[measured(float(n)) for n in range(1, 20)]), [experiment()], once=False))
    assert 2 <= sum(slept) <= 6, "seconds: neighbours disturb for a tenth to three"
    assert slept[:2] == [looks.LOOK_PAUSE, 2 * looks.LOOK_PAUSE]
