"""Which forms and pairs a table's row speaks of."""

from __future__ import annotations

import pytest

from benchmarks.lib.matching import llvm_pair, match
from benchmarks.lib.reference import Reference, Row


def reference(naming, *names):
    return Reference("test", "znver3", naming, {name: Row(name, 1.0, ()) for name in names})


def test_llvm_names_find_the_form_with_ordinary_registers(table):
    found = match(reference("llvm", "ADD8rr", "ADD64mr", "NOSUCH"), table)
    assert {name: form.id for name, form in found.items()} == {
        "ADD8rr": "ADD_00 (R8l, R8l)", "ADD64mr": "ADD (M64, R64)",
    }  # fmt: skip


def test_uops_info_names_find_their_forms(table):
    names = ("VADDPD (XMM, XMM, M128)", "ADD_LOCK (M8, R8h)")
    found = match(reference("uops_info", *names), table)
    assert {name: form.uops_info for name, form in found.items()} == {name: name for name in names}


@pytest.mark.parametrize(
    ("form", "pair", "ours"),
    [
        ("ADD_01 (R64, R64)", "1:GR64->0:GR64", [("op1", "op1")]),
        ("ADD_01 (R64, R64)", "2:GR64->0:GR64", [("op2", "op1")]),
        ("VADDPS (XMM, XMM, XMM)", "1:VR128->0:VR128", [("op2", "op1")]),
        ("VADDPS (XMM, XMM, XMM)", "2:VR128->0:VR128", [("op3", "op1")]),
        ("VPADDD (XMM, K, XMM, XMM)", "1:VR128X->0:VR128X", [("op1", "op1")]),
        ("VPADDD (XMM, K, XMM, XMM)", "2:VK4WM->0:VR128X", [("op2", "op1")]),
        ("VPADDD (XMM, K, XMM, XMM)", "4:VR128X->0:VR128X", [("op4", "op1")]),
        ("XADD (R64, R64)", "3:GR64->1:GR64", [("op2", "op2")]),
        ("CMC", "EFLAGS->EFLAGS", [("flags.CF", "flags.CF")]),
    ],
)
def test_llvm_pairs_become_ours(table, form, pair, ours):
    assert llvm_pair(table[form], pair) == ours


def test_flags_stand_for_all_but_af(table):
    targets = {target for _, target in llvm_pair(table["ADD_01 (R64, R64)"], "2:GR64->EFLAGS")}
    assert targets == {f"flags.{name}" for name in ("CF", "PF", "ZF", "SF", "OF")}


@pytest.mark.parametrize("pair", ["1:VR128->0:GR64", "7:GR64->0:GR64", "0:GR64->1:GR64", "1:GR32->0:GR64"])
def test_pairs_that_do_not_fit_are_left_out(table, pair):
    assert llvm_pair(table["ADD_01 (R64, R64)"], pair) == []
