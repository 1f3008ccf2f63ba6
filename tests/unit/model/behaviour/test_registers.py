"""What is known of moves, idioms and dividers of cores that LLVM's models say otherwise."""

from __future__ import annotations

import pytest

from cyclescope.model.library import shipped

CORES = ("sapphirerapids", "alderlake", "emeraldrapids")


@pytest.fixture(params=CORES)
def forms(request):
    return shipped(request.param).forms


@pytest.mark.parametrize(
    "form",
    [
        "XOR_31 (R32, R32)", "XOR_33 (R64, R64)", "SUB_29 (R64, R64)", "PXOR (XMM, XMM)",
        "VXORPS (YMM, YMM, YMM)", "VPCMPGTQ (XMM, XMM, XMM)", "VPSUBD (YMM, YMM, YMM)",
    ],
)  # fmt: skip
def test_what_is_zero_whatever_its_register_holds(forms, form):
    assert forms[form].idiom == "zero"


@pytest.mark.parametrize(
    "form", ["XOR_30 (R8l, R8l)", "SUB_29 (R16, R16)", "XOR (R64, M64)", "PADDD (XMM, XMM)"]
)
def test_what_waits_for_its_register(forms, form):
    assert not forms[form].idiom


@pytest.mark.parametrize(
    "form",
    [
        "MOV_89 (R64, R64)",
        "MOV_8B (R32, R32)",
        "MOVAPS_0F28 (XMM, XMM)",
        "VMOVDQA_6F (YMM, YMM)",
        "LEA_B_D8 (R64)",
    ],
)
def test_moves_are_executed_by_the_renamer(forms, form):
    cost = forms[form]
    assert cost.eliminated and not cost.operations
    assert set(cost.latencies.values()) == {0}


@pytest.mark.parametrize(
    "form", ["MOV_88 (R8l, R8l)", "MOV (R64, M64)", "VMOVAPS (YMM, M256)", "LEA_B_D8 (R32)"]
)
def test_others_are_not(forms, form):
    assert not forms[form].eliminated


def test_additions_of_short_constants_take_no_time_but_for_their_flags(forms):
    cost = forms["ADD (R64, I8)"]
    assert (cost.latencies["op1->op1"], cost.latencies["op1->flags.ZF"]) == (0, 1)
    assert (
        forms["ADD (R32, I8)"].latencies["op1->op1"] == forms["ADD_01 (R64, R64)"].latencies["op1->op1"] == 1
    )


@pytest.mark.parametrize(
    ("form", "cycles"),
    [
        ("DIV (R32)", 6),
        ("IDIV (M64)", 10),
        ("DIVSS (XMM, M32)", 3),
        ("VDIVPD (YMM, YMM, YMM)", 8),
        ("SQRTSD (XMM, XMM)", 4.5),
    ],
)
def test_dividers_are_busy(forms, form, cycles):
    """As they were measured, and published."""
    assert [op.cycles * op.count for op in forms[form].operations if len(op.ports) == 1] == [cycles]


def test_latencies_are_those_of_registers(forms):
    assert set(forms["AND_21 (R64, R64)"].latencies.values()) == {1}
    assert forms["LEA_B_IS (R64)"].latencies["op2.index->op1"] == 2
    cost = forms["ADDSD (XMM, M64)"]
    assert cost.latencies["op1->op1"] == 2 < cost.latencies["op2.address->op1"]
