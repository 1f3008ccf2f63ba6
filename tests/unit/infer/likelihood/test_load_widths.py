"""Loads of the widest vectors, which may keep narrower ones out of their cycle, in usages and in mixes."""

from __future__ import annotations

import pytest

from cyclescope.infer.likelihood.noise import Look
from cyclescope.infer.likelihood.structure import Structure
from cyclescope.infer.ports.builder import PortBuilder, level_of
from cyclescope.infer.ports.evidence import ERROR, SHOWN_BY, PortFacts
from cyclescope.infer.ports.groups import LoadWidths, is_load
from cyclescope.infer.ports.timed import TimedJudge
from cyclescope.model.facts import HIGH
from cyclescope.model.machine import Operation
from tests.support.made.classes import StatedEvidence, classes_of
from tests.support.made.front_ends import StatedFrontEnd

PLAIN, VECTORS = "MOV (R64, M64)", "VMOVUPS (XMM, M128)"
SETS = {PLAIN: (0, 1, 2, 3), VECTORS: (2, 3)}
SCALARS = ["MOV (R32, M32)", "MOV (R64, M64)", "MOVSX (R64, M8)"]
NARROW = ["VMOVAPS (XMM, M128)", "VMOVDQA (XMM, M128)", "VLDDQU (XMM, M128)"]
MIDDLE = ["VMOVAPS (YMM, M256)", "VMOVDQA (YMM, M256)", "VLDDQU (YMM, M256)"]
WIDE = ["VMOVAPS (ZMM, M512)", "VMOVUPD (ZMM, M512)", "VMOVDQU64 (ZMM, M512)"]
A_TURN_MORE = 1.2


def facts(table, wide=(2.4, 1.0), middle=(1.2, 1.0), wide_forms=WIDE):
    """What loads cost both classes: of scalars, vectors of 128, of 256 and of 512 bits."""
    by_forms = [(SCALARS, (1.0, 0.0)), (NARROW, (1.2, 1.0)), (MIDDLE, middle), (wide_forms, wide)]
    readings = {
        form: {PLAIN: [Look(plain, ERROR)], VECTORS: [Look(vectors, ERROR)]}
        for forms, (plain, vectors) in by_forms for form in forms
    }  # fmt: skip
    every = classes_of(
        table, {n: len(s) for n, s in SETS.items()}, dict.fromkeys(SETS, frozenset("m")),
        {PLAIN: SCALARS, VECTORS: [VECTORS, *NARROW]},
    )  # fmt: skip
    front_end = StatedFrontEnd(table, 8.0, dict.fromkeys(readings, 0.5), slots=dict.fromkeys(readings, 1.0))
    return PortFacts(front_end, StatedEvidence(every, readings, Structure(4, SETS)), ())


def test_what_loads_of_a_width_cost_more_than_narrower_ones_is_known(table):
    found = LoadWidths(facts(table))
    assert found.of(table[WIDE[0]], SETS) == {PLAIN: pytest.approx(A_TURN_MORE)}
    assert found.of(table[MIDDLE[0]], SETS) == found.of(table[SCALARS[0]], SETS) == {}
    assert found.of(table[WIDE[0]], {VECTORS: SETS[VECTORS]}) == {}
    assert found.heads == {PLAIN}


def test_wider_ones_are_compared_with_those_that_cost_no_more(table):
    found = LoadWidths(facts(table, middle=(2.4, 1.0)))
    assert found.of(table[MIDDLE[0]], SETS) == found.of(table[WIDE[0]], SETS) != {}


@pytest.mark.parametrize(
    "told",
    [
        {"wide": (2.4, 2.0)},  # two micro-operations, as of 256 bits on cores whose units have 128
        {"wide": (1.6, 1.0)},  # noise
        {"wide_forms": WIDE[: SHOWN_BY - 1]},
    ],
)
def test_nothing_is_expected_of_loads_that_show_no_such_thing(table, told):
    assert not LoadWidths(facts(table, **told)).heads


def test_such_a_load_is_one_micro_operation_for_sure(table):
    told = facts(table)
    builder = PortBuilder(TimedJudge(told, None))
    [best, *_] = builder.judge.explain(table[WIDE[0]], 0.5, 1.0)
    assert (best.operations, level_of(best)) == ((Operation(SETS[VECTORS]),), HIGH)
    assert "turns more" in builder.usage(table[WIDE[0]], 0.5).note
    assert "turns more" not in builder.usage(table[MIDDLE[0]], 0.5).note


def test_a_load_writes_no_memory(table):
    assert is_load(table[PLAIN])
    assert not any(is_load(table[name]) for name in ("MOV (M64, R64)", "ADD (M64, R64)", "LEA_B (R64)"))
