"""How often forms of a kind spoil mixes, from mixes of made-up forms of which it is known."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from cyclescope.infer.ports.builder import PortUsage
from cyclescope.infer.refute.kinds import (
    HELD_AT_WORST,
    PREDICTED_AT_WORST,
    Blame,
    blame,
    changed,
    counts_of,
    improved,
    most_spoiled,
)
from cyclescope.infer.refute.refutation import Refutation
from cyclescope.model.machine import Operation

KINDS = {f"{kind}{number}": (kind, "any") for kind in ("good", "bad", "rare") for number in range(200)}


def drawn(spoiled, number=600, seed=7, size=4):
    """Mixes of any forms; one holds unless a form spoils it, by its kind as often as `spoiled` says."""
    draw = random.Random(seed)
    found = []
    for _ in range(number):
        forms = tuple(draw.sample(sorted(KINDS), size))
        found.append((forms, all(draw.random() >= spoiled.get(KINDS[form][0], 0.0) for form in forms)))
    return found


@pytest.mark.parametrize("seed", [3, 8, 21])
def test_the_kind_that_spoils_mixes_is_found(seed):
    found = blame(drawn({"bad": 0.3, "rare": 0.04}, seed=seed), KINDS)
    assert found.ports["bad"] == pytest.approx(0.3, abs=0.06)
    assert found.ports["rare"] == pytest.approx(0.04, abs=0.04)
    assert found.ports["good"] < 0.03


def test_a_form_without_mixes_is_as_likely_to_spoil_one_as_its_kind():
    found = blame(drawn({"bad": 0.3}), KINDS)
    assert found.of("new", ("bad", "other")) == found.ports["bad"]
    assert found.level("new", ("bad", "other"), HELD_AT_WORST) == "low"
    assert found.level("new", ("good", "other"), HELD_AT_WORST) == "high"


def test_ports_without_mixes_are_as_likely_to_spoil_one_as_any():
    """Of which a fiftieth are believed to, until mixes say something else."""
    new = ("never seen", "any")
    assert blame([], KINDS).of("new", new) == pytest.approx(0.02)
    assert blame([(("a",), True)] * 10, {"a": ("x", "y")}).of("new", new) == pytest.approx(0.2 / 20)
    assert blame(drawn({"bad": 0.2}), KINDS).of("new", new) == pytest.approx(0.2 / 3, abs=0.01)


def test_mixes_of_its_own_say_as_much_as_its_kind_when_there_are_four():
    found = blame([(("a", "b"), True)] * 4, {"a": ("x", "y"), "b": ("x", "y")})
    assert found.forms["a"] == pytest.approx(found.kinds["x", "y"] / 2)


def test_a_kind_begins_with_ten_mixes_of_what_it_belongs_to():
    found = blame([(("a",), True)] * 10, {"a": ("x", "y")})
    assert found.every == pytest.approx(0.2 / 20)
    assert found.ports["x"] == pytest.approx(0.1 / 20), "ten of its own say as much as those of all"
    assert found.kinds["x", "y"] == pytest.approx(0.05 / 20), "ten of its own say as much as its ports"


def test_blame_is_shared_by_how_often_each_spoils():
    mixes = [(("a", "c"), False)] * 6 + [(("a", "d"), False)] * 6 + [(("c", "d"), True)] * 6
    found = blame(mixes, {name: (name, name) for name in "acd"})
    assert found.forms["a"] > 0.5
    assert max(found.forms["c"], found.forms["d"]) < 0.03


@pytest.mark.parametrize("held", [*HELD_AT_WORST.values(), *PREDICTED_AT_WORST.values()])
def test_four_forms_at_the_limit_hold_as_often_as_the_worst_of_their_level(held):
    assert (1 - most_spoiled(held)) ** 4 == pytest.approx(held)


@pytest.mark.parametrize(
    ("chance", "held", "predicted"),
    [
        (0.025, "high", "high"), (0.027, "medium", "medium"), (0.068, "medium", "medium"),
        (0.071, "low", "medium"), (0.158, "low", "medium"), (0.16, "low", "low"),
    ],
)  # fmt: skip
def test_levels_are_left_by_how_often_forms_spoil_mixes(chance, held, predicted):
    found = Blame(forms={"F": chance})
    limits = (HELD_AT_WORST, PREDICTED_AT_WORST)
    assert tuple(found.level("F", ("any", "any"), limit) for limit in limits) == (held, predicted)


def test_steps_end_where_one_changes_less_than_a_five_thousandth():
    mixes = drawn({"bad": 0.1, "rare": 0.05}, number=300)
    found, some = blame(mixes, KINDS), counts_of(mixes, KINDS)
    assert found.forms.keys() == some.forms.keys() > some.suspects
    last = improved(found, some, KINDS, some.forms)
    assert 0.0001 < changed(found, last) < 0.0002, "steps become smaller slowly"
    for _ in range(1000):
        last = improved(last, some, KINDS, some.suspects)
    assert changed(found, last) < 0.005


@pytest.mark.parametrize(
    ("confidence", "cycles", "late", "alike"),
    [
        ("high", 1.0, False, True), ("medium", 1.1, False, True), ("high", 2.0, True, True),
        ("low", 1.0, False, False), ("high", 2.0, False, False), ("medium", 6.0, False, False),
    ],
)  # fmt: skip
def test_what_waits_for_something_else_than_its_ports_is_no_kind_of_theirs(
    table, confidence, cycles, late, alike
):
    """Two divisions wait for one divider: that says nothing of a multiplication on their port."""
    times, divides = "IMUL (R64, R64)", "DIV (R64)"
    throughputs = {times: 1.0, divides: cycles}
    facts = SimpleNamespace(front_end=SimpleNamespace(width=4.0, throughputs=throughputs), table=table)
    some = SimpleNamespace(_model=SimpleNamespace(facts=facts))
    usage = PortUsage(1.0, "1*p0", (Operation((0,)),), confidence="high")
    other = PortUsage(1.0, "1*p0", (Operation((0,)),), confidence=confidence, late=late)
    kinds = [Refutation._kind(some, form, has)[0] for form, has in ((times, usage), (divides, other))]
    assert (kinds[0] == kinds[1]) == alike
