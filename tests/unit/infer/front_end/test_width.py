"""The width of a front end from the rates of simple instructions."""

from __future__ import annotations

import pytest

from cyclescope.infer.front_end import width as module
from cyclescope.infer.front_end.width import Rate, rates_of, width_of
from cyclescope.measure.front_end import AND, GENERAL, IDIOMS, MOVES, NOPS, VECTOR
from cyclescope.measure.record import NOISY, UNSTABLE, Reading
from cyclescope.remarks.front_end import Wide
from cyclescope.remarks.remark import NOTHING

MIX, RUN = AND.join((NOPS, GENERAL)), AND.join((NOPS, NOPS, NOPS, GENERAL))


def rates(error=0.01, **of_kinds):
    """Rates by kind: `nop`, `move`, `idiom`, `general`, `vector`, `mix` (NOP + general), `run` (3 NOPs)."""
    names = {"nop": NOPS, "move": MOVES, "idiom": IDIOMS, "general": GENERAL, "vector": VECTOR, "mix": MIX,
             "run": RUN}  # fmt: skip
    return [Rate((kind,), names[kind], rate, error) for kind, rate in of_kinds.items()]


@pytest.mark.parametrize(
    ("found", "slots", "nops"),
    [
        (rates(nop=6.02, general=5.0, mix=6.01), 6, 1),
        (rates(nop=8.0, move=7.98, general=6.0, vector=4.0), 8, 1),  # as a Zen 5
        (rates(nop=12.0, idiom=6.0, general=4.0, mix=6.0, run=8.0), 6, 2),  # NOPs in pairs
        (rates(nop=12.0, move=6.0, idiom=6.0, general=4.0, mix=7.93, run=10.07), 6, 2),  # as a Zen 4
        (rates(nop=31.0, idiom=6.0, general=5.99, mix=11.0), 6, 0),  # NOPs that are dropped
        (rates(nop=10.0, general=4.0, vector=4.0, mix=8.0, run=10.0), 10, 1),
        (rates(nop=2.0, general=2.0, vector=1.0, mix=2.0), 2, 1),  # in order
        (rates(nop=6.0, move=5.4, general=5.0, mix=6.03), 6, 1),  # moves that are not always eliminated
    ],
)
def test_the_width_is_what_several_kinds_agree_on(found, slots, nops):
    fact = width_of(found)
    assert (fact.slots, fact.per_slot, fact.reason) == (slots, nops, NOTHING)
    assert len({rate.kind for rate in fact.agreeing}) >= 2


@pytest.mark.parametrize(
    "found",
    [
        rates(nop=7.67, general=6.0),  # disturbed: no whole number
        rates(nop=6.0, general=4.0, vector=3.0),  # one kind alone
        rates(nop=8.0, general=4.0, vector=4.0, move=6.0),  # what exceeds four is no NOP
        rates(nop=6.0, general=4.0, vector=4.0),  # half as fast again is no sharing
        rates(nop=5.8, mix=5.75, general=5.0),
        rates(nop=17.0, mix=17.0),  # wider than any core
    ],
)
def test_a_width_that_is_not_clear_is_not_told(found):
    fact = width_of(found)
    assert not fact.is_told
    assert all(f"{rate.rate:.2f}" in fact.reason.text for rate in found)


def test_without_a_rate_there_is_a_reason():
    assert width_of([]).reason.meaning is Wide.UNKNOWN


def test_the_proof_names_forms_and_errors():
    fact = width_of(rates(nop=12.0, idiom=6.0, mix=6.02, general=4.0))
    assert "2 loops agree (zero idiom, NOP + general): idiom 6.00 ± 0.01, mix 6.02 ± 0.01" in fact.proof
    assert "2 NOPs next to each other share a slot" in fact.proof


def test_the_proof_says_beside_what_nops_take_no_slot():
    fact = width_of(rates(nop=12.0, idiom=6.0, move=6.0, mix=7.9, run=10.1, general=4.0))
    assert fact.proof.endswith("and a NOP with what is before it: mix 7.90 ± 0.01")


def test_what_has_no_nop_shares_no_slot():
    found = rates(nop=12.0, idiom=6.0, move=6.0, mix=7.9)
    assert width_of(found).is_told
    assert not width_of([*found, Rate(("x",), VECTOR, 7.9, 0.01)]).is_told


def test_a_mix_with_nops_proves_nothing_where_others_hide_them():
    other = Rate(("x",), AND.join((NOPS, VECTOR)), 6.0, 0.01)
    assert width_of([*rates(nop=12.0, idiom=6.0), other]).slots == 6
    assert not width_of([*rates(nop=12.0, idiom=6.0, mix=7.9), other]).is_told


@pytest.mark.parametrize(("alone", "is_told"), [(4.0, True), (3.0, False)])
def test_a_mix_with_nops_proves_a_width_where_these_hold_others_up(alone, is_told):
    """Vectors that run four a cycle alone would run eight with NOPs that trail behind them."""
    mix = Rate(("nop", "vector"), AND.join((NOPS, VECTOR)), 6.0, 0.01)
    found = width_of([*rates(nop=12.0, idiom=6.0, mix=7.9, vector=alone), mix])
    assert found.is_told is is_told
    assert not is_told or found.slots == 6


def test_rounds_that_disagree_prove_nothing():
    rows = [Reading("A", "B", "C + D", MIX, 4.0, 0.02, 24), Reading("A", "", "", NOPS, 4.0, 0.1, 24, NOISY),
            Reading("A", "", "", NOPS, 4.0, 0.1, 24, UNSTABLE)]  # fmt: skip
    [rate] = rates_of(rows)
    assert (rate.forms, rate.kind, rate.rate) == (("A", "B", "C", "D"), MIX, 6.0)
    assert rate.error == pytest.approx(0.03)


# --- constants: each with a case that half or twice of it decides otherwise ---------------------------


@pytest.mark.parametrize(
    ("name", "found", "slots"),
    [
        ("RATE_GRAIN", rates(0.0, nop=6.04, mix=6.0, general=5.0), 6),  # halved, NOP is not at the width
        ("ERRORS", rates(0.05, nop=6.09, mix=6.0, general=5.0), 6),
        ("_KINDS", rates(nop=6.0, mix=6.0, general=5.0), 6),
    ],
)
def test_what_is_near_enough_to_a_width(monkeypatch, name, found, slots):
    assert width_of(found).slots == slots
    assert width_of(found).is_told
    monkeypatch.setattr(module, name, getattr(module, name) * (2 if name == "_KINDS" else 0.5))
    assert not width_of(found).is_told


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("RATE_GRAIN", rates(0.0, nop=6.1, mix=6.1, general=5.0)),
        ("ERRORS", rates(0.05, nop=6.15, mix=6.15, general=5.0)),
        ("FASTER", rates(0.0, nop=6.0, mix=6.0, general=6.4)),
    ],
)
def test_what_is_too_far_from_one(monkeypatch, name, found):
    assert not width_of(found).is_told
    monkeypatch.setattr(module, name, getattr(module, name) * 2)
    assert width_of(found).is_told


def test_a_rate_that_is_a_little_higher_is_no_other_width(monkeypatch):
    found = rates(0.0, nop=6.0, mix=6.0, general=6.2)
    assert width_of(found).slots == 6
    monkeypatch.setattr(module, "FASTER", module.FASTER / 2)
    assert not width_of(found).is_told


@pytest.mark.parametrize("times", [0.5, 2])
def test_so_many_nops_share_a_slot(monkeypatch, times):
    found = rates(nop=12.0, idiom=6.0, mix=6.0, general=4.0)
    assert width_of(found).per_slot == 2
    monkeypatch.setattr(module, "SHARING", int(module.SHARING * times))
    assert width_of(found).per_slot != 2


def test_one_kind_is_not_enough(monkeypatch):
    found = rates(nop=6.0, general=4.0, vector=3.0)
    assert not width_of(found).is_told
    monkeypatch.setattr(module, "_KINDS", 1)
    assert width_of(found).is_told


def test_no_core_is_so_wide(monkeypatch):
    found = rates(nop=12.0, mix=12.0)
    assert width_of(found).slots == 12
    monkeypatch.setattr(module, "WIDEST", module.WIDEST // 2)
    assert not width_of(found).is_told
    monkeypatch.setattr(module, "WIDEST", 32)
    assert width_of(rates(nop=17.0, mix=17.0)).is_told
