"""`cyclescope machines`."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from contextlib import closing

import pytest

from cyclescope.infer import host_model
from cyclescope.infer.machine_model import build_model
from cyclescope.isa.table import load_table
from cyclescope.measure.database import default_store
from cyclescope.measure.store import Store
from cyclescope.model.check import problems
from cyclescope.model.schema import decode, read_model, write_model
from cyclescope.session.machines import load_model
from tests.support.made.machine import FORMS, IDENTITY

USAGE, FAILURE = 2, 1


@pytest.fixture(autouse=True)
def host(monkeypatch, tmp_path):
    """A simulated host; returns where its store is to be."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(host_model, "this_machine", lambda: IDENTITY)
    return default_store(IDENTITY.machine)


def test_list_has_a_line_per_machine(cyclescope):
    done = cyclescope("machines", "list")
    lines = done.out.splitlines()
    assert lines[0].split() == ["name", "isa", "ports", "width", "order", "forms", "from"]
    lent = next(n for n, line in enumerate(lines) if line.startswith("cores without a model"))
    assert lines[-1] == f"{lent - 1} machines"
    assert "  znver4: znver5" in lines[lent:]
    (skylake,) = [line for line in lines if line.startswith("skylake ")]
    assert skylake.split()[1:5] == ["x86-64", "10", "6", "out"]
    assert "LLVM scheduling models 22" in skylake


def test_list_as_json(cyclescope):
    data = json.loads(cyclescope("machines", "list", "--json").out)
    (zen,) = [m for m in data["machines"] if m["name"] == "znver4"]
    assert data["schema_version"] == 1
    assert zen["core"]["width"] == 6
    assert (zen["aliases"], zen["lends_to"]) == (["zen4"], ["znver5"])
    assert zen["provenance"]["licence"] == "Apache-2.0 WITH LLVM-exception"


def test_show_a_machine(cyclescope):
    out = cyclescope("machines", "show", "Skylake").out
    assert "6 slots per cycle (assumed), out of order, reorder buffer 224" in out
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
        "core.width: 0 is not from 0.125 to 64",
        "forms: ADD: operations[0]: ports: [99] do not exist, there are 9",
    ]
    assert done.out.endswith("2 problems\n")


@pytest.mark.parametrize("command", ["show", "check"])
@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("zen6", USAGE, "did you mean zen"),
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
        (["skylake", "imuli"], "did you mean IMUL"),
        (["skylake", "VADDPD (ZMM, ZMM, ZMM)"], "leaves them out"),
        (["neoverse-n2", "ADDXrx65"], "did you mean ADDXrx64"),
        (["skylake", ""], "empty pattern"),
    ],
)
def test_forms_that_are_not_there(cyclescope, arguments, said):
    done = cyclescope("machines", "show", *arguments)
    assert done.code == USAGE
    assert said in done.error


# --- measured machines ------------------------------------------------------------------------------


def test_build_writes_a_model(cyclescope, store, tmp_path):
    path = tmp_path / "measured.json.xz"
    done = cyclescope("machines", "build", "--store", store, "-o", path)
    assert done.out == f"{path}: {IDENTITY.machine}: 3 forms, no ports\n"
    model = read_model(path)
    assert not list(problems(model))
    assert sorted(model.forms) == sorted(FORMS)
    assert cyclescope("machines", "check", path).out.endswith("nothing is wrong\n")


def test_build_prints_a_model(cyclescope, store):
    model = decode(cyclescope("machines", "build", "--store", store).out.encode())
    assert model.provenance.kind == "measured"
    assert sorted(model.forms) == sorted(FORMS)


def test_a_measured_machine_is_shown(cyclescope, store, tmp_path):
    path = tmp_path / "measured.json"
    cyclescope("machines", "build", "--store", store, "-o", path)
    out = cyclescope("machines", "show", path).out
    assert "measured by cyclescope" in out
    assert "ports       not known" in out
    assert "no ports: `cyclescope measure --what ports`" in out
    card = cyclescope("machines", "show", path, "imul rax, rbx").out
    assert "measured" in card
    assert "op2 -> op1" in card


def test_build_without_a_store(cyclescope, tmp_path):
    assert "no store" in cyclescope("machines", "build").error
    assert "no store at" in cyclescope("machines", "build", "--store", tmp_path / "none.sqlite").error


def test_build_where_nothing_can_be_written(cyclescope, store, tmp_path):
    done = cyclescope("machines", "build", "--store", store, "-o", tmp_path / "nowhere" / "m.json")
    assert "No such file" in done.error


def test_native_needs_a_store(cyclescope):
    for command in ("show", "check"):
        done = cyclescope("machines", command, "native")
        assert done.code == FAILURE
        assert done.error.endswith("run `cyclescope measure`")
    assert not cyclescope("machines", "list").out.startswith("native")


def test_native_is_what_was_measured_here(cyclescope, host, store):
    host.parent.mkdir(parents=True)
    host.write_bytes(store.read_bytes())
    first = cyclescope("machines", "list").out.splitlines()[1]
    assert first.startswith("native ")
    assert "without a model yet" in first
    assert cyclescope("machines", "show", "native").code == 0
    assert "without a model yet" not in cyclescope("machines", "list").out
    (first, *_) = json.loads(cyclescope("machines", "list", "--json").out)["machines"]
    assert (first["name"], first["aliases"], first["form_count"]) == ("native", [IDENTITY.machine], 3)
    assert "measured" in cyclescope("machines", "show", "native", FORMS[0]).out
    assert cyclescope("machines", "check", "native").code == 0


def test_ranges_and_resources_are_shown(cyclescope, tmp_path):
    path = tmp_path / "m.json"
    write_model(load_model("skylake"), path)
    data = json.loads(path.read_bytes())
    data["resources"] = {"p1": 1.0, "unit": 2.0}
    data["forms"]["IMUL (R64, R64)"] |= {
        "resources": {"p1": 1.0, "unit": 0.5}, "confidence": "medium", "alternatives": ["2*p15"],
        "ranges": {"op2->op1": [2, 4], "op1->flags.OF": [1, 3]},
    }  # fmt: skip
    del data["forms"]["IMUL (R64, R64)"]["latencies"]["op1->flags.OF"]
    path.write_text(json.dumps(data))
    out = cyclescope("machines", "show", path, "IMUL (R64, R64)").out
    assert "  ports       1*p1  medium confidence\n              or 2*p15\n" in out
    assert "  resources   p1 1, unit 0.5\n" in out
    assert "op2 -> op1          3  (proved: 2 to 4)" in out
    assert "op1 -> flags.OF     1 to 3" in out
    shown = cyclescope("machines", "show", path).out
    assert "resources   2: cycles they have per cycle, and how many forms take some" in shown
    assert re.search(r"^ +unit +2 +1$", shown, re.MULTILINE)


def test_how_operations_get_their_ports_is_shown(cyclescope, tmp_path):
    path = tmp_path / "m.json"
    write_model(load_model("skylake"), path)
    data = json.loads(path.read_bytes())
    data["core"] |= {"binding": "evenly", "single": [0, 1], "writeback": {"ports": [0], "patience": 1}}
    path.write_text(json.dumps(data))
    shown = " ".join(cyclescope("machines", "show", path).out.split())
    assert "operations get those of their ports at dispatch that got fewest so far" in shown
    assert "each of p01 gets one operation in a cycle of dispatch" in shown
    assert "each of p0 writes one result in a cycle; younger ones start before what waits" in shown
    data["ports"] = [f"x{number}" for number in range(len(data["ports"]))]
    data["resources"] = {}
    for cost in data["forms"].values():
        cost.pop("resources", None)
    data["core"] |= {
        "binding": "ideal",
        "single": [],
        "writeback": None,
        "wakeup": {"ports": [0, 1], "clusters": [[0], [1]]},
    }
    path.write_text(json.dumps(data))
    assert re.search(r"each\s+operation in one of px0 or px1", cyclescope("machines", "show", path).out)


def test_of_many_resources_the_most_used_are_shown_and_the_rest_on_request(cyclescope, tmp_path):
    path = tmp_path / "m.json"
    write_model(load_model("skylake"), path)
    data = json.loads(path.read_bytes())
    names = [f"what limits {n}" for n in range(70)]
    data["resources"] = dict.fromkeys(names, 1.0) | {"tight": 0.1}
    data["forms"]["IMUL (R64, R64)"] |= {
        "resources": dict.fromkeys(names, 1.0) | {"tight": 1.0}, "operations": [[[1], 1, 1]],
        "alternatives": [f"{n}*p1" for n in range(2, 9)],
    }  # fmt: skip
    data["forms"]["NOP_90"]["resources"] = {names[69]: 1.0}
    path.write_text(json.dumps(data))
    out = cyclescope("machines", "show", path).out
    assert "71: cycles they have per cycle" in out
    assert re.search(r"some\n +what limits 69 +1 +2\n", out), "the most used one is the first"
    assert "and 61 that at most 1 form take: --all lists them" in out
    assert len(out.splitlines()) < 30
    whole = cyclescope("machines", "show", path, "--all").out
    assert all(name in whole for name in names)
    card = cyclescope("machines", "show", path, "IMUL (R64, R64)").out
    assert re.search(
        r"resources   tight 1, (what limits \d+ 1, ){3}67 that bind less, --all lists them", card
    )
    assert "or 4*p1\n" in card
    assert "or 5*p1\n" not in card
    assert "or 4 more, --all lists them\n" in card
    everything = cyclescope("machines", "show", path, "IMUL (R64, R64)", "--all").out
    assert "or 8*p1\n" in everything
    assert everything.count("what limits") == 70


def test_of_many_facts_the_first_are_shown_with_their_errors_and_the_rest_on_request(cyclescope, tmp_path):
    path = tmp_path / "m.json"
    write_model(load_model("skylake"), path)
    data = json.loads(path.read_bytes())
    asked = [(f"{n} bytes apart, twice", -0.0001 if n == 0 else n + 0.1234) for n in range(9)]
    data["facts"] = [
        {"probe": "banks", "subject": subject, "answer": "value", "value": value, "unit": "cycles",
         "error": 0.0123, "confidence": "high"} for subject, value in asked
    ]  # fmt: skip
    path.write_text(json.dumps(data))
    out = " ".join(cyclescope("machines", "show", path).out.split())
    assert "banks: 0 bytes apart, twice 0 ± 0.012 cycles; 1 bytes apart, twice 1.123 ± 0.012 cycles; " in out
    assert "5 bytes apart, twice 5.123 ± 0.012 cycles; 3 more, --all lists them forms" in out
    assert "8 bytes apart" not in out
    whole = " ".join(cyclescope("machines", "show", path, "--all").out.split())
    assert "8 bytes apart, twice 8.123 ± 0.012 cycles forms" in whole


# --- the model of this host -------------------------------------------------------------------------


@pytest.fixture
def measured_here(cyclescope, machine, host, monkeypatch):
    """Some forms measured into the default store; building a model fails from then on."""
    assert cyclescope("measure", *FORMS, "NOP").code == 0

    def build(path):
        raise AssertionError("a model was built")

    monkeypatch.setattr(host_model, "build_file", build)
    return host


def test_the_model_is_there_when_the_measurement_is_done(cyclescope, measured_here):
    assert cyclescope("machines", "list").out.splitlines()[1].split()[5] == "4"
    assert "measured" in cyclescope("machines", "show", "native", FORMS[0]).out
    assert decode(cyclescope("machines", "build").out.encode()).forms.keys() >= set(FORMS)


def test_measuring_what_is_there_keeps_the_model(cyclescope, measured_here):
    kept = measured_here.with_suffix(".model.json")
    before = kept.stat().st_mtime_ns, kept.stat().st_ino
    assert cyclescope("measure", *FORMS).code == 0
    assert (kept.stat().st_mtime_ns, kept.stat().st_ino) == before
    assert cyclescope("measure", "VPXOR (XMM, XMM, XMM)").code == 0
    assert kept.stat().st_mtime_ns != before[0]


def test_the_kept_model_is_what_the_store_makes(cyclescope, measured_here, monkeypatch):
    kept = host_model.stored_model(measured_here)
    monkeypatch.undo()
    from cyclescope.model.schema import encode

    assert encode(host_model.build_file(measured_here)) == encode(kept)


def test_listing_builds_nothing_for_a_store_that_has_changed(cyclescope, measured_here):
    os.utime(measured_here)
    line = cyclescope("machines", "list").out.splitlines()[1]
    assert line.startswith("native ")
    assert "older than the last measurement" in line


def test_building_is_told(cyclescope, host, store, monkeypatch):
    monkeypatch.setattr("cyclescope.report.progress.SHORT", 0.0)
    done = cyclescope("machines", "build", "--store", store, "-o", host.parent.parent / "m.json")
    assert done.err.startswith("model of this machine: ")


def test_a_model_of_a_stopped_run_says_so(cyclescope, measured_here, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("XDG_DATA_HOME", str(measured_here.parents[1]))
    monkeypatch.setattr(host_model, "this_machine", lambda: IDENTITY)
    with closing(sqlite3.connect(measured_here)) as db, db:
        db.execute("UPDATE session SET conditions = json_remove(conditions, '$.finished')")
        db.execute("DELETE FROM measurement WHERE quantity = 'latency' AND form GLOB 'IMUL*'")
    assert "  missing     " in cyclescope("machines", "show", "native").out


def built(path):
    with closing(Store(path, readonly=True)) as store:
        return build_model(store, load_table("x86-64"))


@pytest.mark.parametrize(
    ("spoiled", "why"),
    [("", "they tell no ports yet"), ("damaged", "damaged"), ("empty", "run `cyclescope measure` first")],
)
def test_analysis_says_why_it_does_not_use_what_was_measured(
    cyclescope, measured_here, monkeypatch, tmp_path, spoiled, why
):
    monkeypatch.setattr("cyclescope.session.machines.this_host", lambda: IDENTITY)
    monkeypatch.setattr("cyclescope.cli.commands.analyze.host_isa", lambda: "x86-64")
    if spoiled:
        measured_here.write_bytes(b"no store")
        monkeypatch.setattr(host_model, "build_file", built)
        if spoiled == "empty":
            measured_here.unlink()
            Store(measured_here, IDENTITY.machine).close()
    loop = tmp_path / "loop.s"
    loop.write_text("1: imul %rax, %rbx\n dec %rdi\n jnz 1b\n")
    done = cyclescope("analyze", loop)
    assert done.code == 0
    assert "stands in for the measurements of this host" in done.err
    assert why in done.err
