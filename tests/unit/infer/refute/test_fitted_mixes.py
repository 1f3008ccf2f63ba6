"""How much of what accesses cost each other counts: what mixes of made-up forms show."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cyclescope.infer.likelihood.noise import Look
from cyclescope.infer.likelihood.structure import Structure
from cyclescope.infer.ports.builder import PortUsage
from cyclescope.infer.refute.mixes import MixModel
from cyclescope.model.machine import Operation

SETS = {"vector load": (0, 1), "load": (0, 1, 2)}
BESIDE = 0.8  # micro-operations that a load side by side with others costs loads of vectors


class _Table(dict):
    isa = "x86-64"


def model():
    """Of a load and a load of vectors on two of its three ports, of which one is in the way of the other."""
    ports = {"V": SETS["vector load"], "L": SETS["load"]}
    looks = {"L": {"vector load": [Look(0.0, 0.02), Look(BESIDE, 0.02, together=True)]}}
    form = SimpleNamespace(operands=[SimpleNamespace(is_memory=True)])
    facts = SimpleNamespace(
        table=_Table(dict.fromkeys(ports, form)), renamed=frozenset(), confined={}, waits={},
        classes=SimpleNamespace(
            widths={name: len(some) for name, some in SETS.items()}, files=dict.fromkeys(SETS, frozenset("m"))
        ),
        front_end=SimpleNamespace(slots={}, width=8.0, whole=False, throughputs={"V": 0.5, "L": 0.34}),
        evidence=SimpleNamespace(looks=lambda form: looks.get(form, {})),
    )  # fmt: skip
    builder = SimpleNamespace(
        facts=facts, structure=Structure(3, SETS), names=tuple("012"), memory=frozenset((0, 1, 2))
    )
    usages = {name: PortUsage(1.0, "", (Operation(some),), confidence="high") for name, some in ports.items()}
    return MixModel(builder, usages)


def taken(uneven):
    """Cycles of two loads of vectors and another load."""
    return (2 + uneven * BESIDE) / 2


@pytest.mark.parametrize(("uneven", "found"), [(0.0, 0.0), (0.25, 0.25), (0.335, 0.375), (1.0, 1.0)])
def test_mixes_say_how_much_counts_within_an_eighth(uneven, found):
    fitted = model().fitted([(("V", "V", "L"), taken(uneven))])
    assert fitted.uneven == found
    assert fitted.cycles(("V", "V", "L")) == pytest.approx(taken(found), abs=0.006)


def test_most_mixes_count_and_not_one_that_is_wrong():
    mixes = [(("V", "V", "L"), taken(0.25))] * 3 + [(("V", "V", "L"), taken(1.0))]
    assert model().fitted(mixes).uneven == 0.25


def test_where_no_mix_tells_half_of_it_counts():
    fitted = model().fitted([(("V", "V"), 1.0)])
    assert fitted.uneven == 0.5
    assert fitted.cycles(("V", "V", "L")) == pytest.approx(taken(0.5))


def test_models_with_other_claims_keep_what_mixes_said():
    fitted = model().fitted([(("V", "V", "L"), taken(0.25))])
    assert fitted.with_usages(fitted.usages).uneven == fitted.only_with(()).uneven == 0.25
