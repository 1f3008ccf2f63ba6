"""Accesses of code that go to and fro between halves of the ports for memory."""

from __future__ import annotations

import shutil

import msgspec
import pytest

from cyclescope.model.facts import BANKS, LOW, CoreAnswer, Fact, beside_stores
from cyclescope.model.machine import Halves, Operation
from cyclescope.model.ports import port_set
from tests.support.code.blocks import changed, measured, predicted

pytestmark = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)

FIRST, SECOND = (0, 1), (3, 4)
ANY, VECTOR = "mov rax, [rdi]; ", "vmovupd xmm0, [rsi]; "


def cycles(text, astray=0.0, confidence="", found=True, alternatives=("1*pa",), facts=(), ports=1, late=0):
    machine = changed(
        measured(*facts),
        MOV_R64_M64={
            "operations": (Operation((*FIRST[:ports], *SECOND[:ports])),),
            "confidence": confidence,
            "alternatives": alternatives,
        },
        VMOVUPD_XMM_M128={"operations": (Operation(SECOND[:ports]),)},
    )
    halves = Halves(FIRST[:ports], SECOND[:ports], astray, late) if found else None
    core = msgspec.structs.replace(machine.core, halves=halves)
    return predicted(text, machine=msgspec.structs.replace(machine, core=core)).bounds.get("halves", 0)


@pytest.mark.parametrize(
    ("text", "astray", "most"),
    [
        (VECTOR + ANY, 0, 1),
        (VECTOR + ANY, 0.25, 1.25),
        (VECTOR + ANY + VECTOR + ANY, 0, 2),
        (2 * VECTOR + 2 * ANY, 0, 3),  # the same in another order: the last one gets what vectors need
        (2 * VECTOR + "lea rbx, [rcx + 8]; " + ANY + "add rbx, rcx; " + ANY, 0, 3),
        (4 * ANY, 0, 2),
    ],
)
def test_accesses_get_the_half_that_the_one_before_did_not_get(text, astray, most):
    assert cycles(text, astray) == pytest.approx(most)


@pytest.mark.parametrize(("even", "odd"), [(0.0, 0.14), (0.1, 0.1), (0.0, 0.0), (0.3, 0.4), (0.04, 0.25)])
def test_a_store_behind_loads_that_was_measured_tells_how_often_it_goes_astray(even, odd):
    """Whatever mixes say: each that goes astray keeps one of two ports busy for a cycle."""
    facts = [
        Fact(BANKS, beside_stores(128, loads), CoreAnswer.VALUE, (loads + 1) / ((loads + share) / 2), 0.001)
        for loads, share in ((2, even), (3, odd))
    ]
    told = {"astray": 0.125, "facts": facts, "ports": 2}
    assert cycles(VECTOR + ANY, **told) == pytest.approx((1 + odd) / 2)
    assert cycles(2 * VECTOR + ANY, **told) == pytest.approx((2 + even) / 2)
    assert cycles(3 * VECTOR + ANY, **told) == pytest.approx((3 + odd) / 2)
    assert cycles(4 * VECTOR + ANY, **told) == pytest.approx((4 + even) / 2)
    assert cycles(2 * VECTOR + ANY, astray=0.125, ports=2) == pytest.approx((2 + 0.125) / 2)


def test_where_it_is_known_late_the_first_of_a_cycle_of_dispatch_goes_on_from_an_earlier_one():
    """Two of three of a cycle, of width 6 or less: whatever stores behind loads say of those at once."""
    text = VECTOR + ANY + ANY
    assert cycles(text, late=1) != pytest.approx(cycles(text), rel=0.05)


def test_nothing_is_known_where_it_was_not_found_or_ports_are_not_sure():
    assert cycles(2 * VECTOR + 2 * ANY, found=False) == 0
    assert cycles(2 * VECTOR + 2 * ANY, confidence=LOW) == 0


@pytest.mark.parametrize(
    ("other", "sure"), [("1*pa,load", True), ("1*pb+1*pa,load", True), ("2*pa,load", False), ("-", False)]
)
def test_a_form_whose_usages_all_take_the_same_of_the_ports_is_sure_there(other, sure):
    """Which other ports it takes is not told."""
    some = (other, "1*pa,load+1*pc")
    assert bool(cycles(2 * VECTOR + 2 * ANY, confidence=LOW, alternatives=some)) == sure


@pytest.mark.parametrize(("text", "most"), [(VECTOR + ANY, 1.7), (2 * VECTOR, None)])
def test_what_wide_loads_cost_others_counts_beside_these(text, most):
    name = f"beside {port_set((FIRST[0], SECOND[0]), measured().ports)}"
    machine = changed(
        measured(),
        MOV_R64_M64={"operations": (Operation((FIRST[0], SECOND[0])),), "resources": {name: 1.0}},
        VMOVUPD_XMM_M128={"operations": (Operation(SECOND[:1]),), "resources": {name: 2.4}},
    )
    machine = msgspec.structs.replace(machine, resources={**machine.resources, name: 2.0})
    found = predicted(text, machine=machine).resources
    assert found.get(name) == (None if most is None else pytest.approx(most))
