"""Numbers that decide a probe's answer: each is noticed when it is halved or doubled."""

from __future__ import annotations

import pytest

from cyclescope.model.facts import STACK_MOVES, STACK_READS, CoreAnswer
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import ProbeCase, Readings, Unresolved


def judged(name, subject="a subject", **parts):
    """What a probe says of readings by part, each a value or (value, error)."""
    pairs = {part: value if isinstance(value, tuple) else (value, 0.01) for part, value in parts.items()}
    found = {
        (part.replace("_", " "), 0): Interval(value - error, value + error)
        for part, (value, error) in pairs.items()
    }
    return PROBES[name].judge(ProbeCase(subject, ()), Readings(found, {}))


def fused(slope):
    """Readings of a fused pair at two places; more NOPs cost the pair `slope` times what they cost alone."""
    places = {8: (2.25, 2.25, 2.65), 12: (3.25, 2.25 + slope, 3.65)}
    found = {
        (part, x): Interval(value - 0.001, value + 0.001)
        for x, values in places.items()
        for part, value in zip(("alone", "together", "apart"), values, strict=True)
    }
    return PROBES["fusion"].judge(ProbeCase("a pair", ()), Readings(found, {}))


def test_pairs_that_have_another_limit_than_slots():
    assert fused(1.0).answer is CoreAnswer.FUSED
    assert fused(0.8).answer is CoreAnswer.FUSED, "less than a quarter is what readings differ by"
    with pytest.raises(Unresolved, match="something else than slots"):
        fused(0.6)


def forwarding(beyond, asked):
    links = {"same_link": 3.0, "asked_link": 3.0}
    return judged("store-forwarding", load=5.0, same=8.0, beyond=3 + beyond, asked=3 + asked, **links)


def test_what_takes_hardly_longer_is_no_failure():
    assert forwarding(9.0, 5.0).answer is CoreAnswer.FORWARDED
    assert forwarding(9.0, 9.0).answer is CoreAnswer.FAILED
    with pytest.raises(Unresolved, match="takes no longer"):
        forwarding(6.0, 6.0)


def test_a_load_that_is_renamed_is_no_measure_of_others():
    links = {"same_link": 3.0, "asked_link": 3.0}
    found = judged("store-forwarding", load=5.0, same=3.0, beyond=21.0, asked=9.5, **links)
    assert found.answer is CoreAnswer.FORWARDED


def test_how_well_a_rate_has_to_be_known():
    assert judged("accesses", accesses=(0.5, 0.04)).value.value == pytest.approx(2.0, rel=0.02)
    with pytest.raises(Unresolved):
        judged("accesses", accesses=(0.5, 0.08))


def test_how_well_a_rate_of_two_places_has_to_be_known():
    assert judged("banks", accesses=(0.5, 0.02)).value.value == pytest.approx(2.0, rel=0.02)
    with pytest.raises(Unresolved):
        judged("banks", accesses=(0.5, 0.04))


def aliased(longer):
    return judged("4k-aliasing", same_place=5 + longer, other_place=5.0).answer


def test_how_much_longer_a_load_that_waits_takes():
    assert aliased(0.0) is CoreAnswer.ABSENT
    assert aliased(0.7) is CoreAnswer.ABSENT
    assert aliased(1.4) is CoreAnswer.ALIASED


def test_how_fast_pushes_and_pops_have_to_be():
    assert judged("stack-engine", asked=0.6, alone=1.0).answer is CoreAnswer.PRESENT
    for cycles in (0.75, 1.0):
        with pytest.raises(Unresolved):
            judged("stack-engine", asked=cycles, alone=1.0)


@pytest.mark.parametrize(
    ("asked", "computed", "answer"),
    [
        (0.25, 0.25, CoreAnswer.EXECUTED), (0.17, 0.25, CoreAnswer.ELIMINATED), (0.17, 0.17, None),
        (0.21, 0.25, None),
    ],
)  # fmt: skip
def test_moves_of_the_stack_pointer_are_like_other_moves_or_like_additions(asked, computed, answer):
    readings = {"asked": (asked, 0.005), "others": (0.17, 0.005), "computed": (computed, 0.005)}
    if answer is None:
        with pytest.raises(Unresolved):
            judged("stack-engine", STACK_MOVES, **readings)
    else:
        assert judged("stack-engine", STACK_MOVES, **readings).answer is answer


@pytest.mark.parametrize(("asked", "told"), [(1.0, 1.0), (0.26, 0.0), (0.25, 0.0), (0.3, 0.3)])
def test_operations_on_the_stack_pointer_wait_where_others_are_faster(asked, told):
    found = judged("stack-engine", STACK_READS, asked=(asked, 0.01), others=(0.25, 0.01))
    assert found.value.value == pytest.approx(told)


def test_processes_of_one_core_agree_on_what_aliases_cost():
    """A Zen 5 waits 3.5 cycles for most pages, and 7.0 for some."""
    one, other = (
        judged("4k-aliasing", same_place=5.0 + longer, other_place=5.0).value for longer in (3.5, 7.0)
    )
    assert one.meets(other)
    assert other.error < 0.4 * other.value
