"""Readings that are weighed for many forms at once, before they are asked for."""

from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import pytest

from cyclescope.infer.likelihood.noise import Look
from cyclescope.infer.likelihood.structure import port_sets
from cyclescope.infer.likelihood.usage import UsageSolver
from cyclescope.infer.ports.groups import WEIGHED_AT_ONCE, ReadingsAhead

SETS = {"two": (0, 1), "three": (0, 1, 2), "four": (0, 1, 2, 3)}


def drawn(rng):
    """Readings of a form among some classes, several of some, and what else costs them."""
    names = rng.sample(sorted(SETS), rng.randrange(1, 4))
    looks = {
        name: tuple(
            Look(rng.uniform(0, 3), rng.uniform(0.01, 0.2), rng.random() < 0.3)
            for _ in range(rng.randrange(1, 4))
        )
        for name in names
    }
    return looks, {"two": 0.5} if rng.random() < 0.3 else {}


@pytest.mark.parametrize("crowded", [(), ("two",)])
def test_readings_weigh_the_same_alone_as_with_those_of_other_forms(crowded):
    usual, together = {"four": {"two": 0.2, "three": 0.8}}, {"four": {"two": 0.9}}
    solver = UsageSolver(SETS, port_sets(SETS), usual, together=together, crowded=crowded)
    rng = random.Random(1)
    asked = [*(drawn(rng) for _ in range(60)), ({}, {})]
    every = solver.weighed(asked)
    alone = [solver.weighed([one])[0] for one in asked]
    for one, other in zip(every, alone, strict=True):
        assert all(map(np.array_equal, one[:2], other[:2]))
        assert one.unrelated == other.unrelated


def test_what_was_weighed_before_is_what_candidates_rest_on():
    solver, rng = UsageSolver(SETS, port_sets(SETS), {}), random.Random(2)
    asked = [drawn(rng) for _ in range(20)]
    for (looks, beside), weighed in zip(asked, solver.weighed(asked), strict=True):
        assert solver.candidates(looks, 1.0, 1, beside=beside, weighed=weighed) == solver.candidates(
            looks, 1.0, 1, beside=beside
        )


FORMS = [f"form {number}" for number in range(3 * WEIGHED_AT_ONCE + 5)]
UNKNOWN = "no experiment"


class Groups:
    """One group of ports; every form has other readings."""

    def __init__(self):
        self.solver = UsageSolver(SETS, port_sets(SETS), {})
        self.facts = SimpleNamespace(confined=dict.fromkeys(FORMS), table={form: form for form in FORMS})
        self.facts.table[UNKNOWN] = UNKNOWN

    def looks_of(self, form):
        value = len(FORMS) if form == UNKNOWN else FORMS.index(form)
        return {name: (Look(value / len(FORMS), 0.05),) for name in SETS}

    def looks(self, form):
        yield (SETS, self.solver), self.looks_of(form)

    def is_memory(self, group):
        return False


def test_whatever_the_order_every_form_has_its_own_readings(monkeypatch):
    monkeypatch.setattr("cyclescope.infer.ports.groups.AccessCosts.of", lambda self, form, group: {})
    groups = Groups()
    ahead, rng = ReadingsAhead(groups), random.Random(1)
    asked = [*FORMS[:40], *rng.sample(FORMS, len(FORMS)), UNKNOWN, FORMS[0]]
    for form in asked:
        (found,) = ahead.of(SimpleNamespace(id=form))
        looks = groups.looks_of(form)
        assert found.looks == looks
        assert np.array_equal(found.weighed.on_time, groups.solver.weighed([(looks, {})])[0].on_time)


def test_forms_are_weighed_with_their_neighbours_once(monkeypatch):
    monkeypatch.setattr("cyclescope.infer.ports.groups.AccessCosts.of", lambda self, form, group: {})
    groups = Groups()
    calls = []
    weigh = groups.solver.weighed
    groups.solver.weighed = lambda asked: calls.append(len(asked)) or weigh(asked)
    ahead = ReadingsAhead(groups)
    for form in FORMS:
        ahead.of(SimpleNamespace(id=form))
    assert calls == [WEIGHED_AT_ONCE, WEIGHED_AT_ONCE, WEIGHED_AT_ONCE, len(FORMS) - 3 * WEIGHED_AT_ONCE]
    ahead.of(SimpleNamespace(id=FORMS[0]))  # once more: its neighbours are not
    assert calls[4:] == [1]
