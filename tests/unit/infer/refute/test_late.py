"""How late it is known which half of its ports the last access got: what sequences of accesses show."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from cyclescope.infer.ports.builder import PortUsage
from cyclescope.infer.refute.late import accesses_in_order, known_late
from cyclescope.infer.refute.mixes import MixModel
from cyclescope.model.machine import Halves, Operation
from tests.unit.infer.refute.test_fitted_mixes import model

PORTS = {"V": (2, 3), "S": (0, 1), "L": (0, 1, 2, 3)}
FOUND = Halves((0, 1), (2, 3), 0.125)


def made(monkeypatch, **others):
    monkeypatch.setattr("cyclescope.infer.ports.resources.domains", lambda form: frozenset("m"))
    some = model(blind=True, beside=0.0, sets=PORTS)
    every = {name: (Operation(ports),) for name, ports in PORTS.items()} | others
    front_end = some.facts.front_end
    front_end.throughputs = {name: 1 / len(operations[0].ports) for name, operations in every.items()}
    front_end.width, front_end.whole = 8.0, True
    some.facts.table.update({name: SimpleNamespace(id=name, operands=[]) for name in every})
    usages = {name: PortUsage(1.0, "", ops, confidence="high", spare=1.0) for name, ops in every.items()}
    return MixModel(some._builder, usages)


def sequences(found, parts=lambda forms: {}):
    planner = SimpleNamespace(parts=parts)
    return [[form.id for form in some] for some in accesses_in_order(found, planner, random.Random(5))]


@pytest.mark.parametrize("late", range(4))
def test_forty_sequences_tell_how_late_it_is_known(monkeypatch, late):
    found = made(monkeypatch).with_halves(FOUND)
    way = found.with_halves(Halves((0, 1), (2, 3), 0.125, late))
    told = [
        (tuple(some), way.cycles(some) * (0.99 + 0.01 * (n % 3))) for n, some in enumerate(sequences(found))
    ]
    assert len(told) == 40
    assert known_late(found, told).halves.late == late
    assert known_late(found, told).classes_in_halves.late == late


def test_nothing_is_asked_or_told_without_halves_or_sequences(monkeypatch):
    none = made(monkeypatch)
    assert sequences(none) == []
    assert known_late(none, [(("L", "V"), 0.5)]) is none
    found = none.with_halves(FOUND)
    assert known_late(found, []) is found
    assert sequences(found, parts=lambda forms: None) == [], "no registers for all"


def test_sequences_have_one_sure_access_of_each_kind_alone(monkeypatch):
    """Of forms with two, of what takes longer than its ports, and of what is not sure nothing is known."""
    found = made(monkeypatch, two=(Operation(PORTS["L"], 2),), slow=(Operation(PORTS["L"]),))
    found.facts.front_end.throughputs["slow"] = 1.0
    found = found.with_halves(FOUND)
    assert {name for some in sequences(found) for name in some} == {"L", "S", "V"}
    assert {len(some) for some in sequences(found)} == {3, 4, 5, 6}
