"""`cyclescope forms` of AArch64 and RISC-V."""

from __future__ import annotations

import json

import pytest


def test_forms_are_listed_with_an_example(cyclescope):
    done = cyclescope("forms", "--isa", "aarch64", "ldpx*")
    assert done.out.splitlines() == [
        "LDPXi     BASE  ldp x1, x2, [x3, #0]",
        "LDPXpost  BASE  ldp x2, x3, [x1], #8",
        "LDPXpre   BASE  ldp x2, x3, [x1, #0]!",
        "3 forms",
    ]


@pytest.mark.parametrize(("isa", "count"), [("aarch64", 7491), ("riscv64", 2804)])
def test_all_of_an_isa(cyclescope, isa, count):
    assert cyclescope("forms", "--isa", isa).out.endswith(f"\n{count} forms\n")


def test_json(cyclescope):
    data = json.loads(cyclescope("forms", "--isa", "aarch64", "ADDSXrs", "--json").out)
    (form,) = data["forms"]
    assert data["isa"] == "aarch64"
    assert "Apache-2.0" in data["source"]["forms"]
    assert (form["id"], form["mnemonic"], form["names"]) == ("ADDSXrs", "ADDS", {"llvm": "ADDSXrs"})
    assert (form["sources"], form["targets"]) == (["op2", "op3"], ["op1", "NZCV"])
    assert form["flags"] == {"read": [], "written": ["N", "Z", "C", "V"], "undefined": []}
    assert form["syntax"] == "adds {op1}, {op2}, {op3}{op4}"
    assert form["example"] == "adds x1, x2, x3"
    assert form["encodable"]
    assert form["encoding"]["base"] == "0xab000000"
    assert form["encoding"]["fields"][3] == {"operand": "op4", "bits": [10, 11, 12, 13, 14, 15, 22, 23],
                                             "legal": 192}  # fmt: skip
    assert form["operands"][0]["file"] == "r"


def test_x86_64_has_no_new_fields(cyclescope):
    (form,) = json.loads(cyclescope("forms", "IMUL (R64, R64)", "--json").out)["forms"]
    assert not {"syntax", "example", "encoding"} & set(form)
    assert list(form["operands"][0])[-1] == "element"


def test_a_form_that_is_not_there(cyclescope):
    done = cyclescope("forms", "--isa", "riscv64", "vaddd.vv")
    assert done.code == 2
    assert "did you mean" in done.error
