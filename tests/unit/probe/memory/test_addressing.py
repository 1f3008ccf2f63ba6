"""What addresses cost beside: how readings are judged, and what cores show that have nothing of the kind."""

from __future__ import annotations

import secrets

import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.isa.table import load_table
from cyclescope.kernel.state import FIRST_WINDOW
from cyclescope.model.behaviour.found import measured_behaviour
from cyclescope.model.facts import (
    HIGH,
    MEDIUM,
    Addressed,
    AddressMade,
    CoreAnswer,
    More,
    addressed_subject,
    constants_alone,
    later_subject,
    stacked_constant,
)
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import CHAIN_PLACE, instruction
from cyclescope.probe.interval import Interval
from cyclescope.probe.levels import ADDRESSED_SO, AMONG_OTHERS
from cyclescope.probe.question import ProbeCase, Readings, Unresolved
from tests.support.made.probed import drawn, facts, shared_slots

SLOTS = addressed_subject(Addressed.STORE, More.SLOTS)
ADDITIONS = addressed_subject(stacked_constant(64), More.ADDITIONS)


def judged(subject, error=0.01, **parts):
    """What the probe says of readings by part; `other` are slots among other numbers of others."""
    other = parts.pop("other", (parts["asked"] - parts["plain"]) / (parts["more"] - parts["plain"]))
    for count in (80, 112):
        longer = other * (parts["more"] - parts["plain"])
        parts |= {f"plain among {count}": count / 40, f"asked among {count}": count / 40 + longer}
    found = {(part, 0): Interval(value - error, value + error) for part, value in parts.items()}
    return PROBES["addressing"].judge(ProbeCase(subject, ()), Readings(found, {}))


@pytest.mark.parametrize(("asked", "value"), [(1.5, 0.0), (1.67, 1.0), (1.84, 2.0)])
def test_slots_are_counted_by_what_one_more_takes(asked, value):
    found = judged(SLOTS, asked=asked, plain=1.5, more=1.67)
    assert found.answer is CoreAnswer.VALUE
    assert found.value.value == pytest.approx(value, abs=0.01)


@pytest.mark.parametrize(
    ("other", "least", "is_sure"), [(0.6, 0.6, True), (1.4, 1.0, True), (0.4, 0.4, False), (1.6, 1.0, False)]
)
def test_the_least_number_of_slots_counts_and_is_less_sure_where_others_are_more(other, least, is_sure):
    """A core of 6 may begin a cycle with what has an index: 3 slots among 8 NOPs each, and 1 among 10."""
    found = judged(SLOTS, asked=1.67, plain=1.5, more=1.67, other=other)
    assert found.value.value == pytest.approx(least)
    assert found.confidence == (HIGH if is_sure else MEDIUM)


@pytest.mark.parametrize("width", [4, 5, 6, 8, 10])
def test_two_slots_more_fill_whole_cycles_behind_one_of_the_numbers(width):
    assert any((count // ADDRESSED_SO + 2) % width == 0 for count in (AMONG_OTHERS, 80, 112))


def test_what_slots_do_not_limit_says_nothing():
    with pytest.raises(Unresolved, match="something else than slots"):
        judged(SLOTS, asked=1.7, plain=1.5, more=1.51)


@pytest.mark.parametrize(("step", "told"), [(1.0, True), (0.8, True), (0.7, False), (1.3, False)])
def test_slots_among_units_where_nops_share_slots(step, told):
    """What more of them take has to be what slots do; `step` is in slots."""
    cycles = {"asked": 1.67, "plain": 1.5, "more": 1.5 + step / 6}
    for count in (80, 112):
        cycles |= {f"plain among {count}": count / 40, f"asked among {count}": count / 40 + 0.17}
    found = {
        (f"{part}, among units", 0): Interval(value - 0.01, value + 0.01) for part, value in cycles.items()
    }
    readings = Readings(shared_slots(6.0, 6.0, 6.0, 6.0) | found, {})
    if told:
        assert PROBES["addressing"].judge(ProbeCase(SLOTS, ()), readings).value.value == pytest.approx(
            1.02 / step, abs=0.02
        )
    else:
        with pytest.raises(Unresolved, match="something else than slots"):
            PROBES["addressing"].judge(ProbeCase(SLOTS, ()), readings)


@pytest.mark.parametrize(("wider", "told"), [(2.0, True), (2.1, True), (2.14, False), (2.25, False)])
def test_units_have_to_be_narrower_than_the_front_end(wider, told):
    readings = {"asked": 2.25, "plain": 2.0, "more": 2.25, "wider": wider}
    if told:
        assert judged(ADDITIONS, **readings).value.value == pytest.approx(1.0)
    else:
        with pytest.raises(Unresolved, match="more additions take no longer"):
            judged(ADDITIONS, **readings)


def test_constants_alone_are_timed_each():
    subject = constants_alone(32)
    case = next(one for one in PROBES["addressing"].cases("x86-64") if one.subject == subject)
    assert [(point.part, point.count, len(point.lines)) for point in case.points] == [("asked", 8, 8)]
    found = PROBES["addressing"].judge(case, Readings({("asked", 0): Interval(0.55, 0.56)}, {}))
    assert (found.answer, found.value.value) == (CoreAnswer.VALUE, pytest.approx(0.555))


@pytest.mark.parametrize(
    ("end", "made", "text", "code"),
    [
        ("base", "INDEXED", "[rsi+rcx]", "488b340e"),
        ("index", "INDEXED", "[rcx+rsi]", "488b3431"),
        ("base", "DISPLACED", "[rsi+rcx+64]", "488b740e40"),
        ("index", "SCALED", "[rcx+rsi*2]", "488b3471"),
        ("base", "SCALED_DISPLACED", "[rsi+rcx*2+64]", "488b744e40"),
        ("index", "SCALED_DISPLACED", "[rcx+rsi*2+64]", "488b747140"),
    ],
)
def test_loads_by_any_address_get_the_pointer_of_the_next(end, made, text, code):
    subject = later_subject(end, AddressMade[made])
    case = next(one for one in PROBES["addressing"].cases("x86-64") if one.subject == subject)
    asked, plain = case.points
    load = instruction(load_table("x86-64"), asked.lines[0])
    assert (load.text, load.code.hex()) == (f"mov rsi, qword ptr {text}", code)
    held = dict(asked.setting.numbers) | {n: FIRST_WINDOW + at for n, at in asked.setting.pointers}
    base, index = load.registers[-1], load.index
    assert (held[base] + load.scale * held[index] + load.displacement) % 2**64 == FIRST_WINDOW + CHAIN_PLACE
    assert asked.setting.stored == ((CHAIN_PLACE, 0),)
    found = {("asked", 0): Interval(5.98, 6.02), ("plain", 0): Interval(4.99, 5.01)}
    assert PROBES["addressing"].judge(case, Readings(found, {})).value.value == pytest.approx(1.0)
    assert plain.setting == asked.setting


def test_units_are_the_limit_on_cores_with_a_third_more_slots():
    """Whether or not each of those asked about takes a slot more; and one more of each shows."""
    units, slots = 6, 8
    assert (AMONG_OTHERS + 2 * ADDRESSED_SO) / slots < AMONG_OTHERS / units
    assert ADDRESSED_SO / AMONG_OTHERS > 0.1


def test_cores_that_need_nothing_more_show_nothing():
    """Drawn cores do not know by what an address is made."""
    probe, seed = PROBES["addressing"], secrets.randbelow(10**6)
    told = [facts(probe, SimulatedBackend(drawn([probe], seed + number))) for number in range(4)]
    every = [fact for found in told for fact in found if fact.is_resolved]
    assert every, f"seeds from {seed}"
    for found in told:
        assert not measured_behaviour(found, isa="x86-64").addressing, f"seeds from {seed}: {found}"
