"""`cyclescope machines`."""

from __future__ import annotations

import json

import pytest

from cyclescope.model.library import load_model
from cyclescope.model.schema import decode, write_model

USAGE, FAILURE = 2, 1


def test_list_has_a_line_per_machine(cyclescope):
    done = cyclescope("machines", "list")
    lines = done.out.splitlines()
    assert lines[0].split() == ["name", "isa", "ports", "width", "order", "forms", "from"]
    assert lines[-1] == f"{len(lines) - 2} machines"
    (skylake,) = [line for line in lines if line.startswith("skylake ")]
    assert skylake.split()[1:5] == ["x86-64", "10", "6", "out"]
    assert "LLVM scheduling models 22" in skylake


def test_list_as_json(cyclescope):
    data = json.loads(cyclescope("machines", "list", "--json").out)
    (zen,) = [m for m in data["machines"] if m["name"] == "znver4"]
    assert data["schema_version"] == 1
    assert zen["core"]["width"] == 6
    assert zen["aliases"] == ["znver5"]
    assert zen["provenance"]["licence"] == "Apache-2.0 WITH LLVM-exception"


def test_show_a_machine(cyclescope):
    out = cyclescope("machines", "show", "Skylake").out
    assert "6 slots per cycle, out of order, reorder buffer 224" in out
    assert "10: 0 1 2 3 4 5 6 7 Divider FPDivider" in out
    assert "PortAny (60 entries): 0 1 2 3 4 5 6 7" in out
    assert "Apache-2.0 WITH LLVM-exception" in out


def test_show_forms(cyclescope):
    out = cyclescope("machines", "show", "skylake", "imul rax, rbx", "VPXOR (XMM, XMM, XMM)").out
    imul, vpxor = out.split("\n\n")[:2]
    assert imul.splitlines()[0] == "IMUL (R64, R64)"
    assert "  slots       1" in imul
    assert "  ports       1*p1\n" in imul
    assert "  throughput  1.00  from the ports" in imul
    assert "op2 -> op1          3" in imul
    assert "op2 -> flags.CF OF  3" in imul
    assert "zero idiom" in vpxor


def test_the_front_end_can_bound(cyclescope):
    out = cyclescope("machines", "show", "skylake", "NOP_90").out
    assert "throughput  0.17  from the front end" in out
    assert "ports       -" in out


def test_forms_of_other_isas_are_named_as_llvm_does(cyclescope):
    out = cyclescope("machines", "show", "neoverse-n2", "addx*").out
    assert "ADDXrs\n" in out
    assert "SUBXrs\n" not in out


def test_show_as_json_is_a_model_again(cyclescope):
    out = cyclescope("machines", "show", "znver3", "imul", "--json").out
    part, whole = decode(out.encode()), load_model("znver3")
    assert part.ports == whole.ports
    assert part.forms
    assert all(part.forms[form] == whole.forms[form] for form in part.forms)
    derived = json.loads(out)["derived"]["IMUL (R64, R64)"]
    assert derived == {"ports": "1*pALU1", "throughput": 1.0, "bound": "ports"}


def test_check_a_shipped_machine(cyclescope):
    done = cyclescope("machines", "check", "neoverse-v1")
    assert done.code == 0
    assert done.out.endswith("nothing is wrong\n")


def test_check_lists_what_is_wrong(cyclescope, tmp_path):
    path = tmp_path / "broken.json"
    write_model(load_model("sifive-p550"), path)
    data = json.loads(path.read_bytes())
    data["core"]["width"] = 0
    data["forms"]["ADD"]["operations"] = [[[99], 1, 1]]
    path.write_text(json.dumps(data))
    done = cyclescope("machines", "check", path)
    assert done.code == FAILURE
    assert done.out.splitlines()[:-1] == [
        "core: width 0 is not positive",
        "ADD: ports [99] do not exist",
    ]
    assert done.out.endswith("2 problems\n")


@pytest.mark.parametrize("command", ["show", "check"])
@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("zen4", USAGE, "did you mean znver4?"),
        ("./nowhere.json", USAGE, "no such file"),
        ("/", FAILURE, "is a directory"),
    ],
)
def test_names_that_lead_nowhere(cyclescope, command, name, code, said):
    done = cyclescope("machines", command, name)
    assert done.code == code
    assert said in done.error.lower()


def test_a_file_that_is_no_model(cyclescope, tmp_path):
    path = tmp_path / "notes.json"
    path.write_text("{}")
    done = cyclescope("machines", "check", path)
    assert done.code == FAILURE
    assert "no machine model" in done.error


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["skylake", "imull"], "did you mean IMUL"),
        (["skylake", "VADDPD (ZMM, ZMM, ZMM)"], "leaves them out"),
        (["neoverse-n2", "ADDXrx65"], "did you mean ADDXrx64"),
        (["skylake", ""], "empty pattern"),
    ],
)
def test_forms_that_are_not_there(cyclescope, arguments, said):
    done = cyclescope("machines", "show", *arguments)
    assert done.code == USAGE
    assert said in done.error
