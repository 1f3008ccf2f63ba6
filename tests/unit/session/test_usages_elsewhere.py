"""Micro-operations and ports of a store on another backend: recorded llvm-mca, and a simulated core."""

from __future__ import annotations

import json

import msgspec
import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.model.machine import MEASURED, Core, FormCost, MachineModel, Operation, Provenance
from cyclescope.report.comparison.replay import replay_json
from cyclescope.report.comparison.usage import usage_differences, usage_text
from cyclescope.report.site.elsewhere import experiments_page
from cyclescope.session.elsewhere.claims import Claim
from cyclescope.session.elsewhere.usage import (
    OFF_TURN,
    Sameness,
    UsageQuantity,
    Why,
    compared_usage,
    ports_outcome,
    pressure_text,
)
from cyclescope.session.replay import Replay
from tests.support.files.recorded_mca import recorded_mca

SAME, DIFFERENT, UNTOLD = Sameness.SAME, Sameness.DIFFERENT, Sameness.UNTOLD
ADD, SUB, WIDE = "VPADDD (XMM, XMM, XMM)", "VPSUBD (XMM, XMM, XMM)", "VMULPS (ZMM, ZMM, ZMM)"
MUL, SHUFFLE, FOLDED = "VMULPS (XMM, XMM, XMM)", "VPSHUFB (XMM, XMM, XMM)", "VMULPS (XMM, XMM, M128)"
LOAD, SCALAR, DOUBLE = "MOV (R64, M64)", "ADD_01 (R64, R64)", "IMUL (R64)"
NEG, NOT = "NEG (R64)", "NOT (R64)"


def cost(*sets, count=1.0, slots=1.0, confidence="high"):
    """Ports by letter or digit: `ab` is one micro-operation on a or b."""
    ports = (tuple(int(p, 16) for p in one) for one in sets)
    return FormCost(slots, tuple(Operation(one, count) for one in ports), confidence=confidence)


def machine(forms, ports="0123456789abcdef"):
    return MachineModel("made", "x86-64", Provenance(MEASURED), Core(6), tuple(ports), forms)


# A core with the vector ports of the recorded model, called 8 9 a b, the last two the other way round.
STORE = machine({
    ADD: cost("89ab"), SUB: cost("89ab"), MUL: cost("89"), SHUFFLE: cost("9b"), WIDE: cost("89"),
    FOLDED: cost("ef", "89"), LOAD: cost("def"), SCALAR: cost("0123", confidence="low"),
    DOUBLE: cost("1", count=2, slots=2), NEG: cost("0123"),
})  # fmt: skip


@pytest.fixture
def told(monkeypatch):
    """What the recorded llvm-mca says of the store, by form and quantity."""
    found = compared_usage(STORE, recorded_mca(monkeypatch), list(STORE.forms))
    return found, {(one.form, one.quantity): one for one in found.compared}


def test_numbers_of_micro_operations_and_of_slots(told):
    found, by_form = told
    assert found.counts(UsageQuantity.OPERATIONS) == {SAME: 7, DIFFERENT: 1}
    assert found.counts(UsageQuantity.SLOTS) == {SAME: 8}
    folded = by_form[FOLDED, UsageQuantity.OPERATIONS]
    assert (folded.stored, folded.elsewhere, folded.reason) == ("2", "1", Why.SLOTS)
    assert (FOLDED, UsageQuantity.PORTS) not in by_form, "ports are compared of as many micro-operations"
    assert found.left_out == {
        "its ports are not told with high or medium confidence": 1,
        "llvm-mca does not take it": 1,
    }
    assert "NumMicroOpcodes" in found.about


def test_ports_by_the_names_that_both_use_alike(told):
    found, by_form = told
    assert {found.names[port] for port in "8"} == {"Zn4FP0"}
    assert (found.names["9"], found.names["b"]) == ("Zn4FP1", "Zn4FP2")
    ports = {
        form: (one.outcome, one.reason)
        for (form, what), one in by_form.items()
        if what is UsageQuantity.PORTS
    }
    assert ports[ADD] == ports[SUB] == ports[MUL] == ports[SHUFFLE] == (SAME, None)
    assert ports[WIDE] == (DIFFERENT, Why.CYCLES), "half as wide there: both ports for two cycles"
    assert ports[LOAD] == (UNTOLD, Why.UNITS), "address unit, load unit and queue of one micro-operation"
    assert ports[DOUBLE] == (DIFFERENT, Why.OPEN), "three cycles of one port, and nothing names the store's"


def test_text_json_and_page_have_both_lines(told):
    found, _ = told
    text = usage_text(found, 5)
    for line in ("micro-operations  ", "front-end slots  ", "ports, given as many micro-operations  "):
        assert f"\n  {line}" in text
    assert "87.5%" in text
    assert "8 is Zn4FP0" in text
    data = json.loads(replay_json(Replay(()), "a.sqlite", "there", found))["usage"]
    assert data["counts"]["operations"] == {"same": 7, "different": 1, "untold": 0}
    assert data["reasons"]["operations"] == {Why.SLOTS: 1}
    assert {one["outcome"] for one in data["not_the_same"]} == {"different", "untold"}
    page = experiments_page(Replay(()), found, "<a.sqlite>", "there", 5)
    assert "<a.sqlite>" not in page
    assert "87.5%" in page
    assert "ports, given as many micro-operations" in page


# --- a simulated core --------------------------------------------------------------------------------

FORMS = {
    ADD: cost("0123"), SUB: cost("0123"), MUL: cost("01"), SHUFFLE: cost("12"), NEG: cost("45"),
    FOLDED: cost("67", "01"), LOAD: cost("67"), SCALAR: cost("4567"),
}  # fmt: skip
NAMES = ("q", "w", "e", "r", "t", "y", "u", "i")


def simulated(changes=None):
    return SimulatedBackend(machine({**FORMS, **(changes or {})}, NAMES))


def outcomes(backend, store=None):
    found = compared_usage(store or machine(FORMS), backend, list(FORMS))
    return found, {one.form: one.outcome for one in found.compared if one.quantity is UsageQuantity.PORTS}


def test_a_core_with_other_names_is_the_same():
    found, ports = outcomes(simulated())
    assert set(ports.values()) == {SAME}
    assert len(ports) == len(FORMS)
    assert [found.names[port] for port in "012"] == ["q", "w", "e"]
    assert found.counts(UsageQuantity.OPERATIONS) == found.counts(UsageQuantity.SLOTS) == {SAME: len(FORMS)}


def test_one_form_on_other_ports_is_different():
    found, ports = outcomes(simulated({FOLDED: cost("67", "23")}))
    assert {form for form, outcome in ports.items() if outcome is not SAME} == {FOLDED}
    assert [one.reason for one in found.compared if one.outcome is DIFFERENT] == [Why.OPEN]
    found, ports = outcomes(simulated({SUB: cost("012")}))
    assert {form for form, outcome in ports.items() if outcome is not SAME} == {SUB}
    assert [one.reason for one in found.compared if one.outcome is DIFFERENT] == [Why.NUMBER]


def test_ports_the_other_way_round_are_a_renaming():
    found, ports = outcomes(simulated({MUL: cost("23"), FOLDED: cost("67", "23")}))
    assert set(ports.values()) == {SAME}
    assert [found.names[port] for port in "0123"] == ["r", "e", "w", "q"]


def test_names_are_not_matched_by_a_few_of_a_class():
    """Of those on the same ports most have three elsewhere: the one that has two tells nothing."""
    here = {NEG: cost("45"), NOT: cost("45"), SCALAR: cost("45")}
    there = {NEG: cost("456"), NOT: cost("456"), SCALAR: cost("67")}
    found = compared_usage(machine(here), SimulatedBackend(machine(there, NAMES)), list(here))
    assert found.names == {}
    ports = {
        one.form: (one.outcome, one.reason) for one in found.compared if one.quantity is UsageQuantity.PORTS
    }
    assert ports == {NEG: (DIFFERENT, Why.NUMBER), NOT: (DIFFERENT, Why.NUMBER), SCALAR: (UNTOLD, Why.NAMES)}


def test_numbers_that_are_swapped_are_told():
    there = {SUB: cost("0123", count=2, slots=1), FOLDED: cost("67", slots=2), LOAD: cost("67", slots=3)}
    found, _ = outcomes(simulated(there), machine({**FORMS, FOLDED: cost("67", "01", slots=1)}))
    assert found.reasons(UsageQuantity.OPERATIONS) == {Why.SLOTS: 1, Why.OPEN: 1}
    assert found.reasons(UsageQuantity.SLOTS) == {Why.OPERATIONS: 1, Why.OPEN: 1}
    rows = [row[1] for row in usage_differences(found)]
    assert rows == [Why.OPEN, Why.OPEN, Why.SLOTS, Why.OPERATIONS]


def test_slots_that_the_store_does_not_have_may_be_what_is_counted():
    here = machine({ADD: cost("01", "23", slots=None), SUB: cost("01", "23", slots=None)})
    there = machine({ADD: cost("01"), SUB: cost("01", "23", "45")}, NAMES)
    found = compared_usage(here, SimulatedBackend(there), [ADD, SUB])
    assert found.reasons(UsageQuantity.OPERATIONS) == {Why.NO_SLOTS: 1, Why.OPEN: 1}
    assert found.counts(UsageQuantity.SLOTS) == {}


def test_what_is_not_known_elsewhere():
    there = msgspec.structs.replace(machine(FORMS), forms={ADD: FormCost(slots=1.0), SUB: cost("0123")})
    found = compared_usage(machine(FORMS), SimulatedBackend(there), list(FORMS))
    assert found.left_out == {"the model has no cost of it": len(FORMS) - 2}
    assert found.counts(UsageQuantity.SLOTS) == {SAME: 2}
    assert found.counts(UsageQuantity.OPERATIONS) == {SAME: 1}


def test_only_what_is_told_with_confidence_is_compared():
    some = {ADD: cost("01"), SUB: cost("01", confidence="medium"), MUL: cost("01", confidence="low"),
            SHUFFLE: cost("01", confidence="")}  # fmt: skip
    found = compared_usage(machine(some), SimulatedBackend(machine(some)), list(some))
    assert {one.form for one in found.compared} == {ADD, SUB}


# --- pressures ---------------------------------------------------------------------------------------


def judged(here, pressure, units=1, is_even=False, names=("0", "1", "2", "3", "4", "5")):
    stored = {}
    for one in here.operations:
        for port in one.ports:
            stored[str(port)] = stored.get(str(port), 0.0) + one.count / len(one.ports)
    elsewhere = dict(zip(names, pressure, strict=False))
    claim = Claim(1, 1, elsewhere, units, is_even)
    return ports_outcome(here, stored, claim, {name: name for name in names})


def test_turns_that_do_not_come_out_even_are_the_same():
    turn = 1 / 240
    assert judged(cost("01", count=3), (1.5 + 3 * turn, 1.5 - 3 * turn)) == (SAME, None)
    assert judged(cost("01234"), [1 / 6] * 5) == (DIFFERENT, Why.CYCLES), "a sixth is no fifth"
    assert 3 * turn < OFF_TURN < 1 / 5 - 1 / 6


def test_operations_that_share_ports_spread_in_several_ways():
    """One that takes either port and one that takes the first: all on both, or evenly."""
    shared = cost("01", "0")
    assert judged(shared, (1.0, 1.0), units=2) == (UNTOLD, Why.SHARED)
    assert judged(shared, (1.0, 1.0), units=2, is_even=True) == (DIFFERENT, Why.CYCLES)
    assert judged(shared, (2.0, 1.0), units=2) == (DIFFERENT, Why.CYCLES), "more than both take"


def test_forms_without_ports():
    assert judged(FormCost(1.0, ()), (), units=0) == (SAME, None)
    assert judged(cost("01"), (), units=0) == (DIFFERENT, Why.NONE)


def test_pressure_in_words():
    assert pressure_text({"b": 0.5, "a": 0.5, "c": 1.0}) == "1.00 of c, 0.50 of a b"
    assert pressure_text({}) == "none"


def test_a_backend_that_has_times_alone_says_so():
    found = compared_usage(STORE, object(), list(STORE.forms))
    assert found.compared == ()
    assert found.left_out == {
        "its ports are not told with high or medium confidence": 1,
        "the backend says what kernels take, not what instructions are made of": 9,
    }
    assert "times alone" in found.about
