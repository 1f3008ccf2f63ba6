"""How much of what accesses cost each other counts: what mixes of made-up forms show."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest

from cyclescope.infer.likelihood.noise import Look
from cyclescope.infer.likelihood.structure import Structure
from cyclescope.infer.ports.builder import PortUsage
from cyclescope.infer.refute.halves import ClassHalves
from cyclescope.infer.refute.mixes import MixModel
from cyclescope.model.machine import Operation

SETS = {"vector load": (0, 1), "load": (0, 1, 2)}
BESIDE = 0.6  # micro-operations that a load beside others costs loads of vectors: within its throughput


@pytest.fixture(autouse=True)
def register_files(monkeypatch):
    monkeypatch.setattr("cyclescope.infer.ports.resources.domains", lambda form: frozenset("m"))


class _Table(dict):
    isa = "x86-64"


def model(blind=False, beside=BESIDE, sets=SETS):
    """Of a load and a load of vectors on two of its three ports, of which one is in the way of the other."""
    ports = {"V": SETS["vector load"], "L": SETS["load"]}
    looks = {"L": {"vector load": [Look(0.0, 0.02), Look(beside, 0.02, together=True)]}}
    form = SimpleNamespace(operands=[SimpleNamespace(is_memory=True)])
    facts = SimpleNamespace(
        structure=Structure(3, sets),
        table=_Table(dict.fromkeys(ports, form)), renamed=frozenset(), confined={}, waits={},
        classes=SimpleNamespace(
            widths={name: len(some) for name, some in sets.items()}, files=dict.fromkeys(sets, frozenset("m"))
        ),
        front_end=SimpleNamespace(slots={}, width=8.0, whole=False, narrow=None,
                                  throughputs={"V": 0.5, "L": 0.34}),
        looks=lambda form: looks.get(form, {}),
    )  # fmt: skip
    builder = SimpleNamespace(
        wide_loads=SimpleNamespace(heads=(), of=lambda *_: {}),
        facts=facts,
        structure=Structure(3, sets),
        names=tuple("0123"),
        memory=frozenset(range(4)),
        blind=blind,
    )
    usages = {name: PortUsage(1.0, "", (Operation(some),), confidence="high") for name, some in ports.items()}
    return MixModel(builder, usages)


def taken(uneven):
    """Cycles of two loads of vectors and another load."""
    return (2 + uneven * BESIDE) / 2


@pytest.mark.parametrize(("uneven", "found"), [(0.0, 0.0), (0.25, 0.25), (0.335, 0.375), (1.0, 1.0)])
def test_mixes_say_how_much_counts_within_an_eighth(uneven, found):
    fitted = model().fitted([(("V", "V", "L"), taken(uneven))])
    assert fitted.shares.uneven == found
    assert fitted.cycles(("V", "V", "L")) == pytest.approx(taken(found), abs=0.006)


@pytest.mark.parametrize(("late", "found"), [
    (0.0, 0.0), (0.25, 0.25), (0.335, 0.375), (1.0, 1.0), (None, 0.5),
])  # fmt: skip
def test_mixes_say_how_much_of_late_results_counts(late, found):
    """Results that took a turn more, of a form with one operation; halfway if no mix tells."""
    some = model(sets={"pair": (0, 1)})
    some.facts.confined = {"L": {"pair": 2.0}}
    some._builder.memory, some.facts.front_end.throughputs = frozenset(), {"V": 0.5, "L": 1.0}
    usages = {
        name: PortUsage(1.0, "", (Operation((0, 1)),), late=name == "L", confidence="high") for name in "VL"
    }
    mixes = [(("V", "V", "L"), (3 + late) / 2)] if late is not None else [(("V", "V"), 1.0)]
    fitted = MixModel(some._builder, usages).fitted(mixes)
    assert fitted.shares.late == found
    assert fitted.cycles(("V", "V", "L")) == pytest.approx((3 + found) / 2, abs=0.006)
    assert fitted.span(("V", "V", "L")) == pytest.approx((1.5, 2.0))


def test_most_mixes_count_and_not_one_that_is_wrong():
    mixes = [(("V", "V", "L"), taken(0.25))] * 3 + [(("V", "V", "L"), taken(1.0))]
    assert model().fitted(mixes).shares.uneven == 0.25


def test_where_no_mix_tells_half_of_it_counts():
    fitted = model().fitted([(("V", "V"), 1.0)])
    assert fitted.shares.uneven == 0.5
    assert fitted.cycles(("V", "V", "L")) == pytest.approx(taken(0.5))


def test_models_with_other_claims_keep_what_mixes_said():
    fitted = model().fitted([(("V", "V", "L"), taken(0.25))])
    doubted = {
        name: msgspec.structs.replace(usage, confidence="low") for name, usage in fitted.usages.items()
    }
    others = fitted.with_confidence(doubted), fitted.only_with(())
    assert [other.usages["V"].confidence for other in others] == ["low", fitted.usages["V"].confidence]
    for other in others:
        assert other.shares.uneven == 0.25
        assert other.cycles(("V", "V", "L")) == fitted.cycles(("V", "V", "L")) == pytest.approx(taken(0.25))


@pytest.mark.parametrize(("blind", "most"), [(False, 2 / 3), (True, 1 / 2 + 1 / 3)])
def test_ports_that_are_dealt_out_blindly_let_mixes_take_what_the_fullest_has(blind, most):
    """A load of a vector is on either of two ports half of the time, another on each of three a third."""
    assert model(blind, beside=0.0).span(["V", "L"]) == pytest.approx((2 / 3, most))


@pytest.mark.parametrize(("blind", "times", "found"), [
    (True, (0.67, 0.68, 0.75), 0.125), (True, (0.67, 0.68, 0.66), 0.0), (True, (0.67, 0.84, 0.84), 0.625),
    (False, (0.75, 0.75, 0.75), 0.0),
])  # fmt: skip
def test_mixes_say_how_evenly_blind_ports_are_used(blind, times, found):
    """Two thirds of a cycle are the least, five sixths an even use, and most within a tenth decide."""
    mixes = [(("V", "L"), cycles) for cycles in times for _ in range(7)]
    fitted = model(blind, beside=0.0).fitted(mixes)
    assert fitted.evenness == found
    assert fitted.predicted(["V", "L"]) == pytest.approx(2 / 3 + found / 6)
    assert fitted.cycles(["V", "L"]) == pytest.approx(2 / 3), "what they may take at least stays"


@pytest.mark.parametrize(("number", "found"), [(19, 0.0), (20, 0.125)])
def test_few_mixes_say_nothing_of_how_evenly_ports_are_used(number, found):
    assert model(blind=True, beside=0.0).fitted([(("V", "L"), 0.75)] * number).evenness == found


def test_what_blind_ports_let_mixes_take_says_nothing_of_accesses():
    assert model(blind=True, beside=0.0).fitted([(("V", "L"), 0.7)]).shares.uneven == 0.5


def test_what_two_classes_share_limits_mixes():
    """One load needs the only port that loads and stores both have."""
    usage = PortUsage(1.0, "", (Operation((1,)),), confidence="high")
    some = model(beside=0.0, sets={"load": (0, 1), "store": (1, 2)})
    other = MixModel(some._builder, {"V": usage, "L": usage})
    assert other.cycles(["V", "L"]) == pytest.approx(2.0)


@pytest.mark.parametrize(("many", "cycles"), [(1.0, 0.5), (2.0, 5 / 6), (3.0, 1.25)])
def test_the_front_end_is_that_of_the_better_order(many, cycles):
    """Of whole instructions two by two five of six slots are used; in turn the last would not fit."""
    some = model()
    some.facts.front_end.width, some.facts.front_end.whole, some.facts.front_end.throughputs = 6.0, True, {}
    usages = {name: PortUsage(slots, "-", ()) for name, slots in (("V", many), ("L", 1.0))}
    assert MixModel(some._builder, usages).cycles(["V", "L", "V"]) == pytest.approx(cycles)


@pytest.mark.parametrize(("number", "cycles"), [(20, 1.5), (19, 1.0)])
def test_halves_of_ports_that_mixes_prove_are_in_what_is_predicted(number, cycles):
    """Loads and loads of vectors, two side by side of each: by turns one of two is in the way."""
    halves = {"V": (2, 3), "S": (0, 1), "L": (0, 1, 2, 3)}
    some = model(blind=True, beside=0.0, sets=halves)
    usages = {
        name: PortUsage(1.0, "", (Operation(ports),), confidence="high") for name, ports in halves.items()
    }
    made = MixModel(some._builder, usages)
    fitted = made.fitted([(("L", "L", "V", "V"), 1.5)] * number)
    assert fitted.cycles(("L", "L", "V", "V")) == pytest.approx(cycles)
    assert fitted.span(("L", "L", "V", "V")) == pytest.approx((1.0, 1.5))
    assert fitted.classes_in_halves == (ClassHalves("S", "V", 0.0) if number == 20 else None)
    doubted = {name: msgspec.structs.replace(usage, confidence="low") for name, usage in usages.items()}
    unsure = MixModel(some._builder, doubted).fitted([(("L", "L", "V", "V"), 1.5)] * 99)
    assert unsure.halves is None, "mixes of forms whose ports are not sure tell nothing"
    some._builder.wide_loads = SimpleNamespace(heads={"L"}, of=lambda form, heads: {"L": 1.2})
    assert not made.tells_halves("V"), "nor do those that cost others something for their width"
